"""The parts of a lesson's Markdown: text, tables, console sessions, files to save, pictures, questions.

The files are plain Markdown that reads well by itself. Only what stands at the beginning of a line is a part of its own: a fenced block
of ``console``, one of ``toml`` whose first line names the file, a picture alone on its line, lines that begin with ``|``, and
``<details>`` with a ``<summary>``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import attrs

_FENCE = re.compile(r"```(?P<language>\w*)\s*\Z")
_PICTURE = re.compile(r"!\[(?P<caption>[^\]]*)\]\((?:[^)]*/)?(?P<source>[\w-]+)\.svg\)\s*\Z")
_NAMED = re.compile(r"# (?P<name>[\w-]+\.toml)\b")
_SUMMARY = re.compile(r"<summary>(?P<question>.*)</summary>\s*\Z")


@attrs.frozen
class Prose:
    """Text."""

    markdown: str


@attrs.frozen
class Table:
    """A table."""

    markdown: str

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """Its cells, as Markdown; the first row is the heading."""
        lines = self.markdown.split("\n")
        return tuple(tuple(cell.strip() for cell in line.strip("|").split("|")) for line in (lines[0], *lines[2:]))


class Call(NamedTuple):
    """A command and what it prints."""

    command: str
    output: str


@attrs.frozen
class Session:
    """Commands with their output."""

    calls: tuple[Call, ...]


@attrs.frozen
class File:
    """A scenario for the reader to save."""

    name: str
    text: str


@attrs.frozen
class Picture:
    """The path that a scenario takes, or the machine."""

    caption: str
    source: str
    """A scenario's name, or ``machine-agent``."""

    @property
    def is_machine(self) -> bool:
        """It shows no run."""
        return self.source == "machine-agent"


@attrs.frozen
class Question:
    """A question, and an answer that is shown when it is asked for."""

    question: str
    answer: str
    """Markdown."""


Part = Prose | Table | Session | File | Picture | Question


def parse(text: str) -> tuple[Part, ...]:
    """The parts of a lesson's text. Raises ``ValueError`` with the line's number for a block that is not closed."""
    return tuple(_parts(text.splitlines()))


def _parts(lines: list[str]) -> Iterator[Part]:
    prose: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        part: Part | None = None
        end = at
        if fence := _FENCE.match(line):
            end = _closing(lines, at, "```")
            part = _block(fence["language"], lines[at + 1 : end])
        elif picture := _PICTURE.match(line):
            part = Picture(picture["caption"], picture["source"])
        elif line.startswith("|"):
            end = next((i for i in range(at, len(lines)) if not lines[i].startswith("|")), len(lines)) - 1
            part = Table("\n".join(lines[at : end + 1]))
        elif line.strip() == "<details>":
            end = _closing(lines, at, "</details>")
            part = _question(lines[at + 1 : end], at + 1)
        if part is None:
            prose += lines[at : end + 1]
        else:
            yield from _prose(prose)
            prose = []
            yield part
        at = end + 1
    yield from _prose(prose)


def _closing(lines: list[str], at: int, mark: str) -> int:
    """The index of the line that closes the block begun in line ``at``."""
    for end in range(at + 1, len(lines)):
        if lines[end].strip() == mark:
            return end
    raise ValueError(f"line {at + 1}: the block is not closed; {mark} is missing")


def _prose(lines: list[str]) -> Iterator[Prose]:
    text = "\n".join(lines).strip()
    if text:
        yield Prose(text)


def _block(language: str, lines: list[str]) -> Part | None:
    """The part that a fenced block is; None: it is text like the rest."""
    if language == "console":
        sessions = re.split(r"^\$ ", "\n".join(lines) + "\n", flags=re.MULTILINE)
        calls = [each.partition("\n") for each in sessions if each]
        return Session(tuple(Call(command, output) for command, _, output in calls))
    if language == "toml" and lines and (named := _NAMED.match(lines[0])):
        return File(named["name"], "\n".join(lines) + "\n")
    return None


def _question(lines: list[str], number: int) -> Question:
    summary = _SUMMARY.match(lines[0]) if lines else None
    if summary is None:
        raise ValueError(f"line {number}: after <details> a line <summary>...</summary> must follow")
    return Question(summary["question"], "\n".join(lines[1:]).strip())
