"""A run that is to be explained: its events, and a way to play them again under any guards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import attrs

from fsm_agent.audit.runs import STOPPED
from fsm_agent.events import Event
from fsm_agent.guards import Guard
from fsm_agent.language import ENGLISH, Language
from fsm_agent.machine import Run, UnexpectedEvent
from fsm_agent.protocols import RecordedProtocol
from fsm_agent.table import GUARD_REASONS, UNGUARDED_REASONS
from fsm_agent.traces.record import Trace, TraceError
from fsm_agent.traces.recordings import Ending, Outcome, Recording


class Ended(NamedTuple):
    """Where and why a run ends."""

    reason: str | None
    """The halt reason; None: the events end before it does."""
    step: int
    beyond: bool = False
    """The events end where something else had stopped the run: what would have come then is not known."""


@attrs.frozen
class Case:
    """A run and its guards."""

    title: str
    guards: tuple[Guard, ...]
    events: Sequence[Event]
    new_run: Callable[[Sequence[Guard]], Run]
    """A run that is set up as this one was, under other guards."""
    stopped: bool
    """Something stopped the run, when it was recorded, that would have gone on without."""
    outcome: Outcome = "unknown"
    ending: Ending = "unknown"

    def play(self, guards: Sequence[Guard]) -> Run:
        """The run under these guards, as far as its events go. Raises ``ValueError`` for events that no run can have had."""
        run = self.new_run(guards)
        try:
            for event in self.events:
                if run.feed(event) is None:
                    break
        except UnexpectedEvent as error:
            raise TraceError(f"{self.title}: these events belong to no run: {error}") from None
        return run

    def ended(self, run: Run) -> Ended:
        """Where and why a run of this case ends."""
        unguarded = run.reason is None or run.reason == "recording_ended"
        return Ended(run.reason, run.step, beyond=unguarded and self.stopped)


def case_of_recording(recording: Recording, guards: Sequence[Guard], title: str, lang: Language = ENGLISH) -> Case:
    """A recorded run of another system, under guards that it may not have had."""

    def new_run(guards: Sequence[Guard]) -> Run:
        return Run(recording.task, guards=guards, protocol=RecordedProtocol(lang), tools=recording.tools)

    stopped = recording.ending in STOPPED
    return Case(title, tuple(guards), recording.events, new_run, stopped, recording.outcome, recording.ending)


def case_of_trace(trace: Trace, title: str, guards: Sequence[Guard] | None = None) -> Case:
    """A run of this package, under its own guards or under others. Raises ``TraceError`` for a guard that this package does not know."""
    own = trace.new_run(guards).wiring.guards
    last = trace.edges[-1].edge if trace.edges else ""
    known = {*GUARD_REASONS, *(spec.reason for spec in trace.header.guards)} - UNGUARDED_REASONS
    return Case(title, own, trace.events, trace.new_run, stopped=last in known)
