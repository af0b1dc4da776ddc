"""The small graph that every drawing is made of: what to show, in order, and nothing of how it looks.

The table and a run are read into it once; Graphviz and Mermaid render it.
"""

from __future__ import annotations

from typing import Literal

import attrs

from fsm_agent.table import Row

EdgeKind = Literal["row", "taken", "halting", "untaken", "more", "less"]

Tone = Literal["name", "steps", "label", "reading", "evidence", "title"]
"""What a line of text is: a state's or halt's name; step numbers; an edge in words; what a guard read; what a halt rests on; a title
with notes under it."""


@attrs.frozen
class Line:
    """One line of text in a node or beside an edge. It holds no line break and no control character."""

    text: str
    tone: Tone = "label"


@attrs.frozen
class Node:
    """A box, or the dot where a run starts."""

    id: str
    """Letters, digits and underscores."""
    kind: Literal["start", "state", "halted", "folded"]
    """``folded``: several steps of a run in one box."""
    column: int
    """Its place in the reading order, left to right."""
    lines: tuple[Line, ...] = ()
    reason: str | None = None
    """Of a halt."""
    current: bool = False
    """A run that did not end is here."""
    row: int = 0
    """Of a run unrolled: its row, from top to bottom."""


@attrs.frozen
class Edge:
    """An arrow. Several may join the same two nodes."""

    id: str
    """The row's id; of the arrow from the start, ``start``."""
    source: str
    """A node's id."""
    dest: str
    kind: EdgeKind
    """``row``: of the table, apart from any run. Of a path: taken; taken, and the run's last; not taken. Of a comparison: taken more, or
    less, by the first than by the second."""
    lines: tuple[Line, ...] = ()
    times: int = 0
    """How often it was taken."""
    width: float | None = None
    """Of the line, in points; None: what its kind has."""


@attrs.frozen
class Key:
    """An entry of a legend."""

    sample: Literal["state", "folded", "answer", "stop", "row", "taken", "more", "less", "untaken"]
    """What a sample is shown of."""
    name: str
    """The sample in words."""
    text: str
    """What it means."""


@attrs.frozen
class Graph:
    """A drawing."""

    name: Literal["machine", "path", "unrolled", "heat", "diff"]
    title: str
    """One line that can stand alone."""
    description: str
    """The drawing in words, for those who do not see it."""
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    notes: tuple[str, ...] = ()
    """How to read it: lines under the title."""
    keys: tuple[Key, ...] = ()
    """The legend."""

    def node(self, node_id: str) -> Node:
        """The node with this id."""
        return next(node for node in self.nodes if node.id == node_id)


@attrs.frozen
class View:
    """What a renderer is given: the graph, and the same as lines of text."""

    graph: Graph
    text: str
    """A timeline of the run, or a listing of the table."""
    rows: tuple[Row, ...] = ()
    """Of the machine: the rows that were drawn."""


START = "start"
"""The id of the dot where a run starts, and of the arrow from it."""


def halted_id(reasons: list[str], reason: str) -> str:
    """The id of the node ``Halted(reason)``, told apart from those of the other ``reasons`` whatever they are."""
    plain = "".join(char if char.isascii() and char.isalnum() else "_" for char in reason)
    clash = [each for each in reasons if "".join(char if char.isascii() and char.isalnum() else "_" for char in each) == plain]
    return f"Halted_{plain}" + (f"_{clash.index(reason) + 1}" if len(clash) > 1 else "")
