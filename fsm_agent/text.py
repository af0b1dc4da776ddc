"""Text that came from a model, a tool or a file, made fit for a terminal, a picture or a record."""

from __future__ import annotations

import re

_STEERING = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"  # controls, other line breaks, halves of characters
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f"  # the reading direction
    "\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u2060-\u2065\u3164\ufeff\uffa0\ufff0-\ufffb"  # what nobody sees
    "\U000e0000-\U000e0fff"  # tags, which can hold a whole text that nobody sees
    "]"
)
"""The joiners U+200C and U+200D, and U+FE0F, are not among them: some scripts and signs are written with them."""


def printable(text: str) -> str:
    """``text`` without what would steer a terminal, turn the reading direction or not be seen: such characters are shown as escapes."""
    return _STEERING.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def first_line(text: str, width: int = 200) -> str:
    """The first line of ``text`` that is not blank, without the space around it, cut at ``width`` characters."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= width else line[: width - 1] + "…"


def well_formed(text: str) -> str:
    """``text`` with lone surrogates, which no file can hold, written as escapes."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
