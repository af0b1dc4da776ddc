"""What the rows of the table tell by themselves."""

from __future__ import annotations

import attrs
import pytest

from fsm_agent.guards import production
from fsm_agent.proof.structure import only_halts, structure_of
from fsm_agent.table import DECIDING, EXECUTING, HALTED, OBSERVING, ROWS, Row, rows_for

RETRY = Row("retry", DECIDING, "retry", None, DECIDING, "retry")


def without(*ids: str) -> tuple[Row, ...]:
    return tuple(row for row in ROWS if row.id not in ids)


def test_every_cycle_of_the_table_spends_a_model_call_or_is_a_persons() -> None:
    for rows in (ROWS, rows_for(()), rows_for(guard.edge() for guard in production(5))):
        structure = structure_of(rows)
        assert structure.spends == ("model_replied",)
        assert structure.of_a_person == ("user_spoke",)
        assert structure.free_cycle == ()
        assert structure.faults == ()
        assert only_halts(rows)


@pytest.mark.parametrize(
    ("rows", "cycle"),
    [
        ((*ROWS, RETRY), ("retry",)),
        ((*ROWS, Row("again", OBSERVING, "again", None, EXECUTING, "again")), ("tools_returned", "again")),
        (tuple(attrs.evolve(row, begins_step=False) for row in ROWS), ("model_replied", "malformed", "nudge")),
    ],
)
def test_a_cycle_that_spends_nothing_is_found(rows: tuple[Row, ...], cycle: tuple[str, ...]) -> None:
    found = structure_of(rows).free_cycle
    assert sorted(found) == sorted(cycle)


def test_a_cycle_that_spends_a_model_call_is_none() -> None:
    assert structure_of((*ROWS, attrs.evolve(RETRY, begins_step=True))).free_cycle == ()


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ((*ROWS, Row("back", HALTED, "back", None, DECIDING, "back")), "back leaves Halted"),
        ((*ROWS, Row("quit", DECIDING, "quit", None, HALTED, "quit")), "quit has the reason None and leads to Halted"),
        (without("go_on"), "observed can be refused in Observing: the last of its rows, nudge, has a guard"),
        (
            (*ROWS, Row("late", OBSERVING, "observed", None, DECIDING, "late")),
            "go_on stands before other rows of observed in Observing, and is always taken",
        ),
        (without("tools_returned", "cancelled_executing", "recording_ended_executing"), "Executing has no edge out of it"),
        (
            (*ROWS, Row("other", OBSERVING, "other", None, DECIDING, "other")),
            "Observing has the triggers observed, other; the machine pulls one",
        ),
    ],
)
def test_rows_that_break_the_rules_of_the_table_are_named(rows: tuple[Row, ...], fault: str) -> None:
    assert structure_of(rows).faults == (fault,)


def test_a_guard_that_does_more_than_halt_is_noticed() -> None:
    assert not only_halts((*ROWS, Row("last_chance", OBSERVING, "observed", "MaxSteps", DECIDING, "last chance")))
