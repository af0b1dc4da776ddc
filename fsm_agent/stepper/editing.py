"""A line that is typed into a raw terminal: every key is seen here, so that none is lost between the prompt and the first of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from rich.cells import cell_len

from fsm_agent.stepper.keys import ESCAPE
from fsm_agent.text import printable

Left = Literal["done", "left"]
"""How typing ends: with what was typed, or with nothing."""

PASTE, PASTED = "\x1b[200~", "\x1b[201~"
"""What a terminal sends around text that is pasted, once it is asked to by ``ASK_FOR_PASTE``."""
ASK_FOR_PASTE, NO_PASTE = "\x1b[?2004h", "\x1b[?2004l"

BREAK = "↵"
"""Stands for a line break within the line."""

_LEFT, _RIGHT = {"\x1b[D", "\x1bOD", "\x02"}, {"\x1b[C", "\x1bOC", "\x06"}
_HOME, _END = {"\x1b[H", "\x1bOH", "\x1b[1~", "\x1b[7~", "\x01"}, {"\x1b[F", "\x1bOF", "\x1b[4~", "\x1b[8~", "\x05"}
_EARLIER, _LATER = {"\x1b[A", "\x1bOA", "\x10"}, {"\x1b[B", "\x1bOB", "\x0e"}


class TypedLine:
    """The line, and the place in it at which the next character goes."""

    def __init__(self, earlier: Sequence[str] = ()) -> None:
        """``earlier``: lines that were typed before, which the arrows up and down bring back."""
        self.text = ""
        self.at = 0
        self._lines = [*earlier, ""]
        self._shown = len(earlier)
        self._pasting = False

    def take(self, piece: str) -> Left | None:
        """Do what a piece of input (``keys.Input``) says. None: typing goes on."""
        if piece in {PASTE, PASTED}:
            self._pasting = piece == PASTE
        elif self._pasting:
            self._insert(piece.replace("\r", "\n") if not piece.startswith(ESCAPE) else "")
        elif piece in {"\r", "\n"}:
            return "done"
        elif piece == "\x03" or (piece == "\x04" and not self.text):
            return "left"
        elif piece == "\x1b\r":
            self._insert("\n")
        elif piece.startswith(ESCAPE) or piece < " " or piece == "\x7f":
            self._edit(piece)
        else:
            self._insert(piece)
        return None

    def shown(self, width: int) -> tuple[str, str]:
        """What is seen of the line in ``width`` cells, before and after the place of the next character, which is among them."""
        before, after = _seen(self.text[max(self.at - width, 0) : self.at]), _seen(self.text[self.at : self.at + width])
        if self.at > width or cell_len(before) > width - 1:
            while before and cell_len(before) > width - 2:
                before = before[1:]
            before = f"…{before}" if width > 1 else ""
        while after and cell_len(before) + cell_len(after) > width - 1:
            after = after[:-1]
        return before, after

    def _insert(self, text: str) -> None:
        kept = "".join(char for char in text.replace("\t", " ") if char == "\n" or (char >= " " and printable(char) == char))
        self.text = f"{self.text[: self.at]}{kept}{self.text[self.at :]}"
        self.at += len(kept)

    def _edit(self, key: str) -> None:
        if key in _LEFT:
            self.at = max(self.at - 1, 0)
        elif key in _RIGHT:
            self.at = min(self.at + 1, len(self.text))
        elif key in _HOME:
            self.at = 0
        elif key in _END:
            self.at = len(self.text)
        elif key in _EARLIER | _LATER:
            self._recall(-1 if key in _EARLIER else 1)
        else:
            self._remove(key)

    def _remove(self, key: str) -> None:
        begin, end = self.at, self.at
        match key:
            case "\x7f" | "\x08":
                begin = max(self.at - 1, 0)
            case "\x1b[3~" | "\x04":
                end = self.at + 1
            case "\x15":  # Ctrl-U
                begin = 0
            case "\x0b":  # Ctrl-K
                end = len(self.text)
            case "\x17":  # Ctrl-W
                begin = self.text[: self.at].rstrip(" ").rfind(" ") + 1
        self.text = self.text[:begin] + self.text[end:]
        self.at = begin

    def _recall(self, by: int) -> None:
        self._lines[self._shown] = self.text
        self._shown = min(max(self._shown + by, 0), len(self._lines) - 1)
        self.text = self._lines[self._shown]
        self.at = len(self.text)


def _seen(text: str) -> str:
    return text.replace("\n", BREAK)
