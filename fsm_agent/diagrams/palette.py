"""The colours of the drawings: dark on light, told apart in grey print and by the colour blind, and never the only sign of anything.

Text keeps a contrast of at least 4.5 to 1 against what it stands on; a test computes it from this module.
"""

from __future__ import annotations

GROUND = "#ffffff"
"""Behind everything."""
INK = "#1f2933"
"""Names, and edges that were taken."""
QUIET = "#566070"
"""Readings, and edges that were not taken."""
STATE = "#eef2f7"
"""The fill of a state."""

STOP = "#8a3f00"
STOP_FILL = "#fff2dc"
"""A halt that a guard, a failure or a person made."""
ANSWER = "#00507a"
ANSWER_FILL = "#e2f1fa"
"""A halt with an answer."""

FIRST = "#6b2d8f"
SECOND = "#00666a"
"""Of two that are compared: what the first has more of, and what the second has."""

TEXT_ON = (
    *((text, ground) for text in (INK, QUIET) for ground in (GROUND, STATE, STOP_FILL, ANSWER_FILL)),
    *((STOP, ground) for ground in (GROUND, STOP_FILL)),
    *((ANSWER, ground) for ground in (GROUND, ANSWER_FILL)),
    *((text, GROUND) for text in (FIRST, SECOND)),
)
"""Every pair of a text's colour and the colour that it stands on."""


def of_halt(reason: str | None) -> tuple[str, str]:
    """The colour and the fill of a halt with this reason."""
    return (ANSWER, ANSWER_FILL) if reason == "final_answer" else (STOP, STOP_FILL)
