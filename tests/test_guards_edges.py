"""The edges of the guards: where one thing more or less makes the difference, and what stands in a reading just there."""

from __future__ import annotations

import pytest

from fsm_agent.events import ModelReplied, Observation, Reply, ToolSpec, ToolsReturned, Usage
from fsm_agent.guards import (
    ConsecutiveErrors,
    Deadline,
    Denied,
    Evidence,
    Guard,
    MaxSteps,
    NoProgress,
    Reading,
    RepeatedCall,
    TokenBudget,
    predicate,
    progress,
)
from fsm_agent.guards.streaks import FIRST, SHOWN, Streak
from fsm_agent.machine import Run, Taken
from fsm_agent.protocols import RecordedProtocol
from fsm_agent.table import PARSING
from tests.guard_steps import FINAL, Events, batch, did, failed, malformed, said

POLL, LOOK = ToolSpec("wait", polls=True), ToolSpec("look", volatile=("pid",))


def fed(guard: Guard, *steps: Events, tools: tuple[ToolSpec, ...] = ()) -> Run:
    """A run under this guard alone, as far as it goes."""
    run = Run("task", guards=(guard,), protocol=RecordedProtocol(), tools=tools)
    for step in steps:
        for event in step:
            if run.effect is not None:
                run.feed(event)
    return run


def read(guard: Guard, *steps: Events, tools: tuple[ToolSpec, ...] = ()) -> Reading:
    """What the guard read last."""
    log = fed(guard, *steps, tools=tools).log
    return next(entry.readings[0] for entry in reversed(log) if isinstance(entry, Taken) and entry.readings)


# --- evidence ----------------------------------------------------------------------------------------------------


def seen(*numbers: int) -> tuple[Evidence, ...]:
    return tuple(Evidence(n, "timeout" if n % 2 else "tool_error", str(n)) for n in numbers)


def steps(evidence: tuple[Evidence, ...]) -> list[int]:
    return [each.step for each in evidence]


def grown(limit: int, pieces: int) -> Streak:
    streak = Streak()
    for piece in seen(*range(pieces)):
        streak = streak.grown(piece, limit)
    return streak


@pytest.mark.parametrize(
    ("limit", "pieces", "shown"),
    [(1, 1, [0]), (1, 2, [1]), (2, 3, [1, 2]), (SHOWN, SHOWN, [*range(SHOWN)]), (SHOWN, SHOWN + 1, [*range(1, SHOWN + 1)])],
)
def test_up_to_a_limit_that_can_be_shown_the_latest_pieces_of_evidence_are_kept(limit: int, pieces: int, shown: list[int]) -> None:
    streak = grown(limit, pieces)
    assert (steps(streak.evidence), streak.omitted, streak.length) == (shown, (), pieces)


def test_of_more_the_first_and_the_last_few_are_kept() -> None:
    assert steps(grown(SHOWN + 1, SHOWN).evidence) == [*range(SHOWN)]
    assert steps(grown(SHOWN + 1, SHOWN + 1).evidence) == [*range(FIRST), *range(FIRST + 1, SHOWN + 1)]


def test_what_is_left_out_is_counted_by_kind() -> None:
    streak = grown(50, SHOWN + 5)
    assert steps(streak.evidence) == [*range(FIRST), *range(FIRST + 5, SHOWN + 5)]
    left_out = ["timeout" if n % 2 else "tool_error" for n in range(FIRST, FIRST + 5)]
    assert dict(streak.omitted) == {kind: left_out.count(kind) for kind in left_out}
    assert Streak().grown(seen(1)[0], 50).omitted == ()
    same = Streak()
    for _ in range(SHOWN + 3):
        same = same.grown(seen(1)[0], 50)
    assert same.omitted == (("timeout", 3),)


def test_evidence_of_a_halt_at_what_can_be_shown_is_whole() -> None:
    reading = read(ConsecutiveErrors(SHOWN), *[failed(n=n) for n in range(SHOWN)])
    assert (reading.trips, steps(reading.evidence)) == (True, list(range(1, SHOWN + 1)))


# --- repetition --------------------------------------------------------------------------------------------------


def test_polling_is_no_repetition_and_other_calls_are() -> None:
    waiting, looking = [did("wait")] * 6, [did("look")] * 3
    assert fed(RepeatedCall(2), *waiting, tools=(POLL, LOOK)).reason is None
    assert fed(RepeatedCall(2), *looking, tools=(POLL, LOOK)).reason == "repeated_call"


def test_a_step_of_polling_alone_is_another_call() -> None:
    run = fed(RepeatedCall(2), *[did("look"), did("look"), did("wait")] * 2, tools=(POLL, LOOK))
    assert run.reason is None
    assert values(run) == [0, 1, 0, 0, 1, 0]


