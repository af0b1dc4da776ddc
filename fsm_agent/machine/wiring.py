"""The table wired to ``transitions``: the only module that imports the library.

A machine is built once for each set of guards and shared. A run is only an object with a ``state``, never registered with it.
Edges are tried by ``LeanEvent``, which does what the library's own event does here, in a tenth of its time; ``stock=True`` builds
the same machine the library's own way, as the reference that tests compare it with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple, Protocol, get_args

from transitions import Event as StockEvent
from transitions import EventData, Machine, Transition

from fsm_agent.events import (
    ApprovalAsked,
    ApprovalGiven,
    AttemptFailed,
    Cancelled,
    ContextCompacted,
    Decision,
    Fact,
    Final,
    Malformed,
    ModelFailed,
    ModelReplied,
    RecordingEnded,
    Said,
    ToolsFailed,
    ToolsReturned,
    UserSpoke,
)
from fsm_agent.guards import Guard, Reading
from fsm_agent.machine.foreign import Checked, is_foreign
from fsm_agent.options import Feature
from fsm_agent.table import DECIDING, INITIAL, OBSERVING, PARSING, STATES, Row, State, rows_for

TRIGGERS: dict[type, str] = {
    ModelReplied: "model_replied",
    ModelFailed: "model_failed",
    AttemptFailed: "attempt_failed",
    ContextCompacted: "context_compacted",
    UserSpoke: "user_spoke",
    ApprovalAsked: "approval_asked",
    ApprovalGiven: "approval_given",
    ToolsReturned: "tools_returned",
    ToolsFailed: "tools_failed",
    Cancelled: "cancelled",
    RecordingEnded: "recording_ended",
}
"""The trigger that each event of the world pulls."""


class Walker(Protocol):
    """What walks the machine: a run, as the edges see it."""

    state: State
    decision: Decision | None
    readings: tuple[Reading, ...]
    edge: Edge | None
    wait_s: float | None
    chance: State | None


class Edge(Transition):
    """A row of the table as a transition; ``test`` says whether the run may take it (None: always)."""

    def __init__(self, source: str, dest: str, *callbacks: Any, row: Row, test: Callable[[Walker], bool] | None) -> None:
        super().__init__(source, dest, *callbacks)
        if test is not None:
            self.conditions.append(self.condition_cls(lambda data: test(data.model)))
        self.row = row
        self.test = test
        self.ahead = int(row.source == row.dest == DECIDING and bool(row.spends))
        """1, where the edge is a part of the step that the next reply begins, such as a retry; else 0."""

    def execute(self, event_data: EventData) -> bool:
        taken = super().execute(event_data)
        if taken:
            event_data.model.edge = self  # type: ignore[attr-defined]  # the model is a Run
        return taken


class LeanEvent(StockEvent):
    """Takes the first edge whose test holds and sets the state itself: no callbacks, no event data, no logging."""

    def trigger(self, model: Any, *_args: Any, **_kwargs: Any) -> bool:
        edge: Edge
        for edge in self.transitions[model.state]:  # type: ignore[assignment]
            test = edge.test
            if test is None or test(model):
                model.state = edge.dest
                model.edge = edge
                return True
        return False


class LeanMachine(Machine):
    """The machine that runs."""

    transition_cls = Edge
    event_cls = LeanEvent


class StockMachine(Machine):
    """The machine as the library runs it: the reference."""

    transition_cls = Edge


def _decision_is(kind: type, run: Walker) -> bool:
    return type(run.decision) is kind


def _trips(index: int, run: Walker) -> bool:
    return run.readings[index].trips


def _has_last_chance(chances: Sequence[bool], run: Walker) -> bool:
    """The first guard that trips leaves a last chance, and the run has not had it yet."""
    return run.chance is None and next((chance for chance, reading in zip(chances, run.readings, strict=True) if reading.trips), False)


_TESTS: dict[str, Callable[[Walker], bool]] = {
    "is_final_answer": lambda run: type(run.decision) is Final and run.chance is None,
    "is_malformed": partial(_decision_is, Malformed),
    "is_said": partial(_decision_is, Said),
    "is_warned": lambda run: any(reading.warns for reading in run.readings),
    "can_retry": lambda run: run.wait_s is not None,
    "is_last": lambda run: run.chance is not None,
    "is_last_word": lambda run: run.chance == OBSERVING,
}


class Way(NamedTuple):
    """How a state takes a kind of event."""

    pull: Callable[[Walker], bool]
    """Pulls the event's trigger on the ``transitions`` machine."""
    begins_step: bool
    edges: tuple[Edge, ...] = ()
    """Where only some of the edges begin a step: all of them, in order."""

    def begins(self, run: Walker) -> bool:
        """Whether the edge that the run is about to take begins a step."""
        if not self.edges:
            return self.begins_step
        return next(edge.row.begins_step for edge in self.edges if edge.test is None or edge.test(run))


