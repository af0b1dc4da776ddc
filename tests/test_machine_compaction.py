"""Summing up: once a step a summary may take the place of the beginning of what the model is shown; it covers ever more."""

from __future__ import annotations

from typing import Any

import pytest

from fsm_agent.events import AskModel, AttemptFailed, Cancelled, ContextCompacted, Event, Messages, ToolSpec, Usage, UserSpoke
from fsm_agent.guards import CostBudget, Deadline, MaxSteps, TokenBudget, classic
from fsm_agent.machine import Run, Taken
from fsm_agent.options import OFF, Options
from tests.machine_pairs import calls, fed, path, refused, returned, says, started, steps

SUMS = Options(compaction=True)
STEP: tuple[Event, ...] = (calls({"a": 1}), returned("1"))
OTHER_STEP: tuple[Event, ...] = (calls({"a": 2}), returned("2"))


def summed(covers: int, **fields: Any) -> ContextCompacted:
    return ContextCompacted(covers, "what was", **fields)


def test_a_summary_is_kept_and_the_history_stays_whole() -> None:
    run = fed(SUMS, *STEP, summed(3), tools=(ToolSpec("add"),))
    plain = fed(SUMS, *STEP, tools=(ToolSpec("add"),))
    assert run.summary == summed(3)
    assert run.history == plain.history
    assert run.effect == plain.effect == AskModel(Messages(run.history, 4), (ToolSpec("add"),))
    assert (run.state, run.step, run.log[-2:]) == ("Deciding", 1, [summed(3), Taken("compacted", 2)])


def test_the_task_alone_can_be_summed_up_before_the_first_step() -> None:
    run = fed(SUMS, summed(2), says("done"))
    assert (path(run), steps(run), run.reason) == (["compacted", "model_replied", "final_answer"], [1, 1, 1], "final_answer")


def test_a_step_has_one_summary_and_the_next_may_have_another() -> None:
    run = fed(SUMS, *STEP, summed(2))
    refused(
        run,
        summed(3),
        "ContextCompacted in Deciding (step 1): this state takes ModelReplied, ModelFailed, UserSpoke, Cancelled, RecordingEnded",
    )
    run = fed(SUMS, *STEP, summed(2), *OTHER_STEP, summed(6), says("done"))
    assert (run.summary, path(run).count("compacted")) == (summed(6), 2)


def test_a_person_who_speaks_makes_no_new_step_of_it() -> None:
    run = fed(SUMS, *STEP, summed(2), UserSpoke("go on"))
    assert ContextCompacted not in run.accepts
    assert run.summed_up


@pytest.mark.parametrize(
    ("before", "covers", "least", "most"),
    [
        ((), 0, 0, 2),
        ((), -1, 0, 2),
        ((), 3, 0, 2),
        ((*STEP, summed(3), *OTHER_STEP), 3, 3, 6),
        ((*STEP, summed(3), *OTHER_STEP), 2, 3, 6),
        ((*STEP, summed(3), *OTHER_STEP), 7, 3, 6),
    ],
)
def test_a_summary_covers_more_than_the_one_before_and_no_more_than_there_is(
    before: tuple[Event, ...], covers: int, least: int, most: int
) -> None:
    run = fed(SUMS, *before)
    assert len(run.history) == most
    step = run.step
    message = f"ContextCompacted in Deciding (step {step}): covers is {covers}: it must be above {least} and at most {most}"
    refused(run, summed(covers), message)


@pytest.mark.parametrize("covers", [4, 5, 6])
def test_each_longer_beginning_can_be_covered(covers: int) -> None:
    run = fed(SUMS, *STEP, summed(3), *OTHER_STEP, summed(covers))
    assert run.summary == summed(covers)


def test_a_summary_while_tools_run_is_refused() -> None:
    run = fed(SUMS, calls({"a": 1}))
    refused(run, summed(1), "ContextCompacted in Executing (step 1): this state takes ToolsReturned, Cancelled, RecordingEnded")


def test_a_failed_attempt_before_a_summary_stays_counted() -> None:
    run = fed(Options(compaction=True, max_retries=2), *STEP, AttemptFailed("RateLimitError", "busy"), summed(2))
    assert (run.retries, run.summed_up) == (1, True)
    assert isinstance(run.effect, AskModel)
    assert (run.effect.attempt, run.effect.delay_s) == (2, 0.5)
    assert AttemptFailed in run.accepts
    assert ContextCompacted not in run.accepts


def test_a_run_can_end_after_a_summary() -> None:
    run = fed(SUMS, *STEP, summed(2), Cancelled(asked=False))
    assert (run.reason, run.step) == ("cancelled", 1)


# --- guards ------------------------------------------------------------------------------------------------------


def value(run: Run, reason: str) -> tuple[float, int]:
    reading = next(reading for reading in run.readings if reading.guard == reason)
    return reading.value, reading.unknown


@pytest.mark.parametrize(
    ("usage", "tokens", "cost"),
    [
        (Usage(70, 7, 0.5), (77, 2), (0.5, 2)),
        (Usage(70, None, None), (70, 3), (0, 3)),
        (None, (0, 3), (0, 3)),
    ],
)
def test_what_a_summary_cost_is_charged_to_the_budgets(usage: Usage | None, tokens: tuple[int, int], cost: tuple[float, int]) -> None:
    guards = (TokenBudget(1_000), CostBudget(9.0), MaxSteps(9))
    run = fed(SUMS, *STEP, summed(2, usage=usage), calls({"a": 2}), guards=guards)
    assert (value(run, "token_budget"), value(run, "cost_budget")) == (tokens, cost)


def test_a_budget_that_a_summary_wears_out_halts_after_the_next_reply() -> None:
    run = fed(SUMS, *STEP, summed(2, usage=Usage(99, 1)), guards=(TokenBudget(100),))
    assert run.state == "Deciding"
    run.feed(calls({"a": 2}))
    assert (run.reason, run.step) == ("token_budget", 2)


def test_an_answer_is_kept_all_the_same() -> None:
    run = fed(SUMS, *STEP, summed(2, usage=Usage(99, 1)), says("done"), guards=(TokenBudget(100),))
    assert run.reason == "final_answer"


def test_the_time_that_it_took_counts() -> None:
    run = fed(SUMS, summed(2, at=30.0), calls({"a": 2}), guards=(Deadline(20.0), *classic()), at=0.0)
    run.feed(returned("2", at=30.0))
    assert (run.reason, run.readings[1].value) == ("deadline", 30.0)


def test_it_is_no_step_for_the_cap() -> None:
    run = fed(SUMS, summed(1), *STEP, summed(2), guards=(MaxSteps(2),))
    assert (run.state, value(run, "max_steps")) == ("Deciding", (1, 0))


# --- off ---------------------------------------------------------------------------------------------------------


def test_without_compaction_there_is_no_edge_for_it() -> None:
    refused(
        started(OFF),
        summed(1),
        "ContextCompacted in Deciding (step 0): this state takes ModelReplied, ModelFailed, UserSpoke, Cancelled, RecordingEnded",
    )
    plain, with_it = (started(options).wiring.rows for options in (OFF, SUMS))
    assert [row.id for row in with_it if row not in plain] == ["compacted"]
