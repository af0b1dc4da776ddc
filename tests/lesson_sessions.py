"""Runs the commands of the lessons, each lesson in a folder of its own with the files that it has the reader save."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from click.testing import CliRunner, Result

from fsm_agent.cli import cli
from fsm_agent.lessons import Lesson
from fsm_agent.lessons.parts import Call

_INLINE = re.compile(r"`((?:echo \w+ \| )?fsm-agent [^`]*)`")


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Within, ``folder`` is the working directory."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def run(command: str) -> Result:
    """Run a command line: ``fsm-agent ...``, or ``echo WORD | fsm-agent ...``."""
    before, pipe, after = command.rpartition(" | ")
    keys = before.removeprefix("echo ") + "\n" if pipe else ""
    program, *arguments = shlex.split(after)
    assert program == "fsm-agent", command
    return CliRunner().invoke(cli, arguments, input=keys, env={"LC_ALL": "C"}, catch_exceptions=False)


def printed(command: str) -> str:
    """What it prints, without the spaces at the ends of lines."""
    return "".join(f"{line.rstrip()}\n" for line in run(command).output.splitlines())


def sessions(lesson: Lesson, folder: Path) -> Iterator[tuple[Call, str]]:
    """Every call in the lesson's console blocks, in order, with what it prints now."""
    with inside(folder):
        for name, text in lesson.files.items():
            Path(name).write_text(text, encoding="utf-8")
        for session in lesson.sessions:
            for call in session.calls:
                yield call, printed(call.command)


def inline_commands(lesson: Lesson) -> list[str]:
    """The commands that stand in the text."""
    return _INLINE.findall(re.sub(r"^```.*?^```$", "", lesson.text, flags=re.MULTILINE | re.DOTALL))


def current(lesson: Lesson, folder: Path) -> str:
    """The lesson's text, with what its commands print now."""
    now = {call.command: output for call, output in sessions(lesson, folder)}

    def block(found: re.Match[str]) -> str:
        commands = re.findall(r"^\$ (.*)$", found[1], re.MULTILINE)
        return "```console\n" + "".join(f"$ {command}\n{now[command]}" for command in commands) + "```"

    return re.sub(r"^```console\n(.*?)^```$", block, lesson.text, flags=re.MULTILINE | re.DOTALL)
