"""The path of one run over its machine: what it took, how often and when, and why it halted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from fsm_agent.diagrams.graph import START, Edge, Graph, Line, Node, View, halted_id
from fsm_agent.diagrams.readings import BETWEEN, Readings, words
from fsm_agent.diagrams.text import columns, one_line, wrapped
from fsm_agent.diagrams.timeline import timeline
from fsm_agent.guards import Reading, RepeatedCall
from fsm_agent.guards.streaks import SHOWN
from fsm_agent.language import Language
from fsm_agent.machine import Run, Taken
from fsm_agent.outcome import halting_reading, message_of
from fsm_agent.table import HALTED, INITIAL, STATES
from fsm_agent.traces import Trace

MAX_NUMBERS = 12
"""Up to so many step numbers are listed; from there they are counted."""
NUMBERS_A_LINE = 6
EVIDENCE_LINES = 8
"""Of a halt; where it rests on more, the first and the last are shown and the others counted."""
WIDTH = 46
"""Of the halt's box, in columns."""
TEXT_WIDTH = 110
"""Of the lines that say why a run halted, under its timeline."""
READINGS_WIDTH = 30
"""Of the readings beside an edge, in columns."""


def path_view(run: Run | Trace, title: str = "", lang: Language | None = None) -> View:
    """The path that a run took; a trace is replayed.

    ``title`` names the run (a trace may have its own), ``lang`` is by default the language in which its model was spoken to.
    Raises ``TraceError`` as ``Trace.replay`` does.
    """
    if isinstance(run, Trace):
        title = title or run.header.title
        run = run.replay()
    lang = lang or run.protocol.lang
    heading = title_of(run, one_line(title, 60), lang)
    ending = why_halted(run, lang)
    readings = Readings(run.wiring.guards, lang)
    nodes = (Node(START, "start", 0), *_states(run, lang), *halt_node(run, ending))
    edges = (Edge(START, START, INITIAL, "taken", times=1), *_edges(run, readings, lang))
    told = [line.text for line in why_halted(run, lang, TEXT_WIDTH)]
    text = timeline(run, heading, told, lang)
    return View(Graph("path", heading, _description(heading, edges, told, run, lang), nodes, edges), text)


def title_of(run: Run, title: str, lang: Language) -> str:
    """What a run came to, in one line, under its name."""
    calls = lang.count("{n} model call", "{n} model calls", run.step)
    if run.reason is None:
        ending = lang.say("not ended, in {state} at step {step}, {calls}", state=run.state, step=run.step, calls=calls)
    else:
        ending = lang.say("Halted({reason}) at step {step}, {calls}", reason=one_line(run.reason, 60), step=run.step, calls=calls)
    return lang.say("{title}: {ending}", title=title, ending=ending) if title else ending


def _states(run: Run, lang: Language) -> Iterator[Node]:
    for column, state in enumerate(STATES, 1):
        if state != HALTED:
            current = run.reason is None and run.state == state
            mark = (Line(lang.say("not ended")),) if current else ()
            yield Node(state, "state", column, (Line(state, "name"), *mark), current=current)


def halt_node(run: Run, ending: Sequence[Line]) -> Iterator[Node]:
    """Where the run ended, if it did."""
    if run.reason is not None:
        name = Line(f"Halted({one_line(run.reason, WIDTH)})", "name")
        yield Node(halted_id([], run.reason), "halted", len(STATES), (name, *ending), run.reason)


def why_halted(run: Run, lang: Language, width: int = WIDTH) -> list[Line]:
    """Why the run halted: the message, the evidence, and the guards that tripped as well."""
    if run.reason is None:
        return []
    lines = [Line(text) for text in wrapped(message_of(run, lang), width, 3)]
    reading = halting_reading(run)
    lines += [Line(text, "evidence") for text in _evidence(reading, lang, width)]
    last = run.log[-1]
    if isinstance(last, Taken) and (also := Readings(run.wiring.guards, lang).also_tripped(last, run.reason)):
        lines += [Line(text, "evidence") for text in wrapped(lang.say("also tripped: {readings}", readings=", ".join(also)), width, 2)]
    return lines


