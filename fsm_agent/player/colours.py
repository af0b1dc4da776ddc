"""The player's colours, on light and on dark ground. The light ones are those of the drawings.

Text keeps a contrast of at least 4.5 to 1 against what it stands on; a test computes it from this module.
"""

from __future__ import annotations

from fsm_agent.diagrams import palette

COLOURS: dict[str, tuple[str, str]] = {
    "ground": (palette.GROUND, "#12161b"),
    "raised": ("#f7f9fb", "#1a2027"),
    "line": ("#c9d1da", "#3a4450"),
    "ink": (palette.INK, "#e8ecf1"),
    "quiet": (palette.QUIET, "#a9b4c0"),
    "state": (palette.STATE, "#242c35"),
    "now": ("#6b2d8f", "#d9b3f7"),
    "now-fill": ("#f6ecfc", "#33213f"),
    "stop": (palette.STOP, "#ffbd7a"),
    "stop-fill": (palette.STOP_FILL, "#3a2813"),
    "answer": (palette.ANSWER, "#86cbf5"),
    "answer-fill": (palette.ANSWER_FILL, "#12303f"),
}
"""By name: on light, on dark."""

TEXT_ON = (
    *((text, fill) for text in ("ink", "quiet") for fill in ("ground", "raised", "state", "now-fill", "stop-fill", "answer-fill")),
    *(("now", fill) for fill in ("ground", "raised", "now-fill")),
    *(("stop", fill) for fill in ("ground", "raised", "stop-fill")),
    *(("answer", fill) for fill in ("ground", "raised", "answer-fill")),
)
"""Every pair of a text's colour and the colour that it stands on."""


def variables() -> str:
    """The colours as custom properties of CSS, each for both grounds."""
    lines = [f"  --fsm-{name}: light-dark({light}, {dark});" for name, (light, dark) in COLOURS.items()]
    return "\n".join((".fsm-player {", *lines, "}", ""))
