"""The graph as DOT text. The same graph always gives the same text, on any machine.

What Graphviz makes of it was looked at, and tried on many sets of guards; a test measures that no label touches anything:

- The states stand in one straight row (their edges weigh most); every other edge bends around it.
- Labels are tables with empty rows above and below, so that slanted edges pass them.
- A line with Chinese characters has the width that they need at least, so that the box has room where no font has them.
- Of a run unrolled, each row starts below the one before it (edges between rows move nothing).
- A state's edges to itself are one line with all their labels.
- A halt has a column of its own (``minlen``), and ``ordering`` keeps the edges of a state in the order of the table, from top to
  bottom. Executing has no part in that: its edges cross fewer others where Graphviz places them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING

import attrs

from fsm_agent.diagrams.graph import Edge, EdgeKind, Graph, Key, Line, Node
from fsm_agent.diagrams.palette import LIGHT, Theme
from fsm_agent.diagrams.text import columns, wide_characters
from fsm_agent.table import EXECUTING

if TYPE_CHECKING:
    import graphviz

FONT = "Helvetica,Arial,Liberation Sans,DejaVu Sans,Noto Sans CJK SC,PingFang SC,Microsoft YaHei,WenQuanYi Micro Hei,sans-serif"
"""The first family that is there is taken, and for Chinese the first that has the character."""
THIN, NORMAL, HEAVY = "1", "1.4", "2.8"
"""Widths in points: of what was not taken, of what is no path, and of what was taken."""
SPINE_WEIGHT = "100"
KEYS_A_ROW = 4
"""Of a legend."""
LOUDNESS: tuple[EdgeKind, ...] = ("untaken", "less", "row", "more", "taken", "halting")
"""The kinds of edges, the one last that is drawn where several share a line."""
ASIDE = 60
"""So much to the left, twice, stands what a state's edges to itself are labelled with, in points: to the right its other edges rise."""
BELOW = 6
"""Room between a label and the edge below it, in points."""


def fill(digraph: graphviz.Digraph, graph: Graph, theme: Theme = LIGHT) -> None:
    """Put ``graph`` into an empty digraph."""
    _Painter(graph, theme).fill(digraph)


