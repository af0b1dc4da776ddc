"""Runs to draw, and the geometry of a drawing: where its text, boxes and curves are, and which of them touch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import attrs

from fsm_agent.diagrams.layout import lay_out
from fsm_agent.events import AskModel, CallTools, ModelReplied, Observation, RecordingEnded, Reply, ToolRequest, ToolsReturned, UserSpoke
from fsm_agent.guards import Guard, classic
from fsm_agent.machine import Run
from fsm_agent.protocols import RecordedProtocol

# --- runs ---------------------------------------------------------------------------------------------------------


def played(*replies: str, guards: tuple[Guard, ...] = classic(), failing: bool = False, steps: int | None = None) -> Run:
    """A run in which the model says ``replies``, then ``TOOL add a=1,b={n}``; every tool call gives its step, or an error."""
    run = Run("a task", guards=guards)
    while run.effect is not None and (steps is None or run.step < steps or isinstance(run.effect, CallTools)):
        match run.effect:
            case AskModel():
                text = replies[run.step] if run.step < len(replies) else f"TOOL add a=1,b={run.step}"
                run.feed(ModelReplied(Reply(text)))
            case CallTools(calls=calls):
                kind: Any = "tool_error" if failing else "ok"
                run.feed(ToolsReturned(tuple(Observation(call.name, f"result {run.step}", kind) for call in calls)))
    return run


def talk() -> Run:
    """A recorded talk with a person, in which tools are called now and then."""
    run = Run("You help customers of an airline.", guards=classic(max_steps=30), protocol=RecordedProtocol())

    def say(text: str, answer: str) -> None:
        run.feed(ModelReplied(Reply(text)))
        run.feed(UserSpoke(answer))

    def call(name: str, arguments: str, result: str) -> None:
        run.feed(ModelReplied(Reply("", (ToolRequest("1", name, arguments),))))
        run.feed(ToolsReturned((Observation(name, result),)))

    run.feed(UserSpoke("Hi, I want to change my flight."))
    say("Sure. What is your user id?", "mia_li_3668")
    call("get_user_details", '{"user_id": "mia_li_3668"}', '{"name": "Mia Li"}')
    for day in range(5):
        call("search_flights", f'{{"day": {day}}}', "[]")
    say("There is none.", "###STOP###")
    run.feed(RecordingEnded())
    return run


# --- geometry -----------------------------------------------------------------------------------------------------

Point = tuple[float, float]


@attrs.frozen
class Box:
    left: float
    low: float
    right: float
    high: float

    def holds(self, point: Point, gap: float) -> bool:
        return self.left - gap < point[0] < self.right + gap and self.low - gap < point[1] < self.high + gap

    def touches(self, other: Box, gap: float) -> bool:
        across = self.left - gap < other.right and other.left < self.right + gap
        return across and self.low - gap < other.high and other.low < self.high + gap


@attrs.frozen
class Laid:
    """A drawing as Graphviz laid it out, in points."""

    width: float
    height: float
    nodes: dict[str, Box]
    labels: list[tuple[str, Box]]
    """The text of each edge that has some, as one box."""
    curves: list[tuple[str, list[Point]]]
    """Points along each edge, its arrowhead among them."""

    def collisions(self, gap: float) -> list[str]:
        """What an edge's label comes nearer to than ``gap`` points, and each box that an edge of others runs through."""
        found = []
        for i, (edge, label) in enumerate(self.labels):
            found += [f"the label of {edge} touches {node}" for node, box in self.nodes.items() if label.touches(box, gap)]
            found += [f"the labels of {edge} and {other} touch" for other, box in self.labels[:i] if label.touches(box, gap)]
            found += [
                f"the label of {edge} touches {other}" for other, curve in self.curves if any(label.holds(point, gap) for point in curve)
            ]
        for edge, curve in self.curves:
            ends = edge.split(" ")[0].split("->")
            found += [
                f"{edge} runs through {node}"
                for node, box in self.nodes.items()
                if node not in ends and any(box.holds(point, 0) for point in curve)
            ]
        return found


def laid(source: str) -> Laid:
    """The layout of DOT text."""
    graph = json.loads(lay_out(source, "json"))
    names = {node["_gvid"]: node.get("name", "") for node in graph["objects"]}
    nodes = {
        node["name"]: _box([point for op in node["_draw_"] if op["op"] in "bBpP" for point in op["points"]] or _ellipse(node))
        for node in graph["objects"]
        if "_draw_" in node  # and not a group of nodes
    }
    labels, curves = [], []
    for edge in graph["edges"]:
        if edge.get("style") == "invis":
            continue
        name = f"{names[edge['tail']]}->{names[edge['head']]} ({edge.get('id', '')})"
        curves.append(
            (name, [*_curve(edge["_draw_"]), *(tuple(point) for op in edge["_hdraw_"] if op["op"] == "P" for point in op["points"])])
        )
        if corners := list(_text(edge.get("_ldraw_", []))):
            labels.append((name, _box(corners)))
    _, _, width, height = map(float, graph["bb"].split(","))
    return Laid(width, height, nodes, labels, curves)


def _box(points: list[Point]) -> Box:
    across, up = [point[0] for point in points], [point[1] for point in points]
    return Box(min(across), min(up), max(across), max(up))


def _ellipse(node: dict[str, Any]) -> list[Point]:
    across, up, half_width, half_height = next(op["rect"] for op in node["_draw_"] if op["op"] in "eE")
    return [(across - half_width, up - half_height), (across + half_width, up + half_height)]


def _text(ops: list[dict[str, Any]]) -> Iterator[Point]:
    size = 12.0
    for op in ops:
        if op["op"] == "F":
            size = op["size"]
        elif op["op"] == "T":
            across, line = op["pt"]
            left = across - {"l": 0.0, "c": 0.5, "r": 1.0}[op["align"]] * op["width"]
            yield left, line - 0.22 * size
            yield left + op["width"], line + 0.74 * size


def _curve(ops: list[dict[str, Any]]) -> Iterator[Point]:
    for op in ops:
        if op["op"] == "b":
            for start in range(0, len(op["points"]) - 3, 3):
                yield from _bezier(op["points"][start : start + 4])


def _bezier(points: list[Point], parts: int = 24) -> Iterator[Point]:
    for part in range(parts + 1):
        line, t = points, part / parts
        while len(line) > 1:
            line = [(a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t) for a, b in pairwise(line)]
        yield line[0]
