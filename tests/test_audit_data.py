"""The audit of the four published files of recordings, which are no part of this project: the tests are skipped where they are absent."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from fsm_agent.audit.audit import Audit, audit_runs
from fsm_agent.audit.figures import Share
from fsm_agent.audit.plan import plan_of
from fsm_agent.audit.shadow import shadow
from fsm_agent.guards import ConsecutiveErrors, RepeatedCall
from tests.scripted_recordings import FILES, of_file


@cache
def audited() -> Audit:
    return audit_runs(
        [run for name in FILES for run in of_file(name)],
        plan_of("production", {}),
        what_ifs=[plan_of("classic", {}, "classic"), plan_of("production", {"max_steps": 50}, "max_steps=50")],
    )


def test_production_kills_three_in_a_thousand_successes_at_most_and_none_of_three_sources() -> None:
    kills = {row.group: row.false_kills for row in audited().base.guards if row.guard == "all guards"}

    assert kills == {
        "intercode": Share(2, 607),
        "notebook": Share(0, 270),
        "reflexion": Share(0, 170),
        "tau-bench": Share(0, 84),
        "all": Share(2, 1131),
    }


def test_the_runs_that_production_kills_are_named_with_the_step() -> None:
    assert audited().base.together().kills == (("intercode:824", 7), ("intercode:359", 9))


def test_what_production_saves_and_what_classic_saves_and_kills() -> None:
    rows = {
        (found.plan.name, row.group): (row.failures_stopped.count, row.calls_saved.count, row.false_kills.count, row.capped_stopped_early)
        for found in (audited().base, audited().what_ifs[0])
        for row in found.guards
        if row.guard == "all guards"
    }
    assert rows == {
        ("production", "intercode"): (22, 40, 2, Share(24, 70)),
        ("production", "notebook"): (9, 23, 0, Share(7, 9)),
        ("production", "reflexion"): (15, 25, 0, Share(10, 48)),
        ("production", "tau-bench"): (1, 3, 0, Share(1, 5)),
        ("production", "all"): (47, 91, 2, Share(42, 132)),
        ("classic", "intercode"): (77, 275, 12, Share(55, 70)),
        ("classic", "notebook"): (34, 102, 15, Share(8, 9)),
        ("classic", "reflexion"): (66, 203, 0, Share(40, 48)),
        ("classic", "tau-bench"): (8, 54, 1, Share(0, 5)),
        ("classic", "all"): (185, 634, 28, Share(103, 132)),
    }


def test_no_guard_would_have_helped_most_of_the_runs_that_ended_at_a_cap() -> None:
    assert {row.group: row.no_guard_helped for row in audited().base.capped} == {
        "intercode": Share(46, 70),
        "notebook": Share(2, 9),
        "reflexion": Share(38, 48),
        "tau-bench": Share(4, 5),
        "all": Share(90, 132),
    }


def test_a_cap_of_fifty_lets_every_capped_run_that_no_guard_halts_go_beyond_its_recording() -> None:
    base, loose = audited().base, audited().what_ifs[1]

    assert [row.beyond for row in loose.groups] == [row.beyond for row in base.groups]
    assert loose.groups[-1].beyond == Share(75, 2234)


GUARDS = {"third call": RepeatedCall(2), "2 errors": ConsecutiveErrors(2), "3 errors": ConsecutiveErrors(3)}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("reflexion", {"third call": (0, 20), "2 errors": (0, 66), "3 errors": (0, 50)}),
        # There (0, 8): run 3522 says Finish[NOT ENOUGH INFO] again and again, and is told each time that this is no action; here it is a call.
        ("fever", {"third call": (0, 9), "2 errors": (15, 34), "3 errors": (11, 25)}),
        # There (0, 4) and (0, 1): talk between two errors broke the row there, and does not here.
        ("tau-bench", {"third call": (0, 0), "2 errors": (1, 8), "3 errors": (0, 5)}),
        # There (3, 37): 29 runs repeat a reply that cannot be parsed, which is no call here; run 982 has such a reply between two equal calls.
        ("intercode", {"third call": (3, 9), "2 errors": (9, 76), "3 errors": (1, 52)}),
    ],
)
def test_runs_loop_as_often_as_was_counted_before(name: str, expected: dict[str, tuple[int, int]]) -> None:
    """Successes and failures that a guard halts at any step, the last one too, as ``shared/data/README.md`` counts them."""
    found: Counter[tuple[str, str]] = Counter()
    for run in of_file(name):
        for guard, seen in zip(GUARDS, shadow(run, [*GUARDS.values()]).seen, strict=True):
            found[guard, run.outcome] += seen.halt is not None
    assert {guard: (found[guard, "success"], found[guard, "failure"]) for guard in GUARDS} == expected
