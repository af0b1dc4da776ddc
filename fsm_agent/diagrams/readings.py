"""What guards read, in few words: ``errors 1/2``."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from fsm_agent.diagrams.text import one_line
from fsm_agent.guards import Guard, Reading
from fsm_agent.language import Language
from fsm_agent.machine import Taken
from fsm_agent.table import GUARD_REASONS, HALTED, Row

BETWEEN = " · "


@attrs.frozen
class Readings:
    """Puts the readings of one machine's guards into words."""

    guards: tuple[Guard, ...]
    lang: Language

    def shown(self, reading: Reading) -> str:
        """What it counts, its value and its limit."""
        label = next((guard.edge().label for guard in self.guards if guard.reason == reading.guard), reading.guard)
        return f"{words(label, self.lang)} {number(reading.value)}/{number(reading.limit)}"

    def of_guard(self, taken: Taken, reason: str | None) -> str:
        """The reading of the guard with this reason; empty where there is none."""
        return next((self.shown(reading) for reading in taken.readings if reading.guard == reason), "")

    def let_pass(self, row: Row, rows: Sequence[Row], taken: Sequence[Taken]) -> list[str]:
        """Of each guard that let the run pass: the reading that came closest to its limit.

        On an edge these are the guards that were asked before it; where a guard halts the run, those after it too, if they do not trip.
        """
        group = [other for other in rows if (other.source, other.trigger) == (row.source, row.trigger)]
        asked = [other.reason for other in group[: group.index(row)] if other.dest == HALTED]
        if row.reason in GUARD_REASONS:
            asked += [other.reason for other in group[group.index(row) + 1 :] if other.dest == HALTED]
        closest = (
            max((r for each in taken for r in each.readings if r.guard == reason and not r.trips), key=_share, default=None)
            for reason in asked
        )
        return [self.shown(reading) for reading in closest if reading is not None]

    def also_tripped(self, taken: Taken, reason: str | None) -> list[str]:
        """The guards that tripped on the edge ``taken`` beside the one that named the halt."""
        return [self.shown(reading) for reading in taken.readings if reading.trips and reading.guard != reason]


def words(label: str, lang: Language) -> str:
    """A label of the table or of a guard, in the language where the catalogue has it."""
    as_format = label.replace("{", "{{").replace("}", "}}")  # a label is no format string: its braces are its own
    return one_line(lang.say(as_format) if label else "", 40)


def number(value: float) -> str:
    """A count as a whole number, anything else with four digits that matter."""
    return str(int(value)) if abs(value) < 1e15 and value == int(value) else f"{value:.4g}"


def _share(reading: Reading) -> float:
    """How much of its limit it has reached."""
    return reading.value / reading.limit if reading.limit else reading.value
