"""The classic protection: repetition, errors, and the cap. (The fourth layer, the answer itself, is an edge of the table.)"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import attrs

from fsm_agent.events import Fact, Malformed, ModelFailed, ModelReplied, Said, ToolCalls, ToolsReturned, UserSpoke
from fsm_agent.guards.base import Evidence, Guard, Reading, at_least
from fsm_agent.language import Language
from fsm_agent.table import PARSING, State

ERROR_PREFIX = "TOOL_ERROR:"


@attrs.frozen
class _Streak:
    """Things of one kind in a row."""

    key: object = None
    """What makes the next one equal to these; None: nothing yet."""
    evidence: tuple[Evidence, ...] = ()


@attrs.frozen
class RepeatedCall(Guard):
    """The same tool with the same canonical arguments as the call before, ``max_repeats`` times after the first.

    The unit is the step: a batch is the set of its calls, whatever their order. A malformed reply in between does not
    reset it; another call does, and so does talk with a person.
    """

    reason: ClassVar[str] = "repeated_call"
    watches: ClassVar[State] = PARSING
    label: ClassVar[str] = "repeats"
    folds: ClassVar[tuple[type, ...]] = (ToolCalls, Said, UserSpoke)

    max_repeats: int = attrs.field(default=2, validator=at_least(1))
    """Repeats after the first call that halt the run: 2 is the third identical call in a row."""

    def start(self) -> _Streak:
        return _Streak()

    def fold(self, memory: _Streak, fact: Fact, step: int) -> _Streak:
        if not isinstance(fact, ToolCalls):
            return _Streak()
        calls = fact.calls
        key: object = calls[0].signature if len(calls) == 1 else frozenset(call.signature for call in calls)
        seen = Evidence(step, "call", ", ".join(map(str, calls)))
        return _Streak(key, (*memory.evidence[-self.max_repeats :], seen) if key == memory.key else (seen,))

    def judge(self, memory: _Streak) -> Reading:
        repeats = max(len(memory.evidence) - 1, 0)
        return Reading(self.reason, repeats, self.max_repeats, repeats >= self.max_repeats, memory.evidence)

    def explain(self, reading: Reading, lang: Language) -> str:
        call = reading.evidence[-1].text if reading.evidence else ""
        return lang.say("stopped: repeated call {call}, the model is going in circles", call=call)


@attrs.frozen
class ConsecutiveErrors(Guard):
    """``max_errors`` bad steps in a row: a tool error, an unknown tool, bad arguments, or a reply that cannot be parsed.

    One counter for all of them; a good tool call resets it. A batch counts as one error, if every call in it failed.
    """

    reason: ClassVar[str] = "consecutive_errors"
    label: ClassVar[str] = "errors"
    folds: ClassVar[tuple[type, ...]] = (Malformed, ToolsReturned)

    max_errors: int = attrs.field(default=2, validator=at_least(1))
    """Bad steps in a row that halt the run."""

    def start(self) -> tuple[Evidence, ...]:
        return ()

    def fold(self, memory: tuple[Evidence, ...], fact: Fact, step: int) -> tuple[Evidence, ...]:
        if isinstance(fact, Malformed):
            return (*memory, Evidence(step, fact.kind, first_line(fact.problem)))
        assert isinstance(fact, ToolsReturned)
        for observation in fact.observations:
            if observation.kind == "ok":
                return ()
        worst = fact.observations[0]
        return (*memory, Evidence(step, worst.kind, first_line(worst.text.removeprefix(ERROR_PREFIX))))

    def judge(self, memory: tuple[Evidence, ...]) -> Reading:
        return Reading(self.reason, len(memory), self.max_errors, len(memory) >= self.max_errors, memory)

    def explain(self, reading: Reading, lang: Language) -> str:
        n = len(reading.evidence)
        malformed = sum(evidence.kind in {"unparseable", "empty", "truncated"} for evidence in reading.evidence)
        if not malformed:
            return lang.count("stopped: {n} failed tool call in a row, circuit breaker tripped", "stopped: {n} failed tool calls in a row, circuit breaker tripped", n)
        if malformed == n:
            return lang.count("stopped: {n} unparseable reply in a row, circuit breaker tripped", "stopped: {n} unparseable replies in a row, circuit breaker tripped", n)
        return lang.say(
            "stopped: {n} errors in a row (failed tool calls: {failed}, unparseable replies: {malformed}), circuit breaker tripped",
            n=n, failed=n - malformed, malformed=malformed,
        )  # fmt: skip


@attrs.frozen
class MaxSteps(Guard):
    """``max_steps`` model calls were made. Judged last: it is the last resort, and says nothing of what went wrong."""

    reason: ClassVar[str] = "max_steps"
    label: ClassVar[str] = "steps"
    folds: ClassVar[tuple[type, ...]] = (ModelReplied, ModelFailed)

    max_steps: int = attrs.field(default=10, validator=at_least(1))
    """Model calls that a run may make."""

    def start(self) -> int:
        return 0

    def fold(self, memory: int, fact: Fact, step: int) -> int:
        return memory + 1

    def judge(self, memory: int) -> Reading:
        return Reading(self.reason, memory, self.max_steps, memory >= self.max_steps)

    def explain(self, reading: Reading, lang: Language) -> str:
        return lang.say("stopped: reached the cap of {limit} steps, halted so that an endless loop cannot burn the budget", limit=reading.limit)


def classic(max_steps: int = 10, max_repeats: int = 2, max_errors: int = 2) -> tuple[Guard, ...]:
    """The well-known four-layer protection. Raises ``ValueError`` or ``TypeError`` naming the field for a limit that is no whole number from 1."""
    return RepeatedCall(max_repeats), ConsecutiveErrors(max_errors), MaxSteps(max_steps)


def first_line(text: str, width: int = 200) -> str:
    """The first line of ``text`` that is not blank, without the space around it, cut at ``width`` characters."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= width else line[: width - 1] + "…"


def limits(guards: Sequence[Guard]) -> dict[str, object]:
    """Every limit of these guards by its field's name."""
    return {field.name: getattr(guard, field.name) for guard in guards for field in attrs.fields(type(guard))}
