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
from typing import Any, NamedTuple, NoReturn, get_args

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
    Value,
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


class Taken(Value):
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


class Way(NamedTuple):
    """How a state takes a kind of event."""

    pull: Callable[[Run], bool]
    """Pulls the event's trigger on the ``transitions`` machine."""
    begins_step: bool
    counted: bool
    """The event brings one observation for each call that was asked for."""
    then: Callable[[Run, Any], None] | None
    """What the run does with the event once the edge is taken."""


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
        pulls = {trigger: event.trigger for trigger, event in machine.events.items()}
        self.parsed, self.observed = pulls["parsed"], pulls["observed"]
        begins = {(row.source, row.trigger): row.begins_step for row in self.rows}
        self.ways = {
            state: {
                event: Way(pulls[trigger], begins[state, trigger], event in {ToolsReturned, Cancelled}, _THEN.get(event))
                for event, trigger in TRIGGERS.items()
                if (state, trigger) in begins
            }
            for state in STATES
        }
        """By state, the events that it takes."""


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
    def accepts(self) -> tuple[type, ...]:
        """The types of events that can happen now."""
        return tuple(self.wiring.ways[self.state])

    def feed(self, event: Event) -> Effect | None:
        """Take one event and go on until the run waits for the world again or has halted. Gives the new effect.

        Raises ``UnexpectedEvent`` for an event that cannot happen in this state, or that does not bring one observation for each
        call; the run is then as it was.
        """
        way = self.wiring.ways[self.state].get(type(event))
        if way is None:
            self._refuse(event)
        pull, begins_step, counted, then = way
        if counted:
            self._check_count(event)  # type: ignore[arg-type]  # counted: it has observations
        self.log.append(event)
        if begins_step:
            self.step += 1
        self._fold(event)
        self._fire(pull)
        if then is not None:
            then(self, event)
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
        self.history.append(Message("assistant", reply.text, reply.tool_calls))
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

    def _observe(self, event: ToolsReturned) -> None:
        """Observing after tools ran: what they returned is written, and the other guards are judged."""
        self._write(event.observations)
        self._conclude()

    def _conclude(self) -> None:
        """The end of a step: the guards of Observing are judged, and a warning is written down."""
        self._judge(OBSERVING)
        self._fire(self.wiring.observed)
        if self.edge.row.id == "nudge":  # type: ignore[union-attr]  # an edge was taken
            by_reason = {guard.reason: guard for guard in self.wiring.guards}
            for reading in self.readings:
                if reading.warns:
                    self.history.append(Message("user", by_reason[reading.guard].nudge(reading, self.protocol.lang)))

    def _hear(self, event: UserSpoke) -> None:
        self.history.append(Message("user", event.text))

    def _stop(self, event: Cancelled) -> None:
        if event.observations:
            self._write(event.observations)

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
        for i, fold in self.wiring.folds[type(fact)]:
            memories[i] = fold(memories[i], fact, self.step)

    def _judge(self, state: State) -> None:
        memories = self.memories
        self.readings = tuple([judge(memories[i]) for i, judge in self.wiring.judges[state]])

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
            raise UnexpectedEvent(f"{type(event).__name__} with {len(event.observations)} observations in {self.state} (step {self.step}): {calls} calls wait for one each")

    def _refuse(self, event: Event) -> NoReturn:
        expected = ", ".join(kind.__name__ for kind in self.accepts) or "nothing, ever again"
        raise UnexpectedEvent(f"{type(event).__name__} in {self.state} (step {self.step}): this state takes {expected}")


_THEN: dict[type, Callable[[Run, Any], None]] = {ModelReplied: Run._parse, ToolsReturned: Run._observe, UserSpoke: Run._hear, Cancelled: Run._stop}
