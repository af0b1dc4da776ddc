"""Edges from a state to itself: hooks over its upper edge, each as high as its words, the first the highest."""

from __future__ import annotations

from collections.abc import Sequence

from fsm_agent.diagrams.readings import words
from fsm_agent.diagrams.text import columns
from fsm_agent.language import Language
from fsm_agent.player.shapes import COLUMN, HEAD, LINE, Box, Drawn, Line, Words, broken, down_head, short

FIRST = 26.0
"""From the left side of the state to the first hook."""
HOOK = 9.0
"""The width of a hook."""
NEXT = 16.0
"""From one hook to the next."""
BESIDE = 6.0
"""From a hook to its words."""
LOWEST = 16.0
"""From the state to the middle of the lowest words."""
MOST = 12
"""Columns of a line of words."""
COUNT = 4
"""Columns that are left for how often the edge was taken."""


def height_of(loops: Sequence[Drawn], lang: Language) -> float:
    """What they take above their state."""
    return LOWEST + sum(len(_words(each, lang)) * LINE for each in loops) if loops else 0


def width_of(loops: Sequence[Drawn], lang: Language) -> float:
    """How far their words reach, from the left side of the state."""
    return max((_x(place) + COLUMN * (_longest(each, lang) + COUNT) for place, each in enumerate(loops)), default=0)


def over(loops: Sequence[Drawn], box: Box, lang: Language) -> list[Line]:
    """The edges of one state."""
    found: list[Line] = []
    bottom = box.y - LOWEST + LINE / 2
    for place, each in reversed(list(enumerate(loops))):
        lines = _words(each, lang)
        height = LINE * len(lines)
        left, middle = box.x + FIRST + NEXT * place, bottom - height / 2
        arch = f"a{short(HOOK / 2)} {short(HOOK / 2)} 0 0 0 {short(-HOOK)} 0"
        path = f"M{short(left + HOOK)} {short(box.y)}V{short(middle + HOOK / 2)}{arch}V{short(box.y - HEAD + 1)}"
        said = Words(lines, box.x + _x(place), bottom - height + LINE - 3)
        found.append(Line(each.indices, each.row, path, down_head(left, box.y), said))
        bottom -= height
    return found


def _words(each: Drawn, lang: Language) -> tuple[str, ...]:
    return broken(words(each.row.label, lang), MOST)


def _longest(each: Drawn, lang: Language) -> int:
    return max(columns(line) for line in _words(each, lang))


def _x(place: int) -> float:
    return FIRST + NEXT * place + HOOK + BESIDE
