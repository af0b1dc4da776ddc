"""Guards made of guards, and guards made of a function."""

from __future__ import annotations

from itertools import product
from typing import ClassVar

import attrs
import pytest

from fsm_agent.events import Fact, ModelReplied, ToolsReturned, Usage
from fsm_agent.guards import (
    AllOf,
    AnyOf,
    ConsecutiveErrors,
    Evidence,
    Guard,
    MaxSteps,
    NoProgress,
    Not,
    Reading,
    RepeatedCall,
    Summary,
    ToolBudget,
)
from fsm_agent.guards import predicate as from_function
from fsm_agent.language import ENGLISH
from fsm_agent.outcome import message_of
from tests.guard_steps import EMPTY, FINAL, charged, did, end, failed, malformed, play, readings, said, spoke


@attrs.frozen
class Fixed(Guard):
    """Trips always or never."""

    name: str
    trips: bool

    @property
    def reason(self) -> str:
        return self.name

    def start(self) -> None:
        return None

    def fold(self, memory: None, fact: Fact, step: int) -> None:
        return None

    def judge(self, memory: None) -> Reading:
        return Reading(self.name, int(self.trips), 1, self.trips, (Evidence(1, "fixed", self.name),))


@pytest.mark.parametrize(("p", "q", "r"), list(product((False, True), repeat=3)))
def test_the_combinations_are_the_boolean_ones(p: bool, q: bool, r: bool) -> None:
    a, b, c = Fixed("a", p), Fixed("b", q), Fixed("c", r)

    def trips(guard: Guard) -> bool:
        return guard.judge(guard.fold(guard.start(), ModelReplied(reply=None), 1)).trips  # type: ignore[arg-type]  # nobody looks at it

    assert trips(a & b) == (p and q)
    assert trips(a | b) == (p or q)
    assert trips(~a) == (not p)
    assert trips(~~a) == p
    assert trips(a & b & c) == (p and q and r)
    assert trips(a | b | c) == (p or q or r)
    assert trips(a & (b | c)) == trips((a & b) | (a & c))
    assert trips(~(a & b)) == trips(~a | ~b)
    assert trips(~(a | b)) == trips(~a & ~b)


def test_combinations_of_one_kind_are_taken_apart_and_named_ones_are_not() -> None:
    a, b, c = Fixed("a", trips=True), Fixed("b", trips=True), Fixed("c", trips=True)
    assert a & b & c == a & (b & c) == AllOf((a, b, c))
    assert a | b | c == AnyOf((a, b, c))
    assert (a & b).named("both") & c == AllOf((AllOf((a, b), "both"), c))
    assert (a | b) & c == AllOf((AnyOf((a, b)), c))


def test_a_reason_is_made_of_the_parts_reasons_or_given() -> None:
    a, b = Fixed("a", trips=True), Fixed("b", trips=True)
    assert [(a & b).reason, (a | b).reason, (~a).reason, AllOf((a, ~b), "odd").reason] == ["a_and_b", "a_or_b", "not_a", "odd"]


def test_the_reading_counts_the_parts_that_trip_and_shows_their_evidence_and_every_part() -> None:
    a, b = Fixed("a", trips=True), Fixed("b", trips=False)
    of_a, of_b = a.judge(None), b.judge(None)
    assert (a & b).judge((None, None)) == Reading("a_and_b", 1, 2, trips=False, evidence=of_a.evidence, parts=(of_a, of_b))
    assert (a | b).judge((None, None)) == Reading("a_or_b", 1, 1, trips=True, evidence=of_a.evidence, parts=(of_a, of_b))
    assert (~b).judge((None,)) == Reading("not_b", 1, 1, trips=True, parts=(of_b,))


def test_a_cycle_late_in_a_run_is_let_pass() -> None:
    early = NoProgress() & ~MaxSteps(6)
    assert end(play(early, *[did()] * 5)) == ("no_progress_and_not_max_steps", 4)
    assert end(play(early, *[did(n=i) for i in range(5)], *[did()] * 9)) == (None, 14)


def test_the_sentence_tells_the_parts() -> None:
    run = play(AllOf((ConsecutiveErrors(2), MaxSteps(3)), "erring_late"), did(), failed(), failed())
    assert end(run) == ("erring_late", 3)
    assert message_of(run, ENGLISH) == "stopped: erring_late (consecutive_errors 2/2; max_steps 3/3)"
    assert readings(run, "erring_late")[-1].evidence == (Evidence(2, "tool_error", "no"), Evidence(3, "tool_error", "no"))


def test_parts_that_watch_one_state_are_judged_there_and_others_in_observing() -> None:
    assert (RepeatedCall() & ToolBudget(3)).watches == "Parsing"
    assert (RepeatedCall() & MaxSteps(3)).watches == "Observing"
    before = play(RepeatedCall(1) | ToolBudget(9), did(), did())
    assert (end(before), sum(isinstance(entry, ToolsReturned) for entry in before.log)) == (("repeated_call_or_tool_budget", 2), 1)
    after = play(RepeatedCall(1) | MaxSteps(9), did(), did())
    assert (end(after), sum(isinstance(entry, ToolsReturned) for entry in after.log)) == (("repeated_call_or_max_steps", 2), 2)