def values(run: Run) -> list[float]:
    """Of the one guard: its value each time that it was judged."""
    return [entry.readings[0].value for entry in run.log if isinstance(entry, Taken) and entry.readings]


def test_a_poll_beside_a_call_is_left_out() -> None:
    both = batch(("look", {}, "a", "ok"), ("wait", {}, "b", "ok"))
    assert fed(RepeatedCall(2), both, did("look"), both, tools=(POLL, LOOK)).reason == "repeated_call"


def test_a_denied_call_is_the_same_whatever_its_volatile_fields() -> None:
    one, other = failed("look", kind="denied", pid=1), failed("look", kind="denied", pid=2)
    assert fed(Denied(2), one, other, tools=(LOOK,)).reason == "denied"
    assert fed(Denied(2), one, other).reason is None


def test_of_calls_that_were_denied_equally_often_the_latest_is_shown() -> None:
    reading = read(Denied(2), failed("look", kind="denied", n=1), failed("look", kind="denied", n=2))
    assert reading.evidence == (Evidence(2, "denied", "look{n=2}"),)


# --- progress ----------------------------------------------------------------------------------------------------


def test_of_two_periods_that_want_as_many_steps_the_smaller_is_told() -> None:
    reading = read(NoProgress(), *[said("a")] * 3)
    assert (reading.value, reading.limit, reading.period) == (3, 4, 1)


def test_a_long_cycle_is_told_as_soon_as_it_begins() -> None:
    reading = read(NoProgress(), *map(said, "abcda"))
    assert (reading.value, reading.limit, reading.period) == (5, 8, 4)


@pytest.mark.parametrize(("period", "whole"), [(progress.SHOWN // 2, True), (progress.SHOWN // 2 + 1, False)])
def test_a_cycle_is_shown_whole_as_far_as_it_can_be(period: int, whole: bool) -> None:
    reading = read(NoProgress(period), *map(said, [str(n) for n in range(period)] * 2))
    assert (reading.value, reading.trips, reading.period) == (2 * period, True, period)
    every = list(range(1, 2 * period + 1))
    assert steps(reading.evidence) == (every if whole else [*every[:FIRST], *every[FIRST - progress.SHOWN :]])


# --- budgets and time --------------------------------------------------------------------------------------------


def spent(prompt: int | None, completion: int | None) -> Events:
    return (ModelReplied(Reply("hm", usage=Usage(prompt, completion))),)


def test_nothing_spent_is_known_to_be_nothing() -> None:
    reading = read(TokenBudget(10), spent(0, 0))
    assert (reading.value, reading.unknown) == (0, 0)


@pytest.mark.parametrize(("last", "halts"), [(9.5, False), (10.0, True), (10.5, True)])
def test_the_deadline_is_the_first_moment_that_is_too_late(last: float, halts: bool) -> None:
    run = fed(Deadline(10), (ModelReplied(Reply("a"), at=100.0),), (ModelReplied(Reply("b"), at=100.0 + last),))
    assert (run.reason == "deadline") == halts


def test_the_longest_wait_is_the_first_of_its_length_and_no_wait_is_none() -> None:
    at = [(ModelReplied(Reply("a"), at=100.0),), (ModelReplied(Reply("b"), at=100.0),)]
    assert read(Deadline(50), *at).evidence == ()
    later = [*at, (ModelReplied(Reply("c"), at=103.0),), (ModelReplied(Reply("d"), at=106.0),)]
    assert read(Deadline(50), *later).evidence == (Evidence(3, "model", "3 s"),)


# --- predicates --------------------------------------------------------------------------------------------------


def test_a_predicate_shows_the_last_calls_only_where_it_trips() -> None:
    late = predicate(lambda run: run.calls > 1, reason="late")
    assert read(late, did("look", n=1)).evidence == ()
    assert read(late, did("look", n=1), did("look", n=2)).evidence == (Evidence(2, "call", "look{n=2}"),)


def test_a_predicate_may_trip_before_anything_was_called() -> None:
    run = fed(predicate(lambda run: run.calls == 0, reason="idle", watches=PARSING), FINAL)
    assert run.reason == "final_answer"
    assert run.readings == (Reading("idle", 1, 1, trips=True),)


# --- the table ---------------------------------------------------------------------------------------------------


class Nameless(MaxSteps):
    """A guard that says nothing of what it counts."""

    reason = "nameless"
    label = ""


def test_a_guard_without_a_label_is_labelled_with_its_reason() -> None:
    assert Nameless(3).edge().label == "nameless"
    assert MaxSteps(3).edge().label == "steps"
    assert fed(Nameless(1), malformed()).reason == "nameless"


def test_observations_answer_the_calls_that_were_asked_for() -> None:
    run = fed(MaxSteps(2), did("look"))
    assert ToolsReturned((Observation("look", "nothing"),)) in run.log
