"""Text that others wrote, made fit for one line of a drawing: nothing in it steers a terminal, a reader or a renderer."""

from __future__ import annotations

import unicodedata

JOINERS = "\u200c\u200d"
"""Invisible characters that words of some scripts, and some emoji, need."""


def one_line(text: str, width: int) -> str:
    """``text`` on one line of at most ``width`` columns: runs of white space are one space, what cannot be shown is an escape, the rest is cut."""
    shown: list[str] = []
    used = 0
    for char in " ".join(text[: width * 8].split()):
        piece = char if _is_shown(char) else char.encode("unicode_escape").decode()
        used += columns(piece)
        shown.append(piece)
        if used > width or len(shown) > width * 4:
            return _cut(shown, width - 1) + "…"
    return "".join(shown) + ("…" if len(text) > width * 8 else "")


def wrapped(text: str, width: int, lines: int) -> list[str]:
    """``text`` in at most ``lines`` lines of ``width`` columns, broken at spaces where there are any, and cut after that."""
    rest = one_line(text, width * lines)
    found: list[str] = []
    while rest and len(found) < lines:
        line = rest if columns(rest) <= width else _cut(rest, width)
        if len(line) < len(rest) and " " in line and rest[len(line)] != " " and columns(line[: line.rindex(" ")]) > width // 2:
            line = line[: line.rindex(" ")]
        found.append(line.strip())
        rest = rest[len(line) :].strip()
    if rest:
        found[-1] = one_line(f"{found[-1]}…" if columns(found[-1]) < width else found[-1] + "……", width)
    return found


def columns(text: str) -> int:
    """How many columns of a terminal ``text`` takes: wide characters take two, marks over another character none."""
    return sum(0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def _is_shown(char: str) -> bool:
    code = ord(char)
    if code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF:  # no characters, and not allowed in XML
        return False
    return char in JOINERS or unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def _cut(pieces: list[str] | str, width: int) -> str:
    used = 0
    for i, piece in enumerate(pieces):
        used += columns(piece)
        if used > width:
            return "".join(pieces[:i])
    return "".join(pieces)
