"""The guards of calls that fail: the streak of one call, errors in a row under production's options, denials."""

from __future__ import annotations

import pytest

from fsm_agent.events import Message, ToolSpec
from fsm_agent.guards import ConsecutiveErrors, Denied, ErrorStreak, Evidence, Guard, Reading
from fsm_agent.guards.errors import REMEMBERED
from fsm_agent.language import ENGLISH
from fsm_agent.machine import Taken
from fsm_agent.outcome import message_of
from tests.guard_steps import EMPTY, Events, batch, did, end, failed, malformed, play, readings, said, spoke, values

OTHER_ERROR = failed(text="TOOL_ERROR: timeout after 8 ms")
DENIED = failed(text="denied", kind="denied")


# --- error_streak -------------------------------------------------------------------------------------------------


def test_the_same_call_failing_three_times_in_a_row_halts_whatever_the_errors_say() -> None:
    run = play(ErrorStreak(), failed(q=1), failed(q=1, text="TOOL_ERROR: timeout\nafter 8 ms"), failed(q=1, kind="bad_arguments"))
    assert end(run) == ("error_streak", 3)
    assert readings(run, "error_streak")[-1] == Reading(
        "error_streak",
        3,
        3,
        trips=True,
        evidence=(
            Evidence(1, "tool_error", "look{q=1}: no"),
            Evidence(2, "tool_error", "look{q=1}: timeout"),
            Evidence(3, "bad_arguments", "look{q=1}: no"),
        ),
    )
    assert message_of(run, ENGLISH) == "stopped: the same call failed 3 times in a row (look{q=1}: no)"


@pytest.mark.parametrize(
    ("between", "expected"),
    [
        (did(), [1, 2, 0, 1]),
        (did("see"), [1, 2, 0, 1]),
        (failed("see"), [1, 2, 1, 1]),
        (failed(q=2), [1, 2, 1, 1]),
        (said(), [1, 2, 0, 1]),
        (spoke(), [1, 2, 1]),
        (malformed(), [1, 2, 2, 3]),
        (EMPTY, [1, 2, 2, 3]),
        (DENIED, [1, 2, 2, 3]),
    ],
)
def test_what_resets_an_error_streak_and_what_does_not(between: Events, expected: list[int]) -> None:
    assert values(play(ErrorStreak(), failed(), failed(), between, failed()), "error_streak") == expected


def test_a_batch_fails_when_every_call_in_it_does_and_is_the_set_of_its_calls() -> None:
    half = batch(("a", {}, "x", "tool_error"), ("b", {}, "1", "ok"))
    ab = batch(("a", {}, "x", "tool_error"), ("b", {}, "y", "timeout"))
    ba = batch(("b", {}, "y", "tool_error"), ("a", {}, "x", "tool_error"))
    assert values(play(ErrorStreak(), half, half, ab, ba), "error_streak") == [0, 0, 1, 2]


def test_a_poll_that_fails_every_time_is_a_failing_call() -> None:
    assert end(play(ErrorStreak(), *[failed("wait")] * 3, tools=[ToolSpec("wait", polls=True)])) == ("error_streak", 3)


def test_volatile_arguments_do_not_make_another_call() -> None:
    steps = [failed(q=1, pid=i) for i in range(3)]
    assert end(play(ErrorStreak(), *steps)) == (None, 3)
    assert end(play(ErrorStreak(), *steps, tools=[ToolSpec("look", volatile=("pid",))])) == ("error_streak", 3)


# --- consecutive_errors, with production's options -----------------------------------------------------------------


def test_unparseable_replies_neither_count_nor_reset_where_they_are_not_counted() -> None:
    guard = ConsecutiveErrors(3, count_malformed=False)
    run = play(guard, malformed(), failed("a"), malformed(), EMPTY, failed("b"), said(), failed("c", kind="unknown_tool"))
    assert values(run, "consecutive_errors") == [0, 1, 1, 1, 2, 2, 3]
    assert message_of(run, ENGLISH) == "stopped: 3 failed tool calls in a row, circuit breaker tripped"


