"""The panel below the lines of a run: the machine with its current state, how near each guard is to its limit, and what is going on."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from rich.cells import cell_len
from rich.text import Text

from fsm_agent.diagrams.readings import number, words
from fsm_agent.guards import Deadline, Reading
from fsm_agent.language import Language
from fsm_agent.machine import Run
from fsm_agent.stepper.screen import fitted, machine_line
from fsm_agent.stepper.wrapping import wrapped
from fsm_agent.text import printable

BAR = 8
"""Cells of a bar, without its brackets."""
NEAR = 0.75
"""From this share of its limit on, a guard is near to it."""
ROOMY_ROWS = 16
"""From so many rows on, each guard has a bar."""
MOST_STREAMED = 6
"""Rows for the text that is streamed."""


@attrs.frozen
class Gauge:
    """What a guard read last."""

    label: str
    value: int | float
    limit: int | float
    near: bool
    """It trips, warns, or is near to its limit."""

    @property
    def shown(self) -> str:
        return f"{self.label} {number(self.value)}/{number(self.limit)}"

    @property
    def widest(self) -> int:
        """Cells that it may come to need, so that columns stay where they are."""
        return max(cell_len(self.shown), cell_len(f"{self.label} {number(self.limit)}/{number(self.limit)}"))

    @property
    def bar(self) -> str:
        """A bar of signs that any terminal has."""
        share = self.value / self.limit if self.limit > 0 else 1.0
        full = min(max(int(BAR * share), 1 if self.value > 0 else 0), BAR)
        return f"[{'#' * full}{'-' * (BAR - full)}]"


def gauges_of(run: Run, lang: Language) -> tuple[Gauge, ...]:
    """What each guard would read now."""
    return tuple(
        _gauge(guard.judge(memory), guard.edge().label, lang) for guard, memory in zip(run.wiring.guards, run.memories, strict=True)
    )


def _gauge(reading: Reading, label: str, lang: Language) -> Gauge:
    near = reading.trips or reading.warns or (reading.limit > 1 and reading.value >= NEAR * reading.limit)
    value = int(reading.value) if reading.guard == Deadline.reason else reading.value
    return Gauge(printable(words(label, lang)), value, reading.limit, near)


@attrs.frozen
class Panel:
    """What the panel shows."""

    state: str
    reason: str
    step: str
    gauges: tuple[Gauge, ...]
    activity: str
    """What is waited for."""
    streamed: str = ""
    """The end of what the model has said of its reply."""

    def lines(self, width: int, height: int) -> list[Text]:
        """At most ``height`` lines, none wider than ``width`` cells. The machine is the last to go."""
        head = [_head(self.state, self.reason, self.step, width)]
        bars = _bars(self.gauges, width) if height >= ROOMY_ROWS else _joined(self.gauges, width)
        below = [fitted(Text(self.activity, "italic"), width)] if self.activity else []
        rest = [*bars, *below]
        room = min(MOST_STREAMED, height - len(head) - len(rest) - 1)
        if self.streamed.strip() and room > 0:
            rest += _tail(self.streamed, width, room)
        return [*head, *rest][: max(height, 1)]


def _head(state: str, reason: str, step: str, width: int) -> Text:
    """The machine, and at the right the step, where there is room for it."""
    line = machine_line(state, reason, width)
    space = width - cell_len(line.plain) - cell_len(step)
    return fitted(Text.assemble(line, " " * space, step) if space >= 2 else line, width)


def _bars(gauges: Sequence[Gauge], width: int) -> list[Text]:
    """A bar for each guard, in as many columns as there is room for."""
    if not gauges:
        return []
    cell = max(gauge.widest for gauge in gauges) + BAR + 3
    columns = max((width + 2) // (cell + 2), 1)
    rows = -(-len(gauges) // columns)
    columns = -(-len(gauges) // rows)  # the same number of rows, filled evenly
    lines = []
    for first in range(0, len(gauges), columns):
        line = Text()
        for gauge in gauges[first : first + columns]:
            if line.plain:
                line.append("  ")
            line.append(gauge.bar, "bold red" if gauge.near else "dim")
            line.append(f" {gauge.shown}" + " " * (cell - BAR - 3 - cell_len(gauge.shown)), "bold red" if gauge.near else "")
        lines.append(fitted(line, width))
    return lines


def _joined(gauges: Sequence[Gauge], width: int) -> list[Text]:
    """One line of the guards that have something to tell, the nearest to its limit first."""
    telling = sorted((gauge for gauge in gauges if gauge.value > 0), key=lambda gauge: -gauge.value / gauge.limit if gauge.limit > 0 else 0)
    if not telling:
        return []
    return [fitted(Text(" · ").join(Text(gauge.shown, "bold red" if gauge.near else "dim") for gauge in telling), width)]


def _tail(text: str, width: int, rows: int) -> list[Text]:
    """The last ``rows`` rows of a text."""
    end = text[-(width * rows * 2) :].replace("\t", "    ")
    pieces = [piece for line in end.split("\n") for piece in wrapped(Text(line), width)]
    return [fitted(piece, width) for piece in pieces[-rows:]]
