"""The last chance: at a cap, a budget or a loop the model may still answer, without tools; why the run halts stays what it was."""

from __future__ import annotations

from typing import ClassVar

import attrs
import pytest

from fsm_agent.events import (
    AskModel,
    AttemptFailed,
    Cancelled,
    ContextCompacted,
    Event,
    Fact,
    Final,
    Malformed,
    Message,
    Messages,
    ModelFailed,
    ModelReplied,
    RecordingEnded,
    Reply,
    ToolCalls,
    ToolRequest,
    ToolSpec,
    Usage,
    UserSpoke,
)
from fsm_agent.guards import (
    ConsecutiveErrors,
    CostBudget,
    Deadline,
    Denied,
    EmptyReply,
    ErrorStreak,
    Guard,
    MalformedStreak,
    MaxSteps,
    NoProgress,
    Reading,
    RepeatedCall,
    TokenBudget,
    ToolBudget,
    TruncatedReply,
    classic,
    production,
)
from fsm_agent.language import ENGLISH
from fsm_agent.machine import Run, Taken
from fsm_agent.options import OFF, Options
from fsm_agent.outcome import answer_of, message_of
from fsm_agent.protocols import RecordedProtocol
from fsm_agent.table import OBSERVING, PARSING
from tests.machine_pairs import calls, fed, path, refused, returned, says, started, steps

ON = Options(last_chance=True)
AGAIN = Options(last_chance=True, max_retries=1)
STEP: tuple[Event, ...] = (calls({"a": 1}), returned("1"))
OTHER_STEP: tuple[Event, ...] = (calls({"a": 2}), returned("2"))
CAP = (MaxSteps(1),)
AT_CAP = STEP
"""What brings a run under ``CAP`` to its last chance."""
LOOP = (RepeatedCall(1),)
AT_LOOP: tuple[Event, ...] = (*STEP, calls({"a": 1}))
"""What brings a run under ``LOOP`` to its last chance."""
BUSY = AttemptFailed("RateLimitError", "busy")
LAST_CALL = "The run is being stopped: {}. No tool can be called any more. Give your final answer now."

each_way = pytest.mark.parametrize(("guards", "before", "reason"), [(CAP, AT_CAP, "max_steps"), (LOOP, AT_LOOP, "repeated_call")])
"""By way of Observing, and by way of Parsing."""


# --- how it comes ------------------------------------------------------------------------------------------------


def test_at_the_cap_the_model_is_asked_once_more_without_tools() -> None:
    run = fed(ON, *STEP, guards=(*classic(max_steps=1),), tools=(ToolSpec("add"),))
    assert (run.state, run.reason, run.step, run.chance) == ("Deciding", None, 1, OBSERVING)
    assert run.history[-2:] == [Message("tool", "1", (), "add", "x1"), Message("user", LAST_CALL.format("max_steps"))]
    assert run.effect == AskModel(Messages(run.history, len(run.history)), ())
    errors, cap = Reading("consecutive_errors", 0, 2, trips=False), Reading("max_steps", 1, 1, trips=True)
    assert run.log[-1] == Taken("last_chance", 1, (errors, cap))


def test_in_a_loop_the_call_is_refused_before_it_is_made_and_the_model_asked_once_more() -> None:
    run = fed(ON, *AT_LOOP, guards=LOOP, tools=(ToolSpec("add"),))
    assert (run.state, run.reason, run.step, run.chance) == ("Deciding", None, 2, PARSING)
    assert run.history[-2:] == [
        Message("tool", "refused, the run was stopped first: repeated_call", (), "add", "x1"),
        Message("user", LAST_CALL.format("repeated_call")),
    ]
    assert run.effect == AskModel(Messages(run.history, len(run.history)), ())
    assert (path(run)[-1], run.readings[0].value) == ("last_chance_parsing", 1)


def test_every_call_of_a_batch_that_is_refused_is_told_so() -> None:
    run = fed(ON, calls({"a": 1}, {"a": 2}, {"a": 3}), guards=(ToolBudget(2),))
    assert [(message.tool_call_id, message.content) for message in run.history[3:6]] == [
        (f"x{n}", "refused, the run was stopped first: tool_budget") for n in (1, 2, 3)
    ]
    assert run.history[6] == Message("user", LAST_CALL.format("tool_budget"))


def test_a_malformed_reply_at_the_cap_is_corrected_first() -> None:
    run = fed(ON, says(""), guards=CAP)
    assert isinstance(run.decision, Malformed)
    assert [message.content for message in run.history[-2:]] == [run.decision.problem, LAST_CALL.format("max_steps")]
    assert path(run) == ["model_replied", "malformed", "last_chance"]


