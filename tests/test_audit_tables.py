"""Whole tables over seven runs, computed by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fsm_agent.audit.audit import Audit, audit_runs, by_model
from fsm_agent.audit.figures import Share
from fsm_agent.audit.plan import parse_sweep, plan_of
from fsm_agent.audit.tables import CappedRow, GroupRow, GuardRow, HaltRow, NearRow, NearRun
from fsm_agent.guards import ConsecutiveErrors, Guard, LimitsError, MaxSteps, TokenBudget, ToolBudget, classic, parse_limits, production
from fsm_agent.traces.recordings import Damaged, Recording
from tests.scripted_recordings import recorded

WEAK = (
    recorded("w1", "a! a! a! a! a! a!", "failure", "cap", source="weak", tokens=10),
    recorded("w2", "a b a c =", "failure", source="weak"),
    recorded("w3", "a! a! a! b =", "success", source="weak"),
    recorded("w4", "a b c d e f", "failure", "cap", source="weak"),
)
STRONG = (
    recorded("s1", "a =", "success", source="strong"),
    recorded("s2", 'a " b', "failure", "user_stop", source="strong"),
    recorded("s3", "b b b b b", source="strong"),
)
RUNS = (*WEAK, *STRONG)


def audited(*what_ifs: str, sweep: str = "", preset: str = "production", limits: dict[str, object] | None = None) -> Audit:
    base = limits or {}
    plans = [plan_of(preset, {**base, **parse_limits(text)}, text) for text in what_ifs]
    sweeps = [parse_sweep(sweep)] if sweep else []
    return audit_runs(RUNS, plan_of(preset, base), what_ifs=plans, sweeps=[(each, each.plans(preset, base)) for each in sweeps])


def test_the_groups_and_all_runs_together() -> None:
    assert audited().base.groups == (
        GroupRow("strong", 3, successes=1, failures=1, unknown=1, model_calls=10, beyond=Share(0, 3)),
        GroupRow("weak", 4, successes=1, failures=3, unknown=0, model_calls=22, beyond=Share(1, 4)),
        GroupRow("all", 7, successes=2, failures=4, unknown=1, model_calls=32, beyond=Share(1, 7)),
    )


def test_halt_reasons_by_count_with_outcomes_and_medians() -> None:
    assert audited().base.halts == (
        HaltRow("strong", "final_answer", "", Share(1, 3), 1, 0, 0, 2, None, 1),
        HaltRow("strong", "no_progress", "", Share(1, 3), 0, 0, 1, 4, None, 1),
        HaltRow("strong", "recording_ended", "user_stop", Share(1, 3), 0, 1, 0, 3, None, 1),
        HaltRow("weak", "error_streak", "", Share(2, 4), 1, 1, 0, 3, 30, 1),
        HaltRow("weak", "final_answer", "", Share(1, 4), 0, 1, 0, 5, None, 1),
        HaltRow("weak", "recording_ended", "cap", Share(1, 4), 0, 1, 0, 6, None, 1),
        HaltRow("all", "error_streak", "", Share(2, 7), 1, 1, 0, 3, 30, 1),
        HaltRow("all", "final_answer", "", Share(2, 7), 1, 1, 0, 3.5, None, 2),
        HaltRow("all", "no_progress", "", Share(1, 7), 0, 0, 1, 4, None, 1),
        HaltRow("all", "recording_ended", "cap", Share(1, 7), 0, 1, 0, 6, None, 1),
        HaltRow("all", "recording_ended", "user_stop", Share(1, 7), 0, 1, 0, 3, None, 1),
    )


def row(
    group: str,
    guard: str,
    of: Sequence[int],
    stopped: int = 0,
    saved: int = 0,
    kills: Sequence[tuple[str, int]] = (),
    capped: int = 0,
    unknown: int = 0,
    late: int = 0,
) -> GuardRow:
    """``of``: failures, their model calls, successes, capped runs, runs of unknown outcome; ``late``: capped ones halted at their end."""
    failures, calls, successes, caps, unknowns = of
    median = kills[0][1] if kills else None
    return GuardRow(
        group,
        guard,
        Share(stopped, failures),
        Share(saved, calls),
        Share(len(kills), successes),
        median,
        tuple(kills),
        Share(capped, caps),
        Share(unknown, unknowns),
        Share(caps - capped - late, failures + successes + unknowns),
    )


def test_what_each_guard_stops_and_kills() -> None:
    strong, weak, everything = (1, 3, 1, 0, 1), (3, 17, 1, 2, 0), (4, 20, 2, 2, 1)
    kill = [("weak:w3", 3)]
    assert audited().base.guards == (
        row("strong", "denied", strong),
        row("strong", "truncated_reply", strong),
        row("strong", "empty_reply", strong),
        row("strong", "error_streak", strong),
        row("strong", "no_progress", strong, unknown=1),
        row("strong", "malformed_streak", strong),
        row("strong", "consecutive_errors", strong),
        row("strong", "all guards", strong, unknown=1),
        row("weak", "denied", weak),
        row("weak", "truncated_reply", weak),
        row("weak", "empty_reply", weak),
        row("weak", "error_streak", weak, stopped=1, saved=3, kills=kill, capped=1),
        row("weak", "no_progress", weak, stopped=1, saved=2, capped=1),
        row("weak", "malformed_streak", weak),
        row("weak", "consecutive_errors", weak),
        row("weak", "all guards", weak, stopped=1, saved=3, kills=kill, capped=1),
        row("all", "denied", everything),
        row("all", "truncated_reply", everything),
        row("all", "empty_reply", everything),
        row("all", "error_streak", everything, stopped=1, saved=3, kills=kill, capped=1),
        row("all", "no_progress", everything, stopped=1, saved=2, capped=1, unknown=1),
        row("all", "malformed_streak", everything),
        row("all", "consecutive_errors", everything),
        row("all", "all guards", everything, stopped=1, saved=3, kills=kill, capped=1, unknown=1),
    )


def test_near_misses_are_runs_that_were_let_pass_within_one_of_a_limit() -> None:
    runs = (NearRun("weak:w2", "no_progress", 3, 4, 3), NearRun("weak:w3", "no_progress", 3, 4, 3))
    near = {(each.group, each.guard): each for each in audited().base.near_misses if each.near_misses.count}

    assert near == {
        ("weak", "no_progress"): NearRow("weak", "no_progress", Share(2, 4), 1, 1, 0, runs),
        ("weak", "any guard"): NearRow("weak", "any guard", Share(2, 4), 1, 1, 0, runs),
        ("all", "no_progress"): NearRow("all", "no_progress", Share(2, 7), 1, 1, 0, runs),
        ("all", "any guard"): NearRow("all", "any guard", Share(2, 7), 1, 1, 0, runs),
    }


@pytest.mark.parametrize(
    ("guards", "near"),
    [
        ((ConsecutiveErrors(1),), False),
        ((ConsecutiveErrors(2),), True),
        ((ConsecutiveErrors(3),), False),
        ((MaxSteps(4),), True),
        ((MaxSteps(5),), False),
        ((ToolBudget(3),), True),
        ((ToolBudget(4),), False),
        ((TokenBudget(31),), True),
        ((TokenBudget(33),), True),
        ((TokenBudget(34),), False),
    ],
)
def test_within_one_means_one_more_and_of_a_budget_nine_tenths(guards: tuple[Guard, ...], near: bool) -> None:
    from fsm_agent.audit.plan import Plan

    run = recorded("r", "a! b c", tokens=10)
    assert audit_runs([run], Plan("tried", guards)).base.near_misses[-1].near_misses == Share(int(near), 1)


def test_no_guard_would_have_helped_some_of_the_runs_that_ended_at_a_cap() -> None:
    assert audited().base.capped == (
        CappedRow("strong", Share(0, 3), Share(0, 0), ()),
        CappedRow("weak", Share(2, 4), Share(1, 2), ("weak:w4",)),
        CappedRow("all", Share(2, 7), Share(1, 2), ("weak:w4",)),
    )


def test_a_cap_of_ones_own_stops_runs_but_is_no_guard_that_helps() -> None:
    (found,) = audited("max_steps=5").what_ifs
    together = found.together("weak")

    assert (together.failures_stopped, together.calls_saved, together.false_kills) == (Share(2, 3), Share(4, 17), Share(1, 1))
    assert together.capped_stopped_early == Share(2, 2)
    assert found.capped[-1].no_guard_helped == Share(1, 2)
    assert found.groups[-1].beyond == Share(0, 7)


def test_a_what_if_that_would_have_let_runs_go_on_says_beyond_the_recording() -> None:
    (loose,) = audited("max_steps=50", preset="classic", limits={"max_repeats": 9, "max_errors": 9}).what_ifs

    assert loose.groups[-1].beyond == Share(2, 7)
    assert [(each.reason, each.ending, each.halts.count) for each in loose.halts if each.group == "weak"] == [
        ("final_answer", "", 2),
        ("recording_ended", "cap", 2),
    ]
    assert loose.together().calls_saved == Share(0, 20)


def test_a_run_that_its_own_guards_halted_goes_beyond_its_recording_too() -> None:
    halted = recorded("r", "a a a", ending="guard")
    assert audit_runs([halted], plan_of("classic", {"max_repeats": 3})).pooled.beyond == Share(1, 1)
    assert audit_runs([halted], plan_of("classic", {})).pooled.beyond == Share(0, 1)
    assert audit_runs([recorded("r", "a a a")], plan_of("none", {})).pooled.beyond == Share(0, 1)


def test_a_halt_at_the_last_step_neither_saves_nor_kills() -> None:
    runs = [recorded("f", "b a a a", "failure", "cap"), recorded("s", "b a a a", "success", "transfer")]
    found = audit_runs(runs, plan_of("classic", {})).base

    assert [(each.reason, each.halts) for each in found.halts] == [("repeated_call", Share(2, 2))] * 2
    assert found.together() == row("all", "all guards", (1, 4, 1, 1, 0), late=1)
    assert found.capped[-1].no_guard_helped == Share(1, 1)


def test_a_sweep_tries_each_value_alone_and_together_with_the_other_guards() -> None:
    (sweep,) = audited(sweep="max_same_errors=2..4").sweeps
    found = [(point.value, point.alone("weak"), point.tables.together("weak")) for point in sweep.points]

    of = (3, 17, 1, 2, 0)
    assert sweep.limit == "max_same_errors"
    assert found == [
        (2, row("weak", "error_streak", of, 1, 4, [("weak:w3", 2)], 1), row("weak", "all guards", of, 1, 4, [("weak:w3", 2)], 1)),
        (3, row("weak", "error_streak", of, 1, 3, [("weak:w3", 3)], 1), row("weak", "all guards", of, 1, 3, [("weak:w3", 3)], 1)),
        (4, row("weak", "error_streak", of, 1, 2, (), 1), row("weak", "all guards", of, 1, 2, (), 1)),
    ]


def test_a_guard_that_a_sweep_takes_away_has_no_row() -> None:
    (sweep,) = audited(sweep="max_same_errors=3,off").sweeps

    assert [(point.value, point.alone("weak") is None) for point in sweep.points] == [(3, False), (None, True)]


def test_runs_can_be_grouped_by_model_even_by_one_that_is_called_all() -> None:
    runs = [recorded("1", "a =", model="all"), recorded("2", "a ="), recorded("3", "a =", model="m")]
    found = audit_runs(runs, plan_of("classic", {}), group=by_model)

    assert [(each.group, each.runs) for each in found.base.groups] == [("(all)", 1), ("(unknown model)", 1), ("m", 1), ("all", 3)]


def test_damaged_runs_are_counted_and_the_others_go_on() -> None:
    impossible = Recording("2", "made", "a task", (*recorded("2", "a =").events, *recorded("2", "a").events[1:]))
    skipped = Recording("3", "made", "a task", recorded("3", "a").events[1:])
    found = audit_runs([Damaged("line 1", "no JSON"), recorded("1", "a ="), impossible, skipped], plan_of("classic", {}))

    assert found.pooled.runs == 2  # what comes after an answer is not looked at
    assert found.damaged == (
        Damaged("line 1", "no JSON"),
        Damaged(
            "made:3", "ToolsReturned in Deciding (step 0): this state takes ModelReplied, ModelFailed, UserSpoke, Cancelled, RecordingEnded"
        ),
    )


def test_without_runs_every_table_is_of_nothing() -> None:
    found = audit_runs([], plan_of("classic", {}))

    assert found.base.groups == (GroupRow("all", 0, 0, 0, 0, 0, Share(0, 0)),)
    assert found.base.halts == ()
    assert found.base.together().false_kills.share is None


def test_a_plan_has_a_cap_only_where_one_is_given() -> None:
    assert plan_of("production", {}).guards == production(1)[:-1]
    assert plan_of("production", {"max_steps": 30}).guards == production(30)
    assert plan_of("classic", {"max_errors": 3}).guards == classic(max_errors=3)[:-1]
    assert plan_of("none", {}).guards == ()
    assert plan_of("none", {"max_errors": 3, "max_steps": None}).guards == (ConsecutiveErrors(3),)
    with pytest.raises(LimitsError, match="max_errors is 0; it must be at least 1"):
        plan_of("classic", {"max_errors": 0})


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("max_errors=1..3", (1, 2, 3)),
        ("max_steps = 10..30..10", (10, 20, 30)),
        ("max_cost=0.5,1", (0.5, 1)),
        ("max_errors=off,2", (None, 2)),
        ("max_errors=4", (4,)),
    ],
)
def test_a_sweep_as_people_write_it(text: str, values: tuple[object, ...]) -> None:
    sweep = parse_sweep(text)
    assert (sweep.limit, sweep.values) == (text.partition("=")[0].strip(), values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("max_errors", "'max_errors' is not of the form name=first..last"),
        ("max_errors=3..1", "'max_errors=3..1' has no values: the first must not be above the last, and the step not 0"),
        ("max_errors=1..3..0", "'max_errors=1..3..0' has no values: the first must not be above the last, and the step not 0"),
        ("max_steps=1..900", "'max_steps=1..900' has more than 100 values; give a larger step, as in max_steps=1..900..89"),
        ("max_errors=2,2", "'max_errors=2,2': give from 1 to 100 values, each once"),
        ("foo=1..3", "'foo' is not the name of a limit; known are "),
        ("foo=1,3", "'foo' is not the name of a limit; known are "),
    ],
)
def test_a_sweep_that_cannot_be_meant_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(LimitsError) as caught:
        parse_sweep(text)
    assert str(caught.value).startswith(message)
