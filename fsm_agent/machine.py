"""The machine that runs the table: ``Run`` takes events and answers with one effect. The only importer of ``transitions``.

    while (effect := run.effect) is not None:
        run.feed(perform(effect))

There is no I/O here. ``feed`` takes one event and fires edges in a plain loop until the run waits for the world again or
has halted. A ``transitions`` machine is built once for each set of guards and shared: a run is only a small object with a
``state``, never registered with it. Edges are tried by ``LeanEvent``, which does what the library's own event does here, in a
tenth of its time; ``stock=True`` builds the same machine the library's own way, as the reference that tests compare it with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, get_args

import attrs
from transitions import Event as StockEvent
from transitions import EventData, Machine, Transition

from fsm_agent.events import (
    AskModel,
    CallTools,
    Cancelled,
    Decision,
    Effect,
    Event,
    Fact,
    Final,
    Malformed,
    Message,
    Messages,
    ModelFailed,
    ModelReplied,
    Observation,
    RecordingEnded,
    Reply,
    Said,
    Started,
    ToolCalls,
    ToolsReturned,
    ToolSpec,
    UserSpoke,
)
from fsm_agent.guards import Guard, Reading
from fsm_agent.language import ENGLISH, Language
from fsm_agent.protocols import LineProtocol, Protocol
from fsm_agent.table import DECIDING, EXECUTING, HALTED, INITIAL, OBSERVING, PARSING, PREDICATES, PURE, STATES, Row, State, rows_for

TRIGGERS: dict[type, str] = {
    ModelReplied: "model_replied",
    ModelFailed: "model_failed",
    UserSpoke: "user_spoke",
    ToolsReturned: "tools_returned",
    Cancelled: "cancelled",
    RecordingEnded: "recording_ended",
}
"""The trigger that each event of the world pulls."""


class UnexpectedEvent(RuntimeError):
    """An event that cannot happen in the state of the run was fed to it. The run is as it was."""


@attrs.frozen
class Taken:
    """An edge that a run took, as the record keeps it."""

    edge: str
    """The row's id."""
    step: int
    readings: tuple[Reading, ...] = ()
    """Every guard that was judged in the edge's source, in the order of the table, tripped or not."""


class Edge(Transition):
    """A row of the table as a transition; ``test`` says whether the run may take it (None: always)."""

    def __init__(self, source: str, dest: str, *callbacks: Any, row: Row, test: Callable[[Run], bool] | None) -> None:
        super().__init__(source, dest, *callbacks)
        if test is not None:
            self.conditions.append(self.condition_cls(lambda data: test(data.model)))
        self.row = row
        self.test = test

    def execute(self, event_data: EventData) -> bool:
        taken = super().execute(event_data)
        if taken:
            event_data.model.edge = self
        return taken


class LeanEvent(StockEvent):
    """Takes the first edge whose test holds and sets the state itself: no callbacks, no event data, no logging."""

    def trigger(self, model: Any, *args: Any, **kwargs: Any) -> bool:
        edge: Edge
        for edge in self.transitions[model.state]:  # type: ignore[assignment]
            test = edge.test
            if test is None or test(model):
                model.state = edge.dest
                model.edge = edge
                return True
        return False


class LeanMachine(Machine):
    transition_cls = Edge
    event_cls = LeanEvent


class StockMachine(Machine):
    transition_cls = Edge


def _decision_is(kind: type, run: Run) -> bool:
    return type(run.decision) is kind


def _trips(index: int, run: Run) -> bool:
    return run.readings[index].trips


_TESTS: dict[str, Callable[[Run], bool]] = {
    "is_final_answer": partial(_decision_is, Final),
    "is_malformed": partial(_decision_is, Malformed),
    "is_said": partial(_decision_is, Said),
    "is_warned": lambda run: any(reading.warns for reading in run.readings),
}
assert _TESTS.keys() == PREDICATES


