"""``Run``: it takes events and answers with one effect.

    while (effect := run.effect) is not None:
        run.feed(perform(effect))

There is no I/O here. ``feed`` takes one event and fires edges in a plain loop until the run waits for the world again or
has halted. Events are what the world said; edges are what the machine made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from fsm_agent.events import (
    AskModel,
    CallTools,
    Cancelled,
    Decision,
    Effect,
    Event,
    Malformed,
    Message,
    Messages,
    ModelReplied,
    Observation,
    Reply,
    Started,
    ToolCalls,
    ToolSpec,
    ToolsReturned,
    UserSpoke,
    Value,
)
from fsm_agent.guards import Guard, Reading
from fsm_agent.language import ENGLISH, Language
from fsm_agent.machine.foreign import GuardError
from fsm_agent.machine.wiring import Edge, wire
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
        *("task", "tools", "protocol", "wiring", "at"),
        *("state", "reason", "effect", "step", "log", "history", "decisions", "decision", "memories", "readings", "edge"),
    )

    def __init__(
        self,
        task: str,
        *,
        guards: Sequence[Guard] = (),
        protocol: Protocol | None = None,
        tools: tuple[ToolSpec, ...] = (),
        lang: Language = ENGLISH,
        at: float | None = None,
        stock: bool = False,
    ) -> None:
        """A run that is about to ask the model.

        ``at``: when it begins, in seconds since 1970 UTC. ``stock``: see ``wiring``. Raises ``ValueError`` as ``rows_for`` does.
        """
        self.wiring = wire(guards, stock=stock)
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
            setattr(other, name, value.copy() if isinstance(value, list) else value)
        if isinstance(other.effect, AskModel):
            other.effect = other._ask()
        return other

    @property
    def accepts(self) -> tuple[type, ...]:
        """The types of events that can happen now."""
        return tuple(self.wiring.ways[self.state])

    def feed(self, event: Event) -> Effect | None:
        """Take one event and go on until the run waits for the world again or has halted. Gives the new effect.

        Raises ``UnexpectedEvent`` for an event that cannot happen in this state, or that does not bring one observation for each
        call; the run is then as it was. Raises ``GuardError`` for a user's guard that raises or gives no reading; the event is then in the
        log, and the run cannot go on.
        """
        way = self.wiring.ways[self.state].get(type(event))
        if way is None:
            self._refuse(event)
        pull, begins_step, counted = way
        if counted:
            self._check_count(event)  # type: ignore[arg-type]  # counted: it has observations
        self.log.append(event)
        if begins_step and (type(event) is not Cancelled or event.asked):
            self.step += 1
        self._fold(event)
        self._fire(pull)
        if isinstance(event, ModelReplied):
            self._parse(event)
        elif isinstance(event, ToolsReturned):
            self._write(event.observations)
            self._conclude()
        elif isinstance(event, UserSpoke):
            self.history.append(Message("user", event.text))
        elif isinstance(event, Cancelled) and event.observations:
            self._write(event.observations)
        state = self.state
        if state == DECIDING:
            self.effect = self._ask()
        elif state == HALTED:
            self.effect = None
        return self.effect

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
        self._judge(PARSING)
        self._fire(self.wiring.parsed)
        if self.state == EXECUTING:
            self.effect = CallTools(decision.calls)  # type: ignore[union-attr]  # only calls lead to Executing
        elif self.state == OBSERVING:
            if isinstance(decision, Malformed):
                self._correct(reply, decision.problem)
            self._conclude()
        elif isinstance(decision, ToolCalls):
            refused = self.protocol.lang.say("refused, the run was stopped first: {reason}", reason=self.reason)
            self._write([Observation(call.name, refused, "refused") for call in decision.calls])

    def _conclude(self) -> None:
        """The end of a step: the guards of Observing are judged, and a warning is written down."""
        self._judge(OBSERVING)
        self._fire(self.wiring.observed)
        if self.edge.row.id == "nudge":  # type: ignore[union-attr]  # an edge was taken
            by_reason = {guard.reason: guard for guard in self.wiring.guards}
            for reading in self.readings:
                if reading.warns:
                    self.history.append(Message("user", by_reason[reading.guard].nudge(reading, self.protocol.lang)))

    def _write(self, observations: Sequence[Observation]) -> None:
        calls = self.decision.calls  # type: ignore[union-attr]  # observations answer calls
        for call, observation in zip(calls, observations, strict=True):
            self.history.append(Message("tool", observation.text, (), observation.tool, call.id))

    def _correct(self, reply: Reply, problem: str) -> None:
        """Tell the model what was wrong with its reply; where it held structured calls, as the result of each."""
        if not reply.tool_calls:
            self.history.append(Message("user", problem))
        for request in reply.tool_calls:
            self.history.append(Message("tool", problem, (), request.name, request.id))

    def _fold(self, fact: Any) -> None:
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

    def _fire(self, pull: Callable[[Run], bool]) -> None:
        pull(self)
        row = self.edge.row  # type: ignore[union-attr]  # every group ends unguarded, so an edge was taken
        self.log.append(Taken(row.id, self.step, self.readings) if row.source in PURE else Taken(row.id, self.step))
        if row.dest == HALTED:
            self.reason = row.reason

    def _ask(self) -> AskModel:
        return AskModel(Messages(self.history, len(self.history)), self.tools)

    def _check_count(self, event: ToolsReturned | Cancelled) -> None:
        calls = len(self.effect.calls) if isinstance(self.effect, CallTools) else 0
        if len(event.observations) != calls:
            met = f"{type(event).__name__} with {len(event.observations)} observations in {self.state} (step {self.step})"
            raise UnexpectedEvent(f"{met}: {calls} calls wait for one each")

    def _refuse(self, event: Event) -> NoReturn:
        expected = ", ".join(kind.__name__ for kind in self.accepts) or "nothing, ever again"
        raise UnexpectedEvent(f"{type(event).__name__} in {self.state} (step {self.step}): this state takes {expected}")
