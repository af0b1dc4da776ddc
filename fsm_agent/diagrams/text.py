"""Text that others wrote, made fit for one line of a drawing: nothing in it steers a terminal, a reader or a renderer."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

JOINERS = "\u200c\u200d"
"""Invisible characters that words of some scripts, and some emoji, need."""


def one_line(text: str, width: int) -> str:
    """``text`` on one line of at most ``width`` columns.

    Runs of white space are one space, what cannot be shown is an escape, and what is too long is cut.
    """
    read = text[: width * 8]
    pieces = [char if _is_shown(char) else _escape(char) for char in " ".join(read.split())]
    whole = len(read) == len(text) and len(pieces) <= width * 4 and columns("".join(pieces)) <= width
    return "".join(pieces) if whole else _cut(pieces[: width * 4], width - 1).rstrip() + "…"


def wrapped(text: str, width: int, lines: int) -> list[str]:
    """``text`` in at most ``lines`` lines of ``width`` columns, broken at spaces where there are any, and cut after that."""
    rest = one_line(text, width * (lines + 1))
    found: list[str] = []
    while rest and len(found) < lines:
        line = _cut(rest, width)
        space = line.rfind(" ")
        if len(line) < len(rest) and rest[len(line)] != " " and space > len(line) // 2:
            line = line[:space]
        found.append(line.strip())
        rest = rest[len(line) :].strip()
    if rest:
        found[-1] = _cut(found[-1], width - 1).rstrip("… ") + "…"
    return found


def columns(text: str) -> int:
    """How many columns of a terminal ``text`` takes: wide characters take two, marks over another character none."""
    return sum(0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def wide_characters(text: str) -> int:
    """How many of the characters are wide, as Chinese ones are."""
    return sum(unicodedata.east_asian_width(char) in "WF" for char in text)


def _is_shown(char: str) -> bool:
    code = ord(char)
    if code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF:  # no characters, and not allowed in XML
        return False
    return char in JOINERS or unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode()


def _cut(pieces: Sequence[str], width: int) -> str:
    """The first pieces, as many as fit into ``width`` columns."""
    used = 0
    for i, piece in enumerate(pieces):
        used += columns(piece)
        if used > width:
            return "".join(pieces[:i])
    return "".join(pieces)
