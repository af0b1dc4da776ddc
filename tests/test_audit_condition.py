from __future__ import annotations

import attrs
import pytest

from fsm_agent.audit.audit import Audit, audit_runs
from fsm_agent.audit.condition import FIGURES, ConditionError, judge, parse
from fsm_agent.audit.plan import parse_sweep, plan_of
from fsm_agent.audit.tables import CappedRow, GroupRow, GuardRow, HaltRow, NearRow
from fsm_agent.traces.recordings import Damaged
from tests.scripted_recordings import recorded
from tests.test_audit_tables import RUNS


def audited() -> Audit:
    sweep = parse_sweep("max_same_errors=2..4")
    return audit_runs(
        [*RUNS, Damaged("line 1", "no JSON")],
        plan_of("production", {}),
        what_ifs=[plan_of("production", {"max_steps": 5}, "max_steps=5")],
        sweeps=[(sweep, sweep.plans("production", {}))],
    )


@pytest.mark.parametrize(
    ("text", "said", "holds"),
    [
        ("false_kills > 0.5%", "false_kills is 1 of 2 (50.0%)", True),
        ("false_kills > 50%", "false_kills is 1 of 2 (50.0%)", False),
        ("false_kills >= 50%", "false_kills is 1 of 2 (50.0%)", True),
        ("false_kills=1", "false_kills is 1 of 2 (50.0%)", True),
        ("false_kills != 1", "false_kills is 1 of 2 (50.0%)", False),
        ("false_kills[group=strong] > 0", "false_kills in strong is 0 of 1 (0.0%)", False),
        ("false_kills[guard=no_progress] > 0", "false_kills is 0 of 2 (0.0%)", False),
        ("false_kills[plan=max_same_errors=4] > 0", "false_kills is 0 of 2 (0.0%)", False),
        ('false_kills[ plan = "max_same_errors=2" , group=weak ] == 100%', "false_kills in weak is 1 of 1 (100.0%)", True),
        ("calls_saved < 20%", "calls_saved is 3 of 20 (15.0%)", True),
        ("calls_saved[plan=1] < 20%", "calls_saved is 4 of 20 (20.0%)", False),
        ("failures_stopped <= 1", "failures_stopped is 1 of 4 (25.0%)", True),
        ("capped_stopped_early < 1", "capped_stopped_early is 1 of 2 (50.0%)", False),
        ("let_beyond > 1", "let_beyond is 1 of 7 (14.3%)", False),
        ("let_beyond[guard=denied] > 1", "let_beyond is 2 of 7 (28.6%)", True),
        ("unknown_stopped > 99.5%", "unknown_stopped is 1 of 1 (100.0%)", True),
        ("median_kill_step < 4", "median_kill_step is 3", True),
        ("median_kill_step[guard=denied] < 4", "median_kill_step is not known", None),
        ("halts[reason=error_streak] > 28%", "halts is 2 of 7 (28.6%)", True),
        ("halts[reason=recording_ended] > 1", "halts is 2 of 7 (28.6%)", True),
        ("halts[reason=recording_ended, ending=cap] > 1", "halts is 1 of 7 (14.3%)", False),
        ("halts[reason=max_steps] > 0", "halts is 0 of 7 (0.0%)", False),
        ("halts[reason=max_steps, plan=1] > 0", "halts is 1 of 7 (14.3%)", True),
        ("halts[reason=error_streak, outcome=success] > 10%", "halts is 1 of 7 (14.3%)", True),
        ("halts[reason=recording_ended, outcome=failure] = 2", "halts is 2 of 7 (28.6%)", True),
        ("halts[reason=no_progress, outcome=unknown, group=strong] = 1", "halts in strong is 1 of 3 (33.3%)", True),
        ("halts[reason=max_steps, outcome=failure] > 0", "halts is 0 of 7 (0.0%)", False),
        ("tokens_unknown[reason=final_answer] > 1", "tokens_unknown is 2", True),
        ("tokens_unknown[reason=recording_ended] > 1", "tokens_unknown is 2", True),
        ("tokens_unknown[reason=max_steps] > 0", "tokens_unknown is 0", False),
        ("near_misses[outcome=failure] > 0", "near_misses is 1 of 7 (14.3%)", True),
        ("near_misses[outcome=unknown, guard=no_progress] > 0", "near_misses is 0 of 7 (0.0%)", False),
        ("median_steps[reason=final_answer] > 3.4", "median_steps is 3.5", True),
        ("median_tokens[reason=error_streak] >= 30", "median_tokens is 30", True),
        ("median_tokens[reason=final_answer] >= 30", "median_tokens is not known", None),
        ("median_steps[reason=max_steps] > 0", "median_steps is not known", None),
        ("near_misses > 1", "near_misses is 2 of 7 (28.6%)", True),
        ("near_misses[guard=error_streak] > 0", "near_misses is 0 of 7 (0.0%)", False),
        ("capped > 1", "capped is 2 of 7 (28.6%)", True),
        ("no_guard_helped > 50%", "no_guard_helped is 1 of 2 (50.0%)", False),
        ("no_guard_helped[group=strong] > 50%", "no_guard_helped in strong is not known (of none)", None),
        ("beyond > 1", "beyond is 1 of 7 (14.3%)", False),
        ("runs < 8", "runs is 7", True),
        ("model_calls > 31.5", "model_calls is 32", True),
        ("unknown > 0", "unknown is 1", True),
        ("damaged > 0", "damaged is 1", True),
    ],
)
def test_a_condition_is_judged_on_the_row_that_it_chooses(text: str, said: str, holds: bool | None) -> None:
    (verdict,) = judge(parse(text), audited())
    assert (str(verdict), verdict.holds) == (said, holds)


