"""A process is killed at fifty moments of a ten-step run, and each run is gone on with: no effect happens twice, no reply is asked for twice."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from fsm_agent import load
from fsm_agent.events import ModelReplied
from fsm_agent.traces.notes import CallStarted
from fsm_agent.traces.record import TraceError
from tests.crashing import ASKED, EFFECTS, STEPS, TRACE, lines, options
from tests.driving import ASYNC, SYNC, Driver, whole

PAID = [f"{step}/{at}" for step in range(1, STEPS) for at in (1, 2, 3) if (at == 1 and step not in {4, 8}) or (at == 3 and step in {3, 6})]
"""The keys, without the run, of the calls whose effect must not happen twice."""

WRITES = 40
"""The trace's writes, about."""

CHANCE = random.Random(4)

PLACES = [
    *((f"write-{('before', 'half', 'after')[number // 2 % 3]}", number) for number in range(1, WRITES, 2)),
    *((f"effect-{moment}", number) for moment in ("before", "after") for number in (1, 3, 4, 8, 9)),
    *(("delay", CHANCE.randrange(0, 120)) for _ in range(20)),
]
"""Where a process is killed: at the trace's n-th write, at the n-th effect, or after so many milliseconds."""


def test_there_are_fifty_moments() -> None:
    assert len(PLACES) == 50


def killed(folder: Path, way: str, place: str, number: int) -> bool:
    """Start a run, or go on with one, in a process that is killed; whether it was, before it ended by itself."""
    command = [sys.executable, "-m", "tests.crashing", str(folder), way, "none" if place == "delay" else place, str(number)]
    root = Path(__file__).parent.parent
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=root) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        if place == "delay":
            time.sleep(number / 1000)
            process.kill()
        rest, error = process.communicate(timeout=60)
    assert error == ""
    return "ended" not in rest


def gone_on(folder: Path, driver: Driver) -> None:
    """Go on with the run to its end, and look at what happened."""
    path = folder / TRACE
    asked_before = lines(folder / ASKED)
    try:
        recorded = load(path)
    except (TraceError, FileNotFoundError):  # not even the header was written
        assert (asked_before, lines(folder / EFFECTS)) == ([], [])
        return
    replies = sum(isinstance(event, ModelReplied) for event in recorded.events)
    result = driver.resume(path, **options(folder))
    assert (result.reason, result.answer, result.steps) == ("final_answer", "done", STEPS)
    assert whole(path).log == result.trace.log
    assert lines(folder / ASKED)[len(asked_before) :] == [str(step) for step in range(replies + 1, STEPS + 1)]
    effects = Counter(line.replace(f" {result.trace.header.id}/", " ") for line in lines(folder / EFFECTS))
    paid = {key: count for key, count in effects.items() if key.startswith("pay")}
    assert set(paid) <= {f"pay {key}" for key in PAID}
    assert set(paid.values()) <= {1}
    unknown = {f"pay {note.step}/{note.index + 1}" for _, note in load(path).notes if isinstance(note, CallStarted)} - set(paid)
    assert set(paid) | unknown == {f"pay {key}" for key in PAID}
    assert len(unknown) <= 2, "what began and did not happen, as the process ended just then"


@pytest.mark.parametrize(("place", "number"), PLACES)
def test_a_run_that_is_killed_is_gone_on_with_and_nothing_happens_twice(place: str, number: int, tmp_path: Path) -> None:
    awaits = PLACES.index((place, number)) % 2 == 1
    was_killed = killed(tmp_path, "arun" if awaits else "run", place, number)
    assert was_killed or place == "delay"
    gone_on(tmp_path, ASYNC if awaits else SYNC)


@pytest.mark.parametrize("driver", [SYNC, ASYNC], ids=str)
def test_a_run_that_is_killed_again_each_time_it_is_taken_up_comes_to_its_end(driver: Driver, tmp_path: Path) -> None:
    prefix = "a" if driver.awaits else ""
    assert killed(tmp_path, f"{prefix}run", "effect-after", 2)
    for place, number in (("effect-before", 1), ("write-half", 4), ("effect-after", 1), ("write-after", 1), ("effect-after", 2)):
        assert killed(tmp_path, f"{prefix}resume", place, number)
    path = tmp_path / TRACE
    result = driver.resume(path, **options(tmp_path))
    assert (result.reason, result.answer, result.steps) == ("final_answer", "done", STEPS)
    paid = Counter(line for line in lines(tmp_path / EFFECTS) if line.startswith("pay"))
    assert set(paid.values()) == {1}
    assert whole(path).log == result.trace.log