class Wiring:
    """A set of guards wired to the table: the rows, the shared ``transitions`` machine, and who is shown and judged what."""

    def __init__(self, guards: Sequence[Guard], *, stock: bool = False) -> None:
        self.rows = rows_for(guard.edge() for guard in guards)
        by_reason = {guard.reason: guard for guard in guards}
        self.guards = tuple(by_reason[row.reason] for row in self.rows if row.reason in by_reason)
        judged = {state: [i for i, guard in enumerate(self.guards) if guard.watches == state] for state in (PARSING, OBSERVING)}
        self.judges = {state: tuple((i, self.guards[i].judge) for i in indices) for state, indices in judged.items()}
        self.folds = {
            fact: tuple((i, guard.fold) for i, guard in enumerate(self.guards) if not guard.folds or fact in guard.folds)
            for fact in get_args(Fact)
        }
        place = {self.guards[i].reason: at for indices in judged.values() for at, i in enumerate(indices)}
        edges: list[Any] = [
            {"trigger": row.trigger, "source": row.source, "dest": row.dest, "row": row, "test": _test(row, place)} for row in self.rows
        ]
        machine = (StockMachine if stock else LeanMachine)(
            model=None, states=list(STATES), transitions=edges, initial=INITIAL, auto_transitions=False, send_event=True, queued=False
        )
        self.events = dict(machine.events)
        self.accepts = {state: {row.trigger: row.begins_step for row in self.rows if row.source == state} for state in STATES}
        """By state, the triggers that it takes, and whether they begin a step."""


def _test(row: Row, place: dict[str, int]) -> Callable[[Run], bool] | None:
    if row.guard is None:
        return None
    return _TESTS.get(row.guard) or partial(_trips, place[row.reason or ""])


@lru_cache(maxsize=256)
def _wire(guards: tuple[Guard, ...], stock: bool) -> Wiring:
    return Wiring(guards, stock=stock)


def wire(guards: Sequence[Guard], *, stock: bool = False) -> Wiring:
    """The wiring of these guards, built once for equal ones. Raises ``ValueError`` as ``rows_for`` does."""
    guards = tuple(guards)
    try:
        hash(guards)
    except TypeError:  # a user's guard with a limit that cannot be hashed: wired anew each time
        return Wiring(guards, stock=stock)
    return _wire(guards, stock)


