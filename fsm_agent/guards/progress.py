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
from fsm_agent.guards.streaks import FIRST
from fsm_agent.language import Language
from fsm_agent.text import first_line

CALLS = "call"
CALLS_AND_OBSERVATIONS = "call+observation"

SHOWN = 24
"""Steps of a cycle that a reading shows at most, the first and the last few: four rounds of six steps are shown whole."""


class _Step(Value, frozen=True):
    """What one step did."""

    number: int
    kind: str
    did: str | tuple[ToolCall, ...]
    """The calls, or what was said; it becomes text only where something repeats itself, so that a reading shows it."""

    def shown(self) -> Evidence:
        did = self.did
        return Evidence(self.number, self.kind, first_line(did) if isinstance(did, str) else ", ".join(map(str, did)))


class _Past(Value, frozen=True):
    """The latest steps, and how long they have been repeating themselves."""

    identity: Identity = UNDECLARED
    steps: tuple[_Step | Evidence, ...] = ()
    """As many as the longest cycle has, at most."""
    keys: tuple[Key, ...] = ()
    """Of the last steps, the latest first, as many as the longest period; steps with equal keys did the same."""
    runs: tuple[int, ...] = ()
    """For each period p from 1: how many of the last steps in a row did the same as the step p before them. Empty: none did."""
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
    chance: ClassVar[bool] = True
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
            case ModelReplied(reply=begun) | ToolCalls(calls=begun):
                return _Past(memory.identity, memory.steps, memory.keys, memory.runs, begun)
            case ToolsReturned(observations=observations):
                calls = memory.begun if isinstance(memory.begun, tuple) else ()
                return self._stepped(memory, _Step(step, "call", calls), self._key(memory.identity, calls, observations, step))
            case Malformed(kind=kind):
                reply = memory.begun if isinstance(memory.begun, Reply) else Reply()
                requests = [(request.name, request.arguments) for request in reply.tool_calls]
                return self._stepped(memory, _Step(step, kind, reply.text), (Malformed, reply.text, *requests))
            case Said(text=text):
                return self._stepped(memory, _Step(step, "said", text), (Said, text))
            case Started(tools=tools):
                return _Past(Identity.of(tools))
            case _:
                return _Past(memory.identity)

    def _key(self, identity: Identity, calls: tuple[ToolCall, ...], observations: tuple[Observation, ...], step: int) -> Key:
        """What the calls of a step and their observations came to; its number where that is equal to no other step."""
        observed = self.compare == CALLS_AND_OBSERVATIONS
        if identity is UNDECLARED and len(calls) == 1:  # as most are
            observation = observations[0]
            return (calls[0].signature, observation.text if observation.kind == "ok" else None) if observed else calls[0].signature
        keys: set[Key] = {
            (identity.call(call), identity.observation(observation)) if observed else identity.call(call)
            for call, observation in zip(calls, observations, strict=True)
            if call.name not in identity.polls or observation.is_error
        }
        return one_or_set(keys) if keys else step

    def _stepped(self, memory: _Past, this: _Step, key: Key) -> _Past:
        """One step more. The cost is one comparison for each period."""
        steps: tuple[_Step | Evidence, ...] = (*memory.steps[1 - max(self.max_period * self.max_cycles, self.min_steps) :], this)
        keys = memory.keys
        runs: tuple[int, ...] = ()
        if key in keys:
            before = memory.runs + (0,) * (len(keys) - len(memory.runs))
            runs = tuple([run + 1 if past == key else 0 for past, run in zip(keys, before, strict=True)])
            steps = tuple([step if isinstance(step, Evidence) else step.shown() for step in steps])  # once, for all readings to come
        return _Past(memory.identity, steps, (key, *keys[: self.max_period - 1]), runs)

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
        steps = memory.steps[-value:]
        if value > SHOWN:
            steps = (*steps[:FIRST], *steps[FIRST - SHOWN :])
        evidence = tuple([step if isinstance(step, Evidence) else step.shown() for step in steps])
        return Reading(self.reason, value, limit, value >= limit, evidence, period=period)

    def explain(self, reading: Reading, lang: Language) -> str:
        n, period = reading.value, reading.period or 1
        whole = reading.value == len(reading.evidence) or period <= SHOWN - FIRST
        shown = reading.evidence[-period:] if whole else reading.evidence[FIRST:]
        cycle = "; ".join([*([] if whole else ["…"]), *(evidence.text for evidence in shown)])
        if period == 1:
            return lang.say("stopped: no progress, the last {n} steps did the same: {cycle}", n=n, cycle=cycle)
        return lang.say("stopped: no progress, the last {n} steps are a cycle of {period}: {cycle}", n=n, period=period, cycle=cycle)
