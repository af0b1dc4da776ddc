"""The graph as Mermaid text, which Markdown pages of many sites draw.

A flowchart, not a state diagram: there, each of two arrows between the same two boxes has its own label, width and dashes.
"""

from __future__ import annotations

import re

from fsm_agent.diagrams import palette
from fsm_agent.diagrams.graph import Edge, Graph, Line, Node

_PLAIN = re.compile(r"[^\w ,.:()=+/·×–…→-]")
"""What stands for itself within quotes; everything else is written as a character code."""


def mermaid(graph: Graph) -> str:
    """Mermaid text, with a title for people and, for screen readers, a title and a description."""
    lines = ["---", f"title: {_yaml(graph.title)}", "---", "flowchart LR"]
    lines += [f"  accTitle: {_code(graph.title)}", f"  accDescr: {_code(' / '.join(graph.description.split(chr(10))))}"]
    notes = [*graph.notes, *(f"{key.name}: {key.text}" for key in graph.keys)]
    if notes:
        lines.append(f'  notes["{"<br/>".join(map(_code, notes))}"]:::notes')
    lines += [f"  {_node(node)}" for node in graph.nodes]
    lines += [f"  {_edge(edge)}" for edge in graph.edges]
    lines += [f"  linkStyle {i} {style}" for i, edge in enumerate(graph.edges) if (style := _link(edge, graph))]
    lines += [
        f"  classDef default fill:{palette.STATE},stroke:{palette.INK},color:{palette.INK}",
        f"  classDef start fill:{palette.INK},stroke:{palette.INK}",
        f"  classDef answer fill:{palette.ANSWER_FILL},stroke:{palette.ANSWER},color:{palette.INK}",
        f"  classDef stop fill:{palette.STOP_FILL},stroke:{palette.STOP},color:{palette.INK}",
        "  classDef current stroke-width:3px",
        *(["  classDef folded stroke-dasharray:4"] if any(node.kind == "folded" for node in graph.nodes) else []),
        *(["  classDef notes fill:none,stroke:none,text-align:left"] if notes else []),
    ]
    return "\n".join(lines) + "\n"


def _node(node: Node) -> str:
    match node.kind:
        case "start":
            return f'{node.id}((" ")):::start'
        case "state":
            return f'{node.id}("{_label(node.lines)}")' + (":::current" if node.current else "")
        case "folded":
            return f'{node.id}["{_label(node.lines)}"]:::folded'
        case "halted":
            return f'{node.id}[["{_label(node.lines)}"]]:::{"answer" if node.reason == "final_answer" else "stop"}'


def _edge(edge: Edge) -> str:
    arrow = {"row": "-->", "taken": "==>", "halting": "==>", "untaken": "-.->", "more": "==>", "less": "-.->"}[edge.kind]
    label = f'|"{_label(edge.lines)}"|' if edge.lines else ""
    return f"{edge.source} {arrow}{label} {edge.dest}"


def _link(edge: Edge, graph: Graph) -> str:
    """What the arrow alone does not say: colours, and text that is quieter."""
    halt = palette.of_halt(graph.node(edge.dest).reason)[0]
    colour = {"halting": halt, "untaken": palette.QUIET, "more": palette.FIRST, "less": palette.SECOND}.get(edge.kind)
    styles = [f"stroke:{colour}", f"color:{colour}"] if colour else []
    return ",".join([*styles, f"stroke-width:{edge.width:.4g}px"] if edge.width is not None else styles)


def _label(lines: tuple[Line, ...]) -> str:
    return "<br/>".join(f"<b>{_code(line.text)}</b>" if line.tone in {"name", "steps"} else _code(line.text) for line in lines)


def _code(text: str) -> str:
    return _PLAIN.sub(lambda found: f"#{ord(found[0])};", text)


def _yaml(text: str) -> str:
    """A title, where no character codes are read: what would be a tag or a directive is written so that it is none."""
    harmless = text.replace("<", "‹").replace(">", "›").replace("%%", "% %").replace("\\", "\\\\").replace('"', '\\"')
    return f'"{harmless}"'
