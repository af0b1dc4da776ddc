"""A run as plain lines, for pipes, files, and terminals on which nothing can be written over."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from fsm_agent.events import Event, ModelReplied
from fsm_agent.language import Language
from fsm_agent.live.view import View, shortened
from fsm_agent.machine import Run, Taken
from fsm_agent.text import printable

MOST = 20_000
"""Characters of one entry that are shown; the record has all."""


class PlainView(View):
    """Writes each line when it is known; of a reply that is streamed, each piece."""

    def __init__(self, lang: Language, write: Callable[[str], object]) -> None:
        """``write`` puts text out at once, as it is."""
        super().__init__(lang)
        self._write = write
        self._lock = threading.Lock()
        self._goes_on = False
        self._streamed = ""
        """The line that is not finished."""

    @property
    def shows(self) -> bool:
        return True

    def began(self, run: Run) -> None:
        super().began(run)
        self._goes_on = True

    def text(self, piece: str) -> None:
        with self._lock:
            if self.run is None or not self._goes_on or not piece:
                return  # a model that was abandoned may still say something
            if not self._streamed:
                piece = self.lang.say("[step {k}] LLM output: {text}", k=self.run.step + 1, text=piece)
            piece = printable(piece)
            self._write(piece[: max(MOST - len(self._streamed), 0)])
            self._streamed += piece

    def took(self, run: Run, event: Event, _edges: Sequence[Taken], /) -> None:
        with self._lock:
            lines = list(self._transcript.lines(run))
            begun, self._streamed = self._streamed, ""
            if begun and isinstance(event, ModelReplied) and lines and lines[0].startswith(begun):
                self._write(shortened(lines.pop(0), self.lang, MOST)[min(len(begun), MOST) :])
            if begun:
                self._write("\n")
            for line in lines:
                self._say(line)

    def ended(self, run: Run) -> None:  # noqa: ARG002  # as every Watcher
        with self._lock:
            self._goes_on = False
            if self._streamed:
                self._write("\n")

    def _say(self, line: str) -> None:
        self._write(f"{shortened(line, self.lang, MOST)}\n")
