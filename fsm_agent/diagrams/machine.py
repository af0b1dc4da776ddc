"""The machine itself: every state, every edge with its trigger and guard, and every halt reason."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from fsm_agent.diagrams.graph import START, Edge, Graph, Line, Node, View, halted_id
from fsm_agent.diagrams.readings import words
from fsm_agent.diagrams.text import one_line
from fsm_agent.guards import Guard
from fsm_agent.language import ENGLISH, Language
from fsm_agent.options import Feature
from fsm_agent.table import HALTED, INITIAL, PURE, ROWS, STATES, Row, rows_for


def machine_view(guards: Sequence[Guard] | None = None, lang: Language = ENGLISH, features: Collection[Feature] = ()) -> View:
    """The machine with these guards and options; by default with every edge that a guard of this package can have.

    Raises ``ValueError`` as ``rows_for`` does.
    """
    if guards is None:
        rows = tuple(row for row in ROWS if row.needs is None or row.needs in features)
    else:
        rows = rows_for((guard.edge() for guard in guards), features)
    reasons = list(dict.fromkeys(row.reason for row in rows if row.reason))
    title = lang.say(
        "The machine: {states} states, {edges} edges, {reasons} halt reasons", states=len(STATES), edges=len(rows), reasons=len(reasons)
    )
    states = [Node(state, "state", column, (Line(state, "name"),)) for column, state in enumerate(STATES, 1) if state != HALTED]
    halts = [
        Node(halted_id(reasons, reason), "halted", _column(reason, rows), (Line(f"Halted({one_line(reason, 40)})", "name"),), reason)
        for reason in reasons
    ]
    edges = [Edge(START, START, INITIAL, "row"), *(_edge(row, reasons, lang) for row in rows)]
    text = "\n".join([title, *_listing(rows, lang)]) + "\n"
    return View(Graph("machine", title, text, (Node(START, "start", 0), *states, *halts), tuple(edges)), text, tuple(rows))


def _column(reason: str, rows: Sequence[Row]) -> int:
    """A halt that is judged stands right after its state; one that the world brings about, at the end."""
    sources = {row.source for row in rows if row.reason == reason}
    return STATES.index(sources.pop()) + 2 if sources <= PURE and len(sources) == 1 else len(STATES)


def _edge(row: Row, reasons: list[str], lang: Language) -> Edge:
    dest = halted_id(reasons, row.reason or "") if row.dest == HALTED else row.dest
    label = words(row.label, lang)
    said = () if row.dest == HALTED or label == row.trigger.replace("_", " ") else (Line(label),)
    return Edge(row.id, row.source, dest, "row", (*said, Line(_condition(row), "reading")))


def _condition(row: Row) -> str:
    """Trigger and guard, as statecharts write them."""
    return f"{row.trigger} [{one_line(row.guard, 40)}]" if row.guard else row.trigger


def _listing(rows: Sequence[Row], lang: Language) -> Iterator[str]:
    """The rows by state, in the order in which they are tried."""
    wide = max(len(_condition(row)) for row in rows)
    remarks = {INITIAL: lang.say("a run starts here"), HALTED: lang.say("the end")}
    for state in STATES:
        yield ""
        yield f"{state} ({remarks[state]})" if state in remarks else state
        for row in rows:
            if row.source == state:
                dest = f"Halted({one_line(row.reason or '', 40)})" if row.dest == HALTED else row.dest
                yield f"  {_condition(row):<{wide}}  -> {dest:<26}  {words(row.label, lang)}".rstrip()
