"""A run unrolled: each visit of a state is a node of its own, a step a row, and what repeats is one row with ``×N``.

A step's *shape* is the sequence of edges that it took. Where the same shapes follow each other again and again, singly or a few
of them in turn, they are drawn once. What is still too long for one screen shows its first and last rows and counts the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

import attrs

from fsm_agent.diagrams.graph import START, Edge, Graph, Line, Node, View
from fsm_agent.diagrams.path import halt_node, joined, title_of, why_halted
from fsm_agent.diagrams.readings import BETWEEN, Readings, words
from fsm_agent.diagrams.text import one_line, wrapped
from fsm_agent.diagrams.timeline import Entry, entries_of
from fsm_agent.language import Language
from fsm_agent.machine import Run
from fsm_agent.outcome import message_of
from fsm_agent.table import HALTED, INITIAL, STATES
from fsm_agent.traces import Trace

MAX_ROWS = 7
"""More rows than that are not drawn one by one."""
ENDS = 3
"""So many rows at either end are drawn of more."""
MAX_PERIOD = 6
"""So many steps in turn are known as a loop."""
MAX_KINDS = 4
"""Of the rows that are only counted, so many kinds are told apart."""
WIDTH = 24
"""Of what was said at a node, in columns."""


@attrs.frozen
class Turn:
    """Steps of one shape, drawn as one row."""

    steps: tuple[tuple[Entry, ...], ...]
    last: int
    """The last step of the loop that it belongs to."""
    place: int = 1
    """Its place in the loop, from 1."""
    period: int = 1
    """How many steps make one round of the loop."""

    @property
    def shape(self) -> tuple[str, ...]:
        """The edges, by their ids."""
        return _shape(self.steps[0])

    def heading(self, lang: Language) -> str:
        """The step, or the steps and how often the row repeats."""
        first = self.steps[0][0].taken.step
        if len(self.steps) == 1:
            return lang.say("step {step}", step=first) if first else lang.say("before step 1")
        turn = {"n": len(self.steps), "first": first - self.place + 1, "last": self.last}
        if self.period == 1:
            return lang.say("×{n}, steps {first}–{last}", **turn)
        return lang.say("×{n}, steps {first}–{last}, {place} of {period} in turn", **turn, place=self.place, period=self.period)

    def detail(self, index: int) -> str:
        """What was said at the edge, where all steps of the row agree."""
        said = {step[index].detail for step in self.steps}
        return said.pop() if len(said) == 1 else ""


def unrolled_view(run: Run | Trace, title: str = "", lang: Language | None = None) -> View:
    """The run unrolled; a trace is replayed. The arguments are those of ``path_view``, and so is what is raised."""
    if isinstance(run, Trace):
        title = title or run.header.title
        run = run.replay()
    lang = lang or run.protocol.lang
    heading = title_of(run, one_line(title, 60), lang)
    readings = Readings(run.wiring.guards, lang)
    turns = list(turns_of(run))
    cut = range(ENDS, len(turns) - ENDS) if len(turns) > MAX_ROWS else range(0)
    rows: list[Turn | list[Turn]] = [*turns[: cut.start], list(turns[cut.start : cut.stop]), *turns[cut.stop :]] if cut else [*turns]
    drawn = _Drawn(run, readings, lang)
    for number, row in enumerate(rows):
        drawn.add(number, row)
    drawn.end(len(rows) - 1)
    told = [heading, "", *drawn.told, *(["", *wrapped(message_of(run, lang), 110, 3)] if run.reason is not None else [])]
    text = "\n".join(told) + "\n"
    edges = (Edge(START, START, drawn.nodes[0].id, "taken", times=1), *drawn.edges)
    return View(Graph("unrolled", heading, text.rstrip("\n"), (Node(START, "start", 0), *drawn.nodes), edges), text)


def turns_of(run: Run) -> Iterator[Turn]:
    """The run's steps, folded."""
    steps = [tuple(entries) for _, entries in groupby(entries_of(run), key=lambda entry: entry.taken.step)]
    shapes = [_shape(step) for step in steps]
    at = 0
    while at < len(steps):
        period, times = _loop(shapes, at)
        last = steps[at + period * times - 1][0].taken.step
        for place in range(period):
            yield Turn(tuple(steps[at + place : at + period * times : period]), last, place + 1, period if times > 1 else 1)
        at += period * times


def _shape(step: Sequence[Entry]) -> tuple[str, ...]:
    return tuple(entry.taken.edge for entry in step)


