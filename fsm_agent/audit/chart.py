"""Sweeps as a picture: for each value of a limit, what its guard saves and, below it, what it kills. Needs the extra ``charts``.

Groups differ by colour, marker and dash, so that the picture can be read in grey and by people who do not see all colours.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from itertools import cycle
from textwrap import wrap
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from fsm_agent.audit.audit import Audit, SweptLimit
from fsm_agent.audit.figures import POOLED
from fsm_agent.audit.tables import GuardRow
from fsm_agent.text import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("svg", "png")
NAME_SHOWN = 28
"""Characters of a group's name that the legend has room for."""

_FOOT_PER_INCH = 16
"""Characters of the lines below the picture that an inch has room for."""
_NAMED = 4
"""Groups without a line that are named."""

_INK = "#1a1a1a"
_STYLES: tuple[tuple[str, str, Any], ...] = (
    ("#0072b2", "o", "-"),
    ("#d55e00", "s", "--"),
    ("#007a5a", "^", "-."),
    ("#9a5b8a", "D", ":"),
    ("#8a6d00", "v", (0, (6, 1))),
    ("#3a7ca5", "P", (0, (3, 1, 1, 1))),
)
"""Colour, marker and dash of a group: Okabe and Ito's palette, darkened where it stood too weakly on white."""
_PANELS = (("calls_saved", "failed runs' model calls saved, %"), ("false_kills", "successful runs killed, %"))
_WARNING = "Most savings come from weak models: go by the line of runs like yours, not by that of all runs."


class ChartError(ValueError):
    """A chart that cannot be made: why, and how to mend it, in one line."""


