"""What tools came to: tools that are gone for good, observations that are too long to be shown whole; and what a call and a run are known by."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm_agent.events import Approval, ApprovalAsked, ApprovalGiven, CallTools, Cancelled, Message, ToolsFailed
from fsm_agent.guards import NoProgress
from fsm_agent.language import ENGLISH
from fsm_agent.machine import Taken
from fsm_agent.machine.history import cut
from fsm_agent.options import OFF, Options
from fsm_agent.outcome import answer_of, message_of
from tests.machine_pairs import calls, fed, refused, returned, seen, started

SERVERS = Options(tool_servers=True)
GONE = ToolsFailed(seen("no outcome", "not made", kind="interrupted"), "ToolServerDead", "the server npx died again", at=3.0)
TWO = calls({"a": 1}, {"a": 2})

# --- tools that are gone -------------------------------------------------------------------------------------------


def test_tools_that_are_gone_halt_the_run_and_each_call_has_its_observation() -> None:
    run = fed(SERVERS, TWO, GONE)
    assert (run.state, run.reason, run.step, run.effect) == ("Halted", "tools_failed", 1, None)
    assert run.log[-2:] == [GONE, Taken("tools_failed", 1)]
    assert run.history[-2:] == [Message("tool", "no outcome", (), "add", "x1"), Message("tool", "not made", (), "add", "x2")]
    assert answer_of(run) is None
    assert message_of(run, ENGLISH) == "stopped: the tools are gone (ToolServerDead: the server npx died again)"


@pytest.mark.parametrize("n", [0, 1, 3])
def test_each_call_wants_one_observation(n: int) -> None:
    event = ToolsFailed(seen(*"?" * n), "ToolServerDead", "gone")
    refused(fed(SERVERS, TWO), event, f"ToolsFailed in Executing (step 1): {n} observations: 2 calls wait for one each")


def test_tools_cannot_fail_while_the_model_is_asked() -> None:
    taken = "this state takes ModelReplied, ModelFailed, UserSpoke, Cancelled, RecordingEnded"
    refused(started(SERVERS), GONE, f"ToolsFailed in Deciding (step 0): {taken}")


def test_without_servers_there_is_no_edge_for_it() -> None:
    refused(fed(OFF, TWO), GONE, "ToolsFailed in Executing (step 1): this state takes ToolsReturned, Cancelled, RecordingEnded")
    plain, with_it = (started(options).wiring.rows for options in (OFF, SERVERS))
    assert [row.id for row in with_it if row not in plain] == ["tools_failed"]


# --- observations that are too long ----------------------------------------------------------------------------------


def test_a_long_observation_is_shown_by_its_beginning_and_its_end_and_says_what_is_left_out() -> None:
    run = fed(Options(max_observation_chars=8), calls({"a": 1}), returned("0123456789ABCDEF"))
    assert run.history[-1].content == "012345\n[... 8 characters left out ...]\nEF"
    assert run.log[-3] == returned("0123456789ABCDEF")


@pytest.mark.parametrize(
    ("text", "shown"), [("01234567", "01234567"), ("012345678", "012345\n[... 1 character left out ...]\n78"), ("", "")]
)
def test_just_as_much_as_may_be_shown_is_shown_whole(text: str, shown: str) -> None:
    run = fed(Options(max_observation_chars=8), calls({"a": 1}), returned(text))
    assert run.history[-1].content == shown


def test_each_observation_of_a_batch_is_cut_for_itself() -> None:
    run = fed(Options(max_observation_chars=4), TWO, returned("abc", "abcdefgh"))
    assert [message.content for message in run.history[-2:]] == ["abc", "abc\n[... 4 characters left out ...]\nh"]


def test_without_a_limit_all_is_shown() -> None:
    run = fed(OFF, calls({"a": 1}), returned("x" * 100_000))
    assert run.history[-1].content == "x" * 100_000


def test_what_is_cut_is_what_the_tool_said_not_what_is_said_of_it() -> None:
    run = fed(
        Options(max_observation_chars=4, approvals=True),
        calls({"a": 1}),
        ApprovalAsked((0,)),
        ApprovalGiven((Approval("edit", arguments={"a": 2}),)),
        returned("abcdefgh"),
    )
    assert run.history[-1].content == "(a person changed the call; it was made as add{a=2})\nabc\n[... 4 characters left out ...]\nh"


def test_what_calls_came_to_that_did_not_end_is_cut_too() -> None:
    run = fed(Options(max_observation_chars=4), calls({"a": 1}), Cancelled(seen("abcdefgh", kind="cancelled")))
    assert run.history[-1].content == "abc\n[... 4 characters left out ...]\nh"
    run = fed(Options(max_observation_chars=4, tool_servers=True), calls({"a": 1}), ToolsFailed(seen("abcdefgh"), "E", "m"))
    assert run.history[-1].content == "abc\n[... 4 characters left out ...]\nh"


def test_guards_read_what_the_tool_said_in_full() -> None:
    """Two long texts that differ only where they are cut are two texts."""
    options, guards = Options(max_observation_chars=4), (NoProgress(1, 2, 2),)
    run = fed(options, calls({"a": 1}), returned("abcdefgh"), calls({"a": 1}), returned("abcDEfgh"), guards=guards)
    assert (run.state, run.history[-1].content) == ("Deciding", run.history[-3].content)
    run = fed(options, calls({"a": 1}), returned("abcdefgh"), calls({"a": 1}), returned("abcdefgh"), guards=guards)
    assert run.reason == "no_progress"


@given(st.text(), st.integers(1, 20))
def test_a_cut_text_is_its_beginning_and_its_end_with_nothing_twice(text: str, most: int) -> None:
    if len(text) <= most:
        return
    told = f"\n[... {len(text) - most} character{'s' if len(text) - most > 1 else ''} left out ...]\n"
    short = cut(text, most, ENGLISH)
    end = most // 4
    assert short == text[: most - end] + told + text[len(text) - end :]
    assert len(short) == most + len(told)


# --- keys of calls, and stopping -----------------------------------------------------------------------------------


def test_a_calls_key_is_its_run_its_step_and_its_place_in_the_reply_counted_from_1() -> None:
    run = fed(OFF, calls({"a": 1}), returned("1"), TWO, run_id="r7")
    assert isinstance(run.effect, CallTools)
    keyed = [run.keyed(index, call) for index, call in enumerate(run.effect.calls)]
    assert [call.key for call in keyed] == ["r7/2/1", "r7/2/2"]
    assert [(call.name, call.arguments, call.id) for call in keyed] == [(call.name, call.arguments, call.id) for call in run.effect.calls]
    assert keyed[0].signature == run.effect.calls[0].signature


def test_a_run_is_stopped_by_whoever_drives_it_and_a_copy_is_driven_by_nobody() -> None:
    run, told = started(OFF), []
    with pytest.raises(RuntimeError, match=r"^this run is not being driven; there is nothing to cancel$"):
        run.cancel()
    run.canceller = lambda: told.append("stop")
    run.cancel()
    assert told == ["stop"]
    with pytest.raises(RuntimeError, match="not being driven"):
        run.copy().cancel()
