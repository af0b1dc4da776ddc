"""The colours of the drawings: told apart in grey print and by the colour blind, and never the only sign of anything.

Text keeps a contrast of at least 4.5 to 1 against what it stands on, in each theme; a test computes it from this module.
"""

from __future__ import annotations

import attrs

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


@attrs.frozen
class Theme:
    """The colours of a drawing. The fields are the constants of this module, which are those of the light theme."""

    ground: str = GROUND
    ink: str = INK
    quiet: str = QUIET
    state: str = STATE
    stop: str = STOP
    stop_fill: str = STOP_FILL
    answer: str = ANSWER
    answer_fill: str = ANSWER_FILL
    first: str = FIRST
    second: str = SECOND

    @property
    def text_on(self) -> tuple[tuple[str, str], ...]:
        """Every pair of a text's colour and the colour that it stands on."""
        return (
            *((text, ground) for text in (self.ink, self.quiet) for ground in (self.ground, self.state, self.stop_fill, self.answer_fill)),
            *((self.stop, ground) for ground in (self.ground, self.stop_fill)),
            *((self.answer, ground) for ground in (self.ground, self.answer_fill)),
            *((text, self.ground) for text in (self.first, self.second)),
        )

    def of_halt(self, reason: str | None) -> tuple[str, str]:
        """The colour and the fill of a halt with this reason."""
        return (self.answer, self.answer_fill) if reason == "final_answer" else (self.stop, self.stop_fill)


LIGHT = Theme()
DARK = Theme(
    ground="#14181d",
    ink="#e6eaef",
    quiet="#a9b4c0",
    state="#263241",
    stop="#f2ab6d",
    stop_fill="#3a2a14",
    answer="#7cc4f0",
    answer_fill="#12303f",
    first="#cda8ec",
    second="#5fcaca",
)
PRINT = Theme(
    ground="#ffffff",
    ink="#000000",
    quiet="#404040",
    state="#ffffff",
    stop="#000000",
    stop_fill="#e6e6e6",
    answer="#000000",
    answer_fill="#ffffff",
    first="#000000",
    second="#404040",
)
"""Black on white: a halt without an answer is grey, whatever the printer makes of colours."""

THEMES = {"light": LIGHT, "dark": DARK, "print": PRINT}


def theme_of(name: str) -> Theme:
    """The theme of this name. Raises ``ValueError``."""
    if name not in THEMES:
        raise ValueError(f"the theme {name!r} is not known; known are {', '.join(THEMES)}")
    return THEMES[name]


TEXT_ON = LIGHT.text_on
"""Of the light theme."""


def of_halt(reason: str | None) -> tuple[str, str]:
    """As ``LIGHT.of_halt``."""
    return LIGHT.of_halt(reason)
