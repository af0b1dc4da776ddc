"""The verdicts: of the presets, of users' guards good and bad, and of machines that do not halt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

import pytest

from fsm_agent.events import (
    Approval,
    ApprovalAsked,
    ApprovalGiven,
    AskApproval,
    AttemptFailed,
    CallTools,
    Cancelled,
    ContextCompacted,
    Event,
    Malformed,
    Observation,
    Said,
    ToolCall,
    ToolCalls,
    ToolsFailed,
    ToolsReturned,
    UserSpoke,
)
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
from fsm_agent.language import ENGLISH, Language, language
from fsm_agent.machine import Run, Taken
from fsm_agent.options import OFF, Options
from fsm_agent.outcome import answer_of
from fsm_agent.proof import Endless, Fault, Proof, Uncheckable, prove
from fsm_agent.proof.configuration import Configuration
from fsm_agent.proof.options import options_from
from fsm_agent.proof.report import Report
from fsm_agent.proof.summary import events_of, in_short, steps_of
from fsm_agent.protocols import RecordedProtocol
from fsm_agent.traces.record import Trace, header_of
from tests.proof_guards import (
    Boxed,
    Busy,
    Cap,
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
    Shouted,
    Tongue,
    TooManySearches,
    Unsummed,
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
        "cancelled": ("reached", 0),
        "recording_ended": ("reached", 0),
        "final_answer": ("reached", 1),
        "repeated_call": ("reached", 3),
        "tools_failed": ("reached", 1),
        "consecutive_errors": ("reached", 2),
        "max_steps": ("reached", 10),
    }


def test_production_is_proved_with_few_states() -> None:
    proof = prove(production(30))
    assert proof.verdict == "proved"
    assert bounds(proof) == [(30, True, False), (30, True, False), (60, True, False)]
    assert ends(proof) == {
        "model_error": ("reached", 1),
        "cancelled": ("reached", 0),
        "recording_ended": ("reached", 0),
        "final_answer": ("reached", 1),
        "tools_failed": ("reached", 1),
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
    assert proof.states < 5_000  # some seconds
    assert proof.retries == 3


def test_a_guard_in_the_way_makes_the_shortest_run_longer() -> None:
    """Four failures of the same call in a row are a cycle before they are a streak, but for something else in between."""
    proof = prove((ErrorStreak(4), NoProgress(1, 2, 3), MaxSteps(12)), batch=1)
    assert ends(proof)["error_streak"] == ("reached", 5)


def test_a_budget_bounds_the_tool_calls() -> None:
    guards = (*classic(5), ToolBudget(3))
    proof = prove(guards)
    assert bounds(proof) == [(5, True, False), (3, True, False), (3, True, False)]
    assert list(report(guards, proof).bounds())[:2] == ["at most 5 model calls, each with up to 3 retries", "at most 3 tool calls"]


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
    assert proof.states < 800
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
    assert (
        next(report((EachTurn(3),), proof).bounds())
        == "at most 3 model calls between two messages of a person, who may go on for ever, each with up to 3 retries"
    )


def test_a_cap_holds_whatever_a_person_lifts_besides() -> None:
    proof = prove((EachTurn(3), MaxSteps(8)))
    assert bounds(proof)[0] == (8, True, False)
    assert proof.core == ("each_turn", "max_steps")


# --- what is on besides --------------------------------------------------------------------------------------------

ALL = options_from(["all"])


def test_a_last_chance_is_one_model_call_more_and_changes_no_reason() -> None:
    proof = prove(classic(), ALL)
    assert proof.verdict == "proved"
    assert bounds(proof) == [(11, True, False), (10, True, False), (20, True, False)]
    plain = ends(prove(classic()))
    assert ends(proof) == plain | {"repeated_call": ("reached", 4), "max_steps": ("reached", 11)}
    run = next(ending.run for ending in proof.endings if ending.reason == "repeated_call")
    assert run is not None
    assert (answer_of(run) is not None, run.chance) == (True, "Parsing")
    assert in_short(run, ENGLISH) == "a call: ok; the same call: ok; the same call; last word: the answer"
    assert next(report(classic(), proof).bounds()) == "at most 11 model calls, the last word among them, each with up to 3 retries"


def test_production_with_everything_on_needs_hardly_more_states() -> None:
    proof = prove(production(30), ALL)
    assert proof.verdict == "proved"
    assert bounds(proof) == [(31, True, False), (30, True, False), (60, True, False)]
    assert proof.states < 5_000
    found = ends(proof)
    assert {reason: found[reason] for reason in ("denied", "error_streak", "no_progress", "max_steps")} == {
        "denied": ("reached", 2),
        "error_streak": ("reached", 4),
        "no_progress": ("reached", 5),
        "max_steps": ("reached", 31),
    }


def test_with_nothing_on_there_is_less_to_search_and_to_say() -> None:
    proof = prove(classic(), OFF)
    assert (proof.retries, proof.options, "tools_failed" in ends(proof)) == (0, OFF, False)
    words = report(classic(), proof)
    assert next(words.bounds()) == "at most 10 model calls"
    assert list(words.bounds())[-1] == (
        "each cycle of the machine passes model_replied, which spends a model call; user_spoke is a person's own doing"
    )
    assert "with" not in words.footing()


def test_what_is_on_and_what_it_spends_is_told() -> None:
    words = report(classic(2), prove(classic(2), options_from(["retries=1", "last_chance"]), batch=1))
    assert list(words.bounds())[-1] == (
        "each cycle of the machine spends something bounded: a model call (model_replied, no_last_word, no_last_word_either), "
        "a retry (retry), the last chance (last_chance_parsing, last_chance); user_spoke is a person's own doing"
    )
    assert next(words.bounds()) == "at most 3 model calls, the last word among them, each with up to 1 retry"
    assert words.footing().endswith(" states searched, with retries=1, last_chance")
    values = words.as_values()
    assert (values["with"], values["retries_a_call"]) == (["retries=1", "last_chance"], 1)
    assert values["structure"]["spends"]["retry"] == "a retry"


@pytest.mark.parametrize("retries", [1, 5, 40])
def test_a_model_is_asked_again_as_often_as_the_options_say_and_no_oftener(retries: int) -> None:
    assert prove(classic(1), Options(max_retries=retries), batch=1).retries == retries


def test_a_last_word_counts_wherever_a_guard_may_stop_a_run_that_a_cap_without_one_ends() -> None:
    """The errors come to their limit with the cap: judged before it, they leave one call more than it allows; three are needed."""
    last = Options(last_chance=True)
    assert bounds(prove((Cap(3), ErrorStreak(3)), last, batch=1))[0] == (4, True, False)
    assert bounds(prove((Cap(2), ErrorStreak(3)), last, batch=1))[0] == (2, True, False)
    assert bounds(prove((Cap(3), ErrorStreak(3)), OFF, batch=1))[0] == (3, True, False)
    assert prove((Cap(3), ErrorStreak(3)), last, batch=1).core == ("cap", "error_streak")


def test_a_guard_may_count_what_costs_no_step() -> None:
    proof = prove((Busy(4), MaxSteps(6)), batch=1)
    assert proof.verdict == "proved"
    assert ends(proof)["busy"] == ("reached", 2)
    run = next(ending.run for ending in proof.endings if ending.reason == "busy")
    assert run is not None
    assert in_short(run, ENGLISH).count("an attempt fails") == 4
    assert ends(prove((Busy(4), MaxSteps(1)), batch=1))["busy"] == ("never", None)
    assert ends(prove((Busy(4), MaxSteps(6)), OFF, batch=1))["busy"] == ("never", None)


def test_a_guard_may_count_verdicts() -> None:
    assert ends(prove((Shouted(2), MaxSteps(4))))["shouted"] == ("reached", 1)
    assert ends(prove((Shouted(2), MaxSteps(4)), batch=1))["shouted"] == ("reached", 2)
    assert ends(prove((Shouted(2), MaxSteps(4)), options_from(["retries"])))["shouted"] == ("never", None)


def test_a_guard_that_cannot_bear_a_summary_is_shown_with_one() -> None:
    proof = prove((Unsummed(), MaxSteps(3)))
    assert isinstance(proof.counterexample, Fault)
    assert proof.counterexample.problem == "the guard Unsummed (unsummed) raised IndexError in fold: string index out of range"
    assert prove((Unsummed(), MaxSteps(3)), options_from(["retries", "approvals"])).verdict == "proved"


def test_a_machine_that_asks_a_person_again_and_again_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    def always(run: Run, kind: type) -> bool:
        return kind not in {ApprovalAsked, ToolsReturned, ToolsFailed} if isinstance(run.effect, AskApproval) else kind is not ApprovalGiven

    def decided(calls: Sequence[ToolCall], approvals: Mapping[int, Approval], lang: Language) -> CallTools:
        return CallTools(tuple(calls))

    monkeypatch.setattr("fsm_agent.machine.run.awaited", always)
    monkeypatch.setattr("fsm_agent.machine.run.decided", decided)
    proof = prove(classic())
    assert proof.verdict == "refuted"
    assert isinstance(proof.counterexample, Endless)
    told = report(classic(), proof).counterexample()
    assert told == ["step 1: a call: a person is asked: a person decides (yes)", "step 1 can follow itself for ever"]


def test_a_machine_that_retries_for_ever_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Options, "wait_s", lambda self, retries, asked_s: 0.0)
    with pytest.raises(Uncheckable, match="a step does not end"):
        prove(classic(1), Options(max_retries=1), batch=1)


def test_a_machine_that_stumbles_over_a_verdict_is_refuted_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def stumbles(calls: Sequence[ToolCall], approvals: Mapping[int, Approval], lang: Language) -> CallTools:
        raise ZeroDivisionError("no such verdict")

    monkeypatch.setattr("fsm_agent.machine.run.decided", stumbles)
    proof = prove(classic())
    assert isinstance(proof.counterexample, Fault)
    assert proof.counterexample.problem == "the machine raised ZeroDivisionError: no such verdict"
    assert report(classic(), proof).counterexample()[0] == "step 1: a call: a person is asked"


def test_every_event_has_words() -> None:
    told = [event for ending in prove(classic(2), ALL, batch=1).endings if ending.run for _, event in events_of(ending.run)]
    others: list[Event] = [
        *(AttemptFailed("E", "m"), ContextCompacted(1, "s"), ApprovalAsked((0,)), ApprovalGiven((Approval("edit"),))),
        *(UserSpoke("hm"), Cancelled(), ToolsFailed((), "E", "m")),
    ]
    assert {type(event) for event in (*told, *others)} == set(get_args(Event))
    run = Run("task", guards=(MaxSteps(9),), protocol=RecordedProtocol(), options=ALL)
    run.log += others
    assert steps_of(run, ENGLISH) == [
        "an attempt fails: summed up: a person is asked: a person decides (edit): a person speaks: cancelled: the tools are gone"
    ]


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
    proof = prove(classic(), max_states=30)
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
