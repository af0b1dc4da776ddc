"""How the result of a run shows itself in a notebook: the path, why it halted, and a small table of its steps.

The picture is an image with its own text, so whatever a model or a tool said can neither be markup nor run.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING

from fsm_agent.diagrams.graph import View
from fsm_agent.diagrams.path import path_view
from fsm_agent.diagrams.readings import Readings, words
from fsm_agent.diagrams.text import one_line
from fsm_agent.diagrams.timeline import Entry, entries_of
from fsm_agent.language import Language
from fsm_agent.machine import Run
from fsm_agent.table import HALTED

if TYPE_CHECKING:
    from fsm_agent.drivers.setup import Result

MAX_ROWS = 12
"""A longer run shows its first and last steps."""
ENDS = 5
WIDTH = 80
"""Of a cell, in columns."""


def display(result: Result) -> dict[str, str]:
    """The forms in which a notebook can show ``result``, by their MIME types. Raises ``TraceError`` as ``Trace.replay`` does."""
    run = result.trace.replay()
    lang = run.protocol.lang
    view = path_view(run, result.trace.header.title, lang)
    return {"text/html": _html(result, run, view, lang), "text/plain": view.text}


def _html(result: Result, run: Run, view: View, lang: Language) -> str:
    from fsm_agent.diagrams import render

    picture = b64encode(render(view, "svg")).decode()
    halt = f"Halted({one_line(result.reason, WIDTH)})"
    calls = lang.count("{n} model call", "{n} model calls", result.model_calls)
    names = (lang.say("step"), lang.say("the model"), lang.say("what came of it"))
    head = "".join(f'<th scope="col" style="text-align:left">{escape(name)}</th>' for name in names)
    return (
        f'<div lang="{escape(lang.code)}">'
        f"<p><b>{escape(halt)}</b> · {escape(calls)}<br>{escape(one_line(result.message, 400))}</p>"
        f'<img alt="{escape(view.graph.title)}" style="max-width:100%" src="data:image/svg+xml;base64,{picture}">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(_rows(run, lang))}</tbody></table></div>"
    )


def _rows(run: Run, lang: Language) -> Iterator[str]:
    """A row a step; of a long run, the first and the last, and how many are between them."""
    steps = [(step, tuple(entries)) for step, entries in groupby(entries_of(run), key=lambda entry: entry.taken.step)]
    hidden = range(ENDS, len(steps) - ENDS) if len(steps) > MAX_ROWS else range(0)
    readings = Readings(run.wiring.guards, lang)
    for place, (step, entries) in enumerate(steps):
        if place not in hidden:
            yield _row(str(step) if step else "", _wanted(entries), _came(entries, readings))
        elif place == hidden[0]:
            yield _row("…", lang.say("… and {n} more …", n=len(hidden)), "")


def _row(*cells: str) -> str:
    return "<tr>" + "".join(f'<td style="text-align:left">{escape(one_line(cell, WIDTH))}</td>' for cell in cells) + "</tr>"


def _wanted(entries: Sequence[Entry]) -> str:
    """What the model's reply meant."""
    return " ".join(entry.detail for entry in entries if entry.row.trigger == "parsed")


def _came(entries: Sequence[Entry], readings: Readings) -> str:
    """What the tools returned or a person or a failing model said; of the edge into the halt, what tripped."""
    said = [entry.detail for entry in entries if entry.row.trigger not in {"parsed", "observed", "model_replied"} and entry.detail]
    last = entries[-1]
    halts = readings.of_guard(last.taken, last.row.reason) or words(last.row.label, readings.lang) if last.row.dest == HALTED else ""
    return "; ".join([*said, *([halts] if halts else [])])
