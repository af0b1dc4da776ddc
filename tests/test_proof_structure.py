"""What the rows of the table tell by themselves."""

from __future__ import annotations

import attrs
import pytest

from fsm_agent.guards import production
from fsm_agent.options import FEATURES, Feature
from fsm_agent.proof.structure import only_stops, structure_of
from fsm_agent.table import DECIDING, EXECUTING, HALTED, OBSERVING, ROWS, Row, rows_for

AGAIN = Row("again", DECIDING, "again", None, DECIDING, "again")
MODEL_CALL = "a model call"


def without(*ids: str) -> tuple[Row, ...]:
    return tuple(row for row in ROWS if row.id not in ids)


def test_every_cycle_of_the_table_spends_something_or_is_a_persons() -> None:
    edges = [guard.edge() for guard in production(5)]
    for rows in (ROWS, rows_for(()), rows_for(edges), rows_for(edges, FEATURES)):
        structure = structure_of(rows)
        assert structure.of_a_person == ("user_spoke",)
        assert structure.free_cycle == ()
        assert structure.faults == ()
        assert only_stops(rows)


@pytest.mark.parametrize(
    ("features", "spends"),
    [
        ((), {}),
        (("retries",), {"retry": "a retry"}),
        (("compaction",), {"compacted": "a step's summary"}),
        (("approvals",), {"ask_approval": "a step's question", "approval_given": "a step's answer"}),
        (("tool_servers",), {}),
        (("last_chance",), {"no_last_word": MODEL_CALL, "last_chance": "the last chance"}),
        (
            ("retries", "last_chance"),
            {"no_last_word": MODEL_CALL, "retry": "a retry", "no_last_word_either": MODEL_CALL, "last_chance": "the last chance"},
        ),
    ],
)
def test_what_is_on_spends_what_the_table_says(features: tuple[Feature, ...], spends: dict[str, str]) -> None:
    structure = structure_of(rows_for((guard.edge() for guard in production(5)), features))
    assert structure.spends == {"model_replied": MODEL_CALL, **spends}


@pytest.mark.parametrize(
    ("rows", "cycle"),
    [
        ((*ROWS, AGAIN), ("again",)),
        ((*ROWS, Row("back", OBSERVING, "back", None, EXECUTING, "back")), ("tools_returned", "back")),
        (
            tuple(attrs.evolve(row, begins_step=False) for row in rows_for(guard.edge() for guard in production(5))),
            ("model_replied", "malformed", "nudge"),
        ),
        (tuple(attrs.evolve(row, spends="") if row.id == "retry" else row for row in ROWS), ("retry",)),
        (tuple(attrs.evolve(row, spends="") if row.id == "compacted" else row for row in ROWS), ("compacted",)),
        (tuple(attrs.evolve(row, spends="") if row.id == "approval_given" else row for row in ROWS), ("approval_given",)),
    ],
)
def test_a_cycle_that_spends_nothing_is_found(rows: tuple[Row, ...], cycle: tuple[str, ...]) -> None:
    found = structure_of(rows).free_cycle
    assert sorted(found) == sorted(cycle)


def test_a_cycle_that_spends_a_model_call_or_something_else_is_none() -> None:
    assert structure_of((*ROWS, attrs.evolve(AGAIN, begins_step=True))).free_cycle == ()
    assert structure_of((*ROWS, attrs.evolve(AGAIN, spends="patience"))).free_cycle == ()


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
        (tuple(row for row in ROWS if row.source != EXECUTING), "Executing has no edge out of it"),
        (
            (*ROWS, Row("other", OBSERVING, "other", None, DECIDING, "other")),
            "Observing has the triggers observed, other; the machine pulls one",
        ),
    ],
)
def test_rows_that_break_the_rules_of_the_table_are_named(rows: tuple[Row, ...], fault: str) -> None:
    assert structure_of(rows).faults == (fault,)


def test_a_guard_that_does_more_than_stop_a_run_is_noticed() -> None:
    assert not only_stops((*ROWS, Row("again", OBSERVING, "observed", "MaxSteps", DECIDING, "again")))
