"""The table is the program: what must hold for any machine that is built of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import attrs
import pytest

from fsm_agent.guards import BUILT_IN, classic
from fsm_agent.machine import TRIGGERS
from fsm_agent.options import FEATURES
from fsm_agent.table import (
    DECIDING,
    EXECUTING,
    GUARD_REASONS,
    HALTED,
    INITIAL,
    LAST_GUARD,
    OBSERVING,
    PARSING,
    PREDICATES,
    PURE,
    ROWS,
    STATES,
    UNGUARDED_REASONS,
    GuardEdge,
    Row,
    rows_for,
)

WARNING = GuardEdge("Warning", "a_users_reason", OBSERVING, "warnings", warns=True)
IN_PARSING = GuardEdge("Early", "another_reason", PARSING, "early")


def built_in_edges() -> list[GuardEdge]:
    """Every guard that has a place in the table, as its row names it."""
    return [
        GuardEdge(row.guard or "", row.reason or "", row.source, row.label, bool(BUILT_IN[row.reason].__dict__.get("chance")))
        for row in ROWS
        if row.reason and row.reason in GUARD_REASONS
    ]


TABLES: dict[str, Sequence[Row]] = {
    "all rows": ROWS,
    "no guards": rows_for([]),
    "classic": rows_for(guard.edge() for guard in classic()),
    "every built-in guard": rows_for(built_in_edges()),
    "users' guards": rows_for([WARNING, IN_PARSING]),
    "everything": rows_for([*built_in_edges(), WARNING, IN_PARSING]),
    "every option": rows_for([*built_in_edges(), WARNING, IN_PARSING], FEATURES),
    "every option, no guards": rows_for([], FEATURES),
    **{f"the option {feature}": rows_for([guard.edge() for guard in classic()], {feature}) for feature in FEATURES},
}

each_table = pytest.mark.parametrize("rows", TABLES.values(), ids=TABLES.keys())


@each_table
def test_sources_and_destinations_are_states(rows: Sequence[Row]) -> None:
    assert {row.source for row in rows} | {row.dest for row in rows} <= set(STATES)
    assert INITIAL in STATES
    assert set(STATES) >= PURE


@each_table
def test_an_edge_has_a_reason_when_it_halts_and_only_then(rows: Sequence[Row]) -> None:
    assert [row.id for row in rows if (row.dest == HALTED) != (row.reason is not None)] == []


@each_table
def test_nothing_leaves_halted(rows: Sequence[Row]) -> None:
    assert [row.id for row in rows if row.source == HALTED] == []


@each_table
def test_each_group_ends_with_its_one_unguarded_row(rows: Sequence[Row]) -> None:
    groups = groupby(rows, key=lambda row: (row.source, row.trigger))
    unguarded = {key: [row.guard is None for row in group] for key, group in groups}
    assert {key: guards for key, guards in unguarded.items() if guards != [False] * (len(guards) - 1) + [True]} == {}


@each_table
def test_the_rows_of_a_group_stand_together(rows: Sequence[Row]) -> None:
    groups = [key for key, _ in groupby(rows, key=lambda row: (row.source, row.trigger))]
    assert len(groups) == len(set(groups))


@each_table
def test_ids_are_unique(rows: Sequence[Row]) -> None:
    assert len({row.id for row in rows}) == len(rows)


@each_table
def test_waiting_states_take_events_of_the_world_and_pure_ones_the_machines_own(rows: Sequence[Row]) -> None:
    waiting = {row.trigger for row in rows if row.source not in PURE}
    assert waiting <= set(TRIGGERS.values())
    assert {(row.source, row.trigger) for row in rows if row.source in PURE} == {(PARSING, "parsed"), (OBSERVING, "observed")}


@each_table
def test_the_rows_of_a_trigger_agree_on_whether_it_begins_a_step(rows: Sequence[Row]) -> None:
    begins = {(row.source, row.trigger, row.begins_step) for row in rows if row.id != "retry"}
    assert len(begins) == len({(source, trigger) for source, trigger, _ in begins})
    assert {source for source, _, begins_step in begins if begins_step} == {DECIDING}


@each_table
def test_every_state_is_reachable_and_has_a_way_to_halted(rows: Sequence[Row]) -> None:
    assert reachable({INITIAL}, [(row.source, row.dest) for row in rows]) == set(STATES)
    assert reachable({HALTED}, [(row.dest, row.source) for row in rows]) == set(STATES)


@each_table
def test_every_cycle_spends_something_but_for_a_persons_talk(rows: Sequence[Row]) -> None:
    silent = [(row.source, row.dest) for row in rows if not row.begins_step and not row.spends and row.trigger != "user_spoke"]
    assert [state for state in STATES if state in reachable({dest for source, dest in silent if source == state}, silent)] == []


@each_table
def test_every_cycle_that_spends_model_calls_alone_passes_observing_where_the_cap_is_judged(rows: Sequence[Row]) -> None:
    elsewhere = [(row.source, row.dest) for row in rows if row.source != OBSERVING and not row.spends and row.trigger != "user_spoke"]
    assert [state for state in STATES if state in reachable({dest for source, dest in elsewhere if source == state}, elsewhere)] == []


def reachable(start: set[str], edges: Sequence[tuple[str, str]]) -> set[str]:
    """The states that can be come to from ``start``, itself included."""
    found: set[str] = set()
    ahead = set(start)
    while ahead:
        found |= ahead
        ahead = {dest for source, dest in edges if source in ahead} - found
    return found


def test_the_answer_is_judged_before_every_guard() -> None:
    assert next(row.id for row in TABLES["everything"] if row.source == PARSING) == "final_answer"
    assert [row.id for row in TABLES["every option"] if row.source == PARSING][:3] == ["last_word", "final_answer", "last_chance_parsing"]


def test_guards_that_act_before_execution_stand_before_the_rows_that_go_on() -> None:
    parsing = [row for row in TABLES["everything"] if row.source == PARSING]
    assert [row.dest for row in parsing] == sorted((row.dest for row in parsing), key=lambda dest: dest != HALTED)


def test_the_cap_is_judged_last() -> None:
    observing = [row for row in TABLES["everything"] if row.source == OBSERVING]
    assert [row.id for row in observing if row.dest == HALTED][-1] == "max_steps"
    assert [row.dest for row in observing] == sorted((row.dest for row in observing), key=lambda dest: dest != HALTED)


def test_classic_rows_stand_in_the_order_of_their_sensitivity() -> None:
    order = ["final_answer", "repeated_call", "consecutive_errors", "max_steps"]
    assert [row.reason for row in TABLES["classic"] if row.reason in order] == order


def test_reasons_are_either_a_guards_or_the_machines_own() -> None:
    assert not GUARD_REASONS & UNGUARDED_REASONS
    assert {row.reason for row in ROWS if row.reason} == GUARD_REASONS | UNGUARDED_REASONS
    assert {"final_answer", "model_error", "cancelled", "recording_ended"} <= UNGUARDED_REASONS


def test_every_guard_row_names_a_built_in_guard_that_watches_its_source() -> None:
    named = {row.reason: (row.guard, row.source) for row in ROWS if row.reason in GUARD_REASONS}
    assert {reason: guard.__name__ for reason, guard in BUILT_IN.items()} == {reason: guard for reason, (guard, _) in named.items()}
    assert {row.guard for row in ROWS if row.guard} == PREDICATES | {guard for guard, _ in named.values()}


def test_the_id_of_a_guards_row_is_its_reason() -> None:
    assert [row.id for row in TABLES["everything"] if row.guard and row.guard not in PREDICATES and row.id != row.reason] == []


def test_a_machine_has_the_rows_of_its_guards_only_in_the_order_of_the_table() -> None:
    rows = rows_for(reversed([guard.edge() for guard in classic()]))
    others = GUARD_REASONS - {guard.reason for guard in classic()}
    expected = [row for row in ROWS if row.reason not in others and row.id != "nudge" and row.needs is None]
    assert list(rows) == [attrs.evolve(row, chance=row.id in {"repeated_call", "max_steps"}) for row in expected]


def test_a_users_guards_come_after_the_built_in_ones_and_before_the_cap() -> None:
    ids = [row.id for row in TABLES["everything"]]
    assert ids.index("another_reason") == ids.index(LAST_GUARD[PARSING]) - 1
    assert ids.index("a_users_reason") == ids.index("max_steps") - 1
    assert next(row for row in TABLES["everything"] if row.id == "a_users_reason") == Row(
        "a_users_reason", OBSERVING, "observed", "Warning", HALTED, "warnings", "a_users_reason"
    )


def test_a_users_guard_may_take_a_built_in_reason_and_its_place() -> None:
    rows = rows_for([GuardEdge("MyCap", "max_steps", OBSERVING, "steps")])
    standard = next(row for row in ROWS if row.id == "max_steps")
    assert [row for row in rows if row.id == "max_steps"] == [attrs.evolve(standard, guard="MyCap")]


def test_only_a_guard_that_warns_brings_the_nudge() -> None:
    assert [name for name, rows in TABLES.items() if "nudge" in {row.id for row in rows}] == [
        "all rows",
        "users' guards",
        "everything",
        "every option",
    ]


def test_an_option_that_is_off_has_no_edge() -> None:
    plain = {row.id for row in TABLES["classic"]}
    assert {feature: [row.id for row in TABLES[f"the option {feature}"] if row.id not in plain] for feature in FEATURES} == {
        "retries": ["retry", "retries_exhausted"],
        "approvals": ["ask_approval", "approval_given"],
        "compaction": ["compacted"],
        "last_chance": ["no_last_word", "last_word", "last_chance_parsing", "last_chance"],
        "tool_servers": ["tools_failed"],
    }
    assert {row.id for row in TABLES["every option"]} == {row.id for row in TABLES["everything"]} | {row.id for row in ROWS if row.needs}


def test_a_last_chance_is_there_only_before_a_halt_that_leaves_one() -> None:
    breaker = GuardEdge("ConsecutiveErrors", "consecutive_errors", OBSERVING, "errors")
    assert [row.id for row in rows_for([breaker], FEATURES) if row.needs == "last_chance"] == []
    cap = GuardEdge("MaxSteps", "max_steps", OBSERVING, "steps", chance=True)
    found = [row.id for row in rows_for([breaker, cap], FEATURES) if row.needs == "last_chance"]
    assert found == ["no_last_word", "no_last_word_either", "last_word", "last_chance"]


SHORTER = "it must have at most 60 characters, and at most 128 after a colon (a combined guard can be named(...))"
WORDLESS = ("", "two words", "a\tb", "a\n", "a\x00b", "a\u202eb", "\ud800", ":a", "a:", "a\u3000b")


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        (
            [GuardEdge("Late", "late", EXECUTING, "late")],
            "Late.watches is 'Executing'; guards are judged in Parsing or Observing",
        ),
        (
            [GuardEdge("One", "same", OBSERVING, ""), GuardEdge("Two", "same", PARSING, "")],
            "One and Two both halt with the reason 'same'; give one of them another",
        ),
        (
            [GuardEdge("Greedy", "final_answer", OBSERVING, "")],
            "Greedy halts with 'final_answer', which is the machine's own reason; give it another",
        ),
        (
            [GuardEdge("Shy", "go_on", OBSERVING, "")],
            "Shy halts with 'go_on', which names another edge of the table; give it another reason",
        ),
        (
            [GuardEdge("Elsewhere", "repeated_call", OBSERVING, "")],
            "Elsewhere halts with 'repeated_call', which names another edge of the table; give it another reason",
        ),
        *[
            (
                [GuardEdge("Odd", reason, OBSERVING, "")],
                f"Odd.reason is {reason!r}; it must be one word, such as 'too_many_searches' or 'tool_budget:search'",
            )
            for reason in WORDLESS
        ],
        *[
            (
                [GuardEdge("Long", reason, OBSERVING, "")],
                f"Long.reason is {reason!r}; {SHORTER}",
            )
            for reason in ("x" * 61, "tool_budget:" + "x" * 129)
        ],
    ],
    ids=[
        "a state in which none is judged",
        "two of one reason",
        "the machine's own reason",
        "another row's id",
        "a place in another state",
        *map(ascii, WORDLESS),
        "too long",
        "too long a part",
    ],
)
def test_rows_for_refuses(edges: list[GuardEdge], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        rows_for(edges)


@pytest.mark.parametrize("reason", [None, 3, b"late"])
def test_a_reason_is_text(reason: Any) -> None:
    with pytest.raises(TypeError, match=f"^{re.escape(f'Odd.reason is {reason!r}; it must be text, such as')}"):
        rows_for([GuardEdge("Odd", reason, OBSERVING, "")])


@pytest.mark.parametrize("reason", ["x" * 60, "tool_budget:" + "x" * 128, "循环", "a-b.c", "a:b:c"])
def test_a_reason_is_one_word_of_any_language(reason: str) -> None:
    assert reason in {row.reason for row in rows_for([GuardEdge("Mine", reason, PARSING, "")])}