class Wiring:
    """A set of guards wired to the table: the rows, the shared ``transitions`` machine, and who is shown and judged what."""

    def __init__(self, guards: Sequence[Guard], features: frozenset[Feature] = frozenset(), *, stock: bool = False) -> None:
        self.rows = rows_for((guard.edge() for guard in guards), features)
        by_reason = {guard.reason: guard for guard in guards}
        self.guards = tuple(by_reason[row.reason] for row in self.rows if row.reason in by_reason)
        self._asked = tuple(Checked(guard) if is_foreign(guard) else guard for guard in self.guards)
        judged = {state: [i for i, guard in enumerate(self.guards) if guard.watches == state] for state in (PARSING, OBSERVING)}
        self.judges = {state: tuple((i, self._asked[i].judge) for i in indices) for state, indices in judged.items()}
        self.folds = {
            fact: tuple((i, self._asked[i].fold) for i, guard in enumerate(self.guards) if not guard.folds or fact in guard.folds)
            for fact in get_args(Fact)
        }
        place = {self.guards[i].reason: at for indices in judged.values() for at, i in enumerate(indices)}
        chances = {row.reason: row.chance for row in self.rows}
        leaves = {state: [chances[self.guards[i].reason] for i in indices] for state, indices in judged.items()}
        edges: list[Any] = [
            {"trigger": row.trigger, "source": row.source, "dest": row.dest, "row": row, "test": _test(row, place, leaves)}
            for row in self.rows
        ]
        machine = (StockMachine if stock else LeanMachine)(
            model=None, states=list(STATES), transitions=edges, initial=INITIAL, auto_transitions=False, send_event=True, queued=False
        )
        pulls = {trigger: event.trigger for trigger, event in machine.events.items()}
        self.parsed, self.observed = pulls["parsed"], pulls["observed"]
        self.ways = {
            state: {
                event: _way(pulls[trigger], machine.events[trigger].transitions[state])
                for event, trigger in TRIGGERS.items()
                if trigger in machine.events and machine.events[trigger].transitions.get(state)
            }
            for state in STATES
        }
        """By state, the events that it takes."""

    def start(self) -> list[Any]:
        """A new memory for each guard."""
        return [guard.start() for guard in self._asked]


def _way(pull: Callable[[Walker], bool], edges: Sequence[Any]) -> Way:
    begin = [edge.row.begins_step for edge in edges]
    return Way(pull, all(begin), tuple(edges) if any(begin) and not all(begin) else ())


def _test(row: Row, place: dict[str, int], leaves: dict[State, list[bool]]) -> Callable[[Walker], bool] | None:
    if row.guard is None:
        return None
    if row.guard == "has_last_chance":
        return partial(_has_last_chance, leaves[row.source])
    return _TESTS.get(row.guard) or partial(_trips, place[row.reason or ""])


@lru_cache(maxsize=256)
def _wire(guards: tuple[Guard, ...], features: frozenset[Feature], *, stock: bool) -> Wiring:
    return Wiring(guards, features, stock=stock)


def wire(guards: Sequence[Guard], features: frozenset[Feature] = frozenset(), *, stock: bool = False) -> Wiring:
    """The wiring of these guards and options, built once for equal ones. Raises ``ValueError`` as ``rows_for`` does."""
    guards = tuple(guards)
    try:
        hash(guards)
    except TypeError:  # a user's guard with a limit that cannot be hashed: wired anew each time
        return Wiring(guards, features, stock=stock)
    return _wire(guards, features, stock=stock)
