"""The heat map of many runs: how often each edge was taken, and how the runs ended. Runs are counted one at a time and not kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import attrs

from fsm_agent.audit.figures import percent
from fsm_agent.diagrams.graph import START, Edge, Graph, Line, Node, View, halted_id
from fsm_agent.diagrams.readings import words
from fsm_agent.diagrams.text import columns, one_line
from fsm_agent.guards import Guard
from fsm_agent.language import ENGLISH, Language
from fsm_agent.machine import Run, Taken, UnexpectedEvent, wire
from fsm_agent.table import HALTED, INITIAL, STATES, Row
from fsm_agent.traces.recordings import Damaged, Outcome, Recording
from fsm_agent.traces.replay import replay

THINNEST, WIDEST = 1.8, 9.0
"""An edge taken once, and the one that was taken most, in points. One that was never taken is thinner still, and dashed."""
OUTCOMES: tuple[Outcome, ...] = ("success", "failure", "unknown")
_TITLE_WIDTH = 90


@attrs.define
class Heat:
    """What many runs did under the same guards, added up."""

    guards: tuple[Guard, ...] = ()
    runs: int = 0
    model_calls: int = 0
    times: Counter[str] = attrs.field(factory=Counter)
    """By the row's id, how often it was taken."""
    taken_by: Counter[str] = attrs.field(factory=Counter)
    """By the row's id, how many runs took it."""
    halts: Counter[tuple[str | None, Outcome]] = attrs.field(factory=Counter)
    """By halt reason (None: it did not end) and recorded outcome, how many runs."""
    endings: Counter[str] = attrs.field(factory=Counter)
    """Of the runs whose recording ended before any guard halted them: how it did."""
    damaged: list[Damaged] = attrs.field(factory=list)
    """Runs that could not be read, or fed to the machine. They are not among ``runs``."""

    def add(self, found: Recording | Damaged, lang: Language = ENGLISH) -> Run | None:
        """Count a recorded run, and give it as it was played; None: it is damaged."""
        if isinstance(found, Damaged):
            self.damaged.append(found)
            return None
        try:
            run = replay(found, self.guards, lang)
        except UnexpectedEvent as error:
            self.damaged.append(Damaged(f"{found.source}:{found.id}", str(error)))
            return None
        self.count(run, found)
        return run

    def count(self, run: Run, recording: Recording) -> None:
        """Count a run of this recording that was played under these guards."""
        edges = Counter(entry.edge for entry in run.log if isinstance(entry, Taken))
        self.runs += 1
        self.model_calls += run.step
        self.times.update(edges)
        self.taken_by.update(edges.keys())
        self.halts[run.reason, recording.outcome if recording.outcome in OUTCOMES else "unknown"] += 1
        if run.reason == "recording_ended":
            self.endings[recording.ending] += 1

    @property
    def rows(self) -> tuple[Row, ...]:
        """The edges that these runs could take."""
        return wire(self.guards).rows

    @property
    def reasons(self) -> list[str]:
        """The halt reasons that were met, the most frequent first."""
        met = {reason for reason, _ in self.halts if reason is not None}
        return sorted(met, key=lambda reason: (-self.ended(reason), reason))

    def ended(self, reason: str | None) -> int:
        """How many runs ended for this reason."""
        return sum(self.halts[reason, outcome] for outcome in OUTCOMES)

    def share(self, row: Row) -> float:
        """Of all edges that were taken out of the row's source, the part that this one is."""
        left = sum(self.times[other.id] for other in self.rows if other.source == row.source)
        return self.times[row.id] / left if left else 0.0


def heat_of(found: Iterable[Recording | Damaged], guards: Sequence[Guard] = ()) -> Heat:
    """The runs, played under these guards and counted. Raises ``ValueError`` as ``rows_for`` does."""
    heat = Heat(tuple(guards))
    for each in found:
        heat.add(each)
    return heat


def heat_view(heat: Heat, title: str = "", lang: Language = ENGLISH) -> View:
    """The heat map. ``title`` says which runs they are, and under which guards."""
    runs = lang.count("{n:,} run", "{n:,} runs", heat.runs)
    calls = lang.count("{n:,} model call", "{n:,} model calls", heat.model_calls)
    heading = f"{one_line(title, _TITLE_WIDTH)}: {runs}, {calls}" if title else f"{runs}, {calls}"
    notes = (
        lang.say("Beside an arrow: how often it was taken, and its share of all that left the state. The wider, the more often."),
        lang.say("In a double box: how many of the runs ended so. Dashed: never taken."),
        *damaged_note(heat, lang),
    )
    text = "\n".join([heading, *notes, "", *_listing(heat, lang)]) + "\n"
    nodes = (Node(START, "start", 0), *states(), *(_halt(heat, reason, lang) for reason in heat.reasons))
    edges = (Edge(START, START, INITIAL, "taken", (Line(runs, "steps"),), heat.runs, width(heat.runs, _most(heat))), *_edges(heat, lang))
    return View(Graph("heat", heading, text, nodes, edges, notes), text)


