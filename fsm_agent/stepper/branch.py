"""One course that a run took: its events, fed one by one, and every edge that was taken on them."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Literal

import attrs
import msgspec

from fsm_agent.events import (
    ApprovalAsked,
    ApprovalGiven,
    AskApproval,
    AskModel,
    CallTools,
    ContextCompacted,
    Decision,
    Effect,
    Event,
    ModelReplied,
    ToolCall,
    ToolsReturned,
)
from fsm_agent.machine import Run, Taken
from fsm_agent.stepper.script import Script, as_typed
from fsm_agent.table import DECIDING, Row
from fsm_agent.tools import observe

Stop = Literal["halted", "recording_ended", "script_ended"]
"""Why there is no next edge: the run has halted; its recording simply ends; nothing says what the model would reply."""


@attrs.frozen
class Moment:
    """An edge that was taken, and all that belongs to it."""

    number: int
    """From 1."""
    taken: Taken
    row: Row
    event: Event
    """What happened in the world."""
    events: int
    """How many events there were up to here, this one included."""
    messages: int
    """The length of the history once this event was dealt with."""
    decision: Decision | None
    """On an edge out of Parsing: what the reply meant."""
    typed: bool
    """A person typed the reply of this step."""
    asked: tuple[ToolCall, ...] = ()
    """On the edges on which a person is asked about calls, and decides: these calls."""
    summary: ContextCompacted | None = None
    """What the model is shown from here on in place of the beginning of the history."""

    @property
    def asks_model(self) -> bool:
        """The model is to be asked next."""
        return self.row.dest == DECIDING


class Branch:
    """Plays on when it is asked to. Its past is never changed."""

    def __init__(self, script: Script, events: Iterable[Event] = (), typed: Iterable[int] = ()) -> None:
        """``events``: what has happened already; ``typed``: the steps whose reply a person typed."""
        self.script = script
        self.run: Run = script.pristine.copy()
        self.typed = set(typed)
        self.moments: list[Moment] = []
        self.events: list[Event] = []
        self._rows = {row.id: row for row in self.run.wiring.rows}
        self._now = self.run.at
        for event in events:
            self._feed(event)

    @property
    def is_script(self) -> bool:
        """Nobody typed anything."""
        return not self.typed

    def play(self) -> Stop | None:
        """Let one more event happen. None: it did; otherwise why there is none."""
        effect = self.run.effect
        if effect is None:
            return "halted"
        event: Event | None
        if self.is_script and self.script.recorded is not None:
            if len(self.events) >= len(self.script.recorded):
                return "recording_ended"
            event = self.script.recorded[len(self.events)]
        elif isinstance(effect, AskModel):
            event = self.script.heard(self.run.step + 1)
            if event is None or (self.typed and not isinstance(event, ModelReplied)):
                return "script_ended"
            event = msgspec.structs.replace(event, at=self._now)
        elif isinstance(effect, AskApproval):
            return "recording_ended"  # nobody is there to ask
        else:
            event = self._call(effect)
        self._feed(event)
        return None

    def type_reply(self, text: str) -> None:
        """The model's reply, typed. The run must be waiting for one."""
        step = self.run.step + 1
        self.typed.add(step)
        self._feed(ModelReplied(as_typed(text, step, self.run.protocol), self._now))

    def _call(self, effect: CallTools) -> ToolsReturned:
        """The calls are made. A run's clock stands still while a person thinks, and goes on while its tools work."""
        begun = time.perf_counter()
        observations = tuple(observe(self.script.tools, call, self.run.protocol.lang) for call in effect.calls)
        if self._now is not None:
            self._now += time.perf_counter() - begun
        return ToolsReturned(observations, self._now)

    def _feed(self, event: Event) -> None:
        run, logged, asked = self.run, len(self.run.log), _asked(self.run.effect, event)
        run.feed(event)
        self.events.append(event)
        self._now = event.at if event.at is not None else self._now
        for entry in run.log[logged:]:
            if isinstance(entry, Taken):
                row = self._rows[entry.edge]
                decision = run.decision if row.trigger == "parsed" else None
                typed = run.step in self.typed
                number = len(self.moments) + 1
                so_far = (len(self.events), len(run.history))
                self.moments.append(Moment(number, entry, row, event, *so_far, decision, typed, asked, run.summary))


def _asked(effect: Effect | None, event: Event) -> tuple[ToolCall, ...]:
    """The calls that a person is asked about with this event, or decides about."""
    match effect, event:
        case CallTools(calls=calls), ApprovalAsked(calls=asked):
            return tuple(calls[i] for i in asked)
        case AskApproval(calls=calls, asked=asked), ApprovalGiven():
            return tuple(calls[i] for i in asked)
    return ()
