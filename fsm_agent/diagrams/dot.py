"""The graph as a ``graphviz.Digraph``. The same graph always gives the same text, on any machine."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

from fsm_agent.diagrams import palette
from fsm_agent.diagrams.graph import START, Edge, Graph, Line, Node

if TYPE_CHECKING:
    from fsm_agent.diagrams.drawing import Drawing

FONT = "Helvetica,Arial,DejaVu Sans,Noto Sans CJK SC,PingFang SC,Microsoft YaHei,WenQuanYi Micro Hei,sans-serif"


def fill(drawing: Drawing, graph: Graph) -> None:
    """Put ``graph`` into an empty digraph."""
    drawing.attr(
        "graph",
        rankdir="LR",
        bgcolor=palette.GROUND,
        pad="0.25",
        ordering="out",
        nodesep="0.15",
        ranksep="0.12",
        mclimit="20",
        fontname=FONT,
    )
    drawing.attr(
        "graph",
        labelloc="t",
        labeljust="l",
        fontsize="15",
        fontcolor=palette.INK,
        label=_html(_heading(graph), palette.INK, pad=8),
    )
    drawing.attr("node", shape="box", style="rounded,filled", fontname=FONT, fontsize="14", penwidth="1.4", margin="0.16,0.08")
    drawing.attr("edge", fontname=FONT, fontsize="12", arrowsize="0.8")
    for node in graph.nodes:
        drawing.node(node.id, **_node(node))
    for edge in sorted(graph.edges, key=lambda edge: _place(edge, graph)):
        drawing.edge(edge.source, edge.dest, **_edge(edge, graph))


def _heading(graph: Graph) -> list[Line]:
    if not graph.notes:
        return [Line(graph.title, "name")]
    return [Line(graph.title, "title"), *(Line(note, "evidence") for note in graph.notes)]


def _node(node: Node) -> dict[str, str]:
    match node.kind:
        case "start":
            return {
                "shape": "circle",
                "style": "filled",
                "label": "",
                "width": "0.16",
                "fixedsize": "true",
                "fillcolor": palette.INK,
                "color": palette.INK,
            }
        case "state":
            width = "3" if node.current else "1.4"
            return {"label": _html(node.lines, palette.INK), "fillcolor": palette.STATE, "color": palette.INK, "penwidth": width}
        case "halted":
            colour, ground = palette.of_halt(node.reason)
            return {"label": _html(node.lines, palette.INK), "fillcolor": ground, "color": colour, "peripheries": "2"}


def _edge(edge: Edge, graph: Graph) -> dict[str, str]:
    source, dest = graph.node(edge.source), graph.node(edge.dest)
    span = dest.column - source.column
    attributes = {"id": f"edge-{edge.id}"} if edge.id.isidentifier() else {}
    match edge.kind:
        case "row":
            ink, attributes = palette.INK, attributes | {"penwidth": "1.4"}
        case "taken":
            ink, attributes = palette.INK, attributes | {"penwidth": "2.8"}
        case "halting":
            ink, attributes = palette.of_halt(dest.reason)[0], attributes | {"penwidth": "2.8"}
        case "untaken":
            ink, attributes = palette.QUIET, attributes | {"penwidth": "1", "style": "dashed"}
        case "more":
            ink, attributes = palette.FIRST, attributes | {"penwidth": "2.8"}
        case "less":
            ink, attributes = palette.SECOND, attributes | {"penwidth": "2.8", "style": "dashed"}
    if edge.width is not None:
        attributes |= {"penwidth": f"{edge.width:.4g}", "arrowsize": f"{max(0.5, 0.85 - edge.width / 25):.3g}"}
    attributes["color"] = ink
    if edge.lines:
        attributes["label"] = _html(edge.lines, ink, pad=6 + int(edge.width or 0) // 2)
    if span == 1 and (dest.kind == "state" or edge.kind == "halting"):
        attributes["weight"] = "100"
    elif span > 1:
        attributes["minlen"] = str(span)
    return attributes


def _place(edge: Edge, graph: Graph) -> tuple[int, int]:
    """Where an edge is written. Graphviz draws the edges of a node from top to bottom in the order in which they are written.

    An edge back is one of its end's there. After the edge to the next state come those back to this one, then the halts that
    another state leads to as well, then those of this state alone.
    """
    source, dest = graph.node(edge.source), graph.node(edge.dest)
    shared = sum(other.dest == edge.dest for other in graph.edges) > 1
    rank = (
        0
        if dest.column == source.column + 1 and dest.kind == "state"
        else 1
        if dest.column < source.column
        else 3
        if dest.kind == "halted" and not shared
        else 2
    )
    return min(source.column, dest.column), rank if min(source.column, dest.column) < 2 else 0


def _html(lines: Iterable[Line], ink: str, pad: int = 0) -> str:
    """Lines as an HTML-like label, with room around them."""
    rows = "".join(f"<TR>{_cell(line, ink)}</TR>" for line in lines)
    return (
        f'<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="{pad}"><TR><TD>{rows}</TD></TR></TABLE>>'
        if 0
        else f'<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="1">{f"<TR><TD HEIGHT={chr(34)}{pad // 2}{chr(34)}></TD></TR>" if pad else ""}{rows}{f"<TR><TD HEIGHT={chr(34)}{pad}{chr(34)}></TD></TR>" if pad else ""}</TABLE>>'
    )


def _cell(line: Line, ink: str) -> str:
    text = escape(line.text).replace("\\", "&#92;")
    match line.tone:
        case "title":
            return f'<TD ALIGN="LEFT"><B><FONT COLOR="{ink}">{text}</FONT></B></TD>'
        case "name" | "steps":
            return f'<TD><B><FONT COLOR="{ink}">{text}</FONT></B></TD>'
        case "label":
            return f'<TD><FONT POINT-SIZE="12" COLOR="{ink}">{text}</FONT></TD>'
        case "reading":
            return f'<TD><FONT POINT-SIZE="11" COLOR="{palette.QUIET}">{text}</FONT></TD>'
        case "evidence":
            return f'<TD ALIGN="LEFT"><FONT POINT-SIZE="11" COLOR="{ink}">{text}</FONT></TD>'
