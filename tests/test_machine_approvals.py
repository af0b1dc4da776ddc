"""Asking a person: once a step, before any call is made; what was denied is an observation, what was changed is told."""

from __future__ import annotations

from typing import Any

import pytest

from fsm_agent.events import (
    Approval,
    ApprovalAsked,
    ApprovalGiven,
    AskApproval,
    CallTools,
    Cancelled,
    Event,
    Message,
    Observation,
    RecordingEnded,
    ToolCall,
    ToolsFailed,
    ToolsReturned,
    UserSpoke,
)
from fsm_agent.guards import Deadline, Denied, ErrorStreak, RepeatedCall, classic
from fsm_agent.language import Language
from fsm_agent.machine import Run, Taken
from fsm_agent.options import OFF, Options
from fsm_agent.protocols import FunctionCallingProtocol
from tests.machine_pairs import calls, fed, path, refused, returned, says, seen, snapshot, started, steps

ASKS = Options(approvals=True)
YES, NO, NOT_SO = Approval("yes"), Approval("no"), Approval("no", "not on a Sunday")
ONE, TWO = calls({"a": 1}), calls({"a": 1}, {"a": 2})
ASKED = ApprovalAsked((0,))
CALL, OTHER = ToolCall("add", {"a": 1}, "x1"), ToolCall("add", {"a": 2}, "x2")


def edited(**arguments: Any) -> Approval:
    return Approval("edit", arguments=arguments)


def given(*approvals: Approval) -> ApprovalGiven:
    return ApprovalGiven(approvals)


def effect_of(run: Run) -> CallTools:
    assert isinstance(run.effect, CallTools)
    return run.effect


# --- asked and answered --------------------------------------------------------------------------------------------


def test_a_person_is_asked_before_calls_are_made_and_nothing_else_has_changed() -> None:
    run = fed(ASKS, TWO, ApprovalAsked((1,)))
    assert run.effect == AskApproval((CALL, OTHER), (1,))
    assert (run.state, run.step, run.log[-1]) == ("Executing", 1, Taken("ask_approval", 1))
    assert run.history == fed(ASKS, TWO).history
    assert run.accepts == (ApprovalGiven, Cancelled, RecordingEnded)


def test_with_a_yes_the_calls_are_to_be_made_as_they_are() -> None:
    run = fed(ASKS, TWO, ApprovalAsked((0, 1)), given(YES, YES))
    assert run.effect == CallTools((CALL, OTHER), (None, None), may_ask=False)
    assert (run.state, run.step, run.log[-1]) == ("Executing", 1, Taken("approval_given", 1))
    assert run.accepts == (ToolsReturned, Cancelled, RecordingEnded)


def test_with_a_no_the_call_is_settled_by_the_persons_words() -> None:
    run = fed(ASKS, TWO, ApprovalAsked((0, 1)), given(NOT_SO, YES))
    denied = Observation("add", "denied by a person: not on a Sunday", "denied")
    assert run.effect == CallTools((CALL, OTHER), (denied, None), may_ask=False)


@pytest.mark.parametrize("words", ["", "  \n"])
def test_a_no_without_words_says_so_all_the_same(words: str) -> None:
    run = fed(ASKS, ONE, ASKED, given(Approval("no", words)))
    assert effect_of(run).settled == (Observation("add", "denied by a person", "denied"),)


def test_white_space_around_the_words_is_left_out() -> None:
    run = fed(ASKS, ONE, ASKED, given(Approval("no", " no!\n")))
    assert effect_of(run).settled == (Observation("add", "denied by a person: no!", "denied"),)


def test_an_edit_changes_the_call_that_is_made_and_the_model_is_told_with_the_observation() -> None:
    run = fed(ASKS, TWO, ApprovalAsked((1,)), given(edited(a=3, b="x")))
    assert effect_of(run) == CallTools((CALL, ToolCall("add", {"a": 3, "b": "x"}, "x2")), (None, None), may_ask=False)
    run = fed(ASKS, TWO, ApprovalAsked((1,)), given(edited(a=3, b="x")), returned("1", "3"))
    assert run.history[-2:] == [
        Message("tool", "1", (), "add", "x1"),
        Message("tool", "(a person changed the call; it was made as add{a=3, b=x})\n3", (), "add", "x2"),
    ]


