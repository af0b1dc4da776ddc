"""Asking again: a model that could not be asked is asked again so many times, after waits, and only then has the run failed."""

from __future__ import annotations

import math

import pytest

from fsm_agent.events import AskModel, AttemptFailed, Cancelled, Message, Messages, ModelFailed, RecordingEnded, ToolSpec, UserSpoke
from fsm_agent.guards import Deadline, MaxSteps, classic
from fsm_agent.language import ENGLISH
from fsm_agent.machine import Run, Taken
from fsm_agent.options import FEATURES, OFF, Options
from fsm_agent.outcome import answer_of, message_of
from fsm_agent.table import ROWS
from fsm_agent.traces import Trace
from fsm_agent.traces.record import decode_entry, decode_header, encode, header_of
from tests.machine_pairs import calls, fed, path, recorded, refused, returned, says, started, steps

THREE = Options(max_retries=3, first_wait_s=1.0, max_wait_s=60.0)
BUSY = AttemptFailed("RateLimitError", "too many requests")


def delay(run: Run) -> float:
    assert isinstance(run.effect, AskModel)
    return run.effect.delay_s


def waits(options: Options, *asked_s: float | None) -> list[float]:
    """The wait after each failure."""
    run = started(options)
    found = []
    for each in asked_s:
        run.feed(AttemptFailed("RateLimitError", "busy", each))
        found.append(delay(run))
    recorded(run)
    return found


# --- asked again -------------------------------------------------------------------------------------------------


def test_a_failed_attempt_is_no_step_and_the_same_is_asked_again_after_a_wait() -> None:
    run = fed(THREE, BUSY, tools=(ToolSpec("add"),))
    assert run.log == [BUSY, Taken("retry", 1)]
    assert (run.state, run.step, run.reason, run.retries) == ("Deciding", 0, None, 1)
    assert run.effect == AskModel(Messages(run.history, 2), (ToolSpec("add"),), attempt=2, delay_s=1.0)
    assert [message.role for message in run.history] == ["system", "user"]


def test_the_first_time_nobody_waits() -> None:
    assert started(THREE).effect == AskModel(Messages(started(THREE).history, 2), (), attempt=1, delay_s=0.0)


def test_each_wait_is_twice_the_one_before_up_to_the_longest() -> None:
    assert waits(Options(max_retries=6, first_wait_s=0.5, max_wait_s=5.0), *[None] * 6) == [0.5, 1.0, 2.0, 4.0, 5.0, 5.0]


def test_a_wait_that_the_server_asks_for_is_obeyed_also_where_it_is_shorter() -> None:
    assert waits(Options(max_retries=6, first_wait_s=4.0, max_wait_s=5.0), 3.0, 0.25, None, 5.0, 0.0, -1.0) == [
        3.0,
        0.25,
        5.0,
        5.0,
        0.0,
        0.0,
    ]


@pytest.mark.parametrize("asked_s", [60.000001, 1e300])
def test_a_wait_that_is_too_long_is_not_waited(asked_s: float) -> None:
    run = fed(THREE, AttemptFailed("RateLimitError", "tomorrow", asked_s))
    assert (run.state, run.reason, run.step, run.effect, run.wait_s) == ("Halted", "model_error", 1, None, None)
    assert path(run) == ["retries_exhausted"]


@pytest.mark.parametrize("asked_s", [math.inf, -math.inf, math.nan])
def test_what_is_no_number_of_seconds_says_nothing_and_the_record_replays_alike(asked_s: float) -> None:
    run = started(THREE)
    run.feed(BUSY)
    run.feed(AttemptFailed("RateLimitError", "for ever", asked_s))
    line = encode(run.log[2])
    assert decode_entry(line) == AttemptFailed("RateLimitError", "for ever")
    assert (delay(run), run.retries) == (2.0, 2)
    assert fed(THREE, BUSY, AttemptFailed("RateLimitError", "for ever")).effect == run.effect


def test_the_last_wait_that_is_too_long_ends_it_early() -> None:
    run = fed(THREE, BUSY, AttemptFailed("RateLimitError", "tomorrow", 61.0))
    assert (run.reason, run.step, run.retries, path(run)) == ("model_error", 1, 1, ["retry", "retries_exhausted"])


