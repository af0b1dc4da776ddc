"""Key presses from the characters that a terminal sends for them: whole sequences, and what each is called."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable

ESCAPE = "\x1b"

_PIECE = re.compile(r"\x1b\[[0-9;]*[A-Za-z~]|\x1bO[A-Za-z]|\x1b\r|[^\x00-\x1f\x7f]+|.", re.DOTALL)
_BEGUN = re.compile(r"\x1b(?:\[[0-9;]*|O)?\Z")
"""The beginning of a sequence whose rest may still come, as over a slow line."""

_NAMES = {
    **dict.fromkeys(("\x1b[C", "\x1bOC", "n", " ", "\r", "\n", "l"), "next"),
    **dict.fromkeys(("\x1b[D", "\x1bOD", "p", "\x7f", "\x08", "h"), "back"),
    **dict.fromkeys(("\x1b[H", "\x1bOH", "\x1b[1~", "\x1b[7~", "g"), "first"),
    **dict.fromkeys(("\x1b[F", "\x1bOF", "\x1b[4~", "\x1b[8~", "G"), "last"),
    **dict.fromkeys(("\x1b[B", "\x1bOB", "\x1b[6~", "j"), "down"),
    **dict.fromkeys(("\x1b[A", "\x1bOA", "\x1b[5~", "k"), "up"),
    **dict.fromkeys(("t", "T"), "type"),
    **dict.fromkeys(("b", "B"), "branch"),
    **dict.fromkeys(("m", "M"), "messages"),
    **dict.fromkeys(("q", "Q", "\x04"), "quit"),
    "?": "help",
    "\x03": "interrupt",
    "\x0c": "redraw",
}

_WINDOWS = {"H": "[A", "P": "[B", "M": "[C", "K": "[D", "G": "[H", "O": "[F", "S": "[3~", "I": "[5~", "Q": "[6~"}
"""The keys that a Windows console sends as two characters, and what other terminals send for them."""


class Input:
    """What a terminal sends, as it comes and broken anywhere, in whole pieces and by the names of keys."""

    def __init__(self, read: Callable[[], str]) -> None:
        """``read`` waits for some characters and gives them."""
        self._read = read
        self._begun = ""
        self._waiting: deque[str] = deque()

    @property
    def waits(self) -> bool:
        """Whether the next piece is there already."""
        return bool(self._waiting)

    def piece(self) -> str:
        """The next piece: a control sequence, a control character, or plain text of any length."""
        while not self._waiting:
            text = self._begun + self._read()
            begun = _BEGUN.search(text)
            self._begun = begun[0] if begun else ""
            self._waiting.extend(_PIECE.findall(text[: begun.start()] if begun else text))
        return self._waiting.popleft()

    def key(self) -> str:
        """The next key, by name; empty for one that does nothing."""
        piece = self.piece()
        if len(piece) > 1 and not piece.startswith(ESCAPE):
            self._waiting.appendleft(piece[1:])
            piece = piece[0]
        return _NAMES.get(piece, "")


def from_windows(characters: str) -> str:
    """One key of a Windows console, as other terminals send it."""
    if len(characters) == 2 and characters[0] in "\x00\xe0":
        return f"{ESCAPE}{_WINDOWS[characters[1]]}" if characters[1] in _WINDOWS else ""
    return characters
