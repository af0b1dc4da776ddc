"""The legend of a drawing: a sample of each kind of box and arrow that is in it, with what it means."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from fsm_agent.diagrams.graph import Graph, Key, View
from fsm_agent.language import ENGLISH, Language


def with_legend(view: View, lang: Language = ENGLISH) -> View:
    """The same view with a legend."""
    keys = tuple(_keys(view.graph, lang))
    told = [view.graph.description, *(f"{key.name}: {key.text}" for key in keys)]
    return attrs.evolve(view, graph=attrs.evolve(view.graph, keys=keys, description="\n".join(told)))


def _keys(graph: Graph, lang: Language) -> Iterator[Key]:
    say = lang.say
    nodes = {node.kind for node in graph.nodes}
    edges = {edge.kind for edge in graph.edges}
    reasons = {node.reason for node in graph.nodes if node.kind == "halted"}
    if "state" in nodes:
        yield Key("state", say("box"), say("a visit of a state") if graph.name == "unrolled" else say("a state"))
    if "folded" in nodes:
        yield Key("folded", say("dashed box"), say("steps that are only counted"))
    if "final_answer" in reasons:
        yield Key("answer", say("double box, blue"), say("halted with an answer"))
    if reasons - {"final_answer"}:
        yield Key("stop", say("double box, brown"), say("halted without an answer"))
    if "row" in edges:
        yield Key("row", say("arrow"), say("event [guard]: taken when it holds, tried from top to bottom"))
    if "taken" in edges and graph.name in {"path", "unrolled"}:
        numbered = say("taken, at the steps with these numbers; a/b: a guard read a, its limit is b")
        yield Key("taken", say("thick arrow"), numbered if graph.name == "path" else say("taken; a/b: a guard read a, its limit is b"))
    if "taken" in edges and graph.name == "heat":
        yield Key("taken", say("arrow"), say("taken; the wider, the more often"))
    if "more" in edges:
        yield Key("more", say("solid arrow with +"), say("more in A"))
    if "less" in edges:
        yield Key("less", say("dashed arrow with −"), say("more in B"))
    if "untaken" in edges:
        yield Key("untaken", say("thin dashed arrow"), say("not taken"))
