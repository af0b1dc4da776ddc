"""What a run costs, as far as no clock is needed to tell: calls, depth, memory. Times are benchmarks (``make bench``)."""

from __future__ import annotations

import cProfile
import pstats
import sys
from collections.abc import Callable

import pytest

from fsm_agent import ScriptedModel, classic, run
from fsm_agent.tools import add

from .benchmarks.measure import bytes_per_step
from .benchmarks.workload import SIDES, Play, bare, machine, whole

STEPS = 500


def calls_of(play: Play) -> int:
    play()  # whatever is made once is made
    profile = cProfile.Profile()
    profile.runcall(play)
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]  # typeshed does not know it


@pytest.mark.parametrize("side", [machine, whole], ids=["the machine", "fsm_agent.run"])
def test_a_step_takes_less_than_150_python_calls(side: Callable[[int], Play]) -> None:
    calls, of_bare = calls_of(side(STEPS)) / STEPS, calls_of(bare(STEPS)) / STEPS
    print(f"{side.__name__}: {calls:.1f} Python calls a step; the bare loop: {of_bare:.1f}")
    assert calls < 150


@pytest.mark.parametrize("side", SIDES)
def test_one_more_step_keeps_less_than_2_kilobytes(side: str) -> None:
    kept = bytes_per_step(SIDES[side], 200, 600)
    print(f"{side}: {kept:.0f} bytes a step")
    assert kept < 2048


def test_ten_thousand_steps_need_no_deeper_stack() -> None:
    """The limit leaves no room for a frame a step."""
    depth = 0
    frame = sys._getframe()
    while frame.f_back is not None:
        depth, frame = depth + 1, frame.f_back
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(depth + 100)
    try:
        result = run("task", model=ScriptedModel(then="TOOL add a=1,b={n}"), tools=[add], guards=classic(max_steps=10_000))
    finally:
        sys.setrecursionlimit(before)
    assert (result.reason, result.model_calls, len(result.trace.log)) == ("max_steps", 10_000, 60_000)


def test_the_cost_of_a_step_does_not_grow_with_the_run() -> None:
    short, middle, long = (calls_of(whole(steps)) for steps in (100, 200, 400))
    assert (long - middle) / 200 == pytest.approx((middle - short) / 100, rel=0.02)
