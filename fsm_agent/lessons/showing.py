"""A lesson on paper and on a terminal: Markdown for pipes, and formatted for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from rich import table as grid
from rich.box import SIMPLE
from rich.console import Console, RenderableType
from rich.markdown import Markdown
from rich.padding import Padding
from rich.text import Text

from fsm_agent.diagrams import View, machine_view, path_view
from fsm_agent.guards import production
from fsm_agent.language import Language
from fsm_agent.lessons.checking import MOST_STEPS, play
from fsm_agent.lessons.load import Lesson
from fsm_agent.lessons.parts import File, Part, Picture, Prose, Question, Session, Table
from fsm_agent.options import FEATURES

WIDEST = 100
"""Columns of text; wider lines are hard to read."""


def view_of(picture: Picture, lesson: Lesson, lang: Language) -> View:
    """What the picture shows."""
    if picture.is_machine:
        return machine_view(production(MOST_STEPS), lang, FEATURES)
    scenario = lesson.scenario(picture.source)
    return path_view(play(scenario, scenario.guards, lang).run, scenario.titled(lang.code), lang)


def print_plain(lesson: Lesson, lang: Language, *, answers: bool) -> Iterator[str]:
    """The lesson as Markdown, its pictures as text, and its questions without HTML."""
    for part in lesson.parts:
        yield from _plain(part, lesson, lang, answers=answers)
        yield ""
    if not answers:
        yield _hint(lesson, lang)


def _plain(part: Part, lesson: Lesson, lang: Language, *, answers: bool) -> Iterator[str]:
    match part:
        case Prose(markdown=markdown) | Table(markdown=markdown):
            yield markdown
        case Session(calls=calls):
            yield "```console"
            for call in calls:
                yield f"$ {call.command}"
                yield from call.output.splitlines()
            yield "```"
        case File(text=text):
            yield f"```toml\n{text}```"
        case Picture():
            yield f"```text\n{_text(part, lesson, lang)}\n```"
        case Question(question=question, answer=answer):
            yield f"**{question}**"
            if answers:
                yield ""
                yield answer
        case _:
            assert_never(part)


def print_rich(lesson: Lesson, lang: Language, console: Console, *, answers: bool) -> None:
    """The lesson for a terminal of any width."""
    width = min(console.width, WIDEST)
    for part in lesson.parts:
        for shown in _rich(part, lesson, lang, answers=answers):
            console.print(shown, width=width)
        console.print()
    if not answers:
        console.print(Text(_hint(lesson, lang), "dim"), width=width)


def _rich(part: Part, lesson: Lesson, lang: Language, *, answers: bool) -> Iterator[RenderableType]:
    match part:
        case Prose(markdown=markdown):
            yield Markdown(markdown, hyperlinks=False, code_theme="ansi_light")
        case Table(rows=rows):
            yield _table(rows)
        case Session(calls=calls):
            for call in calls:
                yield _block(Text(f"$ {call.command}", "bold"))
                if call.output:
                    yield _block(Text(call.output.rstrip("\n")))
        case File(text=text):
            yield _block(Text(text.rstrip("\n"), "cyan"))
        case Picture():
            yield Text(_text(part, lesson, lang), overflow="fold")
        case Question(question=question, answer=answer):
            yield Text(question, "bold")
            if answers:
                yield Padding(Markdown(answer, hyperlinks=False), (0, 0, 0, 2))
        case _:
            assert_never(part)


def _table(rows: Sequence[Sequence[str]]) -> grid.Table:
    """With every word of its cells: what Rich makes of a table in Markdown is cut where it has no room."""
    head, *body = rows
    table = grid.Table(*(grid.Column(name, overflow="fold") for name in head), box=SIMPLE, pad_edge=False)
    for row in body:
        table.add_row(*map(_cell, row))
    return table


def _cell(markdown: str) -> Text:
    """Between backticks stands code."""
    pieces = markdown.split("`")
    return Text.assemble(*((piece, "cyan" if i % 2 else "") for i, piece in enumerate(pieces)), overflow="fold")


def _block(text: Text) -> Padding:
    text.overflow = "fold"
    return Padding(text, (0, 0, 0, 2))


def _text(picture: Picture, lesson: Lesson, lang: Language) -> str:
    return view_of(picture, lesson, lang).text.rstrip("\n")


def _hint(lesson: Lesson, lang: Language) -> str:
    command = f"fsm-agent learn {lesson.number} --answers"
    return lang.say("The answers to the questions: {command}", command=command)