def chart(audit: Audit, form: str) -> bytes:
    """The sweeps of the audit as a picture, ``svg`` or ``png``. Raises ``ChartError`` where there is none, or no matplotlib."""
    if not audit.sweeps:
        raise ChartError("a chart shows a sweep; give one, such as --sweep max_errors=1..6")
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise ChartError("charts are drawn by matplotlib; install it with: pip install 'fsm-agent[charts]'") from None
    # The salt makes the SVG's ids the same every time; its text stays text.
    with mpl.rc_context({"svg.hashsalt": "fsm_agent", "svg.fonttype": "none", "text.usetex": False}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # a group's name may be in any script
        figure = Figure(figsize=(max(4.6 * len(audit.sweeps), 6.4) + 1.6, 6.2), layout="constrained", facecolor="white")
        _draw(figure, audit)
        made = io.BytesIO()
        title = f"{', '.join(sweep.limit for sweep in audit.sweeps)}: what each value saves and kills"
        figure.savefig(made, format=form, dpi=144, metadata={"Title": title, **({"Date": None} if form == "svg" else {"Software": None})})
    return _described(made.getvalue(), audit) if form == "svg" else made.getvalue()


def _draw(figure: Figure, audit: Audit) -> None:
    empty = _without_outcomes(audit)
    drawn = tuple(name for name in audit.group_names if name not in empty)
    names = (*drawn, POOLED) if len(audit.group_names) > 1 else drawn or (POOLED,)
    panels: Any = figure.subplots(2, len(audit.sweeps), sharex="col", sharey="row", squeeze=False)
    lines: list[Any] = []
    for column, sweep in enumerate(audit.sweeps):
        for row, (figure_name, label) in enumerate(_PANELS):
            axes = panels[row][column]
            lines = [_line(axes, sweep, name, figure_name, style) for name, style in zip(names, _styles(names), strict=True)]
            _dress(axes, label if column == 0 else "")
        panels[0][column].set_title(_plain(_title(sweep)), color=_INK, fontsize=11)
        panels[1][column].set_xlabel(_plain(sweep.limit), color=_INK)
        panels[1][column].set_xticks(range(len(sweep.points)), [_plain(_value(point.value)) for point in sweep.points])
    for row in panels:  # the panels of a row have one scale
        row[0].set_ylim(0, max(row[0].dataLim.y1, *(axes.dataLim.y1 for axes in row), 0.1) * 1.05)
    labels = [_plain("all runs" if name == POOLED else _short(name)) for name in names]
    figure.legend(lines, labels, loc="outside right upper", frameon=False, labelcolor=_INK)
    note = f"{audit.pooled.runs:,} runs: {audit.pooled.successes:,} succeeded, {audit.pooled.failures:,} failed."
    said = [note if len(names) == 1 else f"{note} {_WARNING}", _beyond(audit), _left_out(empty)]
    room = int(_FOOT_PER_INCH * figure.get_figwidth())
    figure.supxlabel("\n".join(_plain(line) for text in said for line in wrap(text, room)), fontsize=8, color=_INK)


def _without_outcomes(audit: Audit) -> tuple[str, ...]:
    """Groups of which no run is known to have succeeded or failed: there is no line of theirs."""
    return tuple(row.group for row in audit.base.groups if row.group != POOLED and not row.successes and not row.failures)


def _left_out(groups: Sequence[str]) -> str:
    if not groups:
        return ""
    more = f" and {len(groups) - _NAMED} more" if len(groups) > _NAMED else ""
    return f"Left out, since no run is known to have succeeded or failed: {', '.join(_short(name) for name in groups[:_NAMED])}{more}."


def _beyond(audit: Audit) -> str:
    """How many runs are let go on beyond their recording, from the value that lets the fewest do so to that of the most."""
    rows = [row for sweep in audit.sweeps for point in sweep.points if (row := point.alone(POOLED)) is not None]
    counts = [row.let_beyond.count for row in rows]
    if not any(counts):
        return ""
    span = f"{min(counts):,}" if min(counts) == max(counts) else f"{min(counts):,} to {max(counts):,}"
    return (
        f"Beyond the recording: {span} of the runs are not halted where their own system stopped them; what would have come is not known."
    )


def _styles(names: Sequence[str]) -> list[tuple[str, str, Any, float]]:
    """All runs together are drawn heavy and black."""
    styles = cycle(_STYLES)
    return [(_INK, "", "-", 2.6) if name == POOLED else (*next(styles), 1.5) for name in names]


def _line(axes: Axes, sweep: SweptLimit, group: str, figure_name: str, style: tuple[str, str, Any, float]) -> Any:
    colour, marker, dash, width = style
    shares = [_percent(point.alone(group), figure_name) for point in sweep.points]
    look = {"color": colour, "marker": marker or None, "markersize": 6, "linestyle": dash, "linewidth": width}
    (line,) = axes.plot(range(len(shares)), shares, clip_on=False, zorder=3, **look)  # the marks at 0 are drawn whole
    return line


def _percent(row: GuardRow | None, figure_name: str) -> float:
    share = None if row is None else getattr(row, figure_name).share
    return float("nan") if share is None else 100 * share


def _dress(axes: Axes, label: str) -> None:
    axes.set_ylabel(label, color=_INK)
    axes.grid(axis="y", color="#d0d0d0", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=_INK)


def _title(sweep: SweptLimit) -> str:
    guard = next((point.guard for point in sweep.points if point.guard), "")
    return f"{guard} alone, at each {sweep.limit}"


def _value(value: object) -> str:
    return "off" if value is None else str(value)


def _short(name: str) -> str:
    """The end of a long name, such as a file's."""
    return name if len(name) <= NAME_SHOWN else f"…{name[1 - NAME_SHOWN :]}"


def _plain(text: str) -> str:
    """Text that matplotlib takes for nothing but text: no formula, and no name that a legend leaves out."""
    text = printable(text).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def _described(svg: bytes, audit: Audit) -> bytes:
    """The SVG with a description, for those who cannot see it: the figures of all runs."""
    said = []
    for sweep in audit.sweeps:
        rows = ((point.value, point.alone(POOLED)) for point in sweep.points)
        said += [
            f"{sweep.limit}={_value(value)}: saves {row.calls_saved}, kills {row.false_kills}, beyond the recording {row.let_beyond}"
            for value, row in rows
            if row is not None
        ]
    description = escape(printable(f"For all runs together. {'; '.join(said)}."))
    text = svg.decode()
    return text.replace("</title>", f"</title>\n <desc>{description}</desc>", 1).replace("<svg ", '<svg role="img" ', 1).encode()
