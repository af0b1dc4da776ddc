"""The verdicts: of the presets, of users' guards good and bad, and of machines that do not halt."""

from __future__ import annotations

import pytest

from fsm_agent.events import Malformed, Observation, Said, ToolCalls, ToolsReturned, UserSpoke
from fsm_agent.guards import (
    ConsecutiveErrors,
    ErrorStreak,
    Guard,
    MaxSteps,
    NoProgress,
    TokenBudget,
    ToolBudget,
    classic,
    predicate,
    production,
)
from fsm_agent.language import ENGLISH, language
from fsm_agent.machine import Run, Taken
from fsm_agent.proof import Endless, Fault, Proof, Uncheckable, prove
from fsm_agent.proof.configuration import Configuration
from fsm_agent.proof.report import Report
from fsm_agent.proof.summary import in_short, steps_of
from fsm_agent.traces.record import Trace, header_of
from tests.proof_guards import (
    Boxed,
    Divides,
    EachTurn,
    Early,
    Forgetful,
    Hoarder,
    LateErrors,
    Lenient,
    Mutates,
    Reader,
    Renamed,
    Tongue,
    TooManySearches,
    long_winded,
)


def report(guards: tuple[Guard, ...], proof: Proof | None = None, lang: str = "en") -> Report:
    return Report(Configuration("these", guards), proof or prove(guards), language(lang))


def ends(proof: Proof) -> dict[str, tuple[str, int | None]]:
    return {ending.reason: (ending.status, ending.run.step if ending.run else None) for ending in proof.endings}


def bounds(proof: Proof) -> list[tuple[int, bool, bool] | None]:
    found = (proof.model_calls, proof.tool_rounds, proof.tool_calls)
    return [None if bound is None else (bound.most, bound.exact, bound.each_message) for bound in found]


# --- presets -----------------------------------------------------------------------------------------------------


def test_classic_halts_within_its_cap() -> None:
    proof = prove(classic())
    assert proof.verdict == "proved"
    assert proof.core == ("max_steps",)
    assert bounds(proof) == [(10, True, False), (10, True, False), (20, True, False)]
    assert proof.judged_in_part == ()
    assert ends(proof) == {
        "model_error": ("reached", 1),
        "cancelled": ("reached", 1),
        "recording_ended": ("reached", 0),
        "final_answer": ("reached", 1),
        "repeated_call": ("reached", 3),
        "consecutive_errors": ("reached", 2),
        "max_steps": ("reached", 10),
    }


def test_production_is_proved_with_few_states() -> None:
    proof = prove(production(30))
    assert proof.verdict == "proved"
    assert bounds(proof) == [(30, True, False), (30, True, False), (60, True, False)]
    assert ends(proof) == {
        "model_error": ("reached", 1),
        "cancelled": ("reached", 1),
        "recording_ended": ("reached", 0),
        "final_answer": ("reached", 1),
        "denied": ("reached", 2),
        "truncated_reply": ("reached", 2),
        "empty_reply": ("reached", 3),
        "error_streak": ("reached", 3),
        "no_progress": ("reached", 4),
        "malformed_streak": ("reached", 10),
        "consecutive_errors": ("reached", 8),
        "max_steps": ("reached", 30),
    }
    assert proof.judged_in_part == ("denied", "no_progress")
    assert proof.states < 4_000  # some seconds


def test_a_guard_in_the_way_makes_the_shortest_run_longer() -> None:
    """Four failures of the same call in a row are a cycle before they are a streak, but for something else in between."""
    proof = prove((ErrorStreak(4), NoProgress(1, 2, 3), MaxSteps(12)), batch=1)
    assert ends(proof)["error_streak"] == ("reached", 5)


def test_a_budget_bounds_the_tool_calls() -> None:
    guards = (*classic(5), ToolBudget(3))
    proof = prove(guards)
    assert bounds(proof) == [(5, True, False), (3, True, False), (3, True, False)]
    assert list(report(guards, proof).bounds())[:2] == ["at most 5 model calls", "at most 3 tool calls"]


def test_one_call_a_reply() -> None:
    assert bounds(prove(classic(7), batch=1)) == [(7, True, False), (7, True, False), (7, True, False)]


