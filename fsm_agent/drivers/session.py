"""One run as it is driven, sync or async: the machine, its world, and whoever watches."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from fsm_agent.drivers import outcomes
from fsm_agent.drivers.approvals import ApprovalRequest, Approver, Policy, as_approval, asked_about
from fsm_agent.drivers.stopping import Stop
from fsm_agent.drivers.watching import Watcher
from fsm_agent.events import (
    ApprovalAsked,
    AskApproval,
    AskModel,
    AttemptFailed,
    CallTools,
    Cancelled,
    Event,
    Message,
    Messages,
    ModelFailed,
    ModelReplied,
    Observation,
    Reply,
    ToolCall,
    ToolsFailed,
    ToolSpec,
    ToolsReturned,
)
from fsm_agent.guards import AnyOf, Deadline, Guard
from fsm_agent.machine import Run, Taken
from fsm_agent.models.base import AnyModel, OnText
from fsm_agent.models.errors import ModelUnavailable
from fsm_agent.tools import Tool
from fsm_agent.tools.base import described
from fsm_agent.tools.errors import ToolServerDead

if TYPE_CHECKING:
    from fsm_agent.context import Context, Summary, Tokens

JITTER = 0.25
"""A wait before a retry is longer by up to this share, so that many runs do not ask again all at once."""


@attrs.define(eq=False)
class Session:
    """What a driver needs, and the steps that both drivers take alike."""

    machine: Run
    model: AnyModel
    tools: Mapping[str, Tool]
    watchers: tuple[Watcher, ...] = ()
    hooked: bool = False
    """Somebody besides the driver can get at the run, and may cancel it: nothing that has to end then is done in the driver's thread."""
    policy: Policy = "side_effects"
    approve: Approver | None = None
    context: Context | None = None
    on_text: OnText | None = None
    max_parallel: int = 8
    settled: dict[int, Observation] = attrs.field(factory=dict)
    """Of the calls with which a run is taken up again: those that had ended before, by their places."""
    interrupted: list[int] = attrs.field(factory=list)
    """Of these calls, those that had begun, and of which nobody knows what came of them: their places."""
    stop: Stop = attrs.field(factory=Stop)
    tokens: Tokens | None = None
    _deadlines: list[int] = attrs.field(init=False)
    """The places of the guards that are deadlines, or halt the run at one."""
    _told: int = attrs.field(init=False, default=0)
    """So many of the watchers know of the run."""
    _broken: Exception | None = attrs.field(init=False, default=None)
    """What ``on_text`` raised."""

    def __attrs_post_init__(self) -> None:
        guards = self.machine.wiring.guards
        self._deadlines = [at for at, guard in enumerate(guards) if _left_s(guard, self.machine.memories[at]) is not None]

    # --- telling ---

    def begin(self) -> None:
        """The run is about to be driven. What a watcher raises is raised; ``end`` is due all the same."""
        self.machine.canceller = self.stop.ask
        if self.context is not None:
            from fsm_agent.context import Tokens

            self.tokens = Tokens(self.machine.tools if self.machine.protocol.sends_tools else ())
        for watcher in self.watchers:
            self._told += 1
            watcher.began(self.machine)

    def end(self) -> None:
        """The run is not driven any more. Each watcher is told, whatever the others raise; the first of that is raised."""
        self.machine.canceller = None
        raised: list[BaseException] = []
        for watcher in self.watchers[: self._told]:
            try:
                watcher.ended(self.machine)
            except BaseException as error:  # noqa: BLE001  # it is raised when all are told
                raised.append(error)
        if raised:
            raise raised[0]

    def feed(self, event: Event) -> None:
        """Feed the machine, and tell those who watch."""
        machine = self.machine
        before = len(machine.log)
        machine.feed(event)
        if self.watchers:
            edges = [entry for entry in machine.log[before:] if isinstance(entry, Taken)]
            for watcher in self.watchers:
                watcher.took(machine, event, edges)

    def calls(self, index: int, call: ToolCall) -> None:
        """A tool is about to be called."""
        for watcher in self.watchers:
            watcher.calls(self.machine, index, call)

    def called(self, index: int, observation: Observation) -> None:
        """A call has ended."""
        for watcher in self.watchers:
            watcher.called(self.machine, index, observation)

    # --- the model ---

    def question(self, effect: AskModel) -> tuple[Sequence[Message], tuple[ToolSpec, ...]]:
        """What the model is shown: messages and tools."""
        messages: Sequence[Message] = effect.messages
        if self.context is not None and self.tokens is not None:
            messages = self.context.shown(messages, self.tokens, self.machine.protocol.lang, self.summary)
        if self.watchers and messages is not effect.messages:
            effect = AskModel(Messages([*messages], len(messages)), effect.tools, effect.attempt, effect.delay_s)
        for watcher in self.watchers:
            watcher.asks(self.machine, effect)
        return messages, effect.tools if self.machine.protocol.sends_tools else ()

    @property
    def shows(self) -> OnText | None:
        """What is told of the text as it is streamed; None: nobody is."""
        return None if self.on_text is None else self._show

    def _show(self, text: str) -> None:
        try:
            self.on_text(text)  # type: ignore[misc]  # it is there, or nothing is shown
        except Exception as error:
            self._broken = error
            raise

    @property
    def summary(self) -> Summary | None:
        """The last summary of the conversation."""
        from fsm_agent.context import Summary

        made = self.machine.summary
        return Summary(made.covers, made.summary, made.usage) if made else None

    def due(self, effect: AskModel) -> int | None:
        """How many messages, from the start, a summary shall cover that is to be made now; None: none is due."""
        machine = self.machine
        if self.context is None or self.tokens is None or not machine.options.compaction or machine.summed_up:
            return None
        return self.context.due(effect.messages, self.tokens, self.summary)

    def replied(self, shown: Sequence[Message], reply: Reply) -> ModelReplied:
        """The model answered."""
        if self.tokens is not None:
            self.tokens.replied(shown, reply)
        return ModelReplied(reply, time.time())

    def failed(self, error: BaseException) -> ModelFailed | AttemptFailed:
        """The model raised: worth asking again, where the run has retries, or the end. Raises what ``on_text`` raised: no model failed."""
        if self._broken is not None:
            raise self._broken
        if isinstance(error, ModelUnavailable) and self.machine.options.max_retries:
            return AttemptFailed(type(error).__name__, described(error), _seconds(error.retry_after_s), time.time())
        return ModelFailed(type(error).__name__, described(error), time.time())

    # --- the tools ---

    def approval_needed(self, effect: CallTools) -> ApprovalAsked | None:
        """The question that has to be put to a person before the calls are made; None: there is none."""
        if not effect.may_ask or not self.machine.options.approvals or self.settled or self.interrupted:
            return None
        asked = asked_about(self.policy, effect.calls, self.tools)
        return ApprovalAsked(asked, time.time()) if asked else None

    def with_settled(self, effect: CallTools) -> CallTools:
        """The effect, with what was settled before the run was taken up again."""
        if not self.settled:
            return effect
        before = effect.settled or (None,) * len(effect.calls)
        settled = tuple(self.settled.get(index) or each for index, each in enumerate(before))
        self.settled = {}
        return CallTools(effect.calls, settled, effect.may_ask)

    def question_of(self, effect: CallTools, index: int) -> ApprovalRequest:
        """What a person is asked about a call that was interrupted."""
        call = self.machine.keyed(index, effect.calls[index])
        return ApprovalRequest(call, self.tools[call.name], "", self.machine.task, self.machine.step, interrupted=True)

    def resettle(self, effect: CallTools, index: int, answer: object) -> None:
        """What the person said of it: it is made again with a yes, and else the model is told that nobody knows what came of it."""
        approval = as_approval(answer)
        self.interrupted.remove(index)
        if approval is None or approval.verdict != "yes":
            self.settled[index] = outcomes.interrupted(effect.calls[index], self.machine.protocol.lang)

    def until(self) -> float | None:
        """When the run's time is up, by ``time.monotonic()``; None: it has no deadline."""
        if not self._deadlines:
            return None
        guards, memories = self.machine.wiring.guards, self.machine.memories
        left = [_left_s(guards[at], memories[at]) for at in self._deadlines]
        return time.monotonic() + min(seconds for seconds in left if seconds is not None)

    def returned(self, observations: tuple[Observation, ...], dead: ToolServerDead | None) -> ToolsReturned | ToolsFailed:
        """The calls have ended."""
        if dead is not None and self.machine.options.tool_servers:
            return ToolsFailed(observations, type(dead).__name__, described(dead), time.time())
        return ToolsReturned(observations, time.time())

    # --- the end ---

    def stopped(self) -> Cancelled:
        """The run was cancelled between two effects: nothing that it asks for was begun."""
        effect = self.machine.effect
        if effect is None or isinstance(effect, AskModel):
            return Cancelled(at=time.time(), asked=effect is not None and effect.attempt > 1)
        return self.cancelled(effect, {}, ())

    def cancelled(self, effect: CallTools | AskApproval, seen: Mapping[int, Observation], started: Collection[int]) -> Cancelled:
        """The run was cancelled. ``seen``: what calls came to; ``started``: those that were running, by their places."""
        lang = self.machine.protocol.lang
        settled = effect.settled if isinstance(effect, CallTools) else ()
        known = {index: each for index, each in enumerate(settled) if each is not None} | self.settled | {**seen}
        known |= {index: outcomes.interrupted(effect.calls[index], lang) for index in self.interrupted}
        observations = tuple(
            known.get(index) or outcomes.cancelled(call, lang, started=index in started) for index, call in enumerate(effect.calls)
        )
        return Cancelled(observations, time.time())


def _seconds(said: object) -> float | None:
    """What a model says of how long to wait, where that is a number: a user's own may say anything."""
    return float(said) if isinstance(said, int | float) and not isinstance(said, bool) and math.isfinite(said) else None


def _left_s(guard: Guard, memory: Any) -> float | None:
    """How long, in seconds, until the guard halts the run for its time; None: it does not do that."""
    if isinstance(guard, Deadline):
        reading = guard.judge(memory)
        return reading.limit - reading.value
    if isinstance(guard, AnyOf):
        left = [_left_s(part, past) for part, past in zip(guard.parts, memory, strict=True)]
        return min((seconds for seconds in left if seconds is not None), default=None)
    return None


def jittered(delay_s: float) -> float:
    """A wait, in seconds, that is not the same in every run."""
    import random

    return delay_s * (1 + JITTER * random.random())  # noqa: S311  # nothing is kept secret by it
