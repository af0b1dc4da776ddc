"""Two runs side by side: the edges that only one of them took, those that both did, and the first step at which they part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Literal, NamedTuple, assert_never

import attrs

from fsm_agent.diagrams.diff import both_named
from fsm_agent.diagrams.graph import START, Edge, Graph, Line, Node, View, halted_id
from fsm_agent.diagrams.heat import halted, states
from fsm_agent.diagrams.readings import words
from fsm_agent.diagrams.text import columns, one_line
from fsm_agent.events import (
    ApprovalAsked,
    ApprovalGiven,
    AttemptFailed,
    Cancelled,
    ContextCompacted,
    Decision,
    Event,
    Final,
    Malformed,
    ModelFailed,
    ModelReplied,
    RecordingEnded,
    Said,
    ToolCalls,
    ToolsFailed,
    ToolsReturned,
    UserSpoke,
)
from fsm_agent.language import ENGLISH, Language
from fsm_agent.machine import Run, Taken
from fsm_agent.outcome import message_of
from fsm_agent.table import HALTED, INITIAL, STATES, Row
from fsm_agent.wording import details, heading

_TOLD_WIDTH = 90
_HALT_WIDTH = 46


class Told(NamedTuple):
    """One thing that happened in a step: what tells it from another, and the same for people."""

    identity: tuple[object, ...]
    text: str


@attrs.frozen
class Parting:
    """Where two runs first differ."""

    step: int
    """Talk counts as talk, whatever its words."""
    first: str
    """What happened there in each of them; empty: it had ended before."""
    second: str


@attrs.frozen
class Runs:
    """Two runs that are compared."""

    first: Run
    second: Run

    @property
    def rows(self) -> tuple[Row, ...]:
        """The edges that either could take."""
        known = {row.id for row in self.first.wiring.rows}
        return (*self.first.wiring.rows, *(row for row in self.second.wiring.rows if row.id not in known))

    @property
    def reasons(self) -> list[str]:
        """The halt reasons of both, each once."""
        return list(dict.fromkeys(run.reason for run in (self.first, self.second) if run.reason is not None))


def run_diff_view(first: Run, second: Run, names: tuple[str, str], title: str = "", lang: Language | None = None) -> View:
    """The drawing of both runs. ``names`` say which they are; ``title``, what holds of both.

    ``lang`` is by default the language in which the first was spoken to.
    """
    lang = lang or first.protocol.lang
    runs = Runs(first, second)
    heading = both_named(title, names, (_ended(first, lang), _ended(second, lang)), lang)
    notes = (
        *_parted(parting(first, second), lang),
        *([] if first.task == second.task else [lang.say("They had different tasks.")]),
        lang.say("Beside an arrow: how often it was taken. Solid with +: only in A. Dashed with −: only in B. With A and B: in both."),
    )
    text = "\n".join([heading, *notes, "", *_listing(runs, lang)]) + "\n"
    nodes = (Node(START, "start", 0), *states(), *(_halt(runs, reason, lang) for reason in runs.reasons))
    return View(Graph("diff", heading, text, nodes, (Edge(START, START, INITIAL, "taken", times=2), *_edges(runs, lang)), notes), text)


def parting(first: Run, second: Run) -> Parting | None:
    """The first step in which the runs differ in what the model wanted, what came of it, or the way that they took; None: in none."""
    ones, others = _steps(first), _steps(second)
    for step in sorted({*ones, *others}):
        one, other = ones.get(step, ()), others.get(step, ())
        if [told.identity for told in one] != [told.identity for told in other]:
            same = 0
            while same < min(len(one), len(other)) and one[same].identity == other[same].identity:
                same += 1
            return Parting(step, *(parts[same].text if same < len(parts) else "" for parts in (one, other)))
    return None


def _parted(found: Parting | None, lang: Language) -> list[str]:
    if found is None:
        return [lang.say("They are the same at every step.")]
    nothing = lang.say("nothing more")
    return [
        lang.say("They part at step {step}, by what was called, returned or answered:", step=found.step),
        *(f"{name}: {one_line(text, _TOLD_WIDTH) or nothing}" for name, text in (("A", found.first), ("B", found.second))),
    ]


def _ended(run: Run, lang: Language) -> str:
    if run.reason is None:
        return lang.say("not ended at step {step}", step=run.step)
    return lang.say("{halt} at step {step}", halt=halted(run.reason), step=run.step)


def _steps(run: Run) -> dict[int, tuple[Told, ...]]:
    """By step, what happened in it. That a recording ends is nothing that happened."""
    steps: dict[int, list[Told]] = {}
    decisions = iter(run.decisions)
    event: Event | None = None
    for entry in run.log:
        if not isinstance(entry, Taken):
            event = entry
            continue
        if isinstance(event, RecordingEnded):
            break
        here = steps.setdefault(entry.step, [])
        if event is not None:
            here.append(_of_decision(next(decisions)) if isinstance(event, ModelReplied) else _of_event(event))
            event = None
        here.append(Told((entry.edge,), entry.edge))
    return {step: tuple(told) for step, told in steps.items()}


def _of_decision(decision: Decision) -> Told:
    """Thoughts are no part of what it is, nor are the ids of calls, nor the words of talk."""
    match decision:
        case ToolCalls(calls=calls):
            return Told(("calls", *(call.signature for call in calls)), ", ".join(map(str, calls)))
        case Final(answer=answer):
            return Told(("final", answer), answer)
        case Said(text=text):
            return Told(("said",), text)
        case Malformed(problem=problem, kind=kind):
            return Told((kind,), problem.partition("\n")[0])
        case _:
            assert_never(decision)


def _of_event(event: Event) -> Told:
    """An event other than a reply or an end."""
    match event:
        case ToolsReturned(observations=observations) | Cancelled(observations=observations):
            seen = tuple((each.tool, each.text, each.kind) for each in observations)
            return Told((type(event).__name__, seen), "; ".join(f"{tool} {text}" for tool, text, _ in seen))
        case ModelFailed(error=error, message=message):
            return Told(("failed", error, message), f"{error}: {message}")
        case ContextCompacted(summary=summary):
            return Told(("summed up",), summary)
        case AttemptFailed() | ApprovalAsked() | ApprovalGiven() | ToolsFailed():
            text = "; ".join(part for part in (heading(event, ENGLISH), *details(event, ENGLISH).split("\n")) if part)
            return Told((text,), text)
        case UserSpoke(text=text):
            return Told(("spoke",), text)
        case ModelReplied() | RecordingEnded():
            return Told((type(event).__name__,), "")
        case _:
            assert_never(event)


def _times(run: Run) -> Counter[str]:
    return Counter(entry.edge for entry in run.log if isinstance(entry, Taken))


def _compared(runs: Runs) -> Iterator[tuple[Row, int, int, Literal["more", "less", "taken", "untaken"]]]:
    """Each row with how often both took it, and what it is."""
    first, second = _times(runs.first), _times(runs.second)
    for row in runs.rows:
        one, other = first[row.id], second[row.id]
        yield row, one, other, ("taken" if one and other else "more" if one else "less" if other else "untaken")


def _edges(runs: Runs, lang: Language) -> Iterator[Edge]:
    for row, one, other, kind in _compared(runs):
        label = Line(words(row.label, lang))
        if kind != "untaken":
            dest = halted_id(runs.reasons, row.reason or "") if row.dest == HALTED else row.dest
            yield Edge(row.id, row.source, dest, kind, (Line(_said(one, other, lang), "steps"), label), one + other)
        elif row.dest not in {HALTED, row.source}:
            yield Edge(row.id, row.source, row.dest, "untaken", (label,))


def _said(one: int, other: int, lang: Language) -> str:
    if one and other:
        return f"A ×{one}, B ×{other}"
    return lang.say("+ only A ×{n}", n=one) if one else lang.say("− only B ×{n}", n=other)


def _halt(runs: Runs, reason: str, lang: Language) -> Node:
    lines = [Line(halted(reason), "name")]
    for name, run in (("A", runs.first), ("B", runs.second)):
        if run.reason == reason:
            told = lang.say("{name} at step {step}: {message}", name=name, step=run.step, message=message_of(run, lang))
            lines.append(Line(one_line(told, _HALT_WIDTH)))
    return Node(halted_id(runs.reasons, reason), "halted", len(STATES), tuple(lines), reason)


def _listing(runs: Runs, lang: Language) -> Iterator[str]:
    """The same as lines of text: the edges in the order of the table."""
    taken = [(row, _said(one, other, lang)) for row, one, other, kind in _compared(runs) if kind != "untaken"]
    wide = max((columns(said) for _, said in taken), default=0)
    for row, said in taken:
        dest = halted(row.reason) if row.dest == HALTED else row.dest
        yield f"{said}{' ' * (wide - columns(said))}  {row.source:<9} -> {dest:<28} {words(row.label, lang)}"
    for name, run in zip("AB", (runs.first, runs.second), strict=True):
        yield ""
        yield f"{name}: {one_line(message_of(run, lang), _TOLD_WIDTH)}"
