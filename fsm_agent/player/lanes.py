"""Edges that do not lead to the next state: along lanes beside the states, none of which crosses another."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from fsm_agent.diagrams.readings import words
from fsm_agent.language import Language
from fsm_agent.player.shapes import HEAD, RADIUS, Box, Drawn, Line, Words, right_head, short
from fsm_agent.table import STATES, Row, State

LANE = 16.0
"""From one lane to the next."""


@attrs.frozen
class Lane:
    """An edge and how far out it runs."""

    drawn: Drawn
    top: int
    """The place of the upper of its two states."""
    bottom: int
    out: int
    """From 0."""


def lanes_of(edges: Sequence[Drawn]) -> list[Lane]:
    """The lanes of these edges. Those of which neither is beside the other share a place; a longer one is outside."""
    found: list[Lane] = []
    for each in sorted(edges, key=lambda each: (_length(each.row), -each.indices[0])):
        top, bottom = sorted((STATES.index(each.row.source), STATES.index(each.row.dest)))
        out = max((lane.out + 1 for lane in found if top < lane.bottom and lane.top < bottom), default=0)
        found.append(Lane(each, top, bottom, out))
    return found


def _length(row: Row) -> int:
    return abs(STATES.index(row.source) - STATES.index(row.dest))


def width_of(lanes: Sequence[Lane]) -> float:
    """What they take beside the states."""
    return LANE * (max(lane.out for lane in lanes) + 1) + 8 if lanes else 0


def beside(lanes: Sequence[Lane], boxes: dict[State, Box], lang: Language) -> list[Line]:
    """The edges. The further out a lane is, the further its ends are from those of the lanes within it, so that none cross."""
    found: list[Line] = []
    for lane in lanes:
        row = lane.drawn.row
        ends = {lane.top: _port(lane, lanes, boxes, at_top=True), lane.bottom: _port(lane, lanes, boxes, at_top=False)}
        source, dest = ends[STATES.index(row.source)], ends[STATES.index(row.dest)]
        right = boxes[row.source].x
        x = right - 13 - LANE * lane.out
        turn = RADIUS if dest > source else -RADIUS
        path = (
            f"M{short(right)} {short(source)}H{short(x + RADIUS)}Q{short(x)} {short(source)} {short(x)} {short(source + turn)}"
            f"V{short(dest - turn)}Q{short(x)} {short(dest)} {short(x + RADIUS)} {short(dest)}H{short(right - HEAD + 1)}"
        )
        said = Words((words(row.label, lang),), x - 4, (source + dest) / 2, "middle", upright=True)
        found.append(Line(lane.drawn.indices, row, path, right_head(right, dest), said))
    return found


def _port(lane: Lane, lanes: Sequence[Lane], boxes: dict[State, Box], *, at_top: bool) -> float:
    """At which height a lane meets one of its states. From top to bottom: those that come from above, then those that go down."""
    state = lane.top if at_top else lane.bottom
    up = [other for other in lanes if other.bottom == state]
    down = [other for other in reversed(lanes) if other.top == state]
    box = boxes[STATES[state]]
    return box.y + box.height * ([*up, *down].index(lane) + 1) / (len(up) + len(down) + 1)
