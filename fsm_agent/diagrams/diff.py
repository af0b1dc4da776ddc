"""Two groups of runs side by side: how often, in a run, each edge is taken, and which part of the runs ends for which reason.

A plus says that the first group, A, has more of it; a minus, that the second, B, has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

import attrs

from fsm_agent.audit.figures import percent
from fsm_agent.diagrams.graph import START, Edge, Graph, Line, Node, View, halted_id
from fsm_agent.diagrams.heat import Heat, damaged_note, halted, states, width
from fsm_agent.diagrams.readings import words
from fsm_agent.diagrams.text import columns, one_line
from fsm_agent.language import ENGLISH, Language
from fsm_agent.table import HALTED, INITIAL, STATES, Row

BETWEEN = " · "
_NAME_WIDTH = 60


class Pair(NamedTuple):
    """A figure of both groups."""

    first: float
    second: float

    @property
    def difference(self) -> float:
        return self.first - self.second

    @property
    def kind(self) -> Literal["more", "less", "taken", "untaken"]:
        """As an edge's: a difference that does not show in the figures is none."""
        if not (self.first or self.second):
            return "untaken"
        if not _differ(self.first, self.second):
            return "taken"
        return "more" if self.difference > 0 else "less"


@attrs.frozen
class Groups:
    """Two groups of runs, neither of them empty."""

    first: Heat
    second: Heat

    @property
    def rows(self) -> tuple[Row, ...]:
        """The edges that either could take."""
        known = {row.id for row in self.first.rows}
        return (*self.first.rows, *(row for row in self.second.rows if row.id not in known))

    @property
    def reasons(self) -> list[str]:
        """The halt reasons that either met, the one with the greatest difference first."""
        met = {*self.first.reasons, *self.second.reasons}
        return sorted(met, key=lambda reason: (-abs(self.ended(reason).difference), reason))

    def a_run(self, edge: str) -> Pair:
        """How often, in a run, the edge is taken."""
        return Pair(*(heat.times[edge] / heat.runs for heat in (self.first, self.second)))

    def ended(self, reason: str | None) -> Pair:
        """The part of the runs that ended for this reason."""
        return Pair(*(heat.ended(reason) / heat.runs for heat in (self.first, self.second)))

    @property
    def greatest(self) -> float:
        """Of the differences between edges."""
        return max((abs(self.a_run(row.id).difference) for row in self.rows), default=0.0)


def diff_view(first: Heat, second: Heat, names: tuple[str, str], title: str = "", lang: Language = ENGLISH) -> View:
    """The drawing of both groups. ``names`` say which runs they are; ``title``, what holds of both.

    Raises ``ValueError`` where one of them has no runs.
    """
    if not (first.runs and second.runs):
        raise ValueError("there are no runs in one of the groups that are to be compared")
    groups = Groups(first, second)
    runs = [lang.count("{n:,} run", "{n:,} runs", heat.runs) for heat in (first, second)]
    heading = both_named(title, names, (runs[0], runs[1]), lang)
    notes = (
        lang.say("Beside an arrow: how often it is taken in a run, or, into a double box, by which part of the runs."),
        lang.say(
            "+ and solid: more in A. − and dashed: more in B. The wider, the greater the difference. Without a sign: none, or neither."
        ),
        *(f"{name}: {note}" for name, heat in zip("AB", (first, second), strict=True) for note in damaged_note(heat, lang)),
    )
    text = "\n".join([heading, *notes, "", *_listing(groups, lang)]) + "\n"
    nodes = (Node(START, "start", 0), *states(), *(_halt(groups, reason, lang) for reason in groups.reasons))
    edges = (Edge(START, START, INITIAL, "taken", width=1.8), *_edges(groups, lang))
    return View(Graph("diff", heading, text, nodes, edges, notes), text)


def both_named(title: str, names: tuple[str, str], details: tuple[str, str], lang: Language) -> str:
    """The title of a comparison."""
    (first, second), (detail, other) = (one_line(name, _NAME_WIDTH) for name in names), details
    told = lang.say("A is {first} ({detail}), B is {second} ({other})", first=first, detail=detail, second=second, other=other)
    return f"{one_line(title, _NAME_WIDTH)}: {told}" if title else told


