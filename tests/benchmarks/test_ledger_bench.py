"""Importing into a ledger and auditing it: what of the time is reading, machine, guards and ledger, and whether a run costs more in a full one.

pytest tests/benchmarks/test_ledger_bench.py --benchmark-only
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from statistics import median
from typing import Any

import attrs
import pytest

from fsm_agent.cli.import_ import import_files, shadow_readings
from fsm_agent.traces.ledger import Importer, Ledger, Tally, entry_of
from fsm_agent.traces.ledger.body import key_of
from fsm_agent.traces.recordings import Recording, read
from fsm_agent.traces.replay import replay
from tests.scripted_recordings import FILES, recorded

from .measure import Report, cpu_seconds

SIZES = (2_000, 50_000)
BATCH = 250
ROUNDS = 9

needs_files = pytest.mark.skipif(
    not all(path.exists() for path in FILES.values()), reason="the recorded runs in ../shared/data are not here"
)

_MEASURED = """
import sys
from fsm_agent.cli import cli
code = 0
try:
    cli.main(sys.argv[1:], prog_name="fsm-agent", standalone_mode=False)
finally:
    try:
        import resource
        print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10), file=sys.stderr)
    except ImportError:  # Windows
        print("peak", 0, file=sys.stderr)
"""


def command(*arguments: object) -> tuple[float, float]:
    """Seconds and MiB at the peak of one ``fsm-agent`` process, from its start to its end."""
    begun = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, *map(str, arguments)], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2]
    )
    return time.perf_counter() - begun, float(done.stderr.split()[-1])


@needs_files
@pytest.mark.benchmark(group="the four files")
def test_import_and_audit(benchmark: Any, report: Report, tmp_path: Path) -> None:
    """The two commands as a user gives them, one process each."""
    book = tmp_path / "runs.db"
    peaks: list[float] = []
    spent: list[tuple[float, float]] = []

    def commands() -> None:
        book.unlink(missing_ok=True)
        importing, peak = command("import", *FILES.values(), "--ledger", book)
        auditing, other = command("audit", book, "--json")
        peaks.append(max(peak, other))
        spent.append((importing, auditing))

    benchmark.pedantic(commands, rounds=3)
    importing, auditing = min(spent, key=sum)
    note = f"import {importing:.2f} s, audit {auditing:.2f} s: the best of {len(spent)} by the clock, which others slow down"
    report.add("importing and auditing 2,234 runs", importing + auditing, 10, " s", note)
    report.add("memory of import and audit, at the peak", max(peaks), 300, " MiB")


@needs_files
@pytest.mark.benchmark(group="the four files", timer=time.process_time)
def test_where_the_time_goes(benchmark: Any, report: Report, tmp_path: Path) -> None:
    """The same import in this process, as CPU time, and its parts by themselves. What is left of the whole is the ledger's."""
    whole = median(
        _timed(
            benchmark, lambda: import_files([*FILES.values()], tmp_path / "runs.db"), lambda: (tmp_path / "runs.db").unlink(missing_ok=True)
        )
    )
    recordings = [run for path in FILES.values() for run in read(path) if isinstance(run, Recording)]
    runs = [replay(recording, ()) for recording in recordings]
    reading = _best(lambda: [run for path in FILES.values() for run in read(path)])
    machine = _best(lambda: [replay(recording, ()) for recording in recordings])
    guards = _best(lambda: [reading for run in runs for reading in shadow_readings(run)])
    with Ledger.open(tmp_path / "runs.db") as ledger:
        back = _best(lambda: list(ledger.recordings()))
    ledger_share = whole - reading - machine - guards
    note = (
        f"reading {reading:.2f}, machine {machine:.2f}, guards {guards:.2f}, ledger {ledger_share:.2f}; out of the ledger again {back:.2f}"
    )
    report.add("the import's CPU time, by its parts", whole, 5, " s", note)
    size = (tmp_path / "runs.db").stat().st_size
    given = sum(path.stat().st_size for path in FILES.values())
    report.add("the ledger's size against that of the files", size / given, 1, "x", f"{size / 1e6:.1f} MB to {given / 1e6:.1f} MB")


@pytest.mark.benchmark(group="a full ledger", timer=time.process_time)
def test_a_run_costs_no_more_in_a_full_ledger(benchmark: Any, report: Report, tmp_path: Path) -> None:
    """The same batches at 2,000 and at 50,000 runs: new ones, the same again, and single runs looked up and read."""
    spent: dict[tuple[str, int], list[float]] = {}
    numbers = iter(range(10**9))
    ledgers = {size: _filled(tmp_path / f"{size}.db", size, numbers) for size in SIZES}

    def measure() -> None:
        for size, ledger in ledgers.items():  # turn by turn, so that both meet the same machine
            batch = [recorded(f"run {next(numbers)}", "a b! c a d =") for _ in range(BATCH)]
            for what, act in (
                ("a new run", lambda ledger=ledger, batch=batch: _import(ledger, batch)),
                ("a run that is there", lambda ledger=ledger, batch=batch: _import(ledger, batch)),
                ("finding and reading a run", lambda ledger=ledger, batch=batch: [ledger.recording(ledger.find(run.id)) for run in batch]),
            ):
                spent.setdefault((what, size), []).append(cpu_seconds(act) / BATCH)

    benchmark.pedantic(measure, rounds=ROUNDS, warmup_rounds=1)
    for what in dict.fromkeys(what for what, _ in spent):
        few, many = (spent[what, size] for size in SIZES)
        note = f"{median(many) * 1e6:.0f} us to {median(few) * 1e6:.0f} us"
        report.add(f"{what}, at 50,000 runs against 2,000", median(b / a for a, b in zip(few, many, strict=True)), 1.25, "x", note)
    for ledger in ledgers.values():
        ledger.close()


def _import(ledger: Ledger, batch: list[Recording]) -> None:
    importer, tally = Importer(ledger, shadow_readings), Tally()
    for recording in batch:
        importer.take(recording, "made.json", tally)
    importer.flush(tally)


def _filled(path: Path, size: int, numbers: Iterator[int]) -> Ledger:
    """A ledger with so many runs: one run under many keys and ids, since only the rows count here."""
    recording = recorded("run", "a b! c a d =")
    entry = entry_of(recording, "made.json", key_of(recording), shadow_readings)
    ledger = Ledger.create_or_open(path)
    for _ in range(size // BATCH):
        copies = []
        for number in (next(numbers) for _ in range(BATCH)):
            source, file, _, *rest = entry.run
            key = blake2b(str(number).encode(), digest_size=16).hexdigest()
            copies.append(attrs.evolve(entry, key=key, run=(source, file, f"run {number}", *rest)))
        ledger.add(copies)
    return ledger


def _timed(benchmark: Any, function: Callable[[], object], setup: Callable[[], object]) -> list[float]:
    def before() -> None:  # what a setup gives is taken for arguments
        setup()

    benchmark.pedantic(function, setup=before, rounds=3, warmup_rounds=1)
    return list(benchmark.stats.stats.data)


def _best(function: Callable[[], object]) -> float:
    return min(cpu_seconds(function) for _ in range(3))