def test_an_edit_may_leave_no_arguments_at_all() -> None:
    run = fed(ASKS, ONE, ASKED, given(edited()), returned("3"))
    assert run.history[-1].content == "(a person changed the call; it was made as add{})\n3"


def test_what_the_model_called_is_on_record_as_it_called_it() -> None:
    run = fed(ASKS, ONE, ASKED, given(edited(a=3)))
    assert [str(call) for call in run.decision.calls] == ["add{a=1}"]  # type: ignore[union-attr]  # it is calls
    assert run.history[-1].tool_calls == ONE.reply.tool_calls


def test_calls_that_were_not_asked_about_are_made_as_they_are() -> None:
    three = calls({"a": 1}, {"a": 2}, {"a": 3})
    run = fed(ASKS, three, ApprovalAsked((0, 2)), given(NO, edited(a=9)))
    effect = effect_of(run)
    assert [call.arguments for call in effect.calls] == [{"a": 1}, {"a": 2}, {"a": 9}]
    assert [each and each.kind for each in effect.settled] == ["denied", None, None]


def test_verdicts_yes_no_and_edit_of_one_batch_each_reach_the_model() -> None:
    three = calls({"a": 1}, {"a": 2}, {"a": 3})
    observations = (*seen("1"), Observation("add", "denied by a person: no", "denied"), *seen("9"))
    run = fed(
        ASKS, three, ApprovalAsked((0, 1, 2)), given(YES, Approval("no", "no"), edited(a=9)), ToolsReturned(observations), says("done")
    )
    assert [message.content for message in run.history[3:6]] == [
        "1",
        "denied by a person: no",
        "(a person changed the call; it was made as add{a=9})\n9",
    ]
    assert (run.reason, path(run)) == (
        "final_answer",
        [
            *("model_replied", "call_tools", "ask_approval", "approval_given", "tools_returned", "go_on"),
            *("model_replied", "final_answer"),
        ],
    )
    assert steps(run) == [1, 1, 1, 1, 1, 1, 2, 2]


def test_the_model_is_told_in_its_own_language() -> None:
    run = Run("task", protocol=FunctionCallingProtocol(Language("xx", "~{}".format)), options=ASKS)
    for event in (TWO, ApprovalAsked((0, 1)), given(NO, edited(a=1))):
        run.feed(event)
    (settled, _) = effect_of(run).settled
    assert settled == Observation("add", "~denied by a person", "denied")
    run.feed(returned("n", "1"))
    assert run.history[-1].content == "~(a person changed the call; it was made as add{a=1})\n1"


# --- once a step -------------------------------------------------------------------------------------------------


def test_nobody_needs_to_be_asked() -> None:
    run = fed(ASKS, ONE, returned("1"))
    assert path(run) == ["model_replied", "call_tools", "tools_returned", "go_on"]


def test_a_person_is_asked_once_a_step_and_again_in_the_next() -> None:
    run = fed(ASKS, ONE, ASKED, given(YES))
    refused(run, ASKED, "ApprovalAsked in Executing (step 1): this state takes ToolsReturned, Cancelled, RecordingEnded")
    refused(run, given(YES), "ApprovalGiven in Executing (step 1): this state takes ToolsReturned, Cancelled, RecordingEnded")
    again = fed(ASKS, ONE, ASKED, given(YES), returned("1"), TWO, ApprovalAsked((1,)), given(NO))
    assert effect_of(again).may_ask is False
    assert path(again).count("ask_approval") == 2


def test_what_was_decided_in_one_step_is_forgotten_in_the_next() -> None:
    run = fed(ASKS, ONE, ASKED, given(edited(a=7)), returned("7"), calls({"a": 2}), returned("2"))
    assert run.history[-1].content == "2"
    assert run.approvals == {}
    run = fed(ASKS, TWO, ApprovalAsked((0, 1)), given(edited(a=7), edited(a=8)), returned("7", "8"), ONE, ASKED, given(YES), returned("1"))
    assert run.history[-1].content == "1"


