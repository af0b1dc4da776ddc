"""How guards are watched: what they are found to look at, and what of their code is read."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, NamedTuple

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm_agent.events import Malformed, ModelReplied, Observation, Reply, Started, ToolCall, ToolCalls, ToolsReturned, Usage
from fsm_agent.guards import (
    ConsecutiveErrors,
    CostBudget,
    Deadline,
    Denied,
    EmptyReply,
    ErrorStreak,
    Evidence,
    Guard,
    MalformedStreak,
    MaxSteps,
    NoProgress,
    Predicate,
    RepeatedCall,
    Summary,
    TokenBudget,
    ToolBudget,
    TruncatedReply,
    classic,
    predicate,
    production,
)
from fsm_agent.guards.streaks import NONE, Streak
from fsm_agent.proof.shapes import Settler, StepNumber, Unreadable, canonical
from fsm_agent.proof.sight import SIGHTS, is_blind, sight_of
from fsm_agent.proof.watched import GuardFailed, Restart, Uncheckable, Watched
from tests.proof_guards import Boxed, Divides, Early, Lenient, Mutates, Reader, Renamed, TooManySearches, long_winded

FAILED = ToolsReturned((Observation("work", "no", "timeout"),))
OK = ToolsReturned((Observation("work", "yes"),))


CALL = ToolCalls((ToolCall("work", {}),))
STEPS = [
    *((CALL, FAILED), (CALL, OK), (CALL, ToolsReturned((Observation("work", "no", "denied"),)))),
    *((CALL, ToolsReturned((Observation("work", "no", "unknown_tool"),))), (Malformed("no"),), (ModelReplied(Reply()),)),
]
"""The facts of a step, as far as the guards below ask for them."""


def folded(watched: Watched, *facts: Any) -> Any:
    memory = watched.start()
    for step, fact in enumerate(facts, 1):
        memory = watched.fold(memory, fact, step)
    return memory


# --- shapes ------------------------------------------------------------------------------------------------------


class Pair(NamedTuple):
    left: object
    right: object


@dataclass(frozen=True)
class Data:
    value: object


@attrs.frozen
class Private:
    _hidden: object


class Colour(Enum):
    RED = 1


def settled(value: object) -> tuple[object, str]:
    return Settler(BLANK).settle(value)


BLANK = Evidence(0, "", "")


def test_the_content_of_evidence_is_taken_out_of_whatever_holds_it() -> None:
    seen = Evidence(3, "call", "work")
    for holds in (
        lambda each: (1, each),
        lambda each: [each],
        lambda each: {"a": each},
        lambda each: {each},
        Data,
        Private,
        partial(Pair, 1),
    ):
        value, shape = settled(holds(seen))
        assert value == holds(BLANK)
        assert "Evidence" in shape
        assert shape == settled(holds(Evidence(4, "other", "text")))[1]


def test_values_that_differ_have_shapes_that_differ() -> None:
    values: list[object] = [
        *(
            0,
            1,
            True,
            0.5,
            None,
            "1",
            b"1",
            (),
            (1,),
            [1],
            {1},
            deque([1]),
            {1: 2},
            {1: 3},
            Pair(1, 2),
            Data(1),
            Private(1),
            Colour.RED,
            int,
            len,
        ),
        *(ToolCall("work", {"a": 1}), ToolCall("work", {"a": 2}), Reply("a"), Reply("b")),
    ]
    readable = [value for value in values if value is not len]
    assert len({settled(value)[1] for value in readable}) == len(readable)


def test_what_cannot_be_told_from_another_is_refused() -> None:
    with pytest.raises(Unreadable, match="it holds a object; make it of numbers, texts"):
        settled((1, object()))


def test_a_value_that_needs_no_change_stays_itself() -> None:
    for value in ((1, "a"), Data(1), {"a": [1]}, frozenset({1, 2})):
        assert settled(value)[0] == value
    same = (1, Data(2))
    assert settled(same)[0] is same


def test_names_are_numbered_by_their_appearance_and_the_current_step_is_told_from_others() -> None:
    shape, met = canonical("('work#7', 'seen#9', 'work#3', 'work#7', step#4, step#5, step#4)", 5)
    assert shape == "('work#0', 'seen#0', 'work#1', 'work#0', step#0, step#now, step#0)"
    assert met == {"work": [7, 3], "seen": [9], "step": [4]}


def test_a_step_number_is_equal_to_itself_and_passes_for_a_number() -> None:
    counted: list[int] = []
    number: Any = StepNumber(3, lambda: counted.append(1))
    assert issubclass(number.__class__, int)
    assert number == StepNumber(3, lambda: None)
    assert number != StepNumber(4, lambda: None)
    assert number != "3"
    assert number
    assert {number: 1}
    assert not counted
    for look in (
        *(lambda: number + 1, lambda: 1 + number, lambda: number > 2, lambda: number == 3, lambda: f"{number}", lambda: int(number)),
        *(lambda: [0, 1, 2, 3][number], lambda: number - StepNumber(1, lambda: None), lambda: max(number, 2)),
    ):
        before = len(counted)
        assert look() is not None
        assert len(counted) > before
    before = len(counted)
    assert number.bit_length() == 2
    assert len(counted) > before


def test_of_a_streak_its_length_counts_and_whether_it_grew() -> None:
    long = NONE
    for _ in range(40):
        long = long.grown(Evidence(1, "timeout", "no"), 50)
    assert long.omitted
    assert settled(long) == (Streak(40, grew=True), "Streak(40,(),True,())")
    assert settled(long.passed_over())[1] == "Streak(40,(),False,())"


@given(
    st.sampled_from([ConsecutiveErrors(3, warn_at=2), MalformedStreak(3), ErrorStreak(2), EmptyReply(2), Denied(2), RepeatedCall(2)]),
    st.lists(st.sampled_from(STEPS)),
)
def test_without_its_evidence_a_memory_gives_the_same_verdicts(guard: Guard, steps: list[tuple[Any, ...]]) -> None:
    watched = Watched(guard)
    memory, held = guard.start(), watched.start()
    for step, fact in [(number, fact) for number, facts in enumerate(steps, 1) for fact in facts]:
        if type(fact) in guard.folds:
            memory, held = guard.fold(memory, fact, step), watched.fold(held, fact, step)
        one, other = guard.judge(memory), watched.judge(held)
        assert (one.value, one.limit, one.trips, one.warns) == (other.value, other.limit, other.trips, other.warns)


# --- guards ------------------------------------------------------------------------------------------------------


def test_a_guard_that_only_keeps_step_numbers_and_evidence_is_held_without_them() -> None:
    watched = Watched(ConsecutiveErrors(5))
    assert folded(watched, FAILED, FAILED).shape == folded(watched, OK, FAILED, FAILED).shape
    assert watched.known() == (False, False, frozenset())


def test_a_guard_that_counts_with_step_numbers_is_found_out() -> None:
    watched = Watched(Early())
    watched.judge(folded(watched, OK, OK))
    assert watched.counts_steps
    assert folded(watched, OK).memory == (1,)


def test_a_guard_that_looks_at_the_content_of_evidence_is_found_out() -> None:
    watched = Watched(Reader())
    watched.judge(folded(watched, FAILED, OK))
    assert watched.reads_evidence
    reading = watched.judge(folded(watched, FAILED, OK))
    assert [evidence.kind for evidence in reading.evidence] == ["timeout", "ok"]
    assert reading.trips


def test_of_a_summary_only_that_is_kept_which_a_predicate_looks_at() -> None:
    reply = ModelReplied(Reply("hm", usage=Usage(5_000, 1)))
    watched = Watched(long_winded)
    assert folded(watched, reply).memory == Summary()
    watched.judge(folded(watched, reply))
    assert watched.fields == {"steps"}
    with pytest.raises(Restart):
        watched._called("judge", fails_after_a_look, watched)
    memory = folded(watched, *[reply] * 5)
    watched.judge(memory)
    assert watched.fields == {"steps", "tokens"}


def fails_after_a_look(watched: Watched) -> None:
    watched.reads_evidence = True
    raise ValueError


def test_a_computed_field_counts_as_what_it_is_computed_from() -> None:
    watched = Watched(predicate(lambda run: run.elapsed_s > 5, reason="slow"))
    watched.judge(watched.start())
    assert watched.fields == {"now"}
    watched.judge(folded(watched, ModelReplied(Reply(), at=3.0)))
    assert watched.fields == {"now", "began"}


def test_predicates_within_combined_guards_are_watched_too() -> None:
    watched = Watched(~(long_winded & MaxSteps(3)))
    watched.judge(watched.start())
    assert watched.fields == {"steps"}
    assert watched.reason == "not_long_winded_and_max_steps"


def test_a_guard_that_raises_is_named() -> None:
    watched = Watched(Divides())
    memory = folded(watched, FAILED, FAILED)
    with pytest.raises(GuardFailed, match=r"^the guard Divides \(divides\) raised ZeroDivisionError in judge: division by zero$"):
        watched.judge(memory)


def test_a_guard_that_is_none_is_refused() -> None:
    for guard, problem in (
        (Mutates(), "changes its memory in fold; it must return a new one"),
        (Boxed(), "the memory of the guard Boxed (boxed) cannot be compared: it holds a Box"),
        (Renamed(), "gives a reading of 'lenient'; it must have the guard's own reason"),
        (Wrong(), "gives bool where a Reading is due"),
    ):
        watched = Watched(guard)
        with pytest.raises(Uncheckable) as raised:
            watched.judge(folded(watched, OK, OK))
        assert problem in str(raised.value)


class Wrong(Lenient):
    reason = "wrong"

    def judge(self, memory: bool) -> Any:
        return memory


def test_a_watched_guard_is_the_guard_in_everything_else() -> None:
    for guard in (*classic(), *production(5)):
        watched = Watched(guard)
        same = (watched.reason, watched.watches, watched.folds, watched.edge())
        assert same == (guard.reason, guard.watches, guard.folds, guard.edge())


# --- sight -------------------------------------------------------------------------------------------------------


def test_what_the_guards_of_this_package_can_see() -> None:
    seen = {guard.reason: sorted(sight_of([guard]).sees) for guard in (*production(5), RepeatedCall(), *BUDGETS)}
    assert seen == {
        "denied": ["polls"],
        "truncated_reply": ["finish_reason"],
        "empty_reply": [],
        "error_streak": ["polls"],
        "no_progress": ["polls"],
        "malformed_streak": [],
        "consecutive_errors": [],
        "max_steps": [],
        "repeated_call": ["polls"],
        "token_budget": ["usage"],
        "cost_budget": ["usage"],
        "tool_budget": [],
        "deadline": ["at"],
    }


BUDGETS: tuple[Guard, ...] = (TokenBudget(9), CostBudget(9), ToolBudget(9), Deadline(9))


def test_what_is_large_is_beyond_every_limit() -> None:
    assert sight_of([TokenBudget(50_000)]).large == 500_000
    assert sight_of([long_winded]).large == 20_000
    assert sight_of([TokenBudget(7) & MaxSteps(400)]).large == 4_000


def test_words_of_a_users_guard_are_tools() -> None:
    assert sight_of([TooManySearches()]).tools == ("search",)
    assert sight_of([ToolBudget(3, "web-search")]).tools == ("web-search",)
    assert sight_of([predicate(lambda run: any(call.name == "rm" for step in run.recent for call in step.calls), reason="x")]).tools == (
        "rm",
    )
    assert sight_of([Listed()]).tools == ("drop_table", "rm")


@attrs.frozen
class Listed(Lenient):
    """It names its tools in a list of its class."""

    reason = "listed"
    forbidden = ("drop_table", "rm")

    def fold(self, memory: bool, fact: Any, step: int) -> bool:
        return isinstance(fact, ToolCalls) and any(call.name in self.forbidden for call in fact.calls)


def test_what_a_predicate_can_see_is_what_it_looks_at_in_the_summary() -> None:
    assert sight_of([long_winded]).sees == {"usage"}
    assert sight_of([predicate(lambda run: run.elapsed_s > 3, reason="slow")]).sees == {"at"}
    assert sight_of([predicate(lambda run: run.malformed > 3, reason="odd")]).sees == set()


def test_code_that_cannot_be_read_may_see_everything() -> None:
    assert sight_of([Predicate("partly", partial(lambda _limit, _run: False, 3))]).sees == SIGHTS


def test_a_guard_that_only_counts_replies_is_blind() -> None:
    assert [guard.reason for guard in (*production(5), *BUDGETS, RepeatedCall()) if is_blind(guard)] == ["max_steps"]
    assert not is_blind(TruncatedReply())
    assert not is_blind(NoProgress())


def test_a_fact_that_a_guard_does_not_ask_for_leaves_its_memory_the_same() -> None:
    watched = Watched(Lenient())
    memory = watched.start()
    assert watched.fold(memory, Started(), 0) is memory
