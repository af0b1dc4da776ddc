"""``Run``: it takes events and answers with one effect.

    while (effect := run.effect) is not None:
        run.feed(perform(effect))

There is no I/O here. ``feed`` takes one event and fires edges in a plain loop until the run waits for the world again or
has halted. Events are what the world said; edges are what the machine made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import msgspec

from fsm_agent.events import (
    Approval,
    ApprovalAsked,
    ApprovalGiven,
    AskApproval,
    AskModel,
    AttemptFailed,
    CallTools,
    Cancelled,
    ContextCompacted,
    Decision,
    Effect,
    Event,
    Malformed,
    Message,
    Messages,
    ModelReplied,
    Observation,
    Started,
    ToolCall,
    ToolCalls,
    ToolsFailed,
    ToolSpec,
    ToolsReturned,
    UserSpoke,
    Value,
)
from fsm_agent.guards import Guard, Reading
from fsm_agent.language import ENGLISH, Language
from fsm_agent.machine.fitting import FITS, awaited
from fsm_agent.machine.foreign import GuardError
from fsm_agent.machine.history import corrections, decided, last_call, observed, refused
from fsm_agent.machine.wiring import Edge, wire
from fsm_agent.options import OFF, Options
from fsm_agent.protocols import LineProtocol, Protocol
from fsm_agent.table import DECIDING, EXECUTING, HALTED, INITIAL, OBSERVING, PARSING, PURE, State


class UnexpectedEvent(RuntimeError):
    """An event that cannot happen in the state of the run was fed to it. The run is as it was."""


class Taken(Value, frozen=True):
    """An edge that a run took, as the record keeps it."""

    edge: str
    """The row's id."""
    step: int
    readings: tuple[Reading, ...] = ()
    """Every guard that was judged in the edge's source, in the order of the table, tripped or not."""


