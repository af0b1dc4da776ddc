"""A run packed for ``player.js``: columns of numbers, and every text once, however often it was said.

A place in a column is a moment: the edge with that number, from 0. ``steps``, ``ms`` and ``messages`` hold what is added since the moment
before, which is short. Texts are places in ``texts``. Of a guard there is one value for each time that it was judged, in order; it is
judged on every edge out of the state that it watches, but for the rows in ``unjudged``. ``summaries``: from which moment on one stands
for which messages.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from fsm_agent.diagrams.readings import Readings, number, words
from fsm_agent.diagrams.text import one_line
from fsm_agent.events import Final
from fsm_agent.guards import Guard, Reading
from fsm_agent.language import Language
from fsm_agent.machine import Run, Taken
from fsm_agent.outcome import halting_reading, message_of
from fsm_agent.player.embed import safe_text
from fsm_agent.player.moments import gone_through
from fsm_agent.player.words import spoken
from fsm_agent.stepper import Moment
from fsm_agent.stepper.items import TONES, Item, items_of, requests_text, summed_up
from fsm_agent.table import HALTED, PURE, Row
from fsm_agent.wording import heading

TRIPS, WARNS, AT_LEAST = 1, 2, 4
"""What is told of a value beside it; ``AT_LEAST``: something that it adds up was not known."""
EXACT = 2**53
"""Whole numbers up to here are the same in JavaScript."""


@attrs.define
class _Texts:
    """Every text, once."""

    places: dict[str, int] = attrs.field(factory=dict)

    def place(self, text: str) -> int:
        return self.places.setdefault(safe_text(text), len(self.places))


def packed(run: Run, lang: Language) -> dict[str, Any]:
    """All that the player shows of ``run``."""
    branch, texts = gone_through(run), _Texts()
    moments = branch.moments
    rows = {row.id: place for place, row in enumerate(run.wiring.rows)}
    begun = run.at if run.at is not None else next((each.event.at for each in moments if each.event.at is not None), None)
    return {
        "rows": [_row(row, lang) for row in run.wiring.rows],
        "edges": [rows[each.row.id] for each in moments],
        "unjudged": sorted({rows[each.row.id] for each in moments if each.row.source in PURE and not each.taken.readings}),
        "steps": _differences([each.taken.step for each in moments]),
        "ms": _differences([_since(begun, each.event.at) for each in moments]),
        "messages": _differences([_shown_at_start(run), *(each.messages for each in moments)]),
        "items": [_items(each, branch.run, texts, lang) for each in moments],
        "history": [
            [texts.place(f"{each.role} {each.tool}".strip()), texts.place(each.content), texts.place(requests_text(each.tool_calls))]
            for each in branch.run.history
        ],
        "summaries": list(_summaries(branch.run, moments, texts, lang)),
        "task": texts.place(run.task),
        "guards": [_guard(guard, moments, lang) for guard in run.wiring.guards],
        "ending": _ending(run, texts, lang),
        "words": spoken(lang),
        "texts": list(texts.places),
    }


def _shown_at_start(run: Run) -> int:
    """The messages before anything happened: the task, after a system message where there is one."""
    return 1 + (run.history[0].role == "system")


def _row(row: Row, lang: Language) -> list[str]:
    dest = f"{HALTED}({one_line(row.reason or '', 60)})" if row.dest == HALTED else row.dest
    return [row.source, row.dest, dest, words(row.label, lang)]


def _since(begun: float | None, at: float | None) -> int | None:
    """Milliseconds."""
    return None if begun is None or at is None or not math.isfinite(at - begun) else round((at - begun) * 1000)


def _differences(column: Sequence[int | None]) -> list[int | None]:
    """What each adds to the last one before it that is known."""
    found: list[int | None] = []
    last = 0
    for value in column:
        found.append(None if value is None else value - last)
        last = last if value is None else value
    return found


def _summaries(run: Run, moments: Sequence[Moment], texts: _Texts, lang: Language) -> Iterator[list[int]]:
    """Of each summary: after how many edges it was made, the first message that it stands for and the first that it does not, and it."""
    before = None
    for moment in moments:
        summary = moment.summary
        if summary is not None and summary is not before:
            places = summed_up(run.history, summary)
            if places:
                yield [moment.number, places.start, places.stop, texts.place(heading(summary, lang)), texts.place(summary.summary)]
        before = summary


def _items(moment: Moment, run: Run, texts: _Texts, lang: Language) -> list[list[int]] | int:
    """What came with the edge; 0: nothing."""
    return [_item(item, texts) for item in items_of(moment, run, lang)] or 0


def _item(item: Item, texts: _Texts) -> list[int]:
    place = [texts.place(item.head), texts.place(item.text), TONES.index(item.tone)]
    return [*place, texts.place(item.note)] if item.note else place


def _guard(guard: Guard, moments: Sequence[Moment], lang: Language) -> dict[str, Any]:
    judged = [reading for each in moments for reading in each.taken.readings if reading.guard == guard.reason]
    usual = judged[0].limit if judged else None
    return {
        "name": words(guard.edge().label, lang),
        "reason": one_line(guard.reason, 60),
        "watches": guard.watches,
        "limit": _figure(usual),
        "values": [_value(reading, usual) for reading in judged],
    }


def _value(reading: Reading, usual: float | None) -> object:
    """The number alone where there is no more to tell; else with what is told of it, and the limit where that is another one."""
    told = TRIPS * reading.trips | WARNS * reading.warns | AT_LEAST * (reading.unknown > 0)
    if reading.limit != usual:
        return [_figure(reading.value), told, _figure(reading.limit)]
    return [_figure(reading.value), told] if told else _figure(reading.value)


def _figure(value: float | None) -> float | str | None:
    """A number that JavaScript can hold; a greater one as people read it."""
    if value is None or (isinstance(value, int) and abs(value) <= EXACT):
        return value
    return number(value) if abs(value) > EXACT else float(f"{value:.6g}")


def _ending(run: Run, texts: _Texts, lang: Language) -> dict[str, Any] | None:
    """Why the run halted and what that rests on; None: it did not."""
    if run.reason is None:
        return None
    reading, last = halting_reading(run), run.log[-1]
    also = Readings(run.wiring.guards, lang).also_tripped(last, run.reason) if isinstance(last, Taken) else []
    answered = isinstance(run.decision, Final) and run.reason == "final_answer"
    return {
        "answered": answered,
        "message": texts.place(message_of(run, lang)),
        "evidence": [[each.step, texts.place(each.kind), texts.place(each.text)] for each in (reading.evidence if reading else ())],
        "also": texts.place(", ".join(also)),
    }
