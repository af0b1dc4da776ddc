"""The machine and a bare loop side by side, in one process, turn by turn: ``make bench``. Nothing here fails for being slow."""

from __future__ import annotations

import gc
import math
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from fsm_agent import classic
from fsm_agent.machine import Run

from .measure import Report, bytes_per_step, cpu_seconds
from .workload import PROTOCOL, SIDES, bare

STEPS = 1000
ROUNDS = 15


def timed(benchmark: Any, function: Callable[[], object], setup: Callable[[], object], rounds: int) -> list[float]:
    """Seconds of each round; ``setup`` comes before each."""

    def before() -> None:  # what a setup gives is taken for arguments
        setup()

    benchmark.pedantic(function, setup=before, rounds=rounds, warmup_rounds=1)
    return list(benchmark.stats.stats.data)


def turns(
    benchmark: BenchmarkFixture, function: Callable[[], object], other: Callable[[], object], rounds: int
) -> list[tuple[float, float]]:
    """Times both, one right after the other, in seconds: so both meet the same machine, however busy or slow it is just then."""
    others: list[float] = []

    def setup() -> None:
        others.append(cpu_seconds(other))
        gc.collect()

    return list(zip(timed(benchmark, function, setup, rounds), others[-rounds:], strict=True))


@pytest.mark.benchmark(group=f"a run of {STEPS} steps", timer=time.process_time)
@pytest.mark.parametrize("side", SIDES)
def test_cpu_per_step(benchmark: BenchmarkFixture, report: Report, side: str) -> None:
    times = turns(benchmark, SIDES[side](STEPS), bare(STEPS), ROUNDS)
    if side == "the bare loop":
        return
    note = f"{median(ours for ours, _ in times) / STEPS * 1e6:.0f} us to {median(other for _, other in times) / STEPS * 1e6:.0f} us"
    notes = {"the machine": f"{note}; must be 6x at most", "fsm_agent.run": f"{note}; driver, checked arguments and clock included"}
    limits = {"the machine": 3, "fsm_agent.run": 6}
    report.add(f"CPU per step against the bare loop, {side}", median(ours / other for ours, other in times), limits[side], "x", notes[side])


@pytest.mark.benchmark(group="a run of 10,000 steps", timer=time.process_time)
@pytest.mark.parametrize("side", SIDES)
def test_growth(benchmark: BenchmarkFixture, report: Report, side: str) -> None:
    short, long, batch = SIDES[side](100), SIDES[side](10_000), 20

    def shorts() -> None:
        for _ in range(batch):
            short()

    times = turns(benchmark, long, shorts, rounds=9)
    exponent = median(math.log(of_long * batch / of_shorts) / math.log(10_000 / 100) for of_long, of_shorts in times)
    report.add(f"growth from 100 to 10,000 steps, {side}", exponent, 1.05, "", "as an exponent: 1 is linear")


@pytest.mark.benchmark(group="a new run")
def test_new_run(benchmark: BenchmarkFixture, report: Report) -> None:
    guards, batch = classic(), 500

    def runs() -> None:
        for _ in range(batch):
            Run("task", guards=guards, protocol=PROTOCOL)

    report.add("a new run", median(timed(benchmark, runs, gc.collect, rounds=15)) / batch * 1e6, 60, " us")
    for side in SIDES:
        report.add(f"memory per extra step, {side}", bytes_per_step(SIDES[side]), 2048, " B", "the model's reply included")


@pytest.mark.benchmark(group="import")
@pytest.mark.parametrize("what", ["import fsm_agent", "from fsm_agent import run"])
def test_import(benchmark: BenchmarkFixture, report: Report, what: str) -> None:
    """The second as well: names are loaded when they are first used, and then the price is due."""
    rounds = 15
    alone: list[float] = []

    def python(code: str) -> float:
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - begun

    times = timed(benchmark, lambda: python(what), lambda: alone.append(python("pass")), rounds)
    beyond = [ours - other for ours, other in zip(times, alone[-rounds:], strict=True)]
    note = f"at best {min(beyond) * 1e3:.0f} ms; bare Python {median(alone) * 1e3:.0f} ms"
    report.add(f"{what}, beyond bare Python", median(beyond) * 1e3, 90, " ms", note)