def test_a_malformed_reply_that_wears_a_budget_out_is_corrected_first_too() -> None:
    run = fed(ON, calls({"a": 1}, usage=Usage(9, 9), finish="length"), guards=(TokenBudget(18),))
    assert isinstance(run.decision, Malformed)
    assert [(message.role, message.content, message.tool_call_id) for message in run.history[-2:]] == [
        ("tool", run.decision.problem, "x1"),
        ("user", LAST_CALL.format("token_budget"), ""),
    ]
    assert path(run) == ["model_replied", "last_chance_parsing"]


def test_talk_at_the_cap_is_followed_by_the_last_call() -> None:
    run = Run("task", guards=CAP, protocol=RecordedProtocol(), options=ON)
    run.feed(says("how are you?"))
    assert [message.role for message in run.history] == ["user", "assistant", "user"]
    assert path(run) == ["model_replied", "said", "last_chance"]
    run.feed(says("well?"))
    assert (run.reason, answer_of(run)) == ("max_steps", None)


GOING_ON = [event for n in range(9) for event in (calls({"a": n}), returned(str(n)))]


@pytest.mark.parametrize(
    ("guard", "events", "reason"),
    [
        (MaxSteps(2), GOING_ON[:4], "max_steps"),
        (Deadline(5.0), (calls({"a": 1}), returned("1", at=6.0)), "deadline"),
        (NoProgress(1, 2, 2), STEP * 2, "no_progress"),
        (ErrorStreak(2), (calls({"a": 1}), returned("no", kind="tool_error")) * 2, "error_streak"),
        (RepeatedCall(1), AT_LOOP, "repeated_call"),
        (ToolBudget(1), (*STEP, calls({"a": 2})), "tool_budget"),
        (ToolBudget(1, "add"), (*STEP, calls({"a": 2})), "tool_budget:add"),
        (TokenBudget(3), (calls({"a": 1}, usage=Usage(1, 2)),), "token_budget"),
        (CostBudget(0.5), (calls({"a": 1}, usage=Usage(1, 2, 0.5)),), "cost_budget"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_caps_budgets_and_loops_leave_a_last_chance(guard: Guard, events: tuple[Event, ...], reason: str) -> None:
    run = fed(ON, *events, guards=(guard,), at=0.0)
    assert (run.state, run.chance, run.history[-1].content) == ("Deciding", guard.watches, LAST_CALL.format(reason))
    run = fed(ON, *events, says("as far as I know, 3"), guards=(guard,), at=0.0)
    assert (run.state, run.reason, answer_of(run)) == ("Halted", reason, "as far as I know, 3")
    assert run.reason == fed(OFF, *events, guards=(guard,), at=0.0).reason


@pytest.mark.parametrize(
    ("guard", "events", "reason"),
    [
        (ConsecutiveErrors(1), (calls({"a": 1}), returned("no", kind="tool_error")), "consecutive_errors"),
        (Denied(1), (calls({"a": 1}), returned("no", kind="denied")), "denied"),
        (TruncatedReply(1), (calls({"a": 1}, finish="length"),), "truncated_reply"),
        (EmptyReply(1), (says(""),), "empty_reply"),
        (MalformedStreak(1), (says(""),), "malformed_streak"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_errors_and_denials_halt_at_once(guard: Guard, events: tuple[Event, ...], reason: str) -> None:
    alone = fed(ON, *events, guards=(guard,))
    assert (alone.reason, alone.chance) == (reason, None)
    with_a_cap = fed(ON, *events, guards=(guard, MaxSteps(9)))
    assert (with_a_cap.reason, with_a_cap.chance) == (reason, None)


# --- the last word -----------------------------------------------------------------------------------------------


def test_an_answer_is_kept_and_the_reason_stays() -> None:
    run = fed(ON, *AT_CAP, says("3, I think"), guards=(*classic(max_steps=1),))
    assert (run.state, run.reason, run.step, run.effect) == ("Halted", "max_steps", 2, None)
    assert answer_of(run) == "3, I think"
    assert run.decision == Final("3, I think")
    assert message_of(run, ENGLISH) == "stopped: reached the cap of 1 steps, halted so that an endless loop cannot burn the budget"
    frozen = (Reading("consecutive_errors", 0, 2, trips=False), Reading("max_steps", 1, 1, trips=True))
    assert run.log[-4:] == [says("3, I think"), Taken("model_replied", 2), Taken("last_word", 2, ()), Taken("max_steps", 2, frozen)]


def test_an_answer_in_a_loop_is_kept_and_the_reason_stays() -> None:
    run = fed(ON, *AT_LOOP, says("3, I think"), guards=LOOP)
    assert (run.reason, run.step, answer_of(run)) == ("repeated_call", 3, "3, I think")
    assert message_of(run, ENGLISH) == "stopped: repeated call add{a=1}, the model is going in circles"
    assert path(run)[-2:] == ["model_replied", "repeated_call"]
    assert isinstance(run.log[-1], Taken)
    assert run.log[-1].readings == run.log[-4].readings  # type: ignore[union-attr]  # of the edge last_chance_parsing


@each_way
def test_tool_calls_in_the_last_word_are_refused_each_with_its_observation(
    guards: tuple[Guard, ...], before: tuple[Event, ...], reason: str
) -> None:
    run = fed(ON, *before, calls({"a": 8}, {"a": 9}), guards=guards)
    assert (run.state, run.reason, answer_of(run)) == ("Halted", reason, None)
    assert isinstance(run.decision, ToolCalls)
    told = f"refused, the run was stopped first: {reason}"
    assert run.history[-2:] == [Message("tool", told, (), "add", "x1"), Message("tool", told, (), "add", "x2")]


@each_way
@pytest.mark.parametrize(
    "word",
    [says(""), calls({"a": 1}, finish="length"), ModelReplied(Reply("", (ToolRequest("x1", "add", "{"), ToolRequest("x2", "add", "{}"))))],
)
def test_a_malformed_last_word_is_no_answer_and_its_calls_are_told_too(
    word: ModelReplied, guards: tuple[Guard, ...], before: tuple[Event, ...], reason: str
) -> None:
    run = fed(ON, *before, word, guards=guards)
    assert (run.reason, answer_of(run)) == (reason, None)
    assert isinstance(run.decision, Malformed)
    told = [message.tool_call_id for message in run.history if message.role == "tool"][-len(word.reply.tool_calls) :]
    assert told == [request.id for request in word.reply.tool_calls] or not word.reply.tool_calls


@each_way
def test_a_model_that_fails_in_its_last_word_changes_nothing_of_the_reason(
    guards: tuple[Guard, ...], before: tuple[Event, ...], reason: str
) -> None:
    run = fed(ON, *before, ModelFailed("APIError", "down"), guards=guards)
    last_word = ["last_word"] if run.chance == OBSERVING else []
    assert path(run)[-2 - len(last_word) :] == ["no_last_word", *last_word, reason]
    assert (run.reason, run.step, answer_of(run), run.decision) == (reason, fed(ON, *before, guards=guards).step + 1, None, None)
    assert message_of(run, ENGLISH) == message_of(fed(OFF, *before, guards=guards), ENGLISH)


@each_way
def test_the_last_word_may_be_asked_again_and_is_not_had_when_no_retry_is_left(
    guards: tuple[Guard, ...], before: tuple[Event, ...], reason: str
) -> None:
    again = fed(AGAIN, *before, BUSY, guards=guards, tools=(ToolSpec("add"),))
    assert again.effect == AskModel(Messages(again.history, len(again.history)), (), attempt=2, delay_s=0.5)
    assert fed(AGAIN, *before, BUSY, says("3"), guards=guards).reason == reason
    assert answer_of(fed(AGAIN, *before, BUSY, says("3"), guards=guards)) == "3"
    run = fed(AGAIN, *before, BUSY, BUSY, guards=guards)
    last_word = ["last_word"] if run.chance == OBSERVING else []
    assert path(run)[-3 - len(last_word) :] == ["retry", "no_last_word_either", *last_word, reason]
    assert (run.reason, run.decision, answer_of(run), run.retries) == (reason, None, None, 1)
    begun = steps(fed(AGAIN, *before, guards=guards))[-1]
    assert steps(run)[-3 - len(last_word) :] == [begun + 1] * (3 + len(last_word))


def test_a_wait_that_is_too_long_is_not_waited_for_the_last_word_either() -> None:
    run = fed(AGAIN, *AT_CAP, AttemptFailed("RateLimitError", "tomorrow", 3_600.0), guards=CAP)
    assert (run.reason, path(run)[-3:]) == ("max_steps", ["no_last_word_either", "last_word", "max_steps"])


@each_way
@pytest.mark.parametrize(
    ("event", "end", "begun"),
    [(Cancelled(), "cancelled", 1), (Cancelled(asked=False), "cancelled", 0), (RecordingEnded(), "recording_ended", 0)],
)
def test_cancelled_in_the_last_word_is_cancelled(
    event: Event, end: str, begun: int, guards: tuple[Guard, ...], before: tuple[Event, ...], reason: str
) -> None:
    step = fed(ON, *before, guards=guards).step
    run = fed(ON, *before, event, guards=guards)
    assert (run.reason, run.step, path(run)[-1]) == (end, step + begun, end)
    assert message_of(run, ENGLISH) in {"stopped: cancelled by the user", "the recording ends here"}


@each_way
def test_a_person_may_speak_before_the_last_word(guards: tuple[Guard, ...], before: tuple[Event, ...], reason: str) -> None:
    run = fed(ON, *before, UserSpoke("please!"), guards=guards)
    assert run.effect == AskModel(Messages(run.history, len(run.history)), ())
    assert fed(ON, *before, UserSpoke("please!"), says("3"), guards=guards).reason == reason


# --- what guards see of it -----------------------------------------------------------------------------------------

EVERYTHING: tuple[Guard, ...] = (*production(1), TokenBudget(999), CostBudget(99.0), Deadline(99.0), ToolBudget(9), RepeatedCall(5))


@pytest.mark.parametrize(
    "word",
    [
        (says("3", Usage(500, 500, 98.0)),),
        (calls({"a": 1}, {"a": 1}, usage=Usage(500, 500, 98.0)),),
        (says(""),),
        (ModelFailed("APIError", "down"),),
        (BUSY, BUSY),
        (BUSY, says("3")),
        (UserSpoke("come on"), says("3")),
        (ContextCompacted(3, "what was", Usage(999, 1, 9.0), at=99.0), says("3")),
        (Cancelled(),),
    ],
    ids=repr,
)
def test_guards_are_shown_nothing_of_the_last_word(word: tuple[Event, ...]) -> None:
    options = Options(last_chance=True, max_retries=1, compaction=True)
    before = fed(options, *AT_CAP, guards=EVERYTHING)
    assert before.chance == OBSERVING
    after = fed(options, *AT_CAP, *word, guards=EVERYTHING)
    assert after.memories == before.memories
    assert after.readings == before.readings
    assert after.state == "Halted"


def test_the_chance_is_one_for_the_whole_run() -> None:
    run = fed(ON, *AT_LOOP, calls({"a": 1}), guards=(*LOOP, MaxSteps(3)))
    assert (run.reason, run.step, path(run).count("last_chance_parsing"), path(run).count("last_chance")) == ("repeated_call", 3, 1, 0)


def test_an_answer_that_comes_at_the_cap_needs_no_last_chance() -> None:
    run = fed(ON, says("3"), guards=CAP)
    assert (run.reason, run.chance, answer_of(run)) == ("final_answer", None, "3")


# --- several guards trip at once -------------------------------------------------------------------------------------

FAIL: tuple[Event, ...] = (calls({"a": 1}), returned("no", kind="tool_error"))


@pytest.mark.parametrize(
    ("guards", "events", "reason", "chance"),
    [
        # the first of them has none: the run halts at once
        ((ConsecutiveErrors(2), MaxSteps(2)), FAIL * 2, "consecutive_errors", False),
        ((Denied(1), MaxSteps(1)), (calls({"a": 1}), returned("no", kind="denied")), "denied", False),
        # the first of them has one, though the next has none
        ((ErrorStreak(2), ConsecutiveErrors(2), MaxSteps(2)), FAIL * 2, "error_streak", True),
        # both have one: the first gives the reason
        ((ErrorStreak(2), MaxSteps(2)), FAIL * 2, "error_streak", True),
        ((RepeatedCall(1), ToolBudget(1)), AT_LOOP, "repeated_call", True),
        ((ToolBudget(1), TokenBudget(4)), (*STEP, calls({"a": 2}, usage=Usage(9, 9))), "tool_budget", True),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_first_guard_that_trips_decides(guards: tuple[Guard, ...], events: tuple[Event, ...], reason: str, chance: bool) -> None:
    run = fed(ON, *events, guards=guards)
    assert (run.reason is None) == chance
    assert {reading.guard for reading in run.readings if reading.trips} == {guard.reason for guard in guards}
    if chance:
        assert run.history[-1].content == LAST_CALL.format(reason)
        run = fed(ON, *events, says("3"), guards=guards)
        assert answer_of(run) == "3"
    assert run.reason == reason == fed(OFF, *events, guards=guards).reason


# --- which edges are there -----------------------------------------------------------------------------------------

ERRORS = (ConsecutiveErrors(2), Denied(2))


@pytest.mark.parametrize(
    ("guards", "rows"),
    [
        ((), []),
        (ERRORS, []),
        ((*ERRORS, MaxSteps(9)), ["no_last_word", "last_word", "last_chance"]),
        ((*ERRORS, RepeatedCall(2)), ["no_last_word", "last_chance_parsing"]),
        (classic(), ["no_last_word", "last_word", "last_chance_parsing", "last_chance"]),
    ],
    ids=str,
)
def test_the_edges_are_there_for_the_guards_that_leave_a_chance(guards: tuple[Guard, ...], rows: list[str]) -> None:
    plain = started(OFF, guards).wiring.rows
    assert [row.id for row in started(ON, guards).wiring.rows if row not in plain] == rows
    again = ["retry", "no_last_word_either", "retries_exhausted"] if rows else ["retry", "retries_exhausted"]
    both = [row.id for row in started(AGAIN, guards).wiring.rows if row not in plain]
    assert sorted(both) == sorted([*rows, *again])


def test_without_it_the_cap_halts_at_once() -> None:
    run = fed(OFF, *AT_CAP, guards=CAP)
    assert (run.reason, run.chance, run.step) == ("max_steps", None, 1)


def test_without_retries_a_failed_attempt_is_refused_in_the_last_word_too() -> None:
    refused(
        fed(ON, *AT_CAP, guards=CAP),
        BUSY,
        "AttemptFailed in Deciding (step 1): this state takes ModelReplied, ModelFailed, UserSpoke, Cancelled, RecordingEnded",
    )


def test_what_tools_return_is_refused_while_the_last_word_is_waited_for() -> None:
    refused(
        fed(ON, *AT_CAP, guards=CAP),
        returned("2"),
        "ToolsReturned in Deciding (step 1): this state takes ModelReplied, ModelFailed, UserSpoke, Cancelled, RecordingEnded",
    )


# --- guards of users -----------------------------------------------------------------------------------------------


@attrs.frozen
class Turns(Guard):
    """Three replies are enough; it minds whether it is asked after that."""

    reason: ClassVar[str] = "turns"
    chance: ClassVar[bool] = True

    def start(self) -> tuple[str, ...]:
        return ()

    def fold(self, memory: tuple[str, ...], fact: Fact, step: int) -> tuple[str, ...]:
        assert memory.count("ModelReplied") < 3 or isinstance(fact, ToolCalls) or type(fact).__name__ == "ToolsReturned"
        return (*memory, type(fact).__name__)

    def judge(self, memory: tuple[str, ...]) -> Reading:
        return Reading(self.reason, memory.count("ModelReplied"), 3, memory.count("ModelReplied") >= 3)


def test_a_users_guard_may_leave_a_last_chance() -> None:
    run = fed_to(Turns(), *GOING_ON[:6], says("3"))
    assert (run.reason, run.step, answer_of(run)) == ("turns", 4, "3")


def fed_to(guard: Guard, *events: Event) -> Run:
    """As ``fed``, without a record, which cannot hold a user's guard."""
    run, twin = (started(ON, (guard,), stock=stock) for stock in (False, True))
    for event in events:
        run.feed(event)
        twin.feed(event)
    assert run.log == twin.log
    return run


@pytest.mark.parametrize(
    ("guard", "chance"),
    [
        (MaxSteps(1) & ~MaxSteps(5), True),
        (MaxSteps(1) | NoProgress(), True),
        (MaxSteps(1) | ConsecutiveErrors(9), False),
        (~MaxSteps(5), True),
    ],
    ids=str,
)
def test_a_combined_guard_leaves_one_if_all_its_parts_do(guard: Guard, chance: bool) -> None:
    run = fed(ON, *STEP, guards=(guard,))
    assert (run.chance is not None) == chance
    assert (run.reason is None) == chance
    if chance:
        assert fed(ON, *STEP, says("3"), guards=(guard,)).reason == guard.reason


def test_a_guard_that_takes_the_place_of_one_without_a_chance_may_leave_one() -> None:
    cap = (MaxSteps(1) & ~MaxSteps(5)).named("denied")
    run = fed(ON, *STEP, guards=(cap,))
    assert (run.chance, path(run)[-1], run.history[-1].content) == (OBSERVING, "last_chance", LAST_CALL.format("denied"))
    assert fed(ON, *STEP, says("3"), guards=(cap,)).reason == "denied"


def test_a_warning_and_a_last_chance_are_two_things() -> None:
    guards = (ConsecutiveErrors(3, warn_at=1), MaxSteps(1))
    run = fed(ON, *FAIL, guards=guards)
    assert [reading.warns for reading in run.readings] == [True, False]
    assert path(run)[-1] == "last_chance"
    assert run.history[-1].content == LAST_CALL.format("max_steps")
    nudged = fed(ON, *FAIL, guards=(ConsecutiveErrors(3, warn_at=1), MaxSteps(2)))
    assert path(nudged)[-1] == "nudge"
    assert nudged.chance is None