def test_limits_that_are_never_come_to_are_reported_with_what_ends_every_run_before() -> None:
    guards = production(3)
    proof = prove(guards, batch=1)
    assert proof.verdict == "proved"
    assert report(guards, proof).warnings() == [
        "no_progress can never trip: max_steps ends every run before.",
        "malformed_streak can never trip: max_steps ends every run before.",
        "consecutive_errors can never trip: max_steps ends every run before.",
    ]


def test_every_witness_is_a_run_that_replays() -> None:
    for ending in prove(classic(4)).endings:
        run = ending.run
        assert run is not None
        assert run.reason == ending.reason
        again = Trace(header_of(run), run.log).replay()
        assert again.log == run.log
        assert [entry.edge for entry in run.log if isinstance(entry, Taken)][-1].startswith(ending.reason)


# --- guards of users ---------------------------------------------------------------------------------------------


def test_a_users_guard_is_proved_with_the_tool_that_it_names() -> None:
    proof = prove((TooManySearches(3), MaxSteps(6)))
    assert ends(proof)["too_many_searches"] == ("reached", 2)
    run = next(ending.run for ending in proof.endings if ending.reason == "too_many_searches")
    assert run is not None
    assert {call.name for decision in run.decisions if isinstance(decision, ToolCalls) for call in decision.calls} == {"search"}
    assert ends(prove((TooManySearches(3), MaxSteps(6)), batch=1))["too_many_searches"] == ("reached", 4)


def test_a_guard_that_never_trips_is_named() -> None:
    guards = (*classic(), Lenient())
    proof = prove(guards)
    assert proof.verdict == "proved"
    assert ends(proof)["lenient"] == ("never", None)
    assert report(guards, proof).warnings() == ["lenient can never trip: nothing that can happen makes it."]


def test_a_guard_that_is_always_shadowed_is_named() -> None:
    guards = (*classic(), LateErrors())
    proof = prove(guards)
    assert proof.verdict == "proved"
    assert ends(proof)["late_errors"] == ("shadowed", 2)
    assert report(guards, proof).warnings() == ["late_errors is always shadowed: where it trips, consecutive_errors comes first."]


def test_what_stands_alone_is_not_shadowed() -> None:
    assert ends(prove((LateErrors(), MaxSteps(4))))["late_errors"] == ("reached", 2)


def test_a_guard_that_counts_with_step_numbers_is_searched_with_them() -> None:
    assert ends(prove((Early(), MaxSteps(6))))["early"] == ("reached", 4)
    assert ends(prove((Early(), MaxSteps(3))))["early"] == ("never", None)


def test_a_guard_that_reads_its_evidence_is_searched_with_it() -> None:
    assert ends(prove((Reader(), MaxSteps(4))))["reader"] == ("reached", 2)


def test_a_predicate_is_searched_by_what_it_looks_at() -> None:
    proof = prove((long_winded, MaxSteps(6)), batch=1)
    assert ends(proof)["long_winded"] == ("reached", 5)
    assert proof.states < 500
    assert ends(prove((long_winded, MaxSteps(4)), batch=1))["long_winded"] == ("never", None)


def test_combined_guards() -> None:
    proof = prove((ConsecutiveErrors(2) & ~MaxSteps(4), MaxSteps(7)), batch=1)
    assert ends(proof)["consecutive_errors_and_not_max_steps"] == ("reached", 2)
    late = prove((ConsecutiveErrors(4) & ~MaxSteps(4), MaxSteps(7)), batch=1)
    assert ends(late)["consecutive_errors_and_not_max_steps"] == ("never", None)


def test_a_bound_that_a_person_can_lift_is_told_as_one() -> None:
    proof = prove((EachTurn(3),))
    assert proof.verdict == "proved"
    assert bounds(proof) == [(3, True, True), (3, True, True), (6, True, True)]
    assert next(report((EachTurn(3),), proof).bounds()) == "at most 3 model calls between two messages of a person, who may go on for ever"


def test_a_cap_holds_whatever_a_person_lifts_besides() -> None:
    proof = prove((EachTurn(3), MaxSteps(8)))
    assert bounds(proof)[0] == (8, True, False)
    assert proof.core == ("each_turn", "max_steps")


# --- machines that do not halt -----------------------------------------------------------------------------------


