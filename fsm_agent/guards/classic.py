"""The classic protection: repetition, errors, and the cap. (The fourth layer, the answer itself, is an edge of the table.)"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import attrs

from fsm_agent.events import (
    ERROR_PREFIX,
    Fact,
    Malformed,
    ModelFailed,
    ModelReplied,
    Observation,
    Said,
    Started,
    ToolCalls,
    ToolsReturned,
    UserSpoke,
    Value,
)
from fsm_agent.guards.base import Evidence, Guard, Reading, at_least, below, true_or_false
from fsm_agent.guards.identity import UNDECLARED, Identity, Key
from fsm_agent.guards.streaks import NONE, Streak, kept
from fsm_agent.language import Language
from fsm_agent.table import PARSING, State
from fsm_agent.text import first_line


class _Repeats(Value, frozen=True):
    """The same calls in a row."""

    identity: Identity = UNDECLARED
    key: Key = None
    """What makes the next ones equal to these; None: nothing yet."""
    length: int = 0
    evidence: tuple[Evidence, ...] = ()


@attrs.frozen
class RepeatedCall(Guard):
    """The same tool with the same canonical arguments as the call before, ``max_repeats`` times after the first.

    The unit is the step: a batch is the set of its calls, whatever their order. A malformed reply in between does not
    reset it; another call does, and so does talk with a person. Calls of polling tools are left out.
    """

    reason: ClassVar[str] = "repeated_call"
    watches: ClassVar[State] = PARSING
    label: ClassVar[str] = "repeats"
    chance: ClassVar[bool] = True
    folds: ClassVar[tuple[type, ...]] = (Started, ToolCalls, Said, UserSpoke)

    max_repeats: int = attrs.field(default=2, validator=at_least(1))
    """Repeats after the first call that halt the run: 2 is the third identical call in a row."""

    def start(self) -> _Repeats:
        return _Repeats()

    def fold(self, memory: _Repeats, fact: Fact, step: int) -> _Repeats:
        if isinstance(fact, Started):
            return _Repeats(Identity.of(fact.tools))
        identity = memory.identity
        if not isinstance(fact, ToolCalls):
            return _Repeats(identity)
        calls = identity.repeatable(fact.calls)
        seen = Evidence(step, "call", ", ".join(map(str, fact.calls)))
        if not calls:
            return _Repeats(identity, None, 1, (seen,))
        key = identity.calls(calls)
        if key != memory.key:
            return _Repeats(identity, key, 1, (seen,))
        return _Repeats(identity, key, memory.length + 1, kept(memory.evidence, seen, self.max_repeats + 1))

    def judge(self, memory: _Repeats) -> Reading:
        repeats = max(memory.length - 1, 0)
        return Reading(self.reason, repeats, self.max_repeats, repeats >= self.max_repeats, memory.evidence)

    def explain(self, reading: Reading, lang: Language) -> str:
        call = reading.evidence[-1].text if reading.evidence else ""
        return lang.say("stopped: repeated call {call}, the model is going in circles", call=call)


@attrs.frozen
class ConsecutiveErrors(Guard):
    """``max_errors`` bad steps in a row: a tool error, an unknown tool, bad arguments, or a reply that cannot be parsed.

    One counter for all of them; a good tool call resets it. A batch counts as one error, if every call in it failed. A call that a
    person denied is no error of the model's, nor does it show that things work again: it neither counts nor resets.
    """

    reason: ClassVar[str] = "consecutive_errors"
    label: ClassVar[str] = "errors"
    folds: ClassVar[tuple[type, ...]] = (Malformed, Said, ToolsReturned)

    max_errors: int = attrs.field(default=2, validator=at_least(1))
    """Bad steps in a row that halt the run."""
    count_malformed: bool = attrs.field(default=True, validator=true_or_false)
    """Whether a reply that cannot be parsed is a bad step; where not, it neither counts nor resets."""
    warn_at: int | None = attrs.field(default=None, validator=below("max_errors"))
    """Bad steps in a row after which the model is told; None: never."""

    def start(self) -> Streak:
        return NONE

    def fold(self, memory: Streak, fact: Fact, step: int) -> Streak:
        if isinstance(fact, ToolsReturned):
            blamed: Observation | None = None
            for observation in fact.observations:
                if observation.kind == "ok":
                    return NONE
                if blamed is None and observation.kind != "denied":
                    blamed = observation
            if blamed is not None:
                return memory.grown(Evidence(step, blamed.kind, first_line(blamed.text.removeprefix(ERROR_PREFIX))), self.max_errors)
        elif isinstance(fact, Malformed) and self.count_malformed:
            return memory.grown(Evidence(step, fact.kind, first_line(fact.problem)), self.max_errors)
        return memory.passed_over()

    def judge(self, memory: Streak) -> Reading:
        return memory.reading(self, self.max_errors, self.warn_at)

    def explain(self, reading: Reading, lang: Language) -> str:
        n, kinds = int(reading.value), dict(reading.omitted)
        for evidence in reading.evidence:
            kinds[evidence.kind] = kinds.get(evidence.kind, 0) + 1
        malformed = {kind: kinds[kind] for kind in ("unparseable", "empty", "truncated") if kind in kinds}
        failed = n - sum(malformed.values())
        if not malformed:
            return lang.count(
                "stopped: {n} failed tool call in a row, circuit breaker tripped",
                "stopped: {n} failed tool calls in a row, circuit breaker tripped",
                n,
            )
        if malformed == {"unparseable": n}:
            return lang.count(
                "stopped: {n} unparseable reply in a row, circuit breaker tripped",
                "stopped: {n} unparseable replies in a row, circuit breaker tripped",
                n,
            )
        if malformed == {"empty": n}:
            return lang.count(
                "stopped: {n} empty reply in a row, circuit breaker tripped",
                "stopped: {n} empty replies in a row, circuit breaker tripped",
                n,
            )
        if malformed == {"truncated": n}:
            return lang.count(
                "stopped: {n} reply in a row was cut off, circuit breaker tripped",
                "stopped: {n} replies in a row were cut off, circuit breaker tripped",
                n,
            )
        if list(malformed) == ["unparseable"]:
            return lang.say(
                "stopped: {n} errors in a row (failed tool calls: {failed}, unparseable replies: {malformed}), circuit breaker tripped",
                n=n,
                failed=failed,
                malformed=malformed["unparseable"],
            )
        told = {
            lang.say("failed tool calls: {n}", n=failed): failed,
            lang.say("unparseable replies: {n}", n=malformed.get("unparseable", 0)): malformed.get("unparseable", 0),
            lang.say("empty replies: {n}", n=malformed.get("empty", 0)): malformed.get("empty", 0),
            lang.say("replies cut off: {n}", n=malformed.get("truncated", 0)): malformed.get("truncated", 0),
        }
        parts = lang.say(", ").join(part for part, count in told.items() if count)
        return lang.say("stopped: {n} errors in a row ({parts}), circuit breaker tripped", n=n, parts=parts)

    def nudge(self, reading: Reading, lang: Language) -> str:
        return lang.say(
            "Warning: {n} errors in a row; at {limit} the run is stopped. "
            "Do not try the same again: find out what is wrong, or go another way.",
            n=reading.value,
            limit=reading.limit,
        )


@attrs.frozen
class MaxSteps(Guard):
    """``max_steps`` model calls were made. Judged last: it is the last resort, and says nothing of what went wrong."""

    reason: ClassVar[str] = "max_steps"
    label: ClassVar[str] = "steps"
    chance: ClassVar[bool] = True
    folds: ClassVar[tuple[type, ...]] = (ModelReplied, ModelFailed)

    max_steps: int = attrs.field(default=10, validator=at_least(1))
    """Model calls that a run may make."""

    def start(self) -> int:
        return 0

    def fold(self, memory: int, fact: Fact, step: int) -> int:  # noqa: ARG002  # each fact that it asks for is one model call
        return memory + 1

    def judge(self, memory: int) -> Reading:
        return Reading(self.reason, memory, self.max_steps, memory >= self.max_steps)

    def explain(self, reading: Reading, lang: Language) -> str:
        return lang.say(
            "stopped: reached the cap of {limit} steps, halted so that an endless loop cannot burn the budget", limit=reading.limit
        )


def classic(max_steps: int = 10, max_repeats: int = 2, max_errors: int = 2) -> tuple[Guard, ...]:
    """The well-known four-layer protection.

    Raises ``ValueError`` or ``TypeError`` naming the field for a limit that is no whole number from 1.
    """
    return RepeatedCall(max_repeats), ConsecutiveErrors(max_errors), MaxSteps(max_steps)


def limits(guards: Sequence[Guard]) -> dict[str, object]:
    """Every limit of these guards by its field's name."""
    return {name: limit for guard in guards for name, limit in guard.as_limits().items()}