def test_a_combination_is_shown_what_its_parts_want_and_each_part_what_it_wants() -> None:
    assert (MaxSteps(3) & ConsecutiveErrors()).folds == (*MaxSteps(3).folds, *ConsecutiveErrors().folds)
    assert (MaxSteps(3) & Fixed("a", trips=True)).folds == ()
    run = play((MaxSteps(99) & ConsecutiveErrors(99)), failed(), malformed(), did(), failed())
    assert [part.value for part in readings(run, "max_steps_and_consecutive_errors")[-1].parts] == [4, 1]


def test_a_combination_has_its_place_before_the_cap_and_halts_only_by_itself() -> None:
    run = play((MaxSteps(2), ConsecutiveErrors(2) & MaxSteps(2)), failed(), failed())
    assert end(run) == ("consecutive_errors_and_max_steps", 2)
    assert [row.id for row in run.wiring.rows if row.reason and row.source == "Observing"] == [
        "consecutive_errors_and_max_steps",
        "max_steps",
    ]


@pytest.mark.parametrize("limit", ["go_on", "malformed", "final_answer", "no_progress"])
def test_a_name_that_is_another_edges_is_refused(limit: str) -> None:
    with pytest.raises(ValueError, match=f"AnyOf halts with '{limit}'"):
        play(AnyOf((ToolBudget(2), RepeatedCall()), limit))


def test_what_is_no_guard_is_refused() -> None:
    with pytest.raises(TypeError, match="AllOf: 3 is not a guard"):
        MaxSteps(3) & 3  # type: ignore[operator]  # wrong on purpose
    with pytest.raises(TypeError, match="is not a tuple of guards"):
        Not(MaxSteps(3))  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(ValueError, match="AllOf takes two guards or more, not 1"):
        AllOf((MaxSteps(3),))
    with pytest.raises(ValueError, match="Not takes one guard, not 2"):
        Not((MaxSteps(3), MaxSteps(4)))


# --- predicates ---------------------------------------------------------------------------------------------------


@from_function
def three_failures(run: Summary) -> bool:
    return len(run.recent) >= 3 and all(step.failed for step in run.recent[-3:])


def test_a_function_is_a_guard_named_like_it() -> None:
    run = play((three_failures, MaxSteps(9)), did(), failed("a"), malformed(), failed("b", n=1), did())
    assert end(run) == ("three_failures", 4)
    assert readings(run, "three_failures")[-1] == Reading("three_failures", 1, 1, trips=True, evidence=(Evidence(4, "call", "b{n=1}"),))
    assert message_of(run, ENGLISH) == "stopped: three_failures holds"


def test_a_lambda_needs_a_reason_and_a_decorator_may_give_one() -> None:
    with pytest.raises(ValueError, match="a predicate without a name of its own needs reason="):
        from_function(lambda run: True)
    assert from_function(lambda run: True, reason="at_once").reason == "at_once"

    @from_function(reason="too_much", watches="Parsing")
    def spent(run: Summary) -> bool:
        return run.tokens > 15

    assert (spent.reason, spent.watches) == ("too_much", "Parsing")
    run = play(spent, *[charged(Usage(7, 3, 0.5))] * 3)
    assert (end(run), sum(isinstance(entry, ToolsReturned) for entry in run.log)) == (("too_much", 2), 1)


def test_a_predicate_that_watches_no_state_where_guards_are_judged_is_refused() -> None:
    with pytest.raises(ValueError, match="watches is 'Deciding'; it must be one of Parsing, Observing"):
        from_function(lambda run: True, reason="x", watches="Deciding")


def test_predicates_combine_with_guards() -> None:
    guard = from_function(lambda run: run.calls >= 3, reason="many_calls") & ConsecutiveErrors(2)
    assert end(play(guard, failed(), failed(), did(), failed(), failed())) == ("many_calls_and_consecutive_errors", 5)


class Kept:
    """The summaries that a predicate was shown."""

    seen: ClassVar[list[Summary]] = []

    @classmethod
    def keep(cls, run: Summary) -> bool:
        cls.seen.append(run)
        return False


def test_the_summary_tells_the_run() -> None:
    Kept.seen.clear()
    replied, returned = charged(Usage(7, 3, 0.5), "a", n=1)
    assert isinstance(replied, ModelReplied)
    assert isinstance(returned, ToolsReturned)
    timed = (ModelReplied(replied.reply, 100.0), ToolsReturned(returned.observations, 104.0))
    play(from_function(Kept.keep), timed, failed("b"), malformed(), said(), spoke(), EMPTY, FINAL)
    last = Kept.seen[-1]
    assert (last.steps, last.calls, last.failed_calls, last.malformed, last.heard) == (5, 2, 1, 2, 1)
    assert (last.tokens, last.cost, last.elapsed_s) == (10, 0.5, 4)
    assert [(step.number, [str(call) for call in step.calls], step.malformed, step.failed) for step in last.recent] == [
        (1, ["a{n=1}"], "", False),
        (2, ["b{}"], "", True),
        (3, [], "unparseable", True),
        (4, [], "", False),
        (5, [], "empty", True),
    ]


def test_the_summary_keeps_the_last_ten_steps() -> None:
    Kept.seen.clear()
    play(from_function(Kept.keep), *[did(n=i) for i in range(30)])
    assert [step.number for step in Kept.seen[-1].recent] == list(range(21, 31))