def refuted(*guards: Guard) -> Endless:
    proof = prove(guards)
    assert proof.verdict == "refuted"
    assert isinstance(proof.counterexample, Endless)
    run = proof.counterexample.run
    assert run.reason is None
    assert {guard.reason for guard in run.wiring.guards} == {guard.reason for guard in guards}
    return proof.counterexample


def test_without_guards_a_run_need_not_halt() -> None:
    found = refuted()
    assert (found.run.step, found.stem) == (1, 0)
    assert report(()).counterexample() == ["step 1: a call: ok", "step 1 can follow itself for ever"]


def test_a_cap_that_forgets_is_none() -> None:
    assert refuted(Forgetful()).run.step == 1


def test_a_loop_may_need_a_way_to_it() -> None:
    """The window of the last steps has to be full of different ones before it stays the same."""
    found = refuted(NoProgress(2, 2, 4))
    assert found.run.step > 1
    assert report((NoProgress(2, 2, 4),)).counterexample()[-1] == f"step {found.run.step} can follow itself for ever"


def test_replies_that_cost_nothing_wear_no_budget_out() -> None:
    found = refuted(TokenBudget(1_000))
    usages = [event.reply.usage for event in found.run.log if hasattr(event, "reply")]
    assert usages[-1] is not None
    assert usages[-1].prompt_tokens == 0


def test_tool_calls_run_out_and_talk_does_not() -> None:
    found = refuted(ToolBudget(2), ConsecutiveErrors(1))
    assert isinstance(found.run.decisions[-1], Said)


def test_malformed_replies_that_nobody_counts() -> None:
    @predicate
    def says_or_does(run: object) -> bool:
        return False

    found = refuted(says_or_does, ToolBudget(1))
    assert isinstance(found.run.decisions[-1], Said | Malformed)


def test_a_guard_that_raises_is_shown_with_the_run_that_it_spoils() -> None:
    for guards in ((Divides(), MaxSteps(5)), (Divides(), *classic())):
        proof = prove(guards)
        assert proof.verdict == "refuted"
        assert isinstance(proof.counterexample, Fault)
        problem = "the guard Divides (divides) raised ZeroDivisionError in judge: division by zero"
        words = report(guards, proof)
        assert words.verdict() == f"REFUTED: {problem}"
        assert words.counterexample() == ["step 1: a call: tool_error", "step 2: another call", f"then: {problem}"]
        assert proof.counterexample.run.reason is None


def test_a_guard_that_would_raise_is_none_where_a_run_ends_before() -> None:
    assert prove((Divides(), MaxSteps(1))).verdict == "proved"


def test_a_guard_that_cannot_say_why_it_halts_is_found() -> None:
    proof = prove((Tongue(), MaxSteps(5)))
    assert isinstance(proof.counterexample, Fault)
    assert proof.counterexample.problem == "a guard raised KeyError in its words for tongue: 'words'"


@pytest.mark.parametrize(
    ("guard", "problem"),
    [
        (Mutates(), "the guard Mutates (mutates) changes its memory in fold; it must return a new one"),
        (
            Boxed(),
            (
                "the memory of the guard Boxed (boxed) cannot be compared: it holds a Box; "
                "make it of numbers, texts, tuples, and attrs, msgspec or dataclass values"
            ),
        ),
        (Renamed(), "the guard Renamed (renamed) gives a reading of 'lenient'; it must have the guard's own reason"),
    ],
)
def test_what_is_no_guard_cannot_be_checked(guard: Guard, problem: str) -> None:
    with pytest.raises(Uncheckable) as raised:
        prove((guard, MaxSteps(4)))
    assert str(raised.value) == problem


class Moody(Lenient):
    """It trips by the hour."""

    reason = "moody"
    hours: list[int] = []

    def fold(self, memory: bool, fact: object, step: int) -> bool:
        self.hours.append(1)
        return len(self.hours) % 7 == 0


def test_a_guard_that_is_not_pure_is_found_out() -> None:
    with pytest.raises(Uncheckable, match="it depends on something else"):
        prove((Moody(), MaxSteps(6)))


def test_two_guards_of_one_reason_are_refused_as_everywhere() -> None:
    with pytest.raises(ValueError, match="both halt with the reason 'max_steps'"):
        prove((MaxSteps(3), MaxSteps(4)))