class Run:
    """One run of the machine: feed it events, perform its effect.

    ``state`` is the current state, ``reason`` the halt reason (None before), ``effect`` what it wants the world to do (None
    once halted), ``step`` the number of steps begun, which is the number of model calls, and ``log`` everything so far: events
    and the edges that were taken on them, in order.
    """

    __slots__ = (
        *("id", "task", "tools", "protocol", "options", "wiring", "at"),
        *("state", "reason", "effect", "step", "log", "history", "decisions", "decision", "memories", "readings", "edge"),
        *("retries", "wait_s", "approvals", "summary", "summed_up", "chance", "canceller"),
    )

    def __init__(
        self,
        task: str,
        *,
        guards: Sequence[Guard] = (),
        protocol: Protocol | None = None,
        tools: tuple[ToolSpec, ...] = (),
        lang: Language = ENGLISH,
        options: Options = OFF,
        run_id: str = "",
        at: float | None = None,
        stock: bool = False,
    ) -> None:
        """A run that is about to ask the model.

        ``at``: when it begins, in seconds since 1970 UTC. ``run_id``: its name in the keys of its calls. ``stock``: see ``wiring``. Raises
        ``ValueError`` as ``rows_for`` does.
        """
        self.id = run_id
        self.options = options
        self.wiring = wire(guards, options.features, stock=stock)
        self.protocol: Protocol = (LineProtocol(lang) if protocol is None else protocol).for_tools(tools)
        self.task = task
        self.tools = tools
        self.at = at
        self.state: State = INITIAL
        self.reason: str | None = None
        self.step = 0
        self.log: list[Event | Taken] = []
        self.decisions: list[Decision] = []
        """One a reply, in order."""
        self.decision: Decision | None = None
        """What the last reply meant."""
        self.canceller: Callable[[], None] | None = None
        """Whoever drives the run puts here how it is stopped."""
        self.retries = 0
        """How often the model was asked again, since its last reply."""
        self.wait_s: float | None = None
        """Seconds to wait before it is asked again; None: it is not."""
        self.approvals: dict[int, Approval] = {}
        """What a person decided, by the call's place in the reply."""
        self.summary: ContextCompacted | None = None
        """What the model is shown in place of the beginning of the history."""
        self.summed_up = False
        """In this step a summary was made."""
        self.chance: State | None = None
        """The state from which the run got its last chance; the guards are shown nothing after it, and what they read then stands."""
        self.memories: list[Any] = self.wiring.start()
        self._fold(Started(tools, at))
        self.readings: tuple[Reading, ...] = ()
        """Of the guards that were judged last."""
        self.edge: Edge | None = None
        """The edge taken last; the library's hooks set it."""
        prompt = self.protocol.system_prompt(tools)
        self.history: list[Message] = [Message("system", prompt)] if prompt else []
        self.history.append(Message("user", task))
        self.effect: Effect | None = self._ask()

    def copy(self) -> Run:
        """An independent run in the same state with the same past."""
        other = object.__new__(Run)
        for name in self.__slots__:
            value = getattr(self, name)
            setattr(other, name, value.copy() if isinstance(value, list | dict) else value)
        other.canceller = None
        if isinstance(other.effect, AskModel):
            other.effect = other._ask()
        return other

    @property
    def accepts(self) -> tuple[type, ...]:
        """The types of events that can happen now."""
        return tuple(kind for kind in self.wiring.ways[self.state] if awaited(self, kind))

    def keyed(self, index: int, call: ToolCall) -> ToolCall:
        """The call, which stands at ``index`` in the reply, with its key: ``RUN/STEP/NUMBER``, the same when the run is taken up again."""
        return msgspec.structs.replace(call, key=f"{self.id}/{self.step}/{index + 1}")

    def cancel(self) -> None:
        """Stop the run as soon as it can be: from a hook, a tool, or another thread. It halts as ``cancelled``, with its record whole.

        Raises ``RuntimeError`` for a run that nobody drives.
        """
        if self.canceller is None:
            raise RuntimeError("this run is not being driven; there is nothing to cancel")
        self.canceller()

    def feed(self, event: Event) -> Effect | None:
        """Take one event and go on until the run waits for the world again or has halted. Gives the new effect.

        Raises ``UnexpectedEvent`` for an event that cannot happen in this state, or that does not bring what the run waits for (one
        observation for each call, one approval for each question); the run is then as it was. Raises ``GuardError`` for a user's guard
        that raises or gives no reading; the event is then in the log, and the run cannot go on.
        """
        kind = type(event)
        way = self.wiring.ways[self.state].get(kind)
        if way is None or not (kind not in FITS or awaited(self, kind)):
            self._refuse(event)
        if kind in FITS and (problem := FITS[kind](self, event)):
            raise UnexpectedEvent(f"{kind.__name__} in {self.state} (step {self.step}): {problem}")
        if isinstance(event, AttemptFailed):
            self.wait_s = self.options.wait_s(self.retries, event.retry_after_s)
        self.log.append(event)
        if (way.begins(self) if way.edges else way.begins_step) and (kind is not Cancelled or event.asked):  # type: ignore[union-attr]  # a Cancelled has it
            self.step += 1
        self._fold(event)
        self._fire(way.pull)
        self._take(event)
        state = self.state
        if state == DECIDING:
            self.effect = self._ask()
        elif state == HALTED:
            self.effect = None
        return self.effect

    def _take(self, event: Event) -> None:
        """What an event brings, after the edge on which it came; from the pure states, on to the next that waits."""
        if isinstance(event, ModelReplied):
            self.retries, self.wait_s, self.summed_up = 0, None, False
            self._parse(event)
        elif isinstance(event, ToolsReturned):
            self._write(event.observations)
            self.approvals = {}
            self._conclude()
        elif isinstance(event, UserSpoke):
            self.history.append(Message("user", event.text))
        elif isinstance(event, Cancelled | ToolsFailed):
            if event.observations:
                self._write(event.observations)
        elif self.state == PARSING:  # the model failed when it had its last word
            self.decision = None
            self._finish()
        elif isinstance(event, AttemptFailed):
            self.retries += self.state == DECIDING
        elif isinstance(event, ContextCompacted):
            self.summary, self.summed_up = event, True
        elif isinstance(event, ApprovalAsked):
            self.effect = AskApproval(self.effect.calls, event.calls)  # type: ignore[union-attr]  # it was CallTools
        elif isinstance(event, ApprovalGiven):
            self._decided(event.approvals)

    def _decided(self, given: Sequence[Approval]) -> None:
        effect = self.effect
        self.approvals = dict(zip(effect.asked, given, strict=True))  # type: ignore[union-attr]  # it was AskApproval
        self.effect = decided(effect.calls, self.approvals, self.protocol.lang)  # type: ignore[union-attr]  # as above

    def _parse(self, event: ModelReplied) -> None:
        """Parsing: the decision is made and shown to the guards that act before execution."""
        reply = event.reply
        decision = self.protocol.parse(reply)
        if reply.finish_reason == "length" and type(decision) is ToolCalls:
            say = self.protocol.lang.say
            decision = Malformed(say("The reply was cut off, so none of its tool calls was made. Answer again, and shorter."), "truncated")
        self.decision = decision
        self.decisions.append(decision)
        self._fold(decision)
        self.history.append(Message("assistant", self.protocol.kept(reply), reply.tool_calls))
        if self.chance is not None:
            self._finish()
            if isinstance(decision, Malformed):
                self.history += corrections(reply, decision.problem)
            return
        self._judge(PARSING)
        self._fire(self.wiring.parsed)
        if self.state == EXECUTING:
            self.effect = CallTools(decision.calls)  # type: ignore[union-attr]  # only calls lead to Executing
        elif self.state == OBSERVING:
            if isinstance(decision, Malformed):
                self.history += corrections(reply, decision.problem)
            self._conclude()
        else:
            if isinstance(decision, ToolCalls):
                self._write(refused(decision, self._tripped, self.protocol.lang))
            elif isinstance(decision, Malformed):
                self.history += corrections(reply, decision.problem)
            if self.state == DECIDING:
                self._offer(PARSING)

    def _offer(self, state: State) -> None:
        """The last chance: the model is told that it can but answer."""
        self.chance = state
        self.history.append(last_call(self._tripped, self.protocol.lang))

    def _finish(self) -> None:
        """After the last chance, whatever came of it: what the guards read before it stands."""
        if self.chance == OBSERVING:
            self._fire(self.wiring.parsed, ())
            self._fire(self.wiring.observed)
        else:
            self._fire(self.wiring.parsed)
        if isinstance(self.decision, ToolCalls):
            self._write(refused(self.decision, self._tripped, self.protocol.lang))

    @property
    def _tripped(self) -> str:
        """The reason of the guard that stops the run."""
        return next(reading.guard for reading in self.readings if reading.trips)

    def _conclude(self) -> None:
        """The end of a step: the guards of Observing are judged, and a warning is written down."""
        self._judge(OBSERVING)
        self._fire(self.wiring.observed)
        taken = self.edge.row.id  # type: ignore[union-attr]  # an edge was taken
        if taken == "last_chance":
            self._offer(OBSERVING)
        elif taken == "nudge":
            by_reason = {guard.reason: guard for guard in self.wiring.guards}
            for reading in self.readings:
                if reading.warns:
                    self.history.append(Message("user", by_reason[reading.guard].nudge(reading, self.protocol.lang)))

    def _write(self, observations: Sequence[Observation]) -> None:
        calls = self.decision.calls  # type: ignore[union-attr]  # observations answer calls
        most, approvals, lang = self.options.max_observation_chars, self.approvals, self.protocol.lang
        for index, (call, observation) in enumerate(zip(calls, observations, strict=True)):
            self.history.append(observed(call, observation.tool, observation.text, approvals.get(index), most, lang))

    def _fold(self, fact: Any) -> None:
        if self.chance is not None:
            return
        memories = self.memories
        try:
            for i, fold in self.wiring.folds[type(fact)]:
                memories[i] = fold(memories[i], fact, self.step)
        except GuardError as error:
            raise error.located(self.state, self.step) from error.__cause__

    def _judge(self, state: State) -> None:
        memories = self.memories
        try:
            self.readings = tuple([judge(memories[i]) for i, judge in self.wiring.judges[state]])
        except GuardError as error:
            raise error.located(state, self.step) from error.__cause__

    def _fire(self, pull: Callable[[Run], bool], readings: tuple[Reading, ...] | None = None) -> None:
        """Take an edge and log it, from a pure state with what was judged there (``readings``, where it is not what was judged last)."""
        pull(self)
        edge: Edge = self.edge  # type: ignore[assignment]  # every group ends unguarded, so an edge was taken
        row = edge.row
        judged = (self.readings if readings is None else readings) if row.source in PURE else ()
        self.log.append(Taken(row.id, self.step + edge.ahead, judged))
        if row.dest == HALTED:
            self.reason = row.reason

    def _ask(self) -> AskModel:
        tools = self.tools if self.chance is None else ()
        return AskModel(Messages(self.history, len(self.history)), tools, self.retries + 1, self.wait_s or 0.0)

    def _refuse(self, event: Event) -> NoReturn:
        expected = ", ".join(kind.__name__ for kind in self.accepts) or "nothing, ever again"
        raise UnexpectedEvent(f"{type(event).__name__} in {self.state} (step {self.step}): this state takes {expected}")
