"""What a state is: of a run, all that its future depends on.

States are copies of a real ``Run``. Two runs are in the same state when the machine is, when they wait for the same, when as much of
what a step may have is used up (retries, its summary, its question to a person), and when the guards' memories have the same shape, up
to the names of calls and texts. Of a run that has halted only how it did counts, and of one that has its last chance, besides, what is
used up: its guards are shown nothing more, and nothing is executed.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

import attrs

from fsm_agent.events import AskApproval, AskModel, CallTools, ToolCalls, ToolSpec
from fsm_agent.guards import Guard
from fsm_agent.machine import Run, Taken, UnexpectedEvent
from fsm_agent.options import OFF, Options
from fsm_agent.proof.letters import Letter
from fsm_agent.proof.shapes import canonical
from fsm_agent.proof.watched import GuardFailed, Watched
from fsm_agent.protocols import RecordedProtocol
from fsm_agent.table import DECIDING, EXECUTING, HALTED, PURE

TASK = "the task"


@attrs.frozen
class Halt:
    """How a run ended."""

    reason: str
    edge: str
    """The row that led to it: some reasons have several."""
    trips: frozenset[str] = frozenset()
    """Every guard that tripped there."""


@attrs.define(eq=False)
class Edge:
    """From one state to another; where several letters lead there with as many model calls, the first."""

    source: Node
    letter: Letter
    dest: Node
    calls: int
    """Model calls made on it."""
    started: int
    """Tool calls that it starts."""
    rank: int
    """The place of its letter, from harmless to final."""

    @property
    def cost(self) -> tuple[int, int]:
        """What it adds to the cost of a run: a last word nothing, so that a run that is stopped has ended for the search."""
        return 0 if self.source.run.chance is not None else self.calls, self.rank


@attrs.define(eq=False)
class Node:
    """A state, and the shortest run to it that is known."""

    run: Run
    """Emptied of its past."""
    halt: Halt | None
    remembered: dict[str, list[int]]
    """The names in it, by kind."""
    cost: tuple[int, int]
    """Of the shortest run to it: its model calls but for a last word, and how far from harmless its letters are."""
    via: Edge | None = None
    edges: list[Edge] = attrs.Factory(list)
    expanded: bool = False

    def path(self) -> list[Edge]:
        """The edges of the shortest run to it."""
        edges: list[Edge] = []
        node = self
        while node.via is not None:
            edges.append(node.via)
            node = node.via.source
        return edges[::-1]


class Broken(Exception):
    """A run does what no run may do. ``event``: what it was fed last."""

    def __init__(self, problem: str, node: Node, letter: Letter) -> None:
        super().__init__(problem)
        self.node = node
        self.letter = letter


def new_run(guards: Sequence[Guard], tools: tuple[ToolSpec, ...], options: Options = OFF) -> Run:
    """A run to which nothing has happened."""
    return Run(TASK, guards=guards, protocol=RecordedProtocol(), tools=tools, options=options)


def key_of(run: Run, guards: Container[Guard] | None = None, *, fresh: bool = False) -> tuple[str, dict[str, list[int]]]:
    """What tells the state of ``run`` from others, and the names that it remembers.

    ``guards``: as if it had these alone. ``fresh``: as if nothing of what its step may have were used up.
    """
    halt = halt_of(run)
    if halt is not None:
        return f"{run.state} {halt.edge} {sorted(halt.trips)}", {}
    used = "" if fresh else used_up(run)
    if run.chance is not None:
        return f"{run.state} after {run.chance} {[reading.guard for reading in run.readings if reading.trips]} {used}", {}
    calls = [call.signature for call in run.decision.calls] if run.state == EXECUTING and isinstance(run.decision, ToolCalls) else ""
    pairs = [(guard, held.shape) for guard, held in zip(run.wiring.guards, run.memories, strict=True) if guards is None or guard in guards]
    counted = run.step if any(isinstance(guard, Watched) and guard.counts_steps for guard, _ in pairs) else ""
    return canonical(f"{run.state}{counted}{calls}{used}{'|'.join([shape for _, shape in pairs])}", run.step)


def used_up(run: Run) -> str:
    """What is used up of the retries, the summary and the question that a step may have; empty: nothing.

    How long it is waited, and what a summary covers, is no part of it: of the waits only whether there is a next one decides, and
    a longer beginning can be summed up in each step, since each adds to the history.
    """
    match run.effect:
        case AskModel():
            return f"{run.retries} retries{' summed up' if run.summed_up else ''}" if run.retries or run.summed_up else ""
        case AskApproval(asked=asked):
            return f"asked about {asked}"
        case CallTools(settled=settled, may_ask=False):
            return f"decided {[observation and observation.kind for observation in settled]}"
        case _:
            return ""


def stopped_by(run: Run) -> str | None:
    """Why ``run`` halts, or will when it has had its last word; None: it goes on."""
    if run.chance is None:
        return run.reason
    return next(reading.guard for reading in run.readings if reading.trips)


def halt_of(run: Run) -> Halt | None:
    """How ``run`` ended; None: it did not."""
    if run.state != HALTED or run.reason is None:
        return None
    last = run.log[-1] if run.log else None
    edge, readings = (last.edge, last.readings) if isinstance(last, Taken) else ("", ())
    return Halt(run.reason, edge, frozenset(reading.guard for reading in readings if reading.trips))


def problem_of(run: Run, halting: Container[str]) -> str | None:
    """What is wrong with a run that was fed an event, in one line; None: nothing. ``halting`` are the edges into Halted."""
    halts = [entry.edge for entry in run.log if isinstance(entry, Taken) and entry.edge in halting]
    if run.state in PURE:
        return f"the run is stuck in {run.state}: no edge was taken out of it"
    if run.state == HALTED:
        if len(halts) != 1 or run.reason is None or run.effect is not None:
            return f"the run halted by {len(halts)} edges, with the reason {run.reason}"
        return "Halted can be left" if run.accepts else None
    if halts or run.reason is not None:
        return f"the run left Halted for {run.state}"
    if run.effect is None or not run.accepts or run.state not in {DECIDING, EXECUTING}:
        return f"the run waits in {run.state} for nothing: a dead end"
    return None


def in_one_line(error: Exception) -> str:
    """What was raised when a run was fed an event."""
    if isinstance(error, GuardFailed | UnexpectedEvent):
        return str(error)
    return f"the machine raised {type(error).__name__}: {error}"


def halting_edges(run: Run) -> frozenset[str]:
    """The ids of the rows into Halted."""
    return frozenset(row.id for row in run.wiring.rows if row.dest == HALTED)
