"""``NoProgress``: the last steps are a cycle, so that nothing new will come of going on."""

from __future__ import annotations

from typing import ClassVar, Literal

import attrs

from fsm_agent.events import (
    Fact,
    Malformed,
    ModelReplied,
    Observation,
    Reply,
    Said,
    Started,
    ToolCall,
    ToolCalls,
    ToolsReturned,
    UserSpoke,
    Value,
)
from fsm_agent.guards.base import Evidence, Guard, Reading, at_least, one_of
from fsm_agent.guards.identity import UNDECLARED, Identity, Key, one_or_set
from fsm_agent.language import Language
from fsm_agent.text import first_line

CALLS = "call"
CALLS_AND_OBSERVATIONS = "call+observation"


class _Step(Value, frozen=True):
    """What one step did."""

    number: int
    key: Key
    """Steps with equal keys did the same."""
    kind: str
    did: str | tuple[ToolCall, ...]
    """The calls, or what was said; it becomes text only where a reading shows it."""


class _Past(Value, frozen=True):
    """The latest steps, and how long they have been repeating themselves."""

    identity: Identity = UNDECLARED
    steps: tuple[_Step, ...] = ()
    """As many as the longest cycle has, at most."""
    runs: tuple[int, ...] = ()
    """For each period p from 1: how many of the last steps in a row did the same as the step p before them."""
    begun: Reply | tuple[ToolCall, ...] = ()
    """Of the step that is not over: the reply, then the calls that it made."""


@attrs.frozen
class NoProgress(Guard):
    """The last steps are a cycle: the same calls with the same observations, again and again.

    A cycle is the smallest period p from 1 to ``max_period`` such that the last p steps stand there ``max_cycles`` times in a row and
    make up at least ``min_steps`` steps: the last max(p x ``max_cycles``, ``min_steps``) steps have period p.

    - The unit is the step, and a batch is the set of its calls. A malformed reply is a step (the same reply is the same step),
      and so is talk to a person.
    - A repeated call whose observation changed is progress, unless both are errors: the text of an error may change with every try.
    - Calls of polling tools that succeed are left out, and a step with nothing else is equal to no other.
    - A message from a person starts afresh.

    The value is the length of the cycle that wants the fewest steps more, the limit is the length at which it halts the run.
    """

    reason: ClassVar[str] = "no_progress"
    label: ClassVar[str] = "cycle"
    folds: ClassVar[tuple[type, ...]] = (Started, ModelReplied, ToolCalls, ToolsReturned, Malformed, Said, UserSpoke)

    max_period: int = attrs.field(default=6, validator=at_least(1))
    """The longest cycle that is looked for, in steps."""
    max_cycles: int = attrs.field(default=2, validator=at_least(2))
    """Rounds that make a cycle."""
    min_steps: int = attrs.field(default=4, validator=at_least(1))
    """Steps that a cycle makes up, at least: 4 leaves the same call three times in a row alone."""
    compare: Literal["call", "call+observation"] = attrs.field(default="call+observation", validator=one_of(CALLS, CALLS_AND_OBSERVATIONS))
    """``call``: whatever the calls came to, they are the same."""

    def start(self) -> _Past:
        return _Past()

    def fold(self, memory: _Past, fact: Fact, step: int) -> _Past:
        match fact:
            case Started(tools=tools):
                return _Past(Identity.of(tools))
            case ModelReplied(reply=begun) | ToolCalls(calls=begun):
                return _Past(memory.identity, memory.steps, memory.runs, begun)
            case ToolsReturned(observations=observations):
                return self._stepped(memory, self._called(memory, observations, step))
            case Said(text=text):
                return self._stepped(memory, _Step(step, (Said, text), "said", text))
            case Malformed(kind=kind):
                return self._stepped(memory, _replied(memory, kind, step))
            case _:
                return _Past(memory.identity)

    def _called(self, memory: _Past, observations: tuple[Observation, ...], step: int) -> _Step:
        calls = memory.begun if isinstance(memory.begun, tuple) else ()
        identity = memory.identity
        observed = self.compare == CALLS_AND_OBSERVATIONS
        keys: set[Key] = {
            (identity.call(call), identity.observation(observation)) if observed else identity.call(call)
            for call, observation in zip(calls, observations, strict=True)
            if call.name not in identity.polls or observation.is_error
        }
        return _Step(step, one_or_set(keys) if keys else step, "call", calls)

    def _stepped(self, memory: _Past, this: _Step) -> _Past:
        """One step more. The cost is one comparison for each period."""
        steps, key = memory.steps, this.key
        runs: list[int] = []
        for period in range(1, min(self.max_period, len(steps)) + 1):
            same = steps[-period].key == key
            runs.append((memory.runs[period - 1] if period <= len(memory.runs) else 0) + 1 if same else 0)
        return _Past(memory.identity, (*steps[1 - self._kept :], this), tuple(runs))

    @property
    def _kept(self) -> int:
        return max(self.max_period * self.max_cycles, self.min_steps)

    def judge(self, memory: _Past) -> Reading:
        value, limit, period = min(len(memory.steps), 1), max(self.max_cycles, self.min_steps), 0
        for p, run in enumerate(memory.runs, 1):
            if run:
                needed = max(p * self.max_cycles, self.min_steps)
                if run + p >= needed or not period or needed - run - p < limit - value:
                    value, limit, period = run + p, needed, p
                if value >= limit:
                    break
        if not period:
            return Reading(self.reason, value, limit, trips=False)
        evidence = tuple(Evidence(step.number, step.kind, _text(step.did)) for step in memory.steps[-value:])
        return Reading(self.reason, value, limit, value >= limit, evidence, period=period)

    def explain(self, reading: Reading, lang: Language) -> str:
        n, period = len(reading.evidence), reading.period or 1
        cycle = "; ".join(evidence.text for evidence in reading.evidence[-period:])
        if period == 1:
            return lang.say("stopped: no progress, the last {n} steps did the same: {cycle}", n=n, cycle=cycle)
        return lang.say("stopped: no progress, the last {n} steps are a cycle of {period}: {cycle}", n=n, period=period, cycle=cycle)


def _replied(memory: _Past, kind: str, step: int) -> _Step:
    """The step of a reply that could not be used."""
    reply = memory.begun if isinstance(memory.begun, Reply) else Reply()
    return _Step(step, (Malformed, reply.text, *[(request.name, request.arguments) for request in reply.tool_calls]), kind, reply.text)


def _text(did: str | tuple[ToolCall, ...]) -> str:
    return first_line(did) if isinstance(did, str) else ", ".join(map(str, did))
