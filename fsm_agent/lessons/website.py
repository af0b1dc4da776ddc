"""The lessons as web pages: a folder that works from disk, without a network. What runs in them are the players, and nothing else."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from pathlib import Path
from typing import assert_never

from markdown_it import MarkdownIt

from fsm_agent.language import LANGUAGES, Language, language
from fsm_agent.lessons.checking import play
from fsm_agent.lessons.embed import embed, figure, figure_style
from fsm_agent.lessons.load import Lesson, lessons
from fsm_agent.lessons.parts import File, Part, Picture, Prose, Question, Session, Table
from fsm_agent.lessons.showing import view_of
from fsm_agent.player import content_policy, player_script, player_style

NAMES = {"en": "English", "zh": "中文"}
TITLES = {"en": "ReAct as a state machine", "zh": "把 ReAct 当作状态机来学"}
UNPLAYED = ".fsm-player :is(.fsm-controls, .fsm-body) { display: none; }"
"""Where no script runs: of a player its timeline is left, under the picture."""
HTML_LANG = {"en": "en", "zh": "zh-CN"}


def write_site(folder: Path, first: str) -> Path:
    """Write every lesson in every language, and a first page with ``first`` as its first language. Gives that page's path.

    Raises ``OSError`` where it cannot be written.
    """
    order = (first, *(code for code in LANGUAGES if code != first))
    folder.mkdir(parents=True, exist_ok=True)
    for code in order:
        (folder / code).mkdir(exist_ok=True)
        for lesson in lessons(code):
            _write(folder / code / f"{lesson.slug}.html", lesson_page(lesson))
    index = folder / "index.html"
    _write(index, index_page(order))
    return index


def index_page(order: tuple[str, ...]) -> str:
    """The first page: the lessons in each language."""
    lists = []
    for code in order:
        items = "".join(f'<li><a href="{code}/{each.slug}.html">{escape(_bare(each))}</a></li>' for each in lessons(code))
        lists.append(f'<section lang="{HTML_LANG[code]}"><h2>{NAMES[code]}</h2><ol>{items}</ol></section>')
    return _page(order[0], TITLES[order[0]], f"<h1>{TITLES[order[0]]}</h1>{''.join(lists)}")


def lesson_page(lesson: Lesson) -> str:
    """One lesson."""
    lang = language(lesson.lang)
    body = "".join(_html(part, lesson, lang) for part in lesson.parts)
    plays = any(isinstance(part, Picture) and not part.is_machine for part in lesson.parts)
    return _page(lesson.lang, lesson.title, f"{_bar(lesson)}<article>{body}</article>{_next(lesson, lang)}", plays=plays)


def _html(part: Part, lesson: Lesson, lang: Language) -> str:
    match part:
        case Prose(markdown=markdown) | Table(markdown=markdown):
            return _markdown(markdown)
        case Session(calls=calls):
            lines = "".join(f"<b>$ {escape(call.command)}</b>\n{escape(call.output)}" for call in calls)
            return f'<pre class="console" tabindex="0"><code>{lines}</code></pre>'
        case File(text=text):
            return f'<pre class="file" tabindex="0"><code>{escape(text)}</code></pre>'
        case Picture(caption=caption, source=source):
            if part.is_machine:
                return figure(view_of(part, lesson, lang), "")
            scenario = lesson.scenario(source)
            return embed(play(scenario, scenario.guards, lang).run, f"scenario-{source}", caption, lang)
        case Question(question=question, answer=answer):
            return f"<details><summary>{_inline(question)}</summary>{_markdown(answer)}</details>"
        case _:
            assert_never(part)


def _bar(lesson: Lesson) -> str:
    """Where one is, and the same lesson in the other languages."""
    others = "".join(
        f'<a href="../{code}/{lesson.slug}.html" lang="{HTML_LANG[code]}" hreflang="{HTML_LANG[code]}">{NAMES[code]}</a>'
        for code in LANGUAGES
        if code != lesson.lang
    )
    return f'<nav><a href="../index.html">{TITLES[lesson.lang]}</a>{others}</nav>'


def _next(lesson: Lesson, lang: Language) -> str:
    around = {each.number: each for each in lessons(lesson.lang)}
    links = [
        f'<a rel="{rel}" href="{around[number].slug}.html">{escape(word)} {escape(around[number].title)}</a>'
        for rel, number, word in (("prev", lesson.number - 1, "←"), ("next", lesson.number + 1, "→"))
        if number in around
    ]
    label = lang.say("lessons before and after")
    return f'<nav aria-label="{escape(label)}">{"".join(links)}</nav>'


def _bare(lesson: Lesson) -> str:
    """The title without its number."""
    return lesson.title.partition(" ")[2]


def _page(code: str, title: str, body: str, *, plays: bool = False) -> str:
    """A whole page. ``plays``: there are players in it."""
    styles = [_style(), player_style()] if plays else [_style()]
    unplayed = [UNPLAYED] if plays else []
    scripts = [player_script()] if plays else []
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{content_policy(styles + unplayed, scripts)}">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title>{''.join(f'<style>{each}</style>' for each in styles)}"
        f"{''.join(f'<noscript><style>{each}</style></noscript>' for each in unplayed)}"
    )
    end = "".join(f"<script>{each}</script>" for each in scripts)
    return f'<!doctype html>\n<html lang="{HTML_LANG[code]}"><head>{head}</head><body><main>{body}</main>{end}</body></html>\n'


def _style() -> str:
    return (files(__package__) / "style.css").read_text(encoding="utf-8") + figure_style()


def _markdown(text: str) -> str:
    """As HTML. What may be wider than the page scrolls, and can be reached by the keyboard for that."""
    html = str(_reader().render(text))
    return html.replace("<pre>", '<pre tabindex="0">').replace("<table>", '<table tabindex="0">')


def _inline(text: str) -> str:
    return str(_reader().renderInline(text))


def _reader() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable("table")


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")
