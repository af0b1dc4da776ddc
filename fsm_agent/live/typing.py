"""A line that a person types: with keys that edit it where the terminal can be drawn on, and else as the terminal gives it."""

from __future__ import annotations

import sys

from rich.cells import cell_len
from rich.console import Console
from rich.control import Control
from rich.segment import ControlType
from rich.text import Text

from fsm_agent.live.view import can_draw
from fsm_agent.stepper.editing import ASK_FOR_PASTE, NO_PASTE, Left, TypedLine
from fsm_agent.stepper.keys import Input
from fsm_agent.stepper.terminal import raw_keys
from fsm_agent.text import printable

SHORT = "> "
ROOM = 12
"""Cells that a person has to type in; a prompt that leaves fewer stands in a line of its own."""


def typed_line(console: Console, prompt: str, text: str = "") -> str | None:
    """What the person types after ``prompt``, beginning with ``text``, which can be edited. None for Ctrl-D, and where nobody is there.

    What was typed before the prompt was shown is no answer to it. Raises ``KeyboardInterrupt`` for Ctrl-C.
    """
    if not can_draw(console):
        return _plain_line(console, prompt, text)
    if console.width - cell_len(prompt) < ROOM:
        console.print(Text(prompt.rstrip()))
        prompt = SHORT if console.width > ROOM else ""
    line, left = TypedLine(), None
    line.text, line.at = text, len(text)
    with raw_keys() as read:
        keys = Input(read)
        _write(console, ASK_FOR_PASTE)
        try:
            while left is None:
                if not keys.waits:
                    _draw(console, prompt, line)
                left = _take(keys, line)
            _draw(console, prompt, line)
        finally:
            _write(console, f"{NO_PASTE}\r\n")
    return line.text if left == "done" else None


def _take(keys: Input, line: TypedLine) -> Left | None:
    try:
        piece = keys.piece()
    except (EOFError, OSError):  # the terminal is gone
        return "left"
    if piece == "\x03":
        raise KeyboardInterrupt
    return line.take(piece)


def _draw(console: Console, prompt: str, line: TypedLine) -> None:
    """The prompt and what fits of the line, in one row, with the cursor at its place."""
    width = max(console.width - 1, 2)  # the last cell stays free: some terminals scroll when it is filled
    before, after = line.shown(max(width - cell_len(prompt), 1))
    console.control(Control(ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 2)))
    console.print(Text(f"{prompt}{before}{after}"), end="", no_wrap=True, overflow="ignore", crop=False)
    if after:
        console.control(Control.move(-cell_len(after)))


def _write(console: Console, sequence: str) -> None:
    """A control sequence that the console itself knows nothing of."""
    if not console.legacy_windows:
        console.file.write(sequence)
        console.file.flush()


def _plain_line(console: Console, prompt: str, text: str) -> str | None:
    """What is typed into a terminal that cannot be drawn on. An empty line stands for ``text``, which is shown before."""
    if text:
        console.print(Text(printable(text)), soft_wrap=True)
    console.print(Text(prompt), end="")
    console.file.flush()
    typed = sys.stdin.readline() if sys.stdin is not None else ""
    if not typed:
        console.print()
        return None
    return typed.rstrip("\r\n") or text
