"""A run as lines for a terminal or a screen reader: step by step, each edge with what came of it and what the guards read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

import attrs

from fsm_agent.diagrams.readings import BETWEEN, Readings, words
from fsm_agent.diagrams.text import one_line
from fsm_agent.events import (
    Cancelled,
    Decision,
    Event,
    Final,
    Malformed,
    ModelFailed,
    ModelReplied,
    RecordingEnded,
    Said,
    ToolCalls,
    ToolsReturned,
    UserSpoke,
)
from fsm_agent.language import Language
from fsm_agent.machine import Run, Taken
from fsm_agent.table import HALTED, Row
from fsm_agent.wording import details

DETAIL_WIDTH = 100
"""Of what a model, a tool or a person said, in columns."""
MAX_STEPS = 12
"""A longer run shows its first and last steps, and counts the others by the edges that they took."""
ENDS = 4
"""So many steps at either end are shown of a longer run."""
MAX_KINDS = 8
"""Of the steps that are only counted, so many kinds are told apart."""


@attrs.frozen
class Entry:
    """An edge taken, with its row and what it was taken on."""

    taken: Taken
    row: Row
    detail: str


def timeline(run: Run, title: str, ending: Sequence[str], lang: Language) -> str:
    """The run's edges in order, under a title; ``ending`` are the lines that say why it halted."""
    readings = Readings(run.wiring.guards, lang)
    steps = [(step, list(entries)) for step, entries in groupby(entries_of(run), key=lambda entry: entry.taken.step)]
    middle = range(ENDS, len(steps) - ENDS) if len(steps) > MAX_STEPS else range(0)
    lines = [title, ""]
    for i, (step, entries) in enumerate(steps):
        if i not in middle:
            lines.append(lang.say("step {step}", step=step) if step else lang.say("before step 1"))
            lines += [f"  {_line(entry, run, readings)}" for entry in entries]
        elif i == middle[0]:
            lines += _counted(steps[middle[0] : middle[-1] + 1], lang)
    if run.reason is None:
        lines.append(lang.say("not ended, in {state}", state=run.state))
    return "\n".join([*lines, *([""] if ending else []), *ending]) + "\n"


def _counted(steps: Sequence[tuple[int, list[Entry]]], lang: Language) -> Iterator[str]:
    """Steps in few lines: how often each sequence of edges was taken."""
    kinds = Counter(", ".join(words(entry.row.label, lang) for entry in entries) for _, entries in steps)
    yield lang.say("… steps {first} to {last}:", first=steps[0][0], last=steps[-1][0])
    for kind, times in kinds.most_common(MAX_KINDS):
        yield f"  ×{times:<4} {kind}"
    if len(kinds) > MAX_KINDS:
        yield "  " + lang.say("… and {n} more …", n=sum(kinds.values()) - sum(times for _, times in kinds.most_common(MAX_KINDS)))


def _line(entry: Entry, run: Run, readings: Readings) -> str:
    row, taken = entry.row, entry.taken
    dest = f"Halted({one_line(row.reason or '', 40)})" if row.dest == HALTED else row.dest
    what = readings.of_guard(taken, row.reason) or words(row.label, readings.lang)
    detail = f": {entry.detail}" if entry.detail else ""
    judged = readings.let_pass(row, run.wiring.rows, [taken])
    return f"{row.source:<9} -> {dest:<9}  {what}{detail}" + (f"  [{BETWEEN.join(judged)}]" if judged else "")


def entries_of(run: Run) -> Iterator[Entry]:
    """The edges that the run took, in order."""
    rows = {row.id: row for row in run.wiring.rows}
    decisions = iter(run.decisions)
    event: Event | None = None
    for entry in run.log:
        if not isinstance(entry, Taken):
            event = entry
            continue
        row = rows[entry.edge]
        match row.trigger:
            case "parsed":
                detail = _of_decision(next(decisions)) if isinstance(event, ModelReplied) else ""
            case "observed":
                detail = ""
            case _:
                detail = _of_event(event, run.protocol.lang) if event is not None else ""
        yield Entry(entry, row, one_line(detail, DETAIL_WIDTH))


def _of_event(event: Event, lang: Language) -> str:
    match event:
        case ModelReplied(reply=reply):
            return " ".join(part for part in (reply.text, *(f"{call.name}({call.arguments})" for call in reply.tool_calls)) if part)
        case ModelFailed(error=error, message=message):
            return f"{error}: {message}"
        case ToolsReturned(observations=observations) | Cancelled(observations=observations):
            return "; ".join(f"{seen.tool} {seen.text}" for seen in observations)
        case UserSpoke(text=text):
            return text
        case RecordingEnded():
            return ""
        case _:
            return " ".join(details(event, lang).split("\n"))


def _of_decision(decision: Decision) -> str:
    match decision:
        case ToolCalls(calls=calls):
            return ", ".join(map(str, calls))
        case Final(answer=answer):
            return answer
        case Said(text=text):
            return text
        case Malformed(problem=problem):
            return problem.partition("\n")[0]
