"""A run on a terminal: its lines stay, and below them a panel shows the machine as it moves."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from fsm_agent.events import AskModel, AttemptFailed, CallTools, Event, Observation, ToolCall
from fsm_agent.language import Language
from fsm_agent.live.panel import Gauge, Panel, gauges_of
from fsm_agent.live.view import View, shortened
from fsm_agent.machine import Run, Taken
from fsm_agent.table import HALTED
from fsm_agent.text import printable

PER_SECOND = 8
"""How often the panel is drawn."""
MOST_CHARS, MOST_LINES = 2_000, 8
"""Of one entry of the transcript, which the record has whole."""
KEPT = 20_000
"""Characters of a streamed reply that are kept for the panel, which shows their end."""


class LiveView(View):
    """Draws with ``rich``, whose thread draws the panel again and again, so that time is seen to pass."""

    def __init__(self, lang: Language, console: Console) -> None:
        super().__init__(lang)
        self._console = console
        self._live: Live | None = None
        self._lock = threading.Lock()
        self._streamed = ""
        self._gauges: tuple[Gauge, ...] = ()
        self._running: dict[int, str] = {}
        self._since = time.monotonic()
        self._wait_s = 0.0

    @property
    def shows(self) -> bool:
        return True

    # --- what happens ---

    def began(self, run: Run) -> None:
        super().began(run)
        self._gauges = gauges_of(run, self.lang)
        self._waits()
        self._start()

    def asks(self, run: Run, question: AskModel) -> None:  # noqa: ARG002  # as every Watcher
        self._waits()

    def calls(self, run: Run, index: int, call: ToolCall) -> None:  # noqa: ARG002  # as every Watcher
        with self._lock:
            if not self._running:
                self._since = time.monotonic()
            self._running = {**self._running, index: call.name}

    def called(self, run: Run, index: int, observation: Observation) -> None:  # noqa: ARG002  # as every Watcher
        with self._lock:
            self._running = {at: name for at, name in self._running.items() if at != index}

    def took(self, run: Run, event: Event, _edges: Sequence[Taken], /) -> None:
        self._gauges = gauges_of(run, self.lang)
        self._waits(run.wait_s or 0.0 if isinstance(event, AttemptFailed) else 0.0)
        if self._live is not None:
            self._live.refresh()  # else the lines would stand above the panel as it was
        for line in self._transcript.lines(run):
            self._say(line)

    def ended(self, run: Run) -> None:
        self._stop()
        if run.state == HALTED:
            self._console.print(Group(*self._panel().lines(self._console.width, 1)))

    def text(self, piece: str) -> None:
        with self._lock:
            self._streamed = (self._streamed + printable(piece))[-KEPT:]

    # --- what is shown ---

    def _say(self, line: str) -> None:
        text = Text(shortened(line.rstrip("\n"), self.lang, MOST_CHARS, MOST_LINES))
        prefix, bracket, _ = line.partition("] ")
        if bracket and line.startswith("[step "):
            text.stylize("dim", 0, len(prefix) + 1)
        self._console.print(text)

    @contextmanager
    def paused(self) -> Iterator[None]:
        self._stop()
        yield  # Ctrl-C ends the run, and leaves the panel away
        self._waits()
        self._start()

    def _waits(self, wait_s: float = 0.0) -> None:
        """From now on something else is waited for."""
        with self._lock:
            self._since, self._wait_s, self._streamed, self._running = time.monotonic(), wait_s, "", {}

    def _start(self) -> None:
        self._live = Live(
            get_renderable=self._render, console=self._console, refresh_per_second=PER_SECOND, transient=True, vertical_overflow="crop"
        )
        self._live.start()

    def _stop(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            live.stop()

    def _render(self) -> RenderableType:
        width, height = self._console.size
        return Group(*self._panel().lines(width, max(height - 1, 1)))

    def _panel(self) -> Panel:
        run, say = self.run, self.lang.say
        assert run is not None  # noqa: S101  # nothing is drawn before it began
        with self._lock:
            streamed = self._streamed
        step = say("step {step}", step=max(run.step + (isinstance(run.effect, AskModel) and run.reason is None), 1))
        return Panel(run.state, printable(run.reason or ""), step, self._gauges, self._activity(run), streamed)

    def _activity(self, run: Run) -> str:
        say = self.lang.say
        with self._lock:
            since, wait_s, running = self._since, self._wait_s, self._running
        seconds = int(time.monotonic() - since)
        effect = run.effect
        if isinstance(effect, CallTools) and running:
            return printable(say("{tools}: running, {n} s", tools=", ".join(running.values()), n=seconds))
        if not isinstance(effect, AskModel):
            return ""
        if wait_s > seconds:
            return say("the model is asked again in {n} s", n=int(wait_s - seconds) + 1)
        if effect.attempt > 1:
            return say("asking the model, time {k}: {n} s", k=effect.attempt, n=seconds)
        return say("asking the model: {n} s", n=seconds)
