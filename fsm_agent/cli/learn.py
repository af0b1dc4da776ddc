"""``fsm-agent learn``: ReAct as a state machine, in eight lessons and one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fsm_agent.cli.common import DIFFERS, DONE, Fault, console, faults, lang_option, print_table
from fsm_agent.language import Language
from fsm_agent.text import printable

if TYPE_CHECKING:
    from fsm_agent.lessons import Lesson


@click.command()
@click.argument("number", required=False, type=click.IntRange(min=1))
@click.option("--answers", is_flag=True, help="Show the answers to the questions.")
@click.option(
    "--check", "answer", metavar="ANSWER", help="Check an answer to the exercise: a scenario file, or limits such as max_steps=6."
)
@click.option(
    "--files", "folder", type=click.Path(file_okay=False, path_type=Path), help="Write the lesson's scenario files into this folder."
)
@click.option("--html", "site", type=click.Path(file_okay=False, path_type=Path), help="Write all lessons as web pages into this folder.")
@lang_option
@click.pass_context
def learn(
    context: click.Context, number: int | None, answer: str | None, folder: Path | None, site: Path | None, lang: Language, *, answers: bool
) -> None:
    """List the lessons, or show lesson NUMBER.

    Exit code of --check: 0 the exercise is solved, 1 not yet, 2 the answer cannot be run.
    """
    from fsm_agent.lessons import lesson, lessons

    if site is not None:
        if number is not None or answers or answer is not None or folder is not None:
            raise Fault("--html writes all lessons; give it alone")
        with faults():
            _export(site, lang)
        return
    if number is None:
        if answers or answer is not None or folder is not None:
            raise Fault("name a lesson, as in: fsm-agent learn 1")
        print_table("", ["", lang.say("lesson")], [(each.number, each.title.partition(" ")[2]) for each in lessons(lang.code)])
        click.echo(lang.say("To begin: {command}", command="fsm-agent learn 1"))
        return
    with faults():
        found = lesson(number, lang.code)
        if folder is not None:
            _save(found, folder)
        solved = _check(found, answer, lang) if answer is not None else True
    if folder is None and answer is None:
        _show(found, lang, answers=answers)
    context.exit(DONE if solved else DIFFERS)


def _show(lesson: Lesson, lang: Language, *, answers: bool) -> None:
    from fsm_agent.lessons.showing import print_plain, print_rich

    if sys.stdout.isatty():
        print_rich(lesson, lang, console(), answers=answers)
    else:
        for text in print_plain(lesson, lang, answers=answers):
            click.echo(text)


def _check(lesson: Lesson, answer: str, lang: Language) -> bool:
    from fsm_agent.lessons.checking import check
    from fsm_agent.lessons.exercises import EXERCISES

    findings = check(lesson, EXERCISES[lesson.number], answer, lang)
    for finding in findings:
        mark = lang.say("yes") if finding.met else lang.say("no")
        click.echo(printable(f"{mark:<4}{finding.text}"))
    solved = all(finding.met for finding in findings)
    click.echo(lang.say("Solved.") if solved else lang.say("Not yet."))
    return solved


def _save(lesson: Lesson, folder: Path) -> None:
    """Raises ``Fault`` where there is nothing to write, or a file is there already."""
    if not lesson.files:
        raise Fault(f"lesson {lesson.number} has no files")
    if there := [name for name in lesson.files if (folder / name).exists()]:
        raise Fault(f"{folder / there[0]} is there already; it is left as it is")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in lesson.files.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
        click.echo(printable(str(folder / name)))


def _export(folder: Path, lang: Language) -> None:
    from fsm_agent.lessons.website import write_site

    click.echo(printable(str(write_site(folder, lang.code))))
