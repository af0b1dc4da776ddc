"""What a run costs, as far as no clock is needed to tell: calls, depth, memory. Times are benchmarks (``make bench``)."""

from __future__ import annotations

import cProfile
import pstats
import sys
from collections.abc import Callable

import pytest

from fsm_agent import Reply, ScriptedModel, classic, run
from fsm_agent.context import Context, DropOldObservations, KeepLast, Summarise
from fsm_agent.events import Event, ModelReplied, Observation, ToolRequest, ToolsReturned
from fsm_agent.guards import (
    ConsecutiveErrors,
    Denied,
    EmptyReply,
    ErrorStreak,
    Guard,
    MalformedStreak,
    MaxSteps,
    NoProgress,
    RepeatedCall,
    TruncatedReply,
)
from fsm_agent.machine import Run, Taken
from fsm_agent.outcome import message_of
from fsm_agent.protocols import RecordedProtocol
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


NEVER = 100_000
CLASSIC = (RepeatedCall(NEVER), ConsecutiveErrors(NEVER))


def same_call(kind: str, n: int) -> list[Event]:
    """One step: a call, the same in each, that comes to the same."""
    reply = Reply("", (ToolRequest(f"call_{n}", "add", '{"a": 1}'),))
    return [ModelReplied(reply), ToolsReturned((Observation("add", "TOOL_ERROR: no", kind),))]  # type: ignore[arg-type]  # a kind


def prose(kind: str, n: int) -> list[Event]:
    if kind == "empty":
        return [ModelReplied(Reply())]
    return [ModelReplied(Reply("prose", finish_reason="length" if kind == "cut" else None, taken_as="unparseable"))]


@pytest.mark.parametrize(
    ("guards", "step", "kind"),
    [
        (CLASSIC, same_call, "ok"),
        (CLASSIC, same_call, "tool_error"),
        (CLASSIC, prose, "prose"),
        ((NoProgress(min_steps=NEVER),), same_call, "ok"),
        ((ErrorStreak(NEVER),), same_call, "tool_error"),
        ((Denied(NEVER),), same_call, "denied"),
        ((MalformedStreak(NEVER),), prose, "prose"),
        ((EmptyReply(NEVER),), prose, "empty"),
        ((TruncatedReply(NEVER),), prose, "cut"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0].reason if isinstance(value, tuple) else value.__name__,
)
def test_one_more_bad_step_keeps_a_bounded_record_under_high_limits(
    guards: tuple[Guard, ...], step: Callable[[str, int], list[Event]], kind: str
) -> None:
    """A reading rests on a bounded number of things, however many there were: two guards that show a dozen each stay under 2.5 kB a step."""

    def side(steps: int) -> Play:
        def play() -> Run:
            played = Run("task", guards=[*guards, MaxSteps(steps)], protocol=RecordedProtocol())
            for n in range(steps):
                for event in step(kind, n):
                    played.feed(event)
            assert (played.reason, played.step) == ("max_steps", steps)
            shown = max(len(reading.evidence) for taken in played.log if isinstance(taken, Taken) for reading in taken.readings)
            assert shown == (24 if guards[0].reason == "no_progress" else 12)
            return played

        return play

    kept = bytes_per_step(side, 100, 300)
    print(f"{guards[0].reason}, {kind}: {kept:.0f} bytes a step")
    assert kept < 2560


def test_a_halt_at_a_high_limit_tells_the_true_numbers() -> None:
    played = Run("task", guards=[ConsecutiveErrors(30)], protocol=RecordedProtocol())
    for n in range(30):
        for event in same_call("tool_error", n) if n % 3 else prose("prose" if n % 2 else "empty", n):
            played.feed(event)
    (reading,) = played.readings
    assert (reading.value, [each.step for each in reading.evidence]) == (30, [1, 2, 3, 4, *range(23, 31)])
    assert reading.omitted == (("empty", 3), ("tool_error", 12), ("unparseable", 3))
    assert message_of(played, played.protocol.lang) == (
        "stopped: 30 errors in a row (failed tool calls: 20, unparseable replies: 5, empty replies: 5), circuit breaker tripped"
    )


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


@pytest.mark.parametrize(
    "context",
    [KeepLast(3), DropOldObservations(10**6), Summarise(lambda _: "It added.", 10**6)],
    ids=["the last steps", "old observations left out", "summaries"],
)
def test_a_context_that_shows_all_or_the_last_steps_costs_the_same_at_each_step(context: Context) -> None:
    def side(steps: int) -> Play:
        def play() -> object:
            model = ScriptedModel(then="TOOL add a=1,b={n}")
            return run("task", model=model, tools=[add], guards=classic(max_steps=steps), context=context)

        return play

    short, middle, long = (calls_of(side(steps)) for steps in (100, 200, 400))
    assert (long - middle) / 200 == pytest.approx((middle - short) / 100, rel=0.02)
