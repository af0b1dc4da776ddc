"""A line that a person types: with keys that edit it where the terminal can be drawn on, and else as the terminal gives it."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

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
    with ExitStack() as terminal:
        keys = Input(terminal.enter_context(raw_keys()))
        _write(console, ASK_FOR_PASTE)
        terminal.callback(_write, console, f"{NO_PASTE}\r\n")
        terminal.enter_context(_killed_in_order(terminal.close))
        while left is None:
            if not keys.waits:
                _draw(console, prompt, line)
            left = _take(keys, line)
        _draw(console, prompt, line)
    return line.text if left == "done" else None


@contextmanager
def _killed_in_order(give_back: Callable[[], None]) -> Iterator[None]:
    """As a context: a signal that ends the process calls ``give_back``, which leaves the context, and ends it then."""

    def end(number: int, _frame: object) -> None:
        try:
            give_back()
        finally:
            signal.raise_signal(number)

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]  # Windows has no SIGHUP
    if threading.current_thread() is not threading.main_thread():
        numbers = []  # it may not be asked for signals
    ours = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


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
