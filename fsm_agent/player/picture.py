"""The machine laid out for the player: the states one below the other, their halts beside them, and the ways back at the left.

It is laid out once, from the rows of the run's own machine; while the run is played only classes and numbers in it change. It is
narrow, so that it can be read on a telephone and beside the text on a screen:

- the edge to the next state goes straight down;
- every other edge between states has a lane of its own at the left, the longer the further out;
- each edge into Halted ends at its reason, inside the one box that is Halted. From top to bottom is the order in which they are tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import attrs

from fsm_agent.diagrams.readings import words
from fsm_agent.diagrams.text import columns, one_line
from fsm_agent.language import Language
from fsm_agent.table import HALTED, STATES, Row, State

COLUMN = 6.2
"""The width of a column of text, in the picture's units, about one CSS pixel each."""
MARGIN = 3.0
BAND = 44.0
"""Above the first state, for the start and for loops."""
LANE = 16.0
STATE_WIDTH, STATE_HEIGHT = 92.0, 44.0
BETWEEN = 46.0
"""At least so much between two states, for the words of the edge that joins them."""
TRUNK = 9.0
"""From a state to the line that leads to its halts."""
GAP = 21.0
"""From a state to the box of Halted."""
CHIP_HEIGHT, CHIP_STEP = 20.0, 24.0
CHIP_COLUMNS = 22
CHIP_MORE = 27.0
"""What a reason's box is wider than its text: room at both ends, and for the mark of the edge just taken."""
PAD = 9.0
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
    """A line of text and its place."""

    text: str
    x: float
    y: float
    anchor: Literal["start", "middle", "end"] = "start"
    upright: bool = False
    """It stands on its end and is read from bottom to top."""
    below: float | None = None
    """Where a second line begins, which tells how often; None: it is told at the end of this one."""


@attrs.frozen
class Line:
    """An edge."""

    index: int
    """Of its row."""
    row: Row
    path: str
    head: str
    """The path of the arrow's head."""
    words: Words
    chip: Box | None = None
    """Of an edge into Halted: where its reason stands."""


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


@attrs.frozen
class _Lane:
    """An edge that does not lead to the next state."""

    index: int
    row: Row
    top: int
    """The place of the upper of its two states."""
    bottom: int


def picture_of(rows: Sequence[Row], lang: Language) -> Picture:
    """Lay out the machine of these rows."""
    halts = {state: [(i, row) for i, row in enumerate(rows) if row.source == state and row.dest == HALTED] for state in STATES}
    lanes = _lanes(rows)
    left = MARGIN + (LANE * len(lanes) + 8 if lanes else 0) + 4
    boxes, bottom = _boxes(left, halts)
    chip = max((columns(_reason(row)) for each in halts.values() for _, row in each), default=8) * COLUMN + CHIP_MORE
    halted = Box(left + STATE_WIDTH + GAP, MARGIN, chip + 2 * PAD, bottom - MARGIN)
    lines = [*_straight(rows, boxes, lang), *_loops(rows, boxes, lang), *_beside(lanes, boxes, lang)]
    for state, each in halts.items():
        lines += _into_halted(each, boxes[state], halted, chip) if each else []
    start = (left + 12, MARGIN + 6)
    first = f"M{_n(start[0])} {_n(start[1])}V{_n(boxes[STATES[0]].y)}"
    return Picture(
        halted.x + halted.width + MARGIN,
        bottom + MARGIN,
        start,
        first,
        {**boxes, HALTED: halted},
        tuple(sorted(lines, key=lambda line: line.index)),
    )


def down_head(x: float, y: float) -> str:
    """The head of an arrow that points down to here."""
    return f"M{_n(x)} {_n(y)}l{_n(-HEAD / 2)} {_n(-HEAD)}h{_n(HEAD)}z"


def _right_head(x: float, y: float) -> str:
    return f"M{_n(x)} {_n(y)}l{_n(-HEAD)} {_n(-HEAD / 2)}v{_n(HEAD)}z"


def _boxes(left: float, halts: dict[State, list[tuple[int, Row]]]) -> tuple[dict[State, Box], float]:
    """The states other than Halted, each beside the middle of its halts, and where all ends."""
    boxes: dict[State, Box] = {}
    y = BAND
    for state in STATES:
        if state != HALTED:
            height = max(len(halts[state]) * CHIP_STEP, STATE_HEIGHT)
            top = max(y + (height - STATE_HEIGHT) / 2, max((box.y + STATE_HEIGHT + BETWEEN for box in boxes.values()), default=0))
            boxes[state] = Box(left, top, STATE_WIDTH, STATE_HEIGHT)
            y = max(y + height, top + (STATE_HEIGHT + height) / 2) + CHIP_STEP / 3
    return boxes, y + PAD / 2


def _is_straight(row: Row) -> bool:
    return row.dest != HALTED and STATES.index(row.dest) == STATES.index(row.source) + 1