def test_after_the_last_retry_the_run_halts_as_model_error_and_only_that_is_a_step() -> None:
    run = fed(THREE, BUSY, BUSY, BUSY, AttemptFailed("InternalServerError", "no luck", at=9.0))
    assert path(run) == ["retry", "retry", "retry", "retries_exhausted"]
    assert steps(run) == [1, 1, 1, 1]
    assert (run.state, run.reason, run.step, run.effect) == ("Halted", "model_error", 1, None)
    assert run.retries == 3
    assert answer_of(run) is None
    assert message_of(run, ENGLISH) == "stopped: the model failed (InternalServerError: no luck)"


def test_a_reply_after_retries_begins_the_step_and_the_count_starts_anew() -> None:
    run = fed(THREE, BUSY, BUSY, BUSY, calls({"a": 1}), returned("1"))
    assert steps(run) == [1, 1, 1, 1, 1, 1, 1]
    assert (run.step, run.retries, run.wait_s) == (1, 0, None)
    assert run.effect == AskModel(Messages(run.history, len(run.history)), ())
    run = fed(THREE, BUSY, BUSY, BUSY, calls({"a": 1}), returned("1"), BUSY, BUSY, BUSY, says("1"))
    assert (run.reason, run.step, answer_of(run)) == ("final_answer", 2, "1")
    run = fed(THREE, BUSY, BUSY, BUSY, says(""), BUSY, BUSY, BUSY, BUSY)
    assert (run.reason, run.step) == ("model_error", 2)
    assert path(run).count("retry") == 6


def test_the_wait_starts_anew_with_the_count() -> None:
    run = fed(THREE, BUSY, BUSY, says(""), BUSY)
    assert (delay(run), run.retries) == (1.0, 1)
    assert isinstance(run.effect, AskModel)
    assert run.effect.attempt == 2


def test_a_failure_that_is_not_worth_asking_again_halts_though_retries_are_left() -> None:
    run = fed(THREE, BUSY, ModelFailed("AuthenticationError", "no such key"))
    assert (run.reason, run.step, path(run)) == ("model_error", 1, ["retry", "model_error"])
    assert message_of(run, ENGLISH) == "stopped: the model failed (AuthenticationError: no such key)"


# --- what else happens while it is waited --------------------------------------------------------------------------


def test_a_person_may_speak_while_it_is_waited_and_the_count_stays() -> None:
    run = fed(THREE, BUSY, UserSpoke("are you there?"))
    assert (path(run), run.retries, run.step) == (["retry", "user_spoke"], 1, 0)
    assert run.effect == AskModel(Messages(run.history, 3), (), attempt=2, delay_s=1.0)
    assert run.history[-1] == Message("user", "are you there?")
    run = fed(THREE, BUSY, UserSpoke("are you there?"), BUSY, UserSpoke("hello?"), BUSY, BUSY)
    assert (run.reason, run.step) == ("model_error", 1)


@pytest.mark.parametrize(
    ("event", "reason", "step"),
    [(Cancelled(), "cancelled", 1), (Cancelled(asked=False), "cancelled", 0), (RecordingEnded(), "recording_ended", 0)],
)
def test_a_run_can_end_while_it_is_waited(event: Cancelled | RecordingEnded, reason: str, step: int) -> None:
    run = fed(THREE, BUSY, event)
    assert (run.reason, run.step, run.effect) == (reason, step, None)


# --- guards ------------------------------------------------------------------------------------------------------


def test_a_retry_is_no_step_for_the_cap_either() -> None:
    run = fed(THREE, BUSY, BUSY, calls({"a": 1}), returned("1"), guards=(MaxSteps(2),))
    assert (run.state, run.readings[-1].value) == ("Deciding", 1)
    assert fed(THREE, BUSY, BUSY, calls({"a": 1}), returned("1"), guards=(MaxSteps(1),)).reason == "max_steps"