# --- ends while a person is asked ----------------------------------------------------------------------------------


def test_cancelled_while_asked_each_call_has_its_observation() -> None:
    run = fed(ASKS, TWO, ApprovalAsked((1,)), Cancelled(seen("not made", "not asked", kind="cancelled")))
    assert (run.state, run.reason, run.step, run.effect) == ("Halted", "cancelled", 1, None)
    assert [(message.tool_call_id, message.content) for message in run.history[-2:]] == [("x1", "not made"), ("x2", "not asked")]


def test_a_recording_can_end_while_a_person_is_asked() -> None:
    run = fed(ASKS, ONE, ASKED, RecordingEnded())
    assert (run.reason, run.step) == ("recording_ended", 1)


@pytest.mark.parametrize(
    "end", [Cancelled, lambda told: ToolsFailed(told, "ToolServerDead", "the server is gone")], ids=["cancelled", "failed"]
)
def test_an_edited_call_that_comes_to_nothing_is_told_as_edited_too(end: Any) -> None:
    options = Options(approvals=True, tool_servers=True)
    run = fed(options, ONE, ASKED, given(edited(a=5)), end(seen("gone", kind="cancelled")))
    assert run.history[-1].content == "(a person changed the call; it was made as add{a=5})\ngone"


# --- guards ------------------------------------------------------------------------------------------------------


def denials(n: int, *arguments: dict[str, Any]) -> list[Event]:
    asked = arguments or ({"a": 1},) * n
    told = ToolsReturned((Observation("add", "denied by a person", "denied"),))
    return [event for each in asked for event in (calls(each), ASKED, given(NO), told)]


def test_a_call_that_is_denied_twice_halts_the_run() -> None:
    run = fed(ASKS, *denials(2), guards=(Denied(2), *classic()))
    assert (run.reason, run.step) == ("denied", 2)
    assert run.readings[0].value == 2
    assert fed(ASKS, *denials(2, {"a": 1}, {"a": 2}), guards=(Denied(2), *classic())).state == "Deciding"


def test_a_denial_is_no_error_of_the_models() -> None:
    run = fed(ASKS, *denials(3, {"a": 1}, {"a": 2}, {"a": 3}), guards=(*classic(max_errors=1), ErrorStreak(1)))
    assert (run.state, [reading.value for reading in run.readings]) == ("Deciding", [0, 0, 3])


def test_guards_judge_the_call_that_the_model_made_not_the_one_that_a_person_made_of_it() -> None:
    def round_of(n: int) -> list[Event]:
        return [ONE, ASKED, given(edited(a=n)), returned(str(n))]

    run = fed(ASKS, *round_of(10), *round_of(11), ONE, guards=(RepeatedCall(2),))
    assert (run.reason, run.step) == ("repeated_call", 3)


def test_the_time_in_which_a_person_thinks_does_not_count() -> None:
    run = fed(
        ASKS,
        calls({"a": 1}),
        ApprovalAsked((0,), at=2.0),
        ApprovalGiven((YES,), at=100.0),
        returned("1", at=101.0),
        guards=(Deadline(50.0),),
        at=1.0,
    )
    assert (run.state, run.readings[0].value) == ("Deciding", 1.0)


# --- what is refused -----------------------------------------------------------------------------------------------

WAITS = "this state takes ApprovalAsked, ToolsReturned, Cancelled, RecordingEnded"
ANSWERS = "this state takes ApprovalGiven, Cancelled, RecordingEnded"


