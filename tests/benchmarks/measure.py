"""What is measured in more than one place, and the lines of the report."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable

import attrs
import pytest

from .workload import Play


def cpu_seconds(function: Callable[[], object]) -> float:
    """The CPU time of one call, from a clean heap."""
    gc.collect()
    begun = time.process_time()
    function()
    return time.process_time() - begun


def bytes_per_step(side: Callable[[int], Play], fewer: int = 500, more: int = 1500) -> float:
    """The memory that one more step keeps: the model's reply and all that is made of it."""
    kept: list[int] = []
    side(fewer)()  # whatever is made once is made
    for steps in (fewer, more):
        gc.collect()
        tracemalloc.start()
        play = side(steps)
        result = play()
        gc.collect()
        kept.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        del play, result
    return (kept[1] - kept[0]) / (more - fewer)


@attrs.frozen
class Line:
    """One line of the report."""

    what: str
    measured: float
    limit: float
    unit: str = ""
    note: str = ""


@attrs.define
class Report:
    """Collects lines; they are printed when all benchmarks are done."""

    lines: list[Line] = attrs.field(factory=list)

    def add(self, what: str, measured: float, limit: float, unit: str = "", note: str = "") -> None:
        self.lines.append(Line(what, measured, limit, unit, note))


REPORT: pytest.StashKey[Report] = pytest.StashKey()