def test_the_time_of_failed_attempts_counts_and_halts_where_it_is_judged() -> None:
    failed = [AttemptFailed("RateLimitError", "busy", at=at) for at in (4.0, 8.0)]
    run = fed(THREE, *failed, calls({"a": 1}), guards=(Deadline(6.0),), at=0.0)
    assert (run.state, path(run)) == ("Executing", ["retry", "retry", "model_replied", "call_tools"])
    run.feed(returned("1", at=8.5))
    assert run.reason == "deadline"
    (reading,) = run.readings
    assert (reading.value, reading.unknown) == (8.5, 1)
    assert reading.evidence == ()


# --- off ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [OFF, Options(max_retries=0, approvals=True, compaction=True, last_chance=True, tool_servers=True)])
def test_without_retries_there_is_no_edge_for_them(options: Options) -> None:
    rows = {row.trigger for row in started(options).wiring.rows}
    assert "attempt_failed" not in rows
    taken = "ContextCompacted, UserSpoke" if options.compaction else "UserSpoke"
    refused(
        started(options),
        BUSY,
        f"AttemptFailed in Deciding (step 0): this state takes ModelReplied, ModelFailed, {taken}, Cancelled, RecordingEnded",
    )


def test_a_failed_attempt_while_tools_run_is_refused() -> None:
    run = fed(THREE, calls({"a": 1}))
    refused(run, BUSY, "AttemptFailed in Executing (step 1): this state takes ToolsReturned, Cancelled, RecordingEnded")


def test_with_retries_alone_their_two_edges_are_there_and_no_other() -> None:
    plain, with_them = (started(options).wiring.rows for options in (OFF, THREE))
    assert [row.id for row in with_them if row not in plain] == ["retry", "retries_exhausted"]
    assert [row for row in with_them if row in plain] == list(plain)


# --- options -----------------------------------------------------------------------------------------------------


def test_what_is_on_names_its_feature() -> None:
    assert OFF.features == frozenset()
    assert Options(max_retries=1).features == {"retries"}
    assert Options(approvals=True).features == {"approvals"}
    assert Options(compaction=True).features == {"compaction"}
    assert Options(last_chance=True).features == {"last_chance"}
    assert Options(tool_servers=True).features == {"tool_servers"}
    assert Options(first_wait_s=9.0, max_wait_s=9.0, max_observation_chars=9).features == frozenset()
    everything = Options(max_retries=1, approvals=True, compaction=True, last_chance=True, tool_servers=True)
    assert everything.features == set(FEATURES) == {row.needs for row in ROWS} - {None}


@pytest.mark.parametrize(
    ("retries", "asked_s", "wait_s"),
    [
        (0, None, 2.0),
        (1, None, 4.0),
        (2, None, 8.0),
        (3, None, None),
        (4, None, None),
        (0, 0.0, 0.0),
        (2, 10.0, 10.0),
        (2, 10.5, None),
        (3, 1.0, None),
        (0, -3.0, 0.0),
        (0, math.nan, 2.0),
        (1, math.inf, 4.0),
        (3, math.inf, None),
    ],
)
def test_how_long_is_waited(retries: int, asked_s: float | None, wait_s: float | None) -> None:
    assert Options(max_retries=3, first_wait_s=2.0, max_wait_s=10.0).wait_s(retries, asked_s) == wait_s


def test_the_waits_of_very_many_retries_do_not_overflow() -> None:
    assert Options(max_retries=5_000).wait_s(4_000, None) == 60.0


def test_a_header_tells_what_is_on_and_one_without_options_is_that_of_a_run_that_has_none() -> None:
    header = header_of(started(THREE))
    assert b'"options":{"max_retries":3,"first_wait_s":1.0,"max_wait_s":60.0}' in encode(header)
    assert decode_header(encode(header)).options == THREE
    assert b"options" not in encode(header_of(started(OFF)))
    old = decode_header(b'{"trace":1,"task":"t","protocol":"function_calling"}')
    assert old.options == OFF
    assert Trace(old, []).new_run().wiring.rows == started(OFF, ()).wiring.rows


def test_the_classic_guards_see_nothing_of_retries() -> None:
    one, other = fed(THREE, calls({"a": 1}), returned("1")), fed(THREE, BUSY, BUSY, calls({"a": 1}), returned("1"), guards=classic())
    assert one.readings == other.readings
