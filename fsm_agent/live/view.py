"""What every way to show a run has in common, and the one that shows nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from fsm_agent.drivers.watching import Watcher
from fsm_agent.language import Language
from fsm_agent.machine import Run
from fsm_agent.transcript import Transcript


class View(Watcher):
    """Shows nothing. Others show the run while it goes."""

    def __init__(self, lang: Language) -> None:
        self.lang = lang
        self.run: Run | None = None
        """The run, from its beginning on."""
        self._transcript = Transcript(lang)

    @property
    def shows(self) -> bool:
        """Whether it is worth while to stream the model's text to it."""
        return False

    def began(self, run: Run) -> None:
        """What a run that is taken up again has behind it is not told once more."""
        self.run = run
        list(self._transcript.lines(run))

    def text(self, piece: str) -> None:
        """The model said this, and goes on. It may be called from another thread."""

    @contextmanager
    def paused(self) -> Iterator[None]:
        """As a context: a person is asked something, and nothing else is shown."""
        yield


def can_draw(console: Console) -> bool:
    """Whether what was written there can be written over."""
    return console.is_terminal and not console.is_dumb_terminal


def can_type(console: Console) -> bool:
    """Whether a person who sees what is written there can answer."""
    return sys.stdin is not None and sys.stdin.isatty() and console.is_terminal


def shortened(text: str, lang: Language, most_chars: int, most_lines: int | None = None) -> str:
    """The beginning of a text, and how much more of it there is."""
    shown = text[:most_chars]
    lines = shown.split("\n")
    if most_lines is not None and len(lines) > most_lines:
        shown = "\n".join(lines[:most_lines])
    more = len(text) - len(shown)
    return shown if not more else f"{shown}\n" + lang.count("… and {n} more character", "… and {n} more characters", more)