class Run:
    """One run of the machine: feed it events, perform its effect.

    ``state`` is the current state, ``reason`` the halt reason (None before), ``effect`` what it wants the world to do (None
    once halted), ``step`` the number of steps begun, which is the number of model calls, and ``log`` everything so far: events
    and the edges that were taken on them, in order.
    """

    __slots__ = ("decision", "decisions", "edge", "effect", "history", "log", "memories", "protocol", "readings", "reason", "state", "step", "task", "tools", "wiring")  # fmt: skip

    def __init__(
        self,
        task: str,
        *,
        guards: Sequence[Guard] = (),
        protocol: Protocol | None = None,
        tools: tuple[ToolSpec, ...] = (),
        lang: Language = ENGLISH,
        stock: bool = False,
    ) -> None:
        """A run that is about to ask the model. ``stock``: see the module. Raises ``ValueError`` as ``rows_for`` does."""
        self.wiring = wire(guards, stock=stock)
        self.protocol: Protocol = LineProtocol(lang) if protocol is None else protocol
        self.task = task
        self.tools = tools
        self.state: State = INITIAL
        self.reason: str | None = None
        self.step = 0
        self.log: list[Event | Taken] = []
        self.decisions: list[Decision] = []
        """One a reply, in order."""
        self.decision: Decision | None = None
        """What the last reply meant."""
        self.memories: list[Any] = [guard.start() for guard in self.wiring.guards]
        self._fold(Started(tools))
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
    def accepts(self) -> tuple[str, ...]:
        """The triggers that may be pulled now."""
        return tuple(self.wiring.accepts[self.state])

    def feed(self, event: Event) -> Effect | None:
        """Take one event and go on until the run waits for the world again or has halted. Gives the new effect.

        Raises ``UnexpectedEvent`` for an event that cannot happen in this state, or that does not bring one observation for each
        call; the run is then as it was.
        """
        trigger = TRIGGERS.get(type(event))
        begins_step = self.wiring.accepts[self.state].get(trigger) if trigger else None
        if begins_step is None or trigger is None:
            expected = ", ".join(self.accepts) or "nothing, ever again"
            raise UnexpectedEvent(f"{type(event).__name__} in {self.state} (step {self.step}): this state takes {expected}")
        if isinstance(event, ToolsReturned | Cancelled):
            self._check_count(event)
        self.log.append(event)
        self.step += begins_step
        self._fold(event)
        self._fire(trigger)
        match event:
            case ModelReplied(reply=reply):
                self._parse(reply)
            case ToolsReturned(observations=observations):
                self._observe(observations)
            case UserSpoke(text=text):
                self.history.append(Message("user", text))
            case Cancelled(observations=observations) if observations:
                self._write(observations)
        self.effect = self._ask() if self.state == DECIDING else self.effect if self.state == EXECUTING else None
        return self.effect

    def _parse(self, reply: Reply) -> None:
        """Parsing: the decision is made and shown to the guards that act before execution."""
        decision = self.protocol.parse(reply)
        if type(decision) is ToolCalls and reply.finish_reason == "length":
            say = self.protocol.lang.say
            decision = Malformed(say("The reply was cut off, so none of its tool calls was made. Answer again, and shorter."), "truncated")
        self.decision = decision
        self.decisions.append(decision)
        self._fold(decision)
        self.history.append(Message("assistant", reply.text, reply.tool_calls))
        self._judge(PARSING)
        self._fire("parsed")
        if self.state == EXECUTING:
            assert isinstance(decision, ToolCalls)
            self.effect = CallTools(decision.calls)
        elif self.state == OBSERVING:
            if isinstance(decision, Malformed):
                self._answer(reply, decision.problem)
            self._conclude()
        elif isinstance(decision, ToolCalls):
            refused = self.protocol.lang.say("refused, the run was stopped first: {reason}", reason=self.reason)
            self._write([Observation(call.name, refused, "refused") for call in decision.calls])

    def _observe(self, observations: Sequence[Observation]) -> None:
        """Observing after tools ran: what they returned is written, and the other guards are judged."""
        self._write(observations)
        self._conclude()

    def _conclude(self) -> None:
        """The end of a step: the guards of Observing are judged, and a warning is written down."""
        self._judge(OBSERVING)
        self._fire("observed")
        if self.edge is not None and self.edge.row.id == "nudge":
            by_reason = {guard.reason: guard for guard in self.wiring.guards}
            for reading in self.readings:
                if reading.warns:
                    self.history.append(Message("user", by_reason[reading.guard].nudge(reading, self.protocol.lang)))

    def _write(self, observations: Sequence[Observation]) -> None:
        assert isinstance(self.decision, ToolCalls)
        for call, observation in zip(self.decision.calls, observations, strict=True):
            self.history.append(Message("tool", observation.text, (), observation.tool, call.id))

    def _answer(self, reply: Reply, problem: str) -> None:
        """Give a malformed reply its correction; where it held structured calls, as the result of each."""
        if not reply.tool_calls:
            self.history.append(Message("user", problem))
        for request in reply.tool_calls:
            self.history.append(Message("tool", problem, (), request.name, request.id))

    def _fold(self, fact: Any) -> None:
        memories = self.memories
        for i, fold in self.wiring.folds[type(fact)]:
            memories[i] = fold(memories[i], fact, self.step)

    def _judge(self, state: State) -> None:
        memories = self.memories
        self.readings = tuple([judge(memories[i]) for i, judge in self.wiring.judges[state]])

    def _fire(self, trigger: str) -> None:
        self.wiring.events[trigger].trigger(self)
        row = self.edge.row  # type: ignore[union-attr]  # every group ends unguarded, so an edge was taken
        self.log.append(Taken(row.id, self.step, self.readings if row.source in PURE else ()))
        if row.dest == HALTED:
            self.reason = row.reason

    def _ask(self) -> AskModel:
        return AskModel(Messages(self.history, len(self.history)), self.tools)

    def _check_count(self, event: ToolsReturned | Cancelled) -> None:
        calls = len(self.effect.calls) if isinstance(self.effect, CallTools) else 0
        if len(event.observations) != calls:
            raise UnexpectedEvent(f"{type(event).__name__} with {len(event.observations)} observations in {self.state} (step {self.step}): {calls} calls wait for one each")
