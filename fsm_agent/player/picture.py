"""The machine laid out for the player: the states one below the other, their halts beside them, and the ways back at the left.

It is laid out once, from the rows of the run's own machine; while the run is played only classes and numbers in it change. It is
narrow, so that it can be read on a telephone and beside the text on a screen:

- the edge to the next state goes straight down;
- an edge from a state to itself is a hook over the state;
- every other edge between states has a lane of its own at the left, the longer the further out;
- each edge into Halted ends at its reason, inside the one box that is Halted. From top to bottom is the order in which they are tried;
- edges that would look the same are drawn once.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from fsm_agent.diagrams.readings import words
from fsm_agent.diagrams.text import columns, one_line
from fsm_agent.language import Language
from fsm_agent.player import lanes, loops
from fsm_agent.player.shapes import COLUMN, HEAD, RADIUS, STATE_HEIGHT, STATE_WIDTH, Box, Drawn, Line, Words, down_head, right_head, short
from fsm_agent.table import HALTED, STATES, Row, State

MARGIN = 3.0
BAND = 44.0
"""Above the first state, for the start."""
BETWEEN = 46.0
"""At least so much between two states, for the words of the edge that joins them."""
TRUNK = 9.0
"""From a state to the line that leads to its halts."""
GAP = 21.0
"""From a state to the box of Halted, at least."""
CHIP_HEIGHT, CHIP_STEP = 20.0, 24.0
CHIP_COLUMNS = 22
CHIP_MORE = 27.0
"""What a reason's box is wider than its text: room at both ends, and for the mark of the edge just taken."""
PAD = 9.0


@attrs.frozen
class Picture:
    """The machine with everything at its place."""

    width: float
    height: float
    start: tuple[float, float]
    """The dot where a run starts."""
    first: str
    """The path from it to the first state."""
    states: dict[State, Box]
    """Halted among them."""
    lines: tuple[Line, ...]


def picture_of(rows: Sequence[Row], lang: Language) -> Picture:
    """Lay out the machine of these rows."""
    drawn = _drawn(rows)
    halts = {state: [each for each in drawn if each.row.source == state and each.row.dest == HALTED] for state in STATES}
    looping = {state: [each for each in drawn if each.row.source == each.row.dest == state] for state in STATES}
    straight = _straight(drawn)
    placed = [each for group in (*halts.values(), *looping.values(), straight) for each in group]
    others = lanes.lanes_of([each for each in drawn if each not in placed])
    left = MARGIN + lanes.width_of(others) + 4
    boxes, bottom = _boxes(left, halts, {state: loops.height_of(each, lang) for state, each in looping.items()})
    chip = max((columns(_reason(each.row)) for group in halts.values() for each in group), default=8) * COLUMN + CHIP_MORE
    reach = max(STATE_WIDTH + GAP, *(loops.width_of(each, lang) for each in looping.values()))
    halted = Box(left + reach, MARGIN, chip + 2 * PAD, bottom - MARGIN)
    lines = [*_down(straight, boxes, lang), *lanes.beside(others, boxes, lang)]
    for state, box in boxes.items():
        lines += loops.over(looping[state], box, lang)
        lines += _into_halted(halts[state], box, halted, chip)
    start = (left + 12, MARGIN + 6)
    first = f"M{short(start[0])} {short(start[1])}V{short(boxes[STATES[0]].y)}"
    return Picture(
        halted.x + halted.width + MARGIN,
        bottom + MARGIN,
        start,
        first,
        {**boxes, HALTED: halted},
        tuple(sorted(lines, key=lambda line: line.indices)),
    )


def _drawn(rows: Sequence[Row]) -> list[Drawn]:
    """The edges, in the order of the table; those that join the same with the same words, or the same reason, are one."""
    alike: dict[tuple[str, str, str], list[int]] = {}
    for i, row in enumerate(rows):
        alike.setdefault((row.source, row.dest, row.reason or row.label), []).append(i)
    return [Drawn(tuple(indices), rows[indices[0]]) for indices in alike.values()]


def _boxes(left: float, halts: dict[State, list[Drawn]], above: dict[State, float]) -> tuple[dict[State, Box], float]:
    """The states other than Halted, each beside the middle of its halts and below its loops, and where all ends."""
    boxes: dict[State, Box] = {}
    y = BAND
    for state in STATES:
        if state != HALTED:
            height = max(len(halts[state]) * CHIP_STEP, STATE_HEIGHT)
            lowest = max((box.y + STATE_HEIGHT + BETWEEN for box in boxes.values()), default=MARGIN + 12)
            top = max(y + (height - STATE_HEIGHT) / 2, lowest + above[state])
            boxes[state] = Box(left, top, STATE_WIDTH, STATE_HEIGHT)
            y = max(y + height, top + (STATE_HEIGHT + height) / 2) + CHIP_STEP / 3
    return boxes, y + PAD / 2


def _straight(drawn: Sequence[Drawn]) -> list[Drawn]:
    """Of each state, the first edge to the next."""
    found: dict[State, Drawn] = {}
    for each in drawn:
        row = each.row
        if row.dest != HALTED and STATES.index(row.dest) == STATES.index(row.source) + 1:
            found.setdefault(row.source, each)
    return list(found.values())


def _down(straight: Sequence[Drawn], boxes: dict[State, Box], lang: Language) -> list[Line]:
    """Down to the next state, the words at the right of it."""
    found: list[Line] = []
    for each in straight:
        row, box, dest = each.row, boxes[each.row.source], boxes[each.row.dest]
        x, top = box.x + 12, box.y + box.height
        path = f"M{short(x)} {short(top)}V{short(dest.y - HEAD + 1)}"
        said = Words((words(row.label, lang),), x + 7, top + BETWEEN / 2 - 3, below=True)
        found.append(Line(each.indices, row, path, down_head(x, dest.y), said))
    return found


def _into_halted(halts: Sequence[Drawn], box: Box, halted: Box, width: float) -> list[Line]:
    """From a state to the reasons of its halts: out to a trunk, along it, and in."""
    found: list[Line] = []
    first = box.middle - CHIP_STEP * len(halts) / 2
    for place, each in enumerate(halts):
        chip = Box(halted.x + PAD, first + CHIP_STEP * place + (CHIP_STEP - CHIP_HEIGHT) / 2, width, CHIP_HEIGHT)
        right, trunk, y = box.x + box.width, box.x + box.width + TRUNK, chip.middle
        turn = min(RADIUS, abs(y - box.middle) / 2) * (1 if y > box.middle else -1)
        bend = (
            f"H{short(trunk - abs(turn))}Q{short(trunk)} {short(box.middle)} {short(trunk)} {short(box.middle + turn)}"
            f"V{short(y - turn)}Q{short(trunk)} {short(y)} {short(trunk + abs(turn))} {short(y)}"
        )
        path = f"M{short(right)} {short(box.middle)}{bend if turn else ''}H{short(chip.x - HEAD + 1)}"
        said = Words((_reason(each.row),), chip.x + 8, y + 4)
        found.append(Line(each.indices, each.row, path, right_head(chip.x, y), said, chip))
    return found


def _reason(row: Row) -> str:
    return one_line(row.reason or "", CHIP_COLUMNS)