NO_FIGURES = {
    **dict.fromkeys(("group", "guard", "reason", "ending"), "it chooses the row"),
    "kills": "the runs that false_kills counts",
    **{f"{table}.runs": "the runs that the table counts, by name" for table in ("near_misses", "capped")},
    **{
        f"{table}.{column}": "it is asked for by the outcome"
        for table in ("halts", "near_misses")
        for column in ("successes", "failures", "unknown")
    },
}


@pytest.mark.parametrize(
    ("table", "row"), [("groups", GroupRow), ("halts", HaltRow), ("guards", GuardRow), ("near_misses", NearRow), ("capped", CappedRow)]
)
def test_every_figure_of_the_tables_can_be_asked_for(table: str, row: type[attrs.AttrsInstance]) -> None:
    columns = {field.name for field in attrs.fields(row)}
    figures = {name for name, figure in FIGURES.items() if figure.table == table}
    without = {column for column in columns if column in NO_FIGURES or f"{table}.{column}" in NO_FIGURES}

    assert columns == figures | without
    assert not figures & without


def test_a_condition_on_each_group_is_judged_on_every_one_of_them() -> None:
    verdicts = judge(parse("false_kills[group=*] > 0"), audited())

    assert [(str(verdict), verdict.holds) for verdict in verdicts] == [
        ("false_kills in strong is 0 of 1 (0.0%)", False),
        ("false_kills in weak is 1 of 1 (100.0%)", True),
    ]


def test_a_share_is_compared_exactly() -> None:
    runs = [recorded(str(i), "a a a b =" if i < 3 else "a =", "success") for i in range(1000)]
    found = audit_runs(runs, plan_of("classic", {}))

    assert [judge(parse(f"false_kills {operator} 0.3%"), found)[0].holds for operator in (">", ">=", "=", "<=", "<")] == [
        False,
        True,
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is no condition; write one like false_kills > 0.5%, or near_misses[guard=max_steps] > 10"),
        ("false_kills", "'false_kills' is no condition; "),
        ("false_kills > -1", "'false_kills > -1' is no condition; "),
        ("false_kills > 1e9", "'false_kills > 1e9' is no condition; "),
        ("false_kills > nan", "'false_kills > nan' is no condition; "),
        ("__import__('os') > 1", "\"__import__('os') > 1\" is no condition; "),
        ("kills > 1", f"'kills' is no figure of an audit; known are {', '.join(FIGURES)}"),
        ("false_kills[reason=x] > 1", "false_kills has no 'reason'; it can be chosen by group, plan, guard"),
        ("damaged[group=x] > 1", "damaged has no 'group'; it can be chosen by nothing"),
        ("false_kills[group] > 1", "'group' chooses no row; write name=value"),
        ("false_kills[outcome=success] > 1", "false_kills has no 'outcome'; it can be chosen by group, plan, guard"),
        ("median_steps[reason=max_steps, outcome=success] > 1", "median_steps has no 'outcome'; it can be chosen by group, plan, reason, "),
        ("near_misses[outcome=good] > 1", "there is no outcome 'good'; there are success, failure, unknown"),
        ("halts > 1", "halts is that of the runs that end for one reason; name it, as in halts[reason=max_steps]"),
    ],
)
def test_a_condition_that_cannot_be_meant_is_refused_before_anything_is_read(text: str, message: str) -> None:
    with pytest.raises(ConditionError) as caught:
        parse(text)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("false_kills[group=x] > 1", "false_kills[group=x] > 1: there is no group 'x'; there are strong, weak, all, and * for each"),
        ("false_kills[plan=2] > 1", "false_kills[plan=2] > 1: there is no plan '2'; there are max_same_errors=2, max_same_errors=3, max_same_errors=4, max_steps=5, production, and the numbers of the what-ifs"),
        ("near_misses[guard=max_steps] > 1", "near_misses[guard=max_steps] > 1: there is no guard 'max_steps'; there are denied, truncated_reply, empty_reply, error_streak, no_progress, malformed_streak, consecutive_errors, any guard"),
        ("halts[reason=max_stepz] > 1", "halts[reason=max_stepz] > 1: there is no halt reason 'max_stepz'; there are cancelled, "),
        ("median_steps[reason=recording_ended] > 1", "median_steps[reason=recording_ended] > 1: such runs end in several ways; add ending=cap or ending=user_stop"),
        ("runs > 5%", "runs > 5%: runs is no share of anything; compare it without a per cent sign"),
        ("median_kill_step > 5%", "median_kill_step > 5%: median_kill_step is no share of anything; compare it without a per cent sign"),
    ],
)  # fmt: skip
def test_a_row_that_there_is_not_is_named_with_those_that_there_are(text: str, message: str) -> None:
    with pytest.raises(ConditionError) as caught:
        judge(parse(text), audited())
    assert str(caught.value).startswith(message)