def _loop(shapes: Sequence[tuple[str, ...]], at: int) -> tuple[int, int]:
    """The loop that saves the most rows from here on: how many steps a round has, and how many rounds there are."""
    best, saved = (1, 1), 0
    for period in range(1, min(MAX_PERIOD, (len(shapes) - at) // 2) + 1):
        end = at + period
        while end < len(shapes) and shapes[end] == shapes[end - period]:
            end += 1
        times = (end - at) // period
        if (times - 1) * period > saved:
            best, saved = (period, times), (times - 1) * period
    return best


class _Drawn:
    """The nodes, edges and lines of text, made row by row."""

    def __init__(self, run: Run, readings: Readings, lang: Language) -> None:
        self.run, self.readings, self.lang = run, readings, lang
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []
        self.told: list[str] = []
        self._open: Edge | None = None
        """An edge into the next row, whose first node is not made yet."""

    def add(self, row: int, turn: Turn | list[Turn]) -> None:
        if isinstance(turn, list):
            self._counted(row, turn)
            return
        heading = turn.heading(self.lang)
        self.told.append(heading)
        column, state = 1, INITIAL
        tail = self._node(row, column, state, [Line(heading, "steps")])
        for index, entry in enumerate(turn.steps[0]):
            edge = self._edge(f"{entry.row.id}_{row}_{index}", tail, turn, index)
            self.told.append(f"  {entry.row.source:<9} -> {_dest(entry):<9}  {BETWEEN.join(line.text for line in edge.lines)}")
            if entry.row.dest == HALTED or (index == len(turn.steps[0]) - 1 and entry.row.dest == INITIAL):
                self._leave(tail, edge, beside=index > 0)
                return
            state = entry.row.dest
            place = STATES.index(state) + 1
            column = place if place > column else column + 1
            tail = self._node(row, column, state, [], turn, index)
            self.edges.append(attrs.evolve(edge, dest=tail.id))

    def _leave(self, tail: Node, edge: Edge, *, beside: bool) -> None:
        """The edge goes into the next row; where it only goes down, its words stand in the node: there is no room beside it."""
        if not beside and edge.id.startswith("user_spoke"):
            self.nodes[-1] = attrs.evolve(tail, lines=(*tail.lines, *edge.lines))
            edge = attrs.evolve(edge, lines=())
        self._open = edge

    def end(self, row: int) -> None:
        """The halt; or where the run stands."""
        if self.run.reason is not None and self._open is not None:
            (halt,) = halt_node(self.run, why_halted(self.run, self.lang))
            self.nodes.append(attrs.evolve(halt, row=row))
            self.edges.append(attrs.evolve(self._open, dest=halt.id, kind="halting"))
            return
        mark = Line(self.lang.say("not ended"))
        if self._open is not None or not self.nodes:
            self._node(row + 1, 1, self.run.state, [])
        here = self.nodes[-1]
        self.nodes[-1] = attrs.evolve(here, current=True, lines=(*here.lines, mark))
        self.told.append(self.lang.say("not ended, in {state}", state=self.run.state))

    def _node(self, row: int, column: int, state: str, lines: list[Line], turn: Turn | None = None, index: int = 0) -> Node:
        said = ""
        if turn is not None:
            step = turn.steps[0]
            if step[index].row.trigger == "tools_returned":
                said = turn.detail(index)
            elif index + 1 < len(step) and step[index + 1].row.trigger in {"parsed", "user_spoke"}:
                said = turn.detail(index + 1)
        details = [Line(text, "evidence") for text in wrapped(said, WIDTH, 2)]
        node = Node(f"{state}_{row}_{column}", "state", column, (Line(state, "name"), *lines, *details), row=row)
        self.nodes.append(node)
        self._arrive(node)
        return node

    def _arrive(self, node: Node) -> None:
        if self._open is not None:
            self.edges.append(attrs.evolve(self._open, dest=node.id))
            self._open = None

    def _edge(self, edge_id: str, tail: Node, turn: Turn, index: int) -> Edge:
        """An edge out of a node; where it ends is not known yet."""
        takes = [step[index].taken for step in turn.steps]
        row = turn.steps[0][index].row
        what = self.readings.of_guard(takes[-1], row.reason) or words(row.label, self.lang)
        judged = [Line(text, "reading") for text in joined(self.readings.let_pass(row, self.run.wiring.rows, takes))]
        return Edge(edge_id, tail.id, "", "taken", (Line(what), *judged), len(takes))

    def _counted(self, row: int, turns: list[Turn]) -> None:
        """Rows that are only counted: one box."""
        kinds: Counter[str] = Counter()
        for turn in turns:
            kinds[", ".join(words(entry.row.label, self.lang) for entry in turn.steps[0])] += len(turn.steps)
        first, last = turns[0].steps[0][0].taken.step, turns[-1].last
        heading = self.lang.say("… steps {first} to {last}:", first=first, last=last)
        shown = kinds.most_common(MAX_KINDS)
        lines = [f"×{times} {kind}" for kind, times in shown]
        if rest := kinds.total() - sum(times for _, times in shown):
            lines.append(self.lang.say("… and {n} more …", n=rest))
        self.told += [heading, *(f"  {line}" for line in lines)]
        box = Node(f"steps_{row}", "folded", 1, (Line(heading, "steps"), *(Line(line, "evidence") for line in lines)), row=row)
        self.nodes.append(box)
        self._arrive(box)
        self._open = Edge(f"after_{row}", box.id, "", "taken", (), kinds.total())


def _dest(entry: Entry) -> str:
    return f"Halted({one_line(entry.row.reason or '', 40)})" if entry.row.dest == HALTED else entry.row.dest
