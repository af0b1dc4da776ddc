"""The halt certificate: why a run ended, on what evidence, what every guard read, and which limits would have changed it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from fsm_agent.audit.case import Case, Ended
from fsm_agent.audit.changes import Change, Tried, changes
from fsm_agent.guards import Evidence, Guard, Reading
from fsm_agent.language import ENGLISH, Language
from fsm_agent.machine import Run, Taken
from fsm_agent.outcome import answer_of, halting_reading, message_of
from fsm_agent.traces.recordings import Ending, Outcome


@attrs.frozen
class Counter:
    """A guard, and what it read."""

    guard: str
    """Its halt reason."""
    limits: dict[str, Any]
    last: Reading | None
    """The last reading; None: it was never judged."""
    step: int
    """When that was."""
    closest: Reading | None
    """The reading, before a halt, that was closest to its limit; None: there is none."""
    closest_step: int
    halted: bool
    """It is the guard that halted the run."""

    @property
    def let_pass(self) -> bool:
        """It was judged, and found nothing to halt the run for."""
        return self.last is not None and not self.last.trips


@attrs.frozen
class Certificate:
    """Why a run ended."""

    title: str
    ended: Ended
    message: str
    """The end in one sentence."""
    answer: str | None
    evidence: tuple[Evidence, ...]
    counters: tuple[Counter, ...]
    """Every guard, in the order of the table."""
    tried: Tried
    outcome: Outcome
    ending: Ending
    recorded_steps: int
    """Model calls in the whole recording."""
    saved: int
    """Model calls that the recording made after the halt."""

    @property
    def false_kill(self) -> bool:
        """The run succeeded, and is halted before its last step."""
        return self.saved > 0 and self.outcome == "success"


def certify(case: Case, lang: Language = ENGLISH) -> Certificate:
    """Play the case and say why it ends. Raises ``ValueError`` for events that no run can have had."""
    run = case.play(case.guards)
    reading = halting_reading(run)
    whole = case.play(()).step
    return Certificate(
        title=case.title,
        ended=case.ended(run),
        message=message_of(run, lang),
        answer=answer_of(run),
        evidence=reading.evidence if reading else (),
        counters=tuple(_counters(run)),
        tried=changes(case),
        outcome=case.outcome,
        ending=case.ending,
        recorded_steps=whole,
        saved=whole - run.step,
    )


def _counters(run: Run) -> Iterator[Counter]:
    """From the readings in the run's own record."""
    seen: dict[str, list[tuple[int, Reading]]] = {guard.reason: [] for guard in run.wiring.guards}
    for entry in run.log:
        if isinstance(entry, Taken):
            for reading in entry.readings:
                seen[reading.guard].append((entry.step, reading))
    for guard in run.wiring.guards:
        yield _counter(guard, seen[guard.reason], halted=guard.reason == run.reason)


def _counter(guard: Guard, seen: list[tuple[int, Reading]], *, halted: bool) -> Counter:
    step, last = seen[-1] if seen else (0, None)
    before = seen[:-1] if halted else seen
    closest_step, closest = min(before, key=lambda pair: pair[1].limit - pair[1].value, default=(0, None))
    return Counter(guard.reason, guard.as_limits(), last, step, closest, closest_step, halted)


def plain(certificate: Certificate) -> dict[str, Any]:
    """The certificate as JSON values."""
    ended = certificate.ended
    return {
        "title": certificate.title,
        "reason": ended.reason,
        "step": ended.step,
        "model_calls": ended.step,
        "beyond_recording": ended.beyond,
        "message": certificate.message,
        "answer": certificate.answer,
        "evidence": [{"step": each.step, "kind": each.kind, "text": each.text} for each in certificate.evidence],
        "guards": [
            {
                "guard": counter.guard,
                "limits": counter.limits,
                "halted": counter.halted,
                "let_pass": counter.let_pass,
                "last": _reading(counter.last, counter.step),
                "closest": _reading(counter.closest, counter.closest_step),
            }
            for counter in certificate.counters
        ],
        "changes": [_change(change) for change in certificate.tried.changes],
        "limits_that_change_nothing": list(certificate.tried.without),
        "recorded": {"outcome": certificate.outcome, "ending": certificate.ending, "model_calls": certificate.recorded_steps},
        "saved_calls": certificate.saved,
        "false_kill": certificate.false_kill,
    }


def _reading(reading: Reading | None, step: int) -> dict[str, Any] | None:
    if reading is None:
        return None
    more = {name: value for name in ("period", "unknown") if (value := getattr(reading, name))}
    return {"step": step, "value": reading.value, "limit": reading.limit, "trips": reading.trips, **more}


def _change(change: Change) -> dict[str, Any]:
    ended = change.ended
    return {
        "limit": change.limit,
        "value": change.value,
        "was": change.was,
        "reason": ended.reason,
        "step": ended.step,
        "beyond_recording": ended.beyond,
    }
