"""What the picture of a machine is made of: boxes, lines of text, edges; and the paths of their arrows."""

from __future__ import annotations

from typing import Literal

import attrs

from fsm_agent.diagrams.text import columns
from fsm_agent.table import Row

COLUMN = 6.2
"""The width of a column of text, in the picture's units, about one CSS pixel each."""
LINE = 13.0
"""The height of a line of text."""
STATE_WIDTH, STATE_HEIGHT = 92.0, 44.0
RADIUS = 6.0
HEAD = 7.0


@attrs.frozen
class Box:
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


@attrs.frozen
class Words:
    """A text and its place."""

    lines: tuple[str, ...]
    x: float
    y: float
    """Of the first line."""
    anchor: Literal["start", "middle", "end"] = "start"
    upright: bool = False
    """It stands on its end and is read from bottom to top."""
    below: bool = False
    """How often is told in a line of its own; else at the end of the last."""


@attrs.frozen
class Line:
    """An edge. Rows that would be drawn alike share one."""

    indices: tuple[int, ...]
    """Of its rows."""
    row: Row
    """The first of them."""
    path: str
    head: str
    """The path of the arrow's head."""
    words: Words
    chip: Box | None = None
    """Of an edge into Halted: where its reason stands."""


@attrs.frozen
class Drawn:
    """Rows that are drawn as one."""

    indices: tuple[int, ...]
    row: Row


def down_head(x: float, y: float) -> str:
    """The head of an arrow that points down to here."""
    return f"M{short(x)} {short(y)}l{short(-HEAD / 2)} {short(-HEAD)}h{short(HEAD)}z"


def right_head(x: float, y: float) -> str:
    """The head of an arrow that points to the right."""
    return f"M{short(x)} {short(y)}l{short(-HEAD)} {short(-HEAD / 2)}v{short(HEAD)}z"


def broken(text: str, most: int) -> tuple[str, ...]:
    """``text`` in one line, or in two of about the same length where it has more than so many columns."""
    spaces = [place for place, char in enumerate(text) if char == " "]
    if columns(text) <= most or not spaces:
        return (text,)
    place = min(spaces, key=lambda space: max(columns(text[:space]), columns(text[space + 1 :])))
    return text[:place], text[place + 1 :]


def short(value: float) -> str:
    """A coordinate."""
    return f"{round(value, 1):g}"
