"""The stepper in a terminal: one key press, one edge. It draws the whole screen after each key, so a changed window is no matter."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Literal, assert_never

import click
from click.termui import raw_terminal
from rich.console import Console
from rich.control import Control
from rich.segment import ControlType
from rich.text import Text

from fsm_agent.language import Language
from fsm_agent.stepper.keys import Keys
from fsm_agent.stepper.page import Item, page_of, shown_messages, stopped
from fsm_agent.stepper.screen import Frame, fitted, list_frame, page_frame
from fsm_agent.stepper.stepper import Stepper

Shown = Literal["page", "messages", "help"]


def can_draw(console: Console) -> bool:
    """Whether there is a terminal on both sides that can be drawn on."""
    return sys.stdin is not None and sys.stdin.isatty() and console.is_terminal and not console.is_dumb_terminal


class Terminal:
    """Draws the stepper and takes keys until ``q``."""

    def __init__(self, stepper: Stepper, lang: Language, console: Console) -> None:
        self._stepper = stepper
        self._lang = lang
        self._console = console
        self._keys = Keys()
        self._shown: Shown = "page"
        self._scroll = 0
        self._notice = ""
        self._done = False

    def play(self) -> None:
        """Until ``q``. Raises ``KeyboardInterrupt`` for Ctrl-C; the screen is as it was before, either way."""
        with self._console.screen():
            while not self._done:
                with _raw() as read:
                    typing = self._take_keys(read)
                if typing:
                    self._type()

    def _take_keys(self, read: Callable[[], str]) -> bool:
        """Take keys until something is to be typed (True), or until ``q`` (False)."""
        self._draw()
        while True:
            for key in self._keys.take(read()):
                self._notice = ""
                if key == "quit" and self._shown == "page":
                    self._done = True
                    return False
                if key == "type" and self._shown == "page":
                    self._notice = self._stepper.why_not_type(self._lang)
                    if not self._notice:
                        return True
                self._press(key)
            self._draw()

    def _press(self, key: str) -> None:
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
            return
        stepper, lang = self._stepper, self._lang
        match key:
            case "next":
                stop = stepper.next()
                self._notice = stopped(stop, lang) if stop else ""
            case "back":
                self._notice = "" if stepper.back() else lang.say("this is the beginning")
            case "first":
                stepper.first()
            case "last":
                stop = stepper.last()
                self._notice = "" if stop in {None, "halted"} else stopped(stop, lang)
            case "branch":
                self._notice = "" if stepper.switch() else lang.say("there is no other branch: type a reply (t) to make one")
            case "messages":
                self._shown = "messages"
            case "help":
                self._shown = "help"

    def _type(self) -> None:
        """Ask for a line, below what the model was told last, and let the model say it. An empty line, Ctrl-C, Ctrl-D: nothing is said."""
        stepper, lang = self._stepper, self._lang
        width, height = self._console.size
        hints = [Text(lang.say("You are the model (empty: never mind)"), "bold")]
        if stepper.script.takes_lines:
            hints.append(Text(lang.say("TOOL name key=value,... or FINAL answer"), "dim"))
        last = shown_messages(stepper, lang)[-1:]
        frame = list_frame(lang.say("What the model is shown last"), last, width, height - len(hints) - 1, lang)
        self._put([*frame.lines[:-1], Text(), *(fitted(hint, width) for hint in hints), Text()][-height:])
        self._console.control(Control.move_to(0, height - 1))
        self._console.show_cursor(show=True)
        try:
            text = _line("> ").strip()
        except (KeyboardInterrupt, EOFError):
            text = ""
        self._console.show_cursor(show=False)
        if text:
            stepper.type_reply(text)

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
def _raw() -> Iterator[Callable[[], str]]:
    """While it lasts, keys come at once and are not echoed, also those that are pressed while the screen is drawn."""
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    with raw_terminal() as descriptor:

        def read() -> str:
            if descriptor < 0:  # Windows: the console gives characters
                return click.getchar()
            found = os.read(descriptor, 1024)
            if not found:
                raise EOFError
            return decode(found)

        yield read


def _line(prompt: str) -> str:
    """A line that a person types, with the editing that the system offers."""
    with suppress(ImportError):
        import readline  # noqa: F401  # input() uses it once it is imported; Windows has its own
    return input(prompt)