def test_a_denied_call_neither_counts_nor_resets() -> None:
    mixed = batch(("a", {}, "denied", "denied"), ("b", {}, "TOOL_ERROR: no", "tool_error"))
    partly = batch(("a", {}, "denied", "denied"), ("b", {}, "1", "ok"))
    run = play(ConsecutiveErrors(9), failed(), DENIED, mixed, partly)
    assert values(run, "consecutive_errors") == [1, 1, 2, 0]
    assert readings(run, "consecutive_errors")[2].evidence[-1] == Evidence(3, "tool_error", "no")


def test_it_warns_once_at_warn_at_and_the_model_reads_the_warning() -> None:
    guard = ConsecutiveErrors(4, count_malformed=False, warn_at=2)
    run = play(guard, failed("a"), failed("b"), malformed(), said(), failed("c"), failed("d"))
    assert [entry.edge for entry in run.log if isinstance(entry, Taken) and entry.edge in {"go_on", "nudge"}] == [
        "go_on",
        "nudge",
        "go_on",
        "go_on",
        "go_on",
    ]
    assert [reading.warns for reading in readings(run, "consecutive_errors")] == [False, True, False, False, False, False]
    assert end(run) == ("consecutive_errors", 6)
    warning = "Warning: 2 errors in a row; at 4 the run is stopped. Do not try the same again: find out what is wrong, or go another way."
    assert [message for message in run.history if message.content.startswith("Warning")] == [Message("user", warning)]
    assert run.history[5].content == warning


def test_after_a_reset_it_warns_again() -> None:
    run = play(ConsecutiveErrors(3, warn_at=2), failed(), failed(), did(), failed(), failed())
    assert [reading.warns for reading in readings(run, "consecutive_errors")] == [False, True, False, False, True]


@pytest.mark.parametrize(
    ("guard", "error", "message"),
    [
        (lambda: ConsecutiveErrors(2, warn_at=2), ValueError, "warn_at is 2; it must be below max_errors, which is 2"),
        (lambda: ConsecutiveErrors(2, warn_at=0), ValueError, "warn_at is 0; it must be at least 1"),
        (lambda: ConsecutiveErrors(2, count_malformed=1), TypeError, "count_malformed is 1; it must be true or false"),  # type: ignore[arg-type]  # wrong on purpose
        (lambda: ErrorStreak(0), ValueError, "max_same_errors is 0; it must be at least 1"),
        (lambda: Denied(True), TypeError, "max_denials is True; it must be a whole number"),
    ],
)
def test_limits_are_refused_when_configured(guard: type[Guard], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{message}$"):
        guard()


# --- denied -------------------------------------------------------------------------------------------------------


def test_the_same_call_denied_twice_halts_in_a_row_or_not() -> None:
    no = failed("rm", "denied", "denied", path="/")
    run = play(Denied(), no, did(), failed("rm", "denied", "denied", path="/tmp"), malformed(), no)
    assert end(run) == ("denied", 5)
    assert values(run, "denied") == [1, 1, 1, 1, 2]
    assert readings(run, "denied")[-1].evidence == (Evidence(1, "denied", "rm{path=/}"), Evidence(5, "denied", "rm{path=/}"))
    assert message_of(run, ENGLISH) == "stopped: the call rm{path=/} was denied 2 times"


def test_duplicates_in_a_batch_are_denied_once_and_only_the_denied_calls_of_a_batch_count() -> None:
    twice = batch(("rm", {}, "denied", "denied"), ("rm", {}, "denied", "denied"))
    half = batch(("rm", {}, "denied", "denied"), ("ls", {}, "x", "ok"))
    assert values(play(Denied(), twice), "denied") == [1]
    assert values(play(Denied(), half, failed("ls")), "denied") == [1, 1]


def test_an_error_is_no_denial() -> None:
    assert values(play(Denied(), *[failed()] * 4), "denied") == [0] * 4


def test_what_is_remembered_is_bounded_by_the_latest_denials() -> None:
    guard = Denied(3)
    steps = [failed("rm", "denied", "denied", n=n) for n in range(REMEMBERED + 10)]
    run = play(guard, *steps)
    assert next(iter(run.memories[0].denied.values())).evidence == (Evidence(11, "denied", "rm{n=10}"),)
    assert len(run.memories[0].denied) == REMEMBERED