@pytest.mark.parametrize(
    ("before", "event", "message"),
    [
        ((TWO,), ApprovalAsked(()), "ApprovalAsked in Executing (step 1): calls (): they must be some of [0, 1], in order"),
        ((TWO,), ApprovalAsked((2,)), "ApprovalAsked in Executing (step 1): calls (2,): they must be some of [0, 1], in order"),
        ((TWO,), ApprovalAsked((1, 0)), "ApprovalAsked in Executing (step 1): calls (1, 0): they must be some of [0, 1], in order"),
        ((TWO,), ApprovalAsked((0, 0)), "ApprovalAsked in Executing (step 1): calls (0, 0): they must be some of [0, 1], in order"),
        ((TWO,), ApprovalAsked((-1,)), "ApprovalAsked in Executing (step 1): calls (-1,): they must be some of [0, 1], in order"),
        ((TWO,), ApprovalAsked((0, 2)), "ApprovalAsked in Executing (step 1): calls (0, 2): they must be some of [0, 1], in order"),
        ((TWO,), given(YES), f"ApprovalGiven in Executing (step 1): {WAITS}"),
        ((TWO, ApprovalAsked((0,))), ApprovalAsked((1,)), f"ApprovalAsked in Executing (step 1): {ANSWERS}"),
        ((TWO, ApprovalAsked((0,))), returned("1", "2"), f"ToolsReturned in Executing (step 1): {ANSWERS}"),
        ((TWO, ApprovalAsked((0,))), says("hurry"), f"ModelReplied in Executing (step 1): {ANSWERS}"),
        ((TWO, ApprovalAsked((0,))), UserSpoke("yes"), f"UserSpoke in Executing (step 1): {ANSWERS}"),
        (
            (TWO, ApprovalAsked((0,))),
            ToolsFailed(seen("?", "?", kind="interrupted"), "ToolServerDead", "gone"),
            f"ToolsFailed in Executing (step 1): {ANSWERS}",
        ),
        ((TWO, ApprovalAsked((0,))), given(), "ApprovalGiven in Executing (step 1): 0 approvals: 1 calls wait for one each"),
        ((TWO, ApprovalAsked((0,))), given(YES, YES), "ApprovalGiven in Executing (step 1): 2 approvals: 1 calls wait for one each"),
        ((TWO, ApprovalAsked((0, 1))), given(YES), "ApprovalGiven in Executing (step 1): 1 approvals: 2 calls wait for one each"),
        ((TWO, ApprovalAsked((0, 1))), given(YES, Approval("edit")), "ApprovalGiven in Executing (step 1): an edit without arguments"),
        (
            (ONE, ASKED),
            given(Approval("No")),  # type: ignore[arg-type]  # a caller without types
            "ApprovalGiven in Executing (step 1): the verdict 'No': it must be one of yes, no, edit",
        ),
        ((TWO, ApprovalAsked((0,))), Cancelled(), "Cancelled in Executing (step 1): 0 observations: 2 calls wait for one each"),
        (
            (TWO, ApprovalAsked((0,))),
            Cancelled(seen("?", kind="cancelled")),
            "Cancelled in Executing (step 1): 1 observations: 2 calls wait for one each",
        ),
        (
            (),
            ASKED,
            "ApprovalAsked in Deciding (step 0): this state takes ModelReplied, ModelFailed, UserSpoke, Cancelled, RecordingEnded",
        ),
    ],
)
def test_an_event_that_does_not_fit_is_refused_and_changes_nothing(before: tuple[Event, ...], event: Any, message: str) -> None:
    refused(fed(ASKS, *before), event, message)


def test_a_lost_tool_server_is_refused_while_a_person_is_asked_also_where_there_are_servers() -> None:
    run = fed(Options(approvals=True, tool_servers=True), ONE, ASKED)
    refused(run, ToolsFailed(seen("?"), "ToolServerDead", "gone"), f"ToolsFailed in Executing (step 1): {ANSWERS}")


def test_after_what_was_refused_the_run_goes_on_as_if_nothing_had_been() -> None:
    run = fed(ASKS, ONE, ASKED)
    refused(run, given(YES, YES), "ApprovalGiven in Executing (step 1): 2 approvals: 1 calls wait for one each")
    run.feed(given(YES))
    assert snapshot(run) == snapshot(fed(ASKS, ONE, ASKED, given(YES)))


def test_without_approvals_there_is_no_edge_for_them() -> None:
    refused(fed(OFF, ONE), ASKED, "ApprovalAsked in Executing (step 1): this state takes ToolsReturned, Cancelled, RecordingEnded")
    plain, with_them = (started(options).wiring.rows for options in (OFF, ASKS))
    assert [row.id for row in with_them if row not in plain] == ["ask_approval", "approval_given"]
