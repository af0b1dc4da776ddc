"""Drawings of the machine and of the paths that runs took through it.

    draw_path(result.trace)             # a graphviz.Digraph, which shows itself in a notebook
    render(path_view(run), "svg")       # bytes

The table and a run are read into one small graph (``graph``), which ``dot`` and ``mermaid`` render; ``layout`` makes pictures.
Graphviz is loaded when it is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fsm_agent.diagrams.graph import View
from fsm_agent.diagrams.legend import with_legend
from fsm_agent.diagrams.machine import machine_view
from fsm_agent.diagrams.palette import theme_of
from fsm_agent.diagrams.path import path_view
from fsm_agent.diagrams.unrolled import unrolled_view
from fsm_agent.formats import PICTURES
from fsm_agent.guards import Guard
from fsm_agent.language import ENGLISH, Language
from fsm_agent.machine import Run
from fsm_agent.traces import Trace

if TYPE_CHECKING:
    from fsm_agent.diagrams.drawing import Drawing

__all__ = ["CHARTS", "FORMATS", "View", "draw_machine", "draw_path", "machine_view", "path_view", "render", "unrolled_view", "with_legend"]

FORMATS = PICTURES
"""What ``render`` can make of any view."""

CHARTS = ("scxml", "xstate")
"""What it can make of the machine as well."""


def draw_machine(guards: Sequence[Guard] | None = None, lang: Language = ENGLISH, theme: str = "light") -> Drawing:
    """The machine with these guards, or the whole table, as a ``graphviz.Digraph``; ``theme`` as in ``render``.

    Raises ``ValueError`` as ``rows_for`` does.
    """
    from fsm_agent.diagrams.drawing import drawing_of

    return drawing_of(machine_view(guards, lang), theme_of(theme))


def draw_path(run: Run | Trace, title: str = "", lang: Language | None = None, theme: str = "light") -> Drawing:
    """The path that a run took, as a ``graphviz.Digraph``; see ``path_view`` and ``render``."""
    from fsm_agent.diagrams.drawing import drawing_of

    return drawing_of(path_view(run, title, lang), theme_of(theme))


def render(view: View, form: str, theme: str = "light") -> bytes:
    """The view in one of ``FORMATS`` or ``CHARTS``; text formats are UTF-8.

    ``theme`` is ``light``, ``dark`` or ``print``: of pictures and DOT text.
    Raises ``ValueError`` for another format or theme, and for a chart of anything but the machine.
    """
    colours = theme_of(theme)
    if form == "text":
        return view.text.encode()
    if form == "mermaid":
        from fsm_agent.diagrams.mermaid import mermaid

        return mermaid(view.graph).encode()
    if form in CHARTS:
        from fsm_agent.diagrams import charts

        if not view.rows:
            raise ValueError(f"a state chart is of the machine, and this is a {view.graph.name}")
        return (charts.scxml if form == "scxml" else charts.xstate)(view.rows, view.graph.title).encode()
    if form not in FORMATS:
        raise ValueError(f"the format {form!r} is not known; known are {', '.join((*FORMATS, *CHARTS))}")
    from fsm_agent.diagrams.drawing import drawing_of

    drawing = drawing_of(view, colours)
    return str(drawing.source).encode() if form == "dot" else drawing.picture(form)
