"""Other programs' own parsers read what is drawn: Mermaid's of Mermaid text, Graphviz's of DOT text."""

from __future__ import annotations

from functools import cache
from html import escape
from typing import Any
from xml.etree import ElementTree as ET

import pygraphviz
import pytest

from fsm_agent.diagrams import View, machine_view, path_view, render, unrolled_view, with_legend
from fsm_agent.diagrams.diff import diff_view
from fsm_agent.diagrams.gallery import views
from fsm_agent.diagrams.heat import heat_of, heat_view
from fsm_agent.diagrams.run_diff import run_diff_view
from fsm_agent.guards import classic
from fsm_agent.language import language
from fsm_agent.machine import Run
from tests.drawn import played, talk
from tests.npm import node
from tests.test_diagrams_pictures import HOSTILE, hostile_run
from tests.test_heat import GUARDS, RUNS

PACKAGES = ("mermaid@12.3.0", "jsdom@26.1.0")
SVG = "{http://www.w3.org/2000/svg}"

PARSE = """
import {JSDOM} from 'jsdom';
const page = new JSDOM('<!doctype html><body></body>');
globalThis.window = page.window;
globalThis.document = page.window.document;
const mermaid = (await import('mermaid')).default;
mermaid.initialize({startOnLoad: false});
const found = [];
for (const text of told) {
  try {
    const {diagramType} = await mermaid.parse(text);
    const {db} = await mermaid.mermaidAPI.getDiagramFromText(text);
    found.push({
      type: diagramType,
      nodes: [...db.getVertices().keys()],
      edges: db.getEdges().map(each => [each.start, each.end, each.stroke]),
    });
  } catch (error) {
    found.push({error: String(error.message ?? error)});
  }
}
console.log(JSON.stringify(found));
"""


@cache
def shown() -> dict[str, View]:
    """Drawings of every kind, and what hostile text makes of them."""
    runs: dict[str, Run] = {
        "talk": talk(),
        "long": played(guards=classic(400)),
        "open": played(steps=2),
        "new": Run("a task", guards=classic()),
    }
    return {
        **views(),
        **{name: path_view(run, name) for name, run in runs.items()},
        **{f"{name} unrolled": unrolled_view(run, name) for name, run in runs.items()},
        "legend": with_legend(machine_view(lang=language("zh")), language("zh")),
        "heat": heat_view(heat_of(RUNS, GUARDS), "made"),
        "groups": diff_view(heat_of(RUNS[:2], GUARDS), heat_of(RUNS[2:], GUARDS), ("a", "b")),
        "two runs": run_diff_view(played("FINAL 1"), played(guards=classic(3)), ("a", "b")),
        **{f"hostile {number}": path_view(hostile_run(text), text) for number, text in enumerate(HOSTILE)},
        **{f"hostile {number} unrolled": unrolled_view(hostile_run(text), text) for number, text in enumerate(HOSTILE)},
    }


@cache
def parsed() -> dict[str, Any]:
    texts = [render(view, "mermaid").decode() for view in shown().values()]
    *found, wrong = node(PARSE, [*texts, "flowchart LR\n  a -->"], *PACKAGES)
    assert "error" in wrong  # the parser does refuse
    return dict(zip(shown(), found, strict=True))


@pytest.mark.parametrize("name", list(shown()))
def test_mermaids_own_parser_reads_the_same_nodes_and_edges(name: str) -> None:
    graph, found = shown()[name].graph, parsed()[name]
    assert "error" not in found, found
    assert found["type"] == "flowchart-v2"
    assert sorted(set(found["nodes"]) - {"notes"}) == sorted(node.id for node in graph.nodes)
    strokes = {"row": "normal", "taken": "thick", "halting": "thick", "untaken": "dotted", "more": "thick", "less": "dotted"}
    assert found["edges"] == [[edge.source, edge.dest, strokes[edge.kind]] for edge in graph.edges]


@pytest.mark.parametrize("name", list(shown()))
def test_graphviz_reads_the_same_nodes_and_edges(name: str) -> None:
    graph = shown()[name].graph
    read = pygraphviz.AGraph(string=render(shown()[name], "dot").decode())
    try:
        assert sorted(map(str, read.nodes())) == sorted(node.id for node in graph.nodes)
        visible = [(edge[0], edge[1]) for edge in read.edges() if edge.attr["style"] != "invis"]
        pairs = [(edge.source, edge.dest) for edge in graph.edges]
        loops = {pair for pair in pairs if pair[0] == pair[1]}  # a state's edges to itself are one line
        assert sorted(visible) == sorted([*(pair for pair in pairs if pair not in loops), *loops])
        for source, dest in loops:
            label = "".join(edge.attr["label"] for edge in read.edges() if (edge[0], edge[1]) == (source, dest))
            assert all(
                escape(line.text) in label for edge in graph.edges if (edge.source, edge.dest) == (source, dest) for line in edge.lines
            )
    finally:
        read.close()


@pytest.mark.parametrize("name", list(shown()))
def test_an_svg_is_valid_xml_with_role_title_and_description(name: str) -> None:
    root = ET.fromstring(render(shown()[name], "svg"))
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert root.get("role") == "img"
    assert (title is not None and title.text, description is not None and description.text) == (
        shown()[name].graph.title,
        shown()[name].graph.description,
    )
