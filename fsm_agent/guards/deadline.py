"""``Deadline``: the run has taken too long, by the times that its events tell."""

from __future__ import annotations

from typing import ClassVar, Literal

import attrs

from fsm_agent.events import ApprovalGiven, AttemptFailed, ContextCompacted, Fact, ModelReplied, Started, ToolsReturned, UserSpoke, Value
from fsm_agent.guards.base import Evidence, Guard, Reading, above_zero, shown
from fsm_agent.language import Language


class _Elapsed(Value, frozen=True):
    """The time that has passed."""

    seconds: float = 0
    since: float | None = None
    """When the clock was read last, in seconds since 1970 UTC; None: not yet."""
    unknown: int = 0
    """Events that did not tell their time."""
    slowest: tuple[float, int, str] = (0, 0, "")
    """The longest wait: its seconds, its step, and for whom it was."""


@attrs.frozen
class Deadline(Guard):
    """``deadline_s`` seconds have passed since the run began, less the time in which it waited for a person.

    The clock is the events' own, so a replay gives the same readings on any day. It starts with the run, or, where that time is not
    known, when the first model call was made (its reply's time less its latency). The time before a person's message, and before
    a person decided about a call, does not count. An event without a time is not zero: the next one that has a time brings the
    time of both, and the reading counts those without. A clock that was set back adds nothing.

    It is judged in Observing, so what is being done is finished, and no call is interrupted: that is a driver's matter.
    """

    reason: ClassVar[str] = "deadline"
    label: ClassVar[str] = "seconds"
    chance: ClassVar[bool] = True
    folds: ClassVar[tuple[type, ...]] = (
        *(Started, ModelReplied, AttemptFailed, ContextCompacted),
        *(ApprovalGiven, ToolsReturned, UserSpoke),
    )

    deadline_s: float = attrs.field(validator=above_zero)
    """Seconds that a run may take."""

    def start(self) -> _Elapsed:
        return _Elapsed()

    def fold(self, memory: _Elapsed, fact: Fact, step: int) -> _Elapsed:
        match fact:
            case ModelReplied(reply=reply, at=at):
                since = memory.since
                if since is None and at is not None and reply.latency_s is not None:
                    since = at - reply.latency_s
                return _passed(memory, since, at, step, "model")
            case ToolsReturned(at=at):
                return _passed(memory, memory.since, at, step, "tools")
            case AttemptFailed(at=at) | ContextCompacted(at=at):
                return _passed(memory, memory.since, at, step, "model")
            case UserSpoke(at=at) | ApprovalGiven(at=at):
                return _Elapsed(memory.seconds, at, memory.unknown, memory.slowest)
            case Started(at=at):
                return _Elapsed(since=at)
            case _:
                return memory

    def judge(self, memory: _Elapsed) -> Reading:
        seconds, step, waited_for = memory.slowest
        evidence = (Evidence(step, waited_for, f"{seconds:.3g} s"),) if step else ()
        return Reading(self.reason, memory.seconds, self.deadline_s, memory.seconds >= self.deadline_s, evidence, unknown=memory.unknown)

    def explain(self, reading: Reading, lang: Language) -> str:
        value, limit = shown(reading.value), shown(reading.limit)
        return lang.say("stopped: {value} seconds passed, the deadline is {limit}", value=value, limit=limit)


def _passed(memory: _Elapsed, since: float | None, at: float | None, step: int, waited_for: Literal["model", "tools"]) -> _Elapsed:
    if at is None:
        return _Elapsed(memory.seconds, since, memory.unknown + 1, memory.slowest)
    waited = 0.0 if since is None else max(at - since, 0.0)
    slowest = (waited, step, waited_for) if waited > memory.slowest[0] else memory.slowest
    return _Elapsed(memory.seconds + waited, at, memory.unknown, slowest)
