"""What the tables of an audit are made of: a count and of how many, and the middle of many numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

import attrs

POOLED = "all"
"""The group that holds every run."""
ALL_GUARDS = "all guards"
"""The row of a plan's guards together, next to those of each alone."""
ANY_GUARD = "any guard"


@attrs.frozen
class Share:
    """So many of so many."""

    count: int
    of: int

    @property
    def share(self) -> float | None:
        """From 0 to 1; None: of nothing."""
        return self.count / self.of if self.of else None

    def __str__(self) -> str:
        return "-" if not self.of else f"{self.count} ({percent(self.count / self.of)})"


def percent(share: float) -> str:
    """A share as people read it: one digit after the point, two where it is small, so that little is not nothing."""
    return f"{share:.1%}" if share == 0 or share >= 0.01 else f"{share:.2%}"


def middle(numbers: Iterable[float]) -> float | None:
    """The median; None: of nothing."""
    listed = list(numbers)
    return float(median(listed)) if listed else None


def shown(number: float | None) -> str:
    """A number as people read it; ``?`` where it is not known."""
    return "?" if number is None else f"{number:,.10g}"


def groups_of(names: Iterable[str]) -> Sequence[str]:
    """The groups in order, the pooled one last."""
    return (*sorted(set(names)), POOLED)