def _evidence(reading: Reading | None, lang: Language, width: int) -> list[str]:
    """What the halt rests on, an item a line; where there are few, long ones go on in a second line."""
    if reading is None:
        return []
    evidence = reading.evidence
    rows = 2 if len(evidence) * 2 <= EVIDENCE_LINES else 1
    items: list[list[str]] = []
    for each in evidence:
        step = lang.say("step {step}", step=each.step) + "  "
        first, *more = wrapped(each.text, width - columns(step), rows) or [""]
        items.append([step + first, *(" " * columns(step) + text for text in more)])
    if len(items) > EVIDENCE_LINES:
        head, tail = items[: EVIDENCE_LINES // 2], items[len(items) - EVIDENCE_LINES // 2 + 1 :]
        items = [*head, [lang.say("… and {n} more …", n=len(items) - len(head) - len(tail) + _not_kept(reading))], *tail]
    return [text for item in items for text in item]


def _not_kept(reading: Reading) -> int:
    """How many pieces of evidence lie between the first and the last few that the reading keeps."""
    if reading.guard == RepeatedCall.reason and len(reading.evidence) == SHOWN:
        return int(reading.value) + 1 - SHOWN  # the call, and its repeats
    return sum(number for _, number in reading.omitted)


def _edges(run: Run, readings: Readings, lang: Language) -> Iterator[Edge]:
    """Those between states, and of those into Halted the one that was taken."""
    taken: dict[str, list[Taken]] = defaultdict(list)
    for entry in run.log:
        if isinstance(entry, Taken):
            taken[entry.edge].append(entry)
    alike = set[tuple[str, str, str]]()
    for row in run.wiring.rows:
        takes = taken[row.id]
        if takes:
            dest = halted_id([], row.reason or "") if row.dest == HALTED else row.dest
            what = readings.of_guard(takes[-1], row.reason) or words(row.label, lang)
            judged = [Line(text, "reading") for text in joined(readings.let_pass(row, run.wiring.rows, takes))]
            steps = [Line(text, "steps") for text in _numbers([each.step for each in takes], lang)]
            yield Edge(row.id, row.source, dest, "halting" if row.dest == HALTED else "taken", (*steps, Line(what), *judged), len(takes))
        elif row.dest not in {HALTED, row.source} and (row.source, row.dest, row.label) not in alike:
            alike.add((row.source, row.dest, row.label))
            yield Edge(row.id, row.source, row.dest, "untaken", (Line(words(row.label, lang)),))


def _numbers(steps: Sequence[int], lang: Language) -> list[str]:
    """The step numbers, a few a line; more than ``MAX_NUMBERS`` are counted. What was before the first is told in words."""
    early = sum(step == 0 for step in steps)
    if early:
        told = lang.say("before step 1") + (f" ×{early}" if early > 1 else "")
        return [told, *(_numbers(steps[early:], lang) if steps[early:] else [])]
    if len(steps) > MAX_NUMBERS:
        return [lang.say("×{n}, steps {first}–{last}", n=len(steps), first=steps[0], last=steps[-1])]
    a_line = len(steps) if len(steps) <= NUMBERS_A_LINE else (len(steps) + 1) // 2
    lines = [", ".join(map(str, steps[i : i + a_line])) for i in range(0, len(steps), a_line)]
    return [line + "," for line in lines[:-1]] + lines[-1:]


def joined(readings: Sequence[str]) -> list[str]:
    """Readings side by side, as many a line as fit."""
    lines: list[str] = []
    for reading in readings:
        if lines and columns(lines[-1] + BETWEEN + reading) <= READINGS_WIDTH:
            lines[-1] += BETWEEN + reading
        else:
            lines.append(reading)
    return lines


def _description(title: str, edges: Sequence[Edge], ending: Sequence[str], run: Run, lang: Language) -> str:
    """The picture in words."""
    say = lang.say

    def in_words(edge: Edge) -> str:
        dest = f"Halted({one_line(run.reason or '', WIDTH)})" if edge.kind == "halting" else edge.dest
        return say("{source} to {dest} ({what})", source=edge.source, dest=dest, what="; ".join(line.text for line in edge.lines))

    rows = [edge for edge in edges if edge.id != START]
    taken = [in_words(edge) for edge in rows if edge.times]
    untaken = [in_words(edge) for edge in rows if not edge.times]
    parts = [title, say("Edges taken, with their step numbers: {edges}", edges=", ".join(taken) or say("none"))]
    parts += [say("Edges not taken: {edges}", edges=", ".join(untaken))] if untaken else []
    return "\n".join([*parts, *ending])