# --- spaces that are too big -------------------------------------------------------------------------------------


def test_a_space_that_is_too_big_is_never_proved() -> None:
    proof = prove(classic(), max_states=20)
    assert proof.verdict == "undecided"
    assert proof.undecided is not None
    words = report(classic(), proof)
    assert words.verdict() == (
        f"NOT PROVED: the search came to --max-states. Every run of fewer than {proof.undecided.depth} model calls was searched; "
        "what longer ones do is not known"
    )
    assert proof.undecided.depth > 1
    assert list(words.bounds()) == []


def test_what_is_known_all_the_same_is_told() -> None:
    guards = (*classic(5), Hoarder())
    proof = prove(guards, max_states=200)
    assert proof.verdict == "undecided"
    assert bounds(proof)[0] == (5, True, False)
    assert ends(proof)["hoarder"] == ("undecided", None)
    words = report(guards, proof)
    assert words.verdict() == "NOT PROVED: every run halts, but whether one can halt as hoarder is not known"
    assert words.warnings() == ["hoarder: not known. No run of fewer than 1 model calls ends so; raise --max-states to search longer ones."]
    assert words.footing().endswith("; that it never raises is tried, not proved, of: hoarder")


# --- words -------------------------------------------------------------------------------------------------------


def test_a_run_in_short() -> None:
    shortest = {ending.reason: in_short(ending.run, ENGLISH) for ending in prove(production(4), batch=1).endings if ending.run}
    assert shortest["denied"] == "a call: denied; the same call: denied"
    assert shortest["error_streak"] == "a call: tool_error; 2 × the same call: tool_error"
    assert shortest["empty_reply"] == "3 × an empty reply"
    assert shortest["max_steps"] == "a call: ok; 3 × another call: ok"
    assert shortest["final_answer"] == "the answer"
    assert shortest["model_error"] == "the model fails"


def test_batches_talk_and_persons_in_short() -> None:
    run = Run("task", guards=(MaxSteps(9),), protocol=next(iter(prove(classic(1)).endings)).run.protocol)  # type: ignore[union-attr]  # it is reached
    from tests.guard_steps import batch, said

    for event in (
        *batch(("work", {"n": 1}, "a", "ok"), ("work", {"n": 2}, "b", "timeout")),
        *batch(("work", {"n": 2}, "a", "ok"), ("work", {"n": 1}, "b", "ok")),
        *batch(("work", {"n": 2}, "a", "ok")),
        *batch(("work", {"n": 1}, "a", "ok"), ("work", {"n": 2}, "b", "ok")),
        *batch(("work", {"n": 2}, "a", "ok")),
        *said(),
        UserSpoke("and?"),
    ):
        run.feed(event)
    assert steps_of(run, ENGLISH) == [
        "2 calls: ok, timeout",
        "the same 2 calls: ok",
        "another call: ok",
        "2 calls: ok",
        "an earlier call: ok",
        "talk: a person speaks",
    ]
    assert ToolsReturned((Observation("work", "a"),)) in run.log


def test_what_is_spoken_of_in_the_report_stands_in_the_values() -> None:
    values = report(classic(3)).as_values()
    assert values["verdict"] == "proved"
    assert values["model_calls"] == {"most": 3, "exact": True, "each_message": False}
    assert values["guards"] == {guard.reason: guard.as_limits() for guard in classic(3)}
    assert values["rests_on"] == ["max_steps"]
    assert values["counterexample"] is None
    assert values["reasons"][-1] == {
        "reason": "max_steps",
        "status": "reached",
        "because": [],
        "model_calls": 3,
        "steps": ["a call: ok", "another call: ok", "another call: ok"],
        "path": [
            *["model_replied", "call_tools", "tools_returned", "go_on"] * 2,
            "model_replied",
            "call_tools",
            "tools_returned",
            "max_steps",
        ],
    }
    none = report(()).as_values()
    assert none["counterexample"] == {
        "steps": ["a call: ok"],
        "path": ["model_replied", "call_tools", "tools_returned", "go_on"],
        "repeats": [1, 1],
    }
    fault = report((Divides(), MaxSteps(4))).as_values()["counterexample"]
    assert fault["problem"] == "the guard Divides (divides) raised ZeroDivisionError in judge: division by zero"
