"""Calls that fail: the same one again and again, and what a person has refused already."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import attrs

from fsm_agent.events import ERROR_PREFIX, Fact, Observation, Said, Started, ToolCall, ToolCalls, ToolsReturned, UserSpoke, Value
from fsm_agent.guards.base import Evidence, Guard, Reading, at_least
from fsm_agent.guards.identity import UNDECLARED, Identity, Key
from fsm_agent.guards.streaks import NONE, Streak
from fsm_agent.language import Language
from fsm_agent.text import first_line


class _Failing(Value, frozen=True):
    """The call that is failing, if one is."""

    identity: Identity = UNDECLARED
    calls: tuple[ToolCall, ...] = ()
    """The calls of the step that is not over."""
    key: Key = None
    """Of the calls that failed last; None: the last ones did not."""
    streak: Streak = NONE


@attrs.frozen
class ErrorStreak(Guard):
    """The same call ``max_same_errors`` times in a row, an error each time, whatever the error says.

    The unit is the step: a batch is the set of its calls, and it is an error if every call in it failed. A malformed reply and a
    denial in between neither count nor reset; another call, a success and talk with a person do. A polling tool is no exception: a
    poll that fails every time is a failing call.
    """

    reason: ClassVar[str] = "error_streak"
    label: ClassVar[str] = "same errors"
    chance: ClassVar[bool] = True
    folds: ClassVar[tuple[type, ...]] = (Started, ToolCalls, ToolsReturned, Said, UserSpoke)

    max_same_errors: int = attrs.field(default=3, validator=at_least(1))
    """Failures of the same call in a row that halt the run."""

    def start(self) -> _Failing:
        return _Failing()

    def fold(self, memory: _Failing, fact: Fact, step: int) -> _Failing:
        match fact:
            case Started(tools=tools):
                return _Failing(Identity.of(tools))
            case ToolCalls(calls=calls):
                return _Failing(memory.identity, calls, memory.key, memory.streak)
            case ToolsReturned(observations=observations):
                return self._returned(memory, observations, step)
            case _:
                return _Failing(memory.identity)

    def _returned(self, memory: _Failing, observations: tuple[Observation, ...], step: int) -> _Failing:
        failed = None
        for observation in observations:
            if observation.kind == "ok":
                return _Failing(memory.identity)
            if failed is None and observation.kind != "denied":
                failed = observation
        if failed is None:
            return memory
        key = memory.identity.calls(memory.calls)
        text = f"{', '.join(map(str, memory.calls))}: {first_line(failed.text.removeprefix(ERROR_PREFIX))}"
        streak = memory.streak if key == memory.key else NONE
        return _Failing(memory.identity, (), key, streak.grown(Evidence(step, failed.kind, text), self.max_same_errors))

    def judge(self, memory: _Failing) -> Reading:
        return memory.streak.reading(self, self.max_same_errors)

    def explain(self, reading: Reading, lang: Language) -> str:
        n, call = int(reading.value), reading.evidence[-1].text if reading.evidence else ""
        return lang.count(
            "stopped: the same call failed {n} time in a row ({call})",
            "stopped: the same call failed {n} times in a row ({call})",
            n,
            call=call,
        )


REMEMBERED = 64
"""Denied calls that ``Denied`` keeps in mind, the latest: enough for any person's patience, and a bound on its memory."""


class _Denials(Value, frozen=True):
    """What a person has denied."""

    identity: Identity = UNDECLARED
    calls: tuple[ToolCall, ...] = ()
    """The calls of the step that is not over."""
    denied: Mapping[Key, Streak] = {}
    """By call, its denials."""
    worst: Streak = NONE
    """The denials of the call that was denied most."""


@attrs.frozen
class Denied(Guard):
    """The same call (tool and arguments) was denied ``max_denials`` times, in a row or not: the model will not take no for an answer.

    The unit is the step: the same call twice in a batch is denied once.
    """

    reason: ClassVar[str] = "denied"
    label: ClassVar[str] = "denials"
    folds: ClassVar[tuple[type, ...]] = (Started, ToolCalls, ToolsReturned)

    max_denials: int = attrs.field(default=2, validator=at_least(1))
    """Denials of the same call that halt the run."""

    def start(self) -> _Denials:
        return _Denials()

    def fold(self, memory: _Denials, fact: Fact, step: int) -> _Denials:
        if isinstance(fact, Started):
            return _Denials(Identity.of(fact.tools))
        if isinstance(fact, ToolCalls):
            return _Denials(memory.identity, fact.calls, memory.denied, memory.worst)
        return self._returned(memory, fact.observations, step) if isinstance(fact, ToolsReturned) else memory

    def _returned(self, memory: _Denials, observations: tuple[Observation, ...], step: int) -> _Denials:
        now = {
            memory.identity.call(call): Evidence(step, "denied", str(call))
            for call, observation in zip(memory.calls, observations, strict=True)
            if observation.kind == "denied"
        }
        if not now:
            return memory
        denied, worst = dict(memory.denied), memory.worst
        for key, evidence in now.items():
            denials = denied.pop(key, NONE).grown(evidence, self.max_denials)
            denied[key] = denials
            worst = denials if denials.length >= worst.length else worst
        latest = dict(list(denied.items())[-REMEMBERED:])
        return _Denials(memory.identity, (), latest, worst)

    def judge(self, memory: _Denials) -> Reading:
        return memory.worst.reading(self, self.max_denials)

    def explain(self, reading: Reading, lang: Language) -> str:
        call = reading.evidence[-1].text if reading.evidence else ""
        return lang.count(
            "stopped: the call {call} was denied {n} time", "stopped: the call {call} was denied {n} times", int(reading.value), call=call
        )
