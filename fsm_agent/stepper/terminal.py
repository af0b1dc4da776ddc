"""The stepper in a terminal: one key press, one edge. It draws the whole screen after each key, so a changed window is no matter."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal, assert_never

import click
from click.termui import raw_terminal
from rich.cells import cell_len
from rich.console import Console
from rich.control import Control
from rich.segment import ControlType
from rich.text import Text

from fsm_agent.language import Language
from fsm_agent.stepper.editing import ASK_FOR_PASTE, NO_PASTE, TypedLine
from fsm_agent.stepper.items import Item
from fsm_agent.stepper.keys import Input, from_windows
from fsm_agent.stepper.page import page_of, shown_messages, stopped
from fsm_agent.stepper.screen import Frame, fitted, list_frame, page_frame
from fsm_agent.stepper.stepper import Stepper

Shown = Literal["page", "messages", "help"]
PROMPT = "> "


def can_draw(console: Console) -> bool:
    """Whether there is a terminal on both sides that can be drawn on."""
    return sys.stdin is not None and sys.stdin.isatty() and console.is_terminal and not console.is_dumb_terminal


class Terminal:
    """Draws the stepper and takes keys until ``q``."""

    def __init__(self, stepper: Stepper, lang: Language, console: Console) -> None:
        self._stepper = stepper
        self._lang = lang
        self._console = console
        self._typed: list[str] = []
        self._shown: Shown = "page"
        self._scroll = 0
        self._notice = ""
        self._done = False

    def play(self) -> None:
        """Until ``q``. Raises ``KeyboardInterrupt`` for Ctrl-C; the screen is as it was before, either way."""
        with self._console.screen(), raw_keys() as read:
            keys = Input(read)
            self._draw()
            while not self._done:
                self._press(keys.key(), keys)
                if not keys.waits and not self._done:
                    self._draw()

    def _press(self, key: str, keys: Input) -> None:
        self._notice = ""
        if key == "interrupt":
            raise KeyboardInterrupt
        if key in {"up", "down"}:
            self._scroll = max(self._scroll + (1 if key == "down" else -1), 0)
            return
        if key == "redraw":
            return
        self._scroll = 0
        if self._shown != "page":
            self._shown = "page"
        elif key == "quit":
            self._done = True
        elif key == "type":
            self._notice = self._stepper.why_not_type(self._lang)
            if not self._notice:
                self._type(keys)
        else:
            self._notice = self._go(key)

    def _go(self, key: str) -> str:
        """Do what a key says that leads somewhere. Gives what there is to say of it."""
        stepper, lang = self._stepper, self._lang
        match key:
            case "next":
                stop = stepper.next()
                return stopped(stop, lang) if stop else ""
            case "back":
                return "" if stepper.back() else lang.say("this is the beginning")
            case "first":
                stepper.first()
            case "last":
                stop = stepper.last()
                return "" if stop in {None, "halted"} else stopped(stop, lang)
            case "branch":
                return "" if stepper.switch() else lang.say("there is no other branch: type a reply (t) to make one")
            case "messages" | "help":
                self._shown = key
        return ""

    def _type(self, keys: Input) -> None:
        """Take a line, below what the model was told last, and let the model say it. An empty line, Ctrl-C, Ctrl-D: nothing is said."""
        line, left = TypedLine(self._typed), None
        self._write(ASK_FOR_PASTE)
        self._console.show_cursor(show=True)
        try:
            while left is None:
                if not keys.waits:
                    self._draw_typed(line)
                left = line.take(keys.piece())
        finally:
            self._console.show_cursor(show=False)
            self._write(NO_PASTE)
        text = line.text.strip() if left == "done" else ""
        if text:
            self._typed = [*(each for each in self._typed if each != text), text]
            self._stepper.type_reply(text)

    def _draw_typed(self, line: TypedLine) -> None:
        """What the model was told last, how to answer, and the line with the terminal's cursor in it."""
        stepper, lang = self._stepper, self._lang
        width, height = self._console.size
        hints = [Text(lang.say("You are the model (empty: never mind)"), "bold")]
        takes_lines = stepper.script.takes_lines
        hints.append(
            Text(lang.say("TOOL name key=value,... or FINAL answer") if takes_lines else lang.say("Alt-Enter begins a new line"), "dim")
        )
        last = shown_messages(stepper, lang)[-1:]
        frame = list_frame(lang.say("What the model is shown last"), last, width, height - len(hints) - 1, lang)
        prompt = PROMPT if width > 2 * len(PROMPT) else ""
        before, after = line.shown(width - len(prompt))
        rows = [*frame.lines[:-1], Text(), *(fitted(hint, width) for hint in hints), Text(f"{prompt}{before}{after}")]
        self._put(rows[-height:])
        self._console.control(Control.move(-cell_len(after)))

    def _write(self, sequence: str) -> None:
        """A control sequence that the console itself knows nothing of."""
        if not self._console.legacy_windows:
            self._console.file.write(sequence)

    def _draw(self) -> None:
        frame = self._frame(*self._console.size)
        self._scroll = min(self._scroll, frame.furthest)
        self._put(frame.lines)

    def _frame(self, width: int, height: int) -> Frame:
        lang, scroll = self._lang, self._scroll
        match self._shown:
            case "page":
                return page_frame(page_of(self._stepper, lang), width, height, lang, self._notice, scroll)
            case "messages":
                return list_frame(lang.say("What the model is shown"), shown_messages(self._stepper, lang), width, height, lang, scroll)
            case "help":
                return list_frame(lang.say("Keys"), _help(lang), width, height, lang, scroll)
            case _:
                assert_never(self._shown)

    def _put(self, lines: list[Text]) -> None:
        """Write the lines from the top, each at its place: no line break is needed, so the terminal never scrolls."""
        with self._console as console:
            for row, line in enumerate(lines):
                console.control(Control.move_to(0, row), Control((ControlType.ERASE_IN_LINE, 2)))
                console.print(line, end="", no_wrap=True, overflow="ignore", crop=False, highlight=False)


def _help(lang: Language) -> tuple[Item, ...]:
    say = lang.say
    return (
        Item("n → space", say("the next edge")),
        Item("p ←", say("the edge before")),
        Item("g Home, G End", say("the beginning, the end")),
        Item("t", say("be the model: type its reply, where it is asked; going back and typing again makes a branch")),
        Item("b", say("the next branch")),
        Item("m", say("the messages that the model is shown")),
        Item("↑ ↓", say("scroll")),
        Item("q", say("leave")),
    )


@contextmanager
def raw_keys() -> Iterator[Callable[[], str]]:
    """While it lasts, keys come at once and are not echoed, also those that are pressed while the screen is drawn."""
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    with raw_terminal() as descriptor:

        def read() -> str:
            if descriptor < 0:  # Windows: the console gives characters
                return _on_windows()
            found = os.read(descriptor, 1024)
            if not found:
                raise EOFError
            return decode(found)

        yield read


def _on_windows() -> str:
    """A key of a Windows console, where Ctrl-C and Ctrl-Z come as exceptions."""
    try:
        return from_windows(click.getchar())
    except KeyboardInterrupt:
        return "\x03"
    except EOFError:
        return "\x04"