def _differ(first: float, second: float) -> bool:
    return _rate(first) != _rate(second) or percent(first) != percent(second)


def _rate(rate: float) -> str:
    """How often in a run: two digits after the point, more where they would say nothing."""
    return f"{rate:.2f}" if rate == 0 or rate >= 0.1 else f"{rate:.1g}"


def _signed(text: str, difference: float) -> str:
    return f"{'+' if difference > 0 else '−'}{text}"


def _said(row: Row, pair: Pair, lang: Language) -> str:
    """The difference in words."""
    match pair.kind:
        case "untaken":
            return lang.say("neither")
        case "taken":
            return lang.say("equal")
    if not pair.second:
        return lang.say("+ only A")
    if not pair.first:
        return lang.say("− only B")
    if row.dest == HALTED:
        return lang.say("{points} points", points=_signed(f"{100 * abs(pair.difference):.1f}", pair.difference))
    return lang.say("{rate} a run", rate=_signed(_rate(abs(pair.difference)), pair.difference))


def _both(row: Row, pair: Pair, lang: Language) -> str:
    """The figures side by side."""
    if row.dest == HALTED:
        return f"A {percent(pair.first)}{BETWEEN}B {percent(pair.second)}"
    return lang.say("A {first} · B {second} a run", first=_rate(pair.first), second=_rate(pair.second))


def _halt(groups: Groups, reason: str, lang: Language) -> Node:
    lines = [Line(halted(reason), "name"), *(Line(f"{name} {_of_runs(heat, reason, lang)}") for name, heat in _named(groups))]
    return Node(halted_id(groups.reasons, reason), "halted", len(STATES), tuple(lines), reason)


def _of_runs(heat: Heat, reason: str | None, lang: Language) -> str:
    number = heat.ended(reason)
    return lang.say("{n} of {of} runs, {share}", n=f"{number:,}", of=f"{heat.runs:,}", share=percent(number / heat.runs))


def _named(groups: Groups) -> Sequence[tuple[str, Heat]]:
    return ("A", groups.first), ("B", groups.second)


def _edges(groups: Groups, lang: Language) -> Iterator[Edge]:
    greatest = groups.greatest
    for row in groups.rows:
        pair, label = groups.a_run(row.id), words(row.label, lang)
        times = groups.first.times[row.id] + groups.second.times[row.id]
        if times:
            dest = halted_id(groups.reasons, row.reason or "") if row.dest == HALTED else row.dest
            lines = (Line(_said(row, pair, lang), "steps"), Line(label), Line(_both(row, pair, lang), "reading"))
            yield Edge(row.id, row.source, dest, pair.kind, lines, times, width(abs(pair.difference), greatest))
        elif row.dest not in {HALTED, row.source}:
            yield Edge(row.id, row.source, row.dest, "untaken", (Line(label),))


def _listing(groups: Groups, lang: Language) -> Iterator[str]:
    """The same as lines of text: the edges in the order of the table, then the halts."""
    said = {row.id: _said(row, groups.a_run(row.id), lang) for row in groups.rows}
    taken = [row for row in groups.rows if groups.a_run(row.id).kind != "untaken"]
    wide = max(columns(said[row.id]) for row in taken)
    for row in taken:
        dest = halted(row.reason) if row.dest == HALTED else row.dest
        gap = " " * (wide - columns(said[row.id]))
        figures = _both(row, groups.a_run(row.id), lang)
        yield f"{gap}{said[row.id]}  {row.source:<9} -> {dest:<28} {words(row.label, lang)}: {figures}"
    yield ""
    for reason in groups.reasons:
        yield _ending(groups, reason, halted(reason), lang)
    if groups.ended(None).kind != "untaken":
        yield _ending(groups, None, lang.say("not ended"), lang)


def _ending(groups: Groups, reason: str | None, name: str, lang: Language) -> str:
    figures = BETWEEN.join(f"{letter} {_of_runs(heat, reason, lang)}" for letter, heat in _named(groups))
    return f"{name}{' ' * max(1, 28 - columns(name))} {figures}"
