"""The guards of replies that cannot be used: malformed, empty, cut off."""

from __future__ import annotations

import pytest

from fsm_agent.events import AskModel, Message, ModelReplied, Reply, ToolRequest
from fsm_agent.guards import EmptyReply, Evidence, MalformedStreak, Reading, TruncatedReply
from fsm_agent.language import ENGLISH
from fsm_agent.outcome import answer_of, message_of
from tests.guard_steps import CUT, EMPTY, FINAL, Events, batch, did, end, failed, malformed, play, readings, said, spoke, values

UNKNOWN = failed("serach", "TOOL_ERROR: unknown tool serach", "unknown_tool")
ILL = failed("add", "TOOL_ERROR: add expected an integer", "bad_arguments")
CUT_CALL: Events = (ModelReplied(Reply("", (ToolRequest("1", "rm", '{"path": "/"'),), "length")),)
CUT_WHOLE_CALL: Events = (ModelReplied(Reply("", (ToolRequest("1", "rm", '{"path": "/"}'),), "length")),)


# --- malformed_streak ---------------------------------------------------------------------------------------------


def test_one_counter_for_unparseable_replies_unknown_tools_and_bad_arguments() -> None:
    run = play(MalformedStreak(4), malformed(), UNKNOWN, ILL, EMPTY)
    assert end(run) == ("malformed_streak", 4)
    assert readings(run, "malformed_streak")[-1] == Reading(
        "malformed_streak",
        4,
        4,
        trips=True,
        evidence=(
            Evidence(1, "unparseable", "the recorded system could not parse the reply"),
            Evidence(2, "unknown_tool", "unknown tool serach"),
            Evidence(3, "bad_arguments", "add expected an integer"),
            Evidence(4, "empty", "the reply is empty"),
        ),
    )
    assert message_of(run, ENGLISH) == "stopped: 4 malformed replies or calls in a row, the last: the reply is empty"


@pytest.mark.parametrize(
    ("between", "expected"),
    [
        (did(), [1, 2, 0, 1]),
        (failed(), [1, 2, 0, 1]),
        (failed(kind="timeout"), [1, 2, 0, 1]),
        (failed(kind="denied"), [1, 2, 0, 1]),
        (said(), [1, 2, 0, 1]),
        (spoke(), [1, 2, 3]),
        (CUT_WHOLE_CALL, [1, 2, 3, 4]),
        (batch(("a", {}, "x", "unknown_tool"), ("b", {}, "y", "bad_arguments")), [1, 2, 3, 4]),
        (batch(("a", {}, "x", "unknown_tool"), ("b", {}, "y", "tool_error")), [1, 2, 0, 1]),
    ],
)
def test_a_well_formed_call_resets_also_one_that_failed_and_a_batch_is_one(between: Events, expected: list[int]) -> None:
    assert values(play(MalformedStreak(), malformed(), UNKNOWN, between, ILL), "malformed_streak") == expected


def test_the_default_is_ten_and_the_warning_comes_once() -> None:
    run = play(MalformedStreak(warn_at=4), *[malformed(str(i)) for i in range(12)])
    assert end(run) == ("malformed_streak", 10)
    assert [reading.warns for reading in readings(run, "malformed_streak")] == [i == 3 for i in range(10)]
    warning = (
        "Warning: 4 replies in a row could not be used; at 10 the run is stopped. "
        "Look again at the form of a reply, and at the tools' names and parameters."
    )
    assert [message for message in run.history if message.content.startswith("Warning")] == [Message("user", warning)]


# --- empty_reply --------------------------------------------------------------------------------------------------


def test_empty_and_white_space_replies_in_a_row_halt() -> None:
    run = play(EmptyReply(), EMPTY, (ModelReplied(Reply("")),), EMPTY)
    assert end(run) == ("empty_reply", 3)
    assert readings(run, "empty_reply")[-1].evidence == (
        Evidence(1, "empty", r"' \n'"),
        Evidence(2, "empty", "''"),
        Evidence(3, "empty", r"' \n'"),
    )
    assert message_of(run, ENGLISH) == "stopped: 3 empty replies in a row"


@pytest.mark.parametrize("between", [did(), failed(), malformed(), said()])
def test_a_reply_that_says_or_calls_something_is_not_empty(between: Events) -> None:
    assert values(play(EmptyReply(), EMPTY, EMPTY, between, EMPTY), "empty_reply") == [1, 2, 0, 1]


# --- truncated_reply ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", [CUT, CUT_CALL, CUT_WHOLE_CALL])
def test_the_second_reply_in_a_row_that_was_cut_off_halts(cut: Events) -> None:
    run = play(TruncatedReply(), CUT, cut)
    assert end(run) == ("truncated_reply", 2)
    assert message_of(run, ENGLISH) == "stopped: 2 replies in a row were cut off; allow the model more tokens"


def test_the_calls_of_a_reply_that_was_cut_off_are_never_made() -> None:
    run = play(TruncatedReply(), CUT_WHOLE_CALL)
    assert isinstance(run.effect, AskModel)
    assert run.history[-1].tool_call_id == "1"
    assert end(play(TruncatedReply(), CUT_WHOLE_CALL, CUT_WHOLE_CALL)) == ("truncated_reply", 2)
    assert readings(run, "truncated_reply")[-1].evidence == (Evidence(1, "truncated", "rm"),)


@pytest.mark.parametrize("between", [did(), failed(), malformed(), said(), EMPTY])
def test_a_whole_reply_in_between_resets(between: Events) -> None:
    assert values(play(TruncatedReply(), CUT, between, CUT), "truncated_reply") == [1, 0, 1]


def test_an_answer_that_was_cut_off_is_an_answer() -> None:
    run = play(TruncatedReply(1), (ModelReplied(Reply("42 and", finish_reason="length", taken_as="answer")),))
    assert (run.reason, answer_of(run)) == ("final_answer", "42 and")


def test_an_answer_ends_every_streak() -> None:
    assert end(play((EmptyReply(), TruncatedReply(), MalformedStreak(3)), EMPTY, CUT, FINAL)) == ("final_answer", 3)


@pytest.mark.parametrize(
    ("guard", "message"),
    [
        (lambda: MalformedStreak(0), "max_malformed is 0; it must be at least 1"),
        (lambda: MalformedStreak(3, warn_at=3), "warn_at is 3; it must be below max_malformed, which is 3"),
        (lambda: EmptyReply(0), "max_empty is 0; it must be at least 1"),
        (lambda: TruncatedReply(-1), "max_truncated is -1; it must be at least 1"),
    ],
)
def test_limits_are_refused_when_configured(guard: type[EmptyReply], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        guard()
