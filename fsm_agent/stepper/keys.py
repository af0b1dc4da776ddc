"""Key presses by name, from the characters that a terminal sends for them, on POSIX and on Windows."""

from __future__ import annotations

import re
from collections.abc import Iterator

_KEY = re.compile(r"\x1b\[[0-9;]*[A-Za-z~]|\x1bO[A-Za-z]|[\x00\xe0][GHIKMOPQ]|.", re.DOTALL)
_BEGUN = re.compile(r"\x1b(?:\[[0-9;]*|O)?\Z")
"""The beginning of a sequence whose rest may still come, as over a slow line."""

_NAMES = {
    **dict.fromkeys(("\x1b[C", "\x1bOC", "\xe0M", "\x00M", "n", " ", "\r", "\n", "l"), "next"),
    **dict.fromkeys(("\x1b[D", "\x1bOD", "\xe0K", "\x00K", "p", "\x7f", "\x08", "h"), "back"),
    **dict.fromkeys(("\x1b[H", "\x1bOH", "\x1b[1~", "\x1b[7~", "\xe0G", "\x00G", "g"), "first"),
    **dict.fromkeys(("\x1b[F", "\x1bOF", "\x1b[4~", "\x1b[8~", "\xe0O", "\x00O", "G"), "last"),
    **dict.fromkeys(("\x1b[B", "\x1bOB", "\x1b[6~", "\xe0P", "\x00P", "\xe0Q", "\x00Q", "j"), "down"),
    **dict.fromkeys(("\x1b[A", "\x1bOA", "\x1b[5~", "\xe0H", "\x00H", "\xe0I", "\x00I", "k"), "up"),
    **dict.fromkeys(("t", "T"), "type"),
    **dict.fromkeys(("b", "B"), "branch"),
    **dict.fromkeys(("m", "M"), "messages"),
    **dict.fromkeys(("q", "Q", "\x04"), "quit"),
    "?": "help",
    "\x03": "interrupt",
    "\x0c": "redraw",
}


class Keys:
    """Takes characters as they come, in whatever pieces, and gives the names of the keys that they complete."""

    def __init__(self) -> None:
        self._begun = ""

    def take(self, characters: str) -> Iterator[str]:
        """The keys in ``characters``; empty for a key that does nothing."""
        text = self._begun + characters
        begun = _BEGUN.search(text)
        self._begun = begun[0] if begun else ""
        for found in _KEY.findall(text[: begun.start()] if begun else text):
            yield _NAMES.get(found, "")
