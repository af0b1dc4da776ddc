"""Many runs at the same time against bare asyncio doing the same: CPU, turn by turn in one process, and memory, in one of its own.

pytest tests/benchmarks/test_concurrent_bench.py --benchmark-only
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from .many_runs import RUNS, STEPS, TOOLS, at_once
from .measure import Report, cpu_seconds

ROUNDS = {"an async tool": 9, "a sync tool, in threads": 3}


@pytest.mark.benchmark(group="a thousand runs at once")
@pytest.mark.parametrize("kind", TOOLS)
def test_cpu_of_concurrent_runs(benchmark: Any, report: Report, kind: str) -> None:
    pair = TOOLS[kind]
    times: list[tuple[float, float]] = []

    def turn() -> None:
        """One side right after the other: both meet the same machine, however busy or slow it is just then."""
        times.append((cpu_seconds(lambda: at_once(pair.ours)), cpu_seconds(lambda: at_once(pair.bare))))

    benchmark.pedantic(turn, rounds=ROUNDS[kind], warmup_rounds=1)
    del times[0]
    ours, bare = (median(side) / RUNS / STEPS * 1e6 for side in zip(*times, strict=True))
    ratio = median(of_ours / of_bare for of_ours, of_bare in times)
    report.add(f"CPU of 1,000 runs at once, {kind}", ratio, 2, "x", f"{ours:.0f} us to {bare:.0f} us a step")


@pytest.mark.benchmark(group="a thousand runs at once")
@pytest.mark.skipif(sys.platform == "win32", reason="the system does not tell a process its peak")
def test_memory_of_concurrent_runs(benchmark: Any, report: Report) -> None:
    def peaks(side: str) -> tuple[float, float]:
        command = [sys.executable, "-m", "tests.benchmarks.many_runs", side]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
        before, after = map(float, done.stdout.split())
        return before, after

    (before, ours), (_, bare) = benchmark.pedantic(lambda: (peaks("ours"), peaks("bare")), rounds=1)
    note = f"the whole process; {before:.0f} MB before the runs; with the bare loop {bare:.0f} MB"
    report.add("memory of 1,000 runs at once, at the peak", ours, 60, " MB", note)