def width(part: float, whole: float) -> float:
    """The width of an edge that has ``part`` of what the widest has: by the square root, so that what is rare is still seen."""
    return round(THINNEST + (WIDEST - THINNEST) * (part / whole) ** 0.5, 2) if whole > 0 else THINNEST


def states() -> Iterator[Node]:
    """The nodes of the states that a run goes through."""
    return (Node(state, "state", column, (Line(state, "name"),)) for column, state in enumerate(STATES, 1) if state != HALTED)


def halted(reason: str | None) -> str:
    """A halt as people write it."""
    return f"Halted({one_line(reason or '', 40)})"


def damaged_note(heat: Heat, lang: Language) -> list[str]:
    """What was left out."""
    return [lang.count("{n} damaged run was left out.", "{n} damaged runs were left out.", len(heat.damaged))] if heat.damaged else []


def _most(heat: Heat) -> int:
    return max(heat.times.values(), default=0)


def _halt(heat: Heat, reason: str, lang: Language) -> Node:
    lines = [Line(halted(reason), "name"), Line(_of_runs(heat, heat.ended(reason), lang)), Line(_outcomes(heat, reason, lang))]
    if reason == "recording_ended":
        lines += [Line(line, "evidence") for line in _endings(heat)]
    return Node(halted_id(heat.reasons, reason), "halted", len(STATES), tuple(lines), reason)


def _of_runs(heat: Heat, number: int, lang: Language) -> str:
    return lang.say("{n} of {of} runs, {share}", n=f"{number:,}", of=f"{heat.runs:,}", share=percent(number / heat.runs))


def _outcomes(heat: Heat, reason: str | None, lang: Language) -> str:
    """How the runs that ended so were judged when they were recorded."""
    found = {outcome: heat.halts[reason, outcome] for outcome in OUTCOMES}
    said = {
        "success": lang.say("{n} succeeded", n=f"{found['success']:,}"),
        "failure": lang.say("{n} failed", n=f"{found['failure']:,}"),
        "unknown": lang.say("{n} unknown", n=f"{found['unknown']:,}"),
    }
    return ", ".join(said[outcome] for outcome in OUTCOMES if found[outcome])


def _endings(heat: Heat) -> list[str]:
    return [f"{one_line(ending, 30)} {number:,} ({percent(number / heat.runs)})" for ending, number in heat.endings.most_common()]


def _edges(heat: Heat, lang: Language) -> Iterator[Edge]:
    """Those between states, and of those into Halted the ones that were taken."""
    most = _most(heat)
    for row in heat.rows:
        times, label = heat.times[row.id], words(row.label, lang)
        if times:
            dest = halted_id(heat.reasons, row.reason or "") if row.dest == HALTED else row.dest
            share = lang.say("{share} of {state}", share=percent(heat.share(row)), state=row.source)
            lines = (Line(f"{times:,}", "steps"), Line(label), Line(share, "reading"))
            yield Edge(row.id, row.source, dest, "halting" if row.dest == HALTED else "taken", lines, times, width(times, most))
        elif row.dest not in {HALTED, row.source}:
            yield Edge(row.id, row.source, row.dest, "untaken", (Line(label),))


def _listing(heat: Heat, lang: Language) -> Iterator[str]:
    """The same as lines of text: the edges in the order of the table, then the halts, then what never happened."""
    taken = [row for row in heat.rows if heat.times[row.id]]
    for row in taken:
        dest = halted(row.reason) if row.dest == HALTED else row.dest
        runs = lang.count("in {n:,} run", "in {n:,} runs", heat.taken_by[row.id])
        yield f"{heat.times[row.id]:>9,} {percent(heat.share(row)):>7}  {row.source:<9} -> {dest:<28} {words(row.label, lang)}, {runs}"
    yield ""
    for reason in heat.reasons:
        yield _ending(heat, reason, halted(reason), lang)
        if reason == "recording_ended":
            yield from (f"{'':19}  {line}" for line in _endings(heat))
    if heat.ended(None):
        yield _ending(heat, None, lang.say("not ended"), lang)
    untaken = [row for row in heat.rows if not heat.times[row.id] and row.reason not in heat.reasons]
    if never := [halted(row.reason) if row.dest == HALTED else words(row.label, lang) for row in untaken]:
        yield ""
        yield lang.say("never taken: {edges}", edges=", ".join(dict.fromkeys(never)))


def _ending(heat: Heat, reason: str | None, name: str, lang: Language) -> str:
    number = heat.ended(reason)
    return f"{number:>9,} {percent(number / heat.runs):>7}  {name}{' ' * max(1, 28 - columns(name))} {_outcomes(heat, reason, lang)}"