def _straight(rows: Sequence[Row], boxes: dict[State, Box], lang: Language) -> list[Line]:
    """Down to the next state, the words at the right of it. The table has one such edge a state; others would stand beside it."""
    found: list[Line] = []
    for i, row in enumerate(rows):
        if _is_straight(row):
            before = sum(_is_straight(other) and other.source == row.source for other in rows[:i])
            x, box, dest = boxes[row.source].x + 12 + 24 * before, boxes[row.source], boxes[row.dest]
            top = box.y + box.height
            path = f"M{_n(x)} {_n(top)}V{_n(dest.y - HEAD + 1)}"
            said = Words(words(row.label, lang), x + 7, (top + dest.y) / 2 - 3 + 26 * before, below=x + 7)
            found.append(Line(i, row, path, down_head(x, dest.y), said))
    return found


def _loops(rows: Sequence[Row], boxes: dict[State, Box], lang: Language) -> list[Line]:
    """From a state to itself: over its upper edge, the words above it."""
    found: list[Line] = []
    for i, row in enumerate(rows):
        if row.source == row.dest:
            before = sum(other.source == other.dest == row.source for other in rows[:i])
            x, y = boxes[row.source].x + 34 + 30 * before, boxes[row.source].y
            said = Words(words(row.label, lang), boxes[row.source].x + STATE_WIDTH + 14, y - 20 - 12 * before, "end", below=x + 24)
            path = f"M{_n(x + 20)} {_n(y)}v-5a10 10 0 0 0 -20 0V{_n(y - HEAD + 1)}"
            found.append(Line(i, row, path, down_head(x, y), said))
    return found


def _lanes(rows: Sequence[Row]) -> list[_Lane]:
    """The edges that need a lane, the innermost first."""
    places = {state: i for i, state in enumerate(STATES)}
    lanes = [
        _Lane(i, row, *sorted((places[row.source], places[row.dest])))
        for i, row in enumerate(rows)
        if row.dest not in {HALTED, row.source} and not _is_straight(row)
    ]
    return sorted(lanes, key=lambda lane: (lane.bottom - lane.top, -lane.index))


def _beside(lanes: Sequence[_Lane], boxes: dict[State, Box], lang: Language) -> list[Line]:
    """Along the lanes. The further out a lane is, the further its ends are from those of the lanes within it, so that none cross."""
    found: list[Line] = []
    for out, lane in enumerate(lanes):
        ends = {lane.top: _port(lane, lanes, boxes, at_top=True), lane.bottom: _port(lane, lanes, boxes, at_top=False)}
        source, dest = ends[STATES.index(lane.row.source)], ends[STATES.index(lane.row.dest)]
        right = boxes[lane.row.source].x
        x = right - 13 - LANE * out
        turn = RADIUS if dest > source else -RADIUS
        path = (
            f"M{_n(right)} {_n(source)}H{_n(x + RADIUS)}Q{_n(x)} {_n(source)} {_n(x)} {_n(source + turn)}"
            f"V{_n(dest - turn)}Q{_n(x)} {_n(dest)} {_n(x + RADIUS)} {_n(dest)}H{_n(right - HEAD + 1)}"
        )
        said = Words(words(lane.row.label, lang), x - 4, (source + dest) / 2, "middle", upright=True)
        found.append(Line(lane.index, lane.row, path, _right_head(right, dest), said))
    return found


def _port(lane: _Lane, lanes: Sequence[_Lane], boxes: dict[State, Box], *, at_top: bool) -> float:
    """At which height a lane meets one of its states. From top to bottom: those that come from above, then those that go down."""
    state = lane.top if at_top else lane.bottom
    up = [other for other in lanes if other.bottom == state]
    down = [other for other in reversed(lanes) if other.top == state]
    box = boxes[STATES[state]]
    return box.y + box.height * ([*up, *down].index(lane) + 1) / (len(up) + len(down) + 1)


def _into_halted(halts: Sequence[tuple[int, Row]], box: Box, halted: Box, width: float) -> list[Line]:
    """From a state to the reasons of its halts: out to a trunk, along it, and in."""
    found: list[Line] = []
    first = box.middle - CHIP_STEP * len(halts) / 2
    for place, (i, row) in enumerate(halts):
        chip = Box(halted.x + PAD, first + CHIP_STEP * place + (CHIP_STEP - CHIP_HEIGHT) / 2, width, CHIP_HEIGHT)
        right, trunk, y = box.x + box.width, box.x + box.width + TRUNK, chip.middle
        turn = min(RADIUS, abs(y - box.middle) / 2) * (1 if y > box.middle else -1)
        bend = (
            f"H{_n(trunk - abs(turn))}Q{_n(trunk)} {_n(box.middle)} {_n(trunk)} {_n(box.middle + turn)}"
            f"V{_n(y - turn)}Q{_n(trunk)} {_n(y)} {_n(trunk + abs(turn))} {_n(y)}"
        )
        path = f"M{_n(right)} {_n(box.middle)}{bend if turn else ''}H{_n(chip.x - HEAD + 1)}"
        said = Words(_reason(row), chip.x + 8, y + 4)
        found.append(Line(i, row, path, _right_head(chip.x, y), said, chip))
    return found


def _reason(row: Row) -> str:
    return one_line(row.reason or "", CHIP_COLUMNS)


def _n(value: float) -> str:
    """A coordinate, short."""
    return f"{round(value, 1):g}"