@attrs.frozen
class _Painter:
    """A graph in the colours of a theme."""

    graph: Graph
    theme: Theme

    def fill(self, digraph: graphviz.Digraph) -> None:
        graph, theme = self.graph, self.theme
        title = self.label(_heading(graph), theme.ink, room=BELOW, legend=self.legend())
        digraph.attr("graph", rankdir="LR", bgcolor=theme.ground, pad="0.25", nodesep="0.18", ranksep="0.12", mclimit="20")
        digraph.attr("graph", fontname=FONT, fontsize="15", label=title, labelloc="t", labeljust="l")
        digraph.attr("node", shape="box", style="rounded,filled", fontname=FONT, fontsize="14", penwidth=NORMAL, margin="0.16,0.08")
        digraph.attr("edge", fontname=FONT, fontsize="12", arrowsize="0.8")
        for node in graph.nodes:
            digraph.node(node.id, **self.node(node))
        for edge in sorted(graph.edges, key=lambda edge: _place(edge, graph)):
            loops = [other for other in graph.edges if other.source == other.dest == edge.source == edge.dest]
            if len(loops) < 2:
                digraph.edge(edge.source, edge.dest, **self.edge(edge))
            elif edge is loops[0]:
                digraph.edge(edge.source, edge.dest, **self.loops(loops))
        if graph.name == "unrolled":
            _stack(digraph, graph)

    def node(self, node: Node) -> dict[str, str]:
        theme = self.theme
        match node.kind:
            case "start":
                dot = {"label": "", "shape": "circle", "style": "filled", "width": "0.16", "fixedsize": "true"}
                return {**dot, "color": theme.ink, "fillcolor": theme.ink}
            case "state":
                order = {} if node.id == EXECUTING or self.graph.name == "unrolled" else {"ordering": "out"}
                width = HEAVY if node.current else NORMAL
                label = self.label(node.lines, theme.ink)
                return {"label": label, "color": theme.ink, "fillcolor": theme.state, "penwidth": width, **order}
            case "folded":
                label = self.label(node.lines, theme.ink)
                return {"label": label, "color": theme.quiet, "fillcolor": theme.ground, "style": "filled,dashed"}
            case "halted":
                colour, ground = theme.of_halt(node.reason)
                return {"label": self.label(node.lines, theme.ink), "color": colour, "fillcolor": ground, "peripheries": "2"}

    def edge(self, edge: Edge) -> dict[str, str]:
        theme = self.theme
        source, dest = self.graph.node(edge.source), self.graph.node(edge.dest)
        match edge.kind:
            case "row":
                colour, look = theme.ink, {"penwidth": NORMAL}
            case "taken":
                colour, look = theme.ink, {"penwidth": HEAVY}
            case "halting":
                colour, look = theme.of_halt(dest.reason)[0], {"penwidth": HEAVY}
            case "untaken":
                colour, look = theme.quiet, {"penwidth": THIN, "style": "dashed"}
            case "more":
                colour, look = theme.first, {"penwidth": HEAVY}
            case "less":
                colour, look = theme.second, {"penwidth": HEAVY, "style": "dashed"}
        if edge.width is not None:
            look |= {"penwidth": f"{edge.width:.4g}", "arrowsize": f"{max(0.5, 0.85 - edge.width / 25):.3g}"}
        span = dest.column - source.column
        if source.row != dest.row:
            look["constraint"] = "false"
        elif span == 1 and (dest.kind == "state" or edge.kind == "halting"):
            look["weight"] = SPINE_WEIGHT
        elif span > 1:
            look["minlen"] = str(span)
        look["color"] = colour
        if edge.lines:
            look["label"] = self.label(edge.lines, colour, room=BELOW + int(edge.width or 0) // 2)
        return ({"id": f"edge-{edge.id}"} if edge.id.isidentifier() else {}) | look

    def loops(self, loops: Sequence[Edge]) -> dict[str, str]:
        """The edges of a state to itself, as one line with all their labels: one within the other, their lines would pass through them."""
        most = max(loops, key=lambda edge: (LOUDNESS.index(edge.kind), edge.width or 0))
        rows = _empty(BELOW - 2).join(self.rows(edge.lines, self.edge(edge)["color"]) for edge in loops)
        rows = rows.replace("</TR>", f'<TD WIDTH="{ASIDE}"></TD></TR>')
        return {**self.edge(most), "label": _table(_empty(BELOW // 2) + rows + _empty(BELOW + int(most.width or 0) // 2))}

    def rows(self, lines: Iterable[Line], colour: str) -> str:
        """Lines as rows of a table."""
        return "".join(f"<TR>{self.cell(line, colour)}</TR>" for line in lines)

    def label(self, lines: Iterable[Line], colour: str, *, room: int = 0, legend: str = "") -> str:
        """Lines as an HTML-like label; with ``room`` (points, half of it above and all of it below) where it stands beside an edge."""
        rows = self.rows(lines, colour) + legend
        return _table(f"{_empty(room // 2)}{rows}{_empty(room)}" if room else rows)

    def legend(self) -> str:
        """Rows of the title's table, each with a few samples and what they mean."""
        rows = [self.graph.keys[i : i + KEYS_A_ROW] for i in range(0, len(self.graph.keys), KEYS_A_ROW)]
        cells = [
            "".join(f"{self.sample(key)}{self.cell(Line(f'{key.text}    ', 'evidence'), self.theme.ink)}" for key in row) for row in rows
        ]
        inside = "".join(f"<TR>{row}</TR>" for row in cells)
        table = f'<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="2" CELLPADDING="2">{inside}</TABLE>'
        return f'<TR><TD ALIGN="LEFT">{table}</TD></TR>' if inside else ""

    def sample(self, key: Key) -> str:
        """A small box or a piece of a line, as it is drawn; the cells are empty."""
        theme = self.theme
        match key.sample:
            case "state":
                return _box(theme.ink, theme.state)
            case "folded":
                return _box(theme.quiet, theme.ground, ' STYLE="DASHED"')
            case "answer" | "stop":
                colour, ground = theme.of_halt("final_answer" if key.sample == "answer" else None)
                inner = f'<TABLE BORDER="0" CELLSPACING="0" CELLPADDING="0"><TR>{_box(colour, ground)}</TR></TABLE>'
                return f'<TD BORDER="1" CELLPADDING="1" COLOR="{colour}">{inner}</TD>'
            case "row" | "taken" | "more" | "less" | "untaken":
                colour, width, dashed = {
                    "row": (theme.ink, 2, False),
                    "taken": (theme.ink, 3, False),
                    "more": (theme.first, 3, False),
                    "less": (theme.second, 3, True),
                    "untaken": (theme.quiet, 1, True),
                }[key.sample]
                return _line(colour, width, dashed=dashed)

    def cell(self, line: Line, colour: str) -> str:
        text = escape(line.text).replace("\\", "\\\\")  # Graphviz reads \N and the like here too, and two backslashes as one
        match line.tone:
            case "title":
                return f'<TD ALIGN="LEFT"{_room(line, 15)}><B><FONT COLOR="{colour}">{text}</FONT></B></TD>'
            case "name" | "steps":
                return f'<TD{_room(line, 15)}><B><FONT COLOR="{colour}">{text}</FONT></B></TD>'
            case "label":
                return f'<TD{_room(line, 12)}><FONT POINT-SIZE="12" COLOR="{colour}">{text}</FONT></TD>'
            case "reading":
                return f'<TD{_room(line, 11)}><FONT POINT-SIZE="11" COLOR="{self.theme.quiet}">{text}</FONT></TD>'
            case "evidence":
                return f'<TD ALIGN="LEFT"{_room(line, 11)}><FONT POINT-SIZE="11" COLOR="{colour}">{text}</FONT></TD>'


def _table(rows: str) -> str:
    return f'<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="1">{rows}</TABLE>>'


def _heading(graph: Graph) -> list[Line]:
    """The title; where there are notes or a legend, above them and to the left as they are."""
    notes = [Line(note, "evidence") for note in graph.notes]
    return [Line(graph.title, "title" if notes or graph.keys else "name"), *notes]


def _box(colour: str, ground: str, look: str = "") -> str:
    return f'<TD BORDER="1" COLOR="{colour}" BGCOLOR="{ground}" WIDTH="22" HEIGHT="10" FIXEDSIZE="TRUE"{look}></TD>'


def _line(colour: str, height: int, *, dashed: bool) -> str:
    part = f'<TD WIDTH="{5 if dashed else 24}" HEIGHT="{height}" FIXEDSIZE="TRUE" BGCOLOR="{colour}"></TD>'
    look = f'BORDER="0" CELLBORDER="0" CELLSPACING="{3 if dashed else 0}" CELLPADDING="0"'
    return f"<TD><TABLE {look}><TR>{part * 3 if dashed else part}</TR></TABLE></TD>"


def _room(line: Line, size: int) -> str:
    """The least width of a cell, where its line has characters that a font may lack: one em for each, and half of one for any other."""
    return f' WIDTH="{columns(line.text) * size // 2 + size // 2}"' if wide_characters(line.text) else ""


def _stack(digraph: graphviz.Digraph, graph: Graph) -> None:
    """The rows of a run unrolled, one below the other."""
    firsts = {node.row: node.id for node in reversed(graph.nodes) if node.kind != "start"}
    with digraph.subgraph() as column:
        column.attr(rank="same")
        ids = [firsts[row] for row in sorted(firsts)]
        for above, below in pairwise(ids):
            column.edge(above, below, style="invis", weight="0")


def _place(edge: Edge, graph: Graph) -> tuple[int, int]:
    """Where an edge is written, hence drawn: by its left end, and there from top to bottom in the order of the table.

    But for the first state, most of whose edges pass below the row of states: after the edge to the next state come those
    back to it, then the halts that another state leads to as well, then those of this state alone.
    """
    if graph.name == "unrolled":
        return graph.node(edge.source).row, 0
    source, dest = graph.node(edge.source), graph.node(edge.dest)
    left = min(source.column, dest.column)
    if left > 1 or (dest.kind == "state" and dest.column == left + 1):
        return left, 0
    if dest.column < source.column:
        return left, 1
    alone = dest.kind == "halted" and sum(other.dest == edge.dest for other in graph.edges) == 1
    return left, 3 if alone else 2


def _empty(height: int) -> str:
    return f'<TR><TD HEIGHT="{height}"></TD></TR>'
