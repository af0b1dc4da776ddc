"""The classic guards, line by line of their rules."""

from __future__ import annotations

import re
from typing import Any

import pytest

from fsm_agent.events import (
    AskModel,
    CallTools,
    Event,
    Fact,
    ModelFailed,
    ModelReplied,
    Observation,
    ObservationKind,
    Reply,
    ToolCall,
    ToolCalls,
    ToolRequest,
    ToolsReturned,
    UserSpoke,
)
from fsm_agent.guards import ConsecutiveErrors, Evidence, Guard, MaxSteps, Reading, RepeatedCall, classic, limits
from fsm_agent.language import ENGLISH
from fsm_agent.machine import Run, Taken
from fsm_agent.outcome import message_of
from fsm_agent.protocols import RecordedProtocol

OK: ObservationKind = "ok"
BAD_KINDS: tuple[ObservationKind, ...] = ("tool_error", "unknown_tool", "bad_arguments", "timeout")

PROSE = Reply("I think so", taken_as="unparseable")
EMPTY = Reply()
CUT_CALL = Reply("", (ToolRequest("9", "look", "{}"),), finish_reason="length")
ANSWER = Reply("42", taken_as="answer")
TALK = Reply("how are you?")


def call(name: str = "look", arguments: str = "{}", *, id: str = "") -> Reply:  # noqa: A002  # the field's name
    return Reply("", (ToolRequest(id, name, arguments),))


def batch(*replies: Reply) -> Reply:
    return Reply("", tuple(request for reply in replies for request in reply.tool_calls))


Step = Reply | tuple[Reply, tuple[ObservationKind, ...]] | UserSpoke
"""A reply, where it has calls with the kinds of their observations; all are ok where it is bare."""


def play(*steps: Step, guards: tuple[Guard, ...] | None = None) -> Run:
    """The run after these steps, or the halt before."""
    run = Run("task", guards=classic(100) if guards is None else guards, protocol=RecordedProtocol())
    for step in steps:
        for event in events_of(step, run):
            if run.effect is not None:
                run.feed(event)
    return run


def events_of(step: Step, run: Run) -> list[Event]:
    if isinstance(step, UserSpoke):
        return [step]
    reply, kinds = step if isinstance(step, tuple) else (step, (OK,) * len(step.tool_calls))
    decision = run.protocol.parse(reply)
    if not isinstance(decision, ToolCalls) or reply.finish_reason == "length":
        return [ModelReplied(reply)]
    observations = tuple(Observation(each.name, kind, kind) for each, kind in zip(decision.calls, kinds, strict=True))
    return [ModelReplied(reply), ToolsReturned(observations)]


def failed(reply: Reply, kind: ObservationKind = "tool_error") -> Step:
    return reply, (kind,) * len(reply.tool_calls)


def reading(run: Run, guard: str) -> Reading:
    """Its last reading."""
    readings = [each for entry in run.log if isinstance(entry, Taken) for each in entry.readings if each.guard == guard]
    return readings[-1]


# --- repeated_call -----------------------------------------------------------------------------------------------

A, B = call("look", '{"at": 1}'), call("look", '{"at": 2}')


@pytest.mark.parametrize("max_repeats", [1, 2, 3, 7])
def test_the_call_halts_that_repeats_the_first_for_the_max_repeatsth_time(max_repeats: int) -> None:
    run = play(*[A] * 10, guards=(RepeatedCall(max_repeats),))
    assert (run.reason, run.step) == ("repeated_call", max_repeats + 1)


def test_the_repeated_call_that_halts_is_not_executed() -> None:
    run = play(A, A, A)
    assert [type(entry) for entry in run.log if not isinstance(entry, Taken)] == [ModelReplied, ToolsReturned] * 2 + [ModelReplied]
    assert [entry.edge for entry in run.log if isinstance(entry, Taken)][-2:] == ["model_replied", "repeated_call"]


def test_its_reading_names_the_call_and_its_steps() -> None:
    assert reading(play(B, A, A, A), "repeated_call") == Reading(
        "repeated_call", 2, 2, trips=True, evidence=tuple(Evidence(step, "call", "look{at=1}") for step in (2, 3, 4))
    )


@pytest.mark.parametrize(
    ("between", "repeats"),
    [
        (PROSE, 1),
        (EMPTY, 1),
        (Reply("", A.tool_calls, finish_reason="length"), 1),
        (call("look", "not JSON"), 1),
        (B, 0),
        (call("glance", '{"at": 1}'), 0),
        (batch(A, B), 0),
        (TALK, 0),
        (UserSpoke("well?"), 0),
    ],
    ids=["prose", "empty", "cut off", "arguments that are no JSON", "other arguments", "another tool", "a batch", "talk", "a person"],
)
def test_what_comes_between_two_calls(between: Step, repeats: int) -> None:
    """A malformed reply does not reset the count; another call does, and so does talk."""
    assert reading(play(A, between, A), "repeated_call").value == repeats


@pytest.mark.parametrize("kind", ["ok", *BAD_KINDS])
def test_what_the_call_came_to_does_not_matter(kind: ObservationKind) -> None:
    assert play(failed(A, kind), failed(A, kind), A, guards=(RepeatedCall(2),)).reason == "repeated_call"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ('{"a": 1, "b": 2}', '{"b":2,"a":1}', True),
        ('{"a": {"x": 1, "y": [1, 2]}}', '{"a": {"y": [1, 2], "x": 1}}', True),
        ('{"a": "\\u00e9"}', '{"a": "é"}', True),
        ("{}", "", True),
        ('{"a": 1}', '{"a": "1"}', False),
        ('{"a": 1}', '{"a": 1.0}', False),
        ('{"a": 1}', '{"a": true}', False),
        ('{"a": null}', "{}", False),
        ('{"a": [1, 2]}', '{"a": [2, 1]}', False),
        ('{"a": "x"}', '{"a": "x "}', False),
        ('{"a": 12345678901234567890123}', '{"a": 12345678901234567890124}', False),
    ],
)
def test_the_identity_of_a_call_is_its_canonical_arguments(one: str, other: str, same: bool) -> None:
    run = play(call("look", one, id="1"), call("look", other, id="2"))
    assert reading(run, "repeated_call").value == int(same)


def test_thoughts_and_ids_are_no_part_of_a_calls_identity() -> None:
    one, other = Reply("hm", (ToolRequest("1", "look", "{}"),)), Reply("aha", (ToolRequest("2", "look", "{}"),))
    assert reading(play(one, other), "repeated_call").value == 1


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (batch(A, B), batch(B, A), True),
        (batch(A, B), batch(A, B, A), True),
        (batch(A, A), A, True),
        (batch(A, B), A, False),
        (batch(A, B), batch(A, call("look", '{"at": 3}')), False),
    ],
    ids=["another order", "one of them twice", "all of them the same", "only one of them", "one of them another"],
)
def test_a_batch_is_the_set_of_its_calls(one: Reply, other: Reply, same: bool) -> None:
    assert reading(play(one, other), "repeated_call").value == int(same)


def test_two_calls_in_turn_are_no_repetition() -> None:
    assert play(*[A, B] * 20).reason is None


# --- consecutive_errors ------------------------------------------------------------------------------------------

FRESH = iter(range(10_000))


def fresh() -> Reply:
    """A call that was never made before."""
    return call("look", f'{{"at": {next(FRESH)}}}')


BAD_STEPS: dict[str, Step] = {
    **{kind: failed(fresh(), kind) for kind in BAD_KINDS},
    "unparseable": PROSE,
    "empty": EMPTY,
    "truncated": Reply("", A.tool_calls, finish_reason="length"),
}


@pytest.mark.parametrize("max_errors", [1, 2, 3, 7])
@pytest.mark.parametrize("bad", BAD_STEPS.values(), ids=BAD_STEPS.keys())
def test_the_max_errorsth_bad_step_in_a_row_halts(bad: Step, max_errors: int) -> None:
    run = play(fresh(), *[bad] * 10, guards=(ConsecutiveErrors(max_errors),))
    assert (run.reason, run.step) == ("consecutive_errors", max_errors + 1)


def test_one_counter_counts_all_kinds() -> None:
    run = play(*BAD_STEPS.values(), guards=(ConsecutiveErrors(len(BAD_STEPS)),))
    assert (run.reason, run.step) == ("consecutive_errors", len(BAD_STEPS))
    assert [evidence.kind for evidence in reading(run, "consecutive_errors").evidence] == list(BAD_STEPS)


@pytest.mark.parametrize("bad", BAD_STEPS.values(), ids=BAD_STEPS.keys())
def test_a_good_call_resets_the_counter(bad: Step) -> None:
    run = play(bad, fresh(), bad, fresh(), bad)
    assert (run.reason, reading(run, "consecutive_errors").value) == (None, 1)


@pytest.mark.parametrize("neither", [TALK, UserSpoke("well?")], ids=["talk", "a person"])
def test_talk_neither_counts_nor_resets(neither: Step) -> None:
    assert play(PROSE, neither, neither, PROSE).reason == "consecutive_errors"


@pytest.mark.parametrize(
    ("kinds", "errors"),
    [
        (("tool_error", "tool_error", "tool_error"), 1),
        (("unknown_tool", "bad_arguments", "tool_error"), 1),
        (("tool_error", "ok", "tool_error"), 0),
        (("tool_error", "tool_error", "ok"), 0),
        (("ok", "ok", "ok"), 0),
    ],
)
def test_a_batch_counts_once_and_only_if_all_its_calls_failed(kinds: tuple[ObservationKind, ...], errors: int) -> None:
    three = batch(A, B, call("glance"))
    assert reading(play((three, kinds)), "consecutive_errors").value == errors
    assert reading(play(PROSE, (three, kinds), guards=(ConsecutiveErrors(9),)), "consecutive_errors").value == (errors and errors + 1)


def test_its_reading_has_one_line_of_each_error() -> None:
    run = Run("task", guards=classic())
    run.feed(ModelReplied(Reply("Let me think\nabout it")))
    run.feed(ModelReplied(Reply("TOOL add a=1,b=x")))
    run.feed(ToolsReturned((Observation("add", "TOOL_ERROR: no number\nand more of it", "bad_arguments"),)))
    assert reading(run, "consecutive_errors").evidence == (
        Evidence(
            1, "unparseable", "The reply cannot be parsed: a reply starts with TOOL or FINAL, this one with 'Let me think\\nabout it'."
        ),
        Evidence(2, "bad_arguments", "no number"),
    )


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([failed(fresh()), failed(fresh())], "stopped: 2 failed tool calls in a row, circuit breaker tripped"),
        ([PROSE, PROSE], "stopped: 2 unparseable replies in a row, circuit breaker tripped"),
        ([EMPTY, EMPTY], "stopped: 2 empty replies in a row, circuit breaker tripped"),
        ([CUT_CALL, CUT_CALL], "stopped: 2 replies in a row were cut off, circuit breaker tripped"),
        ([PROSE, EMPTY], "stopped: 2 errors in a row (unparseable replies: 1, empty replies: 1), circuit breaker tripped"),
        (
            [failed(fresh()), CUT_CALL],
            "stopped: 2 errors in a row (failed tool calls: 1, replies cut off: 1), circuit breaker tripped",
        ),
        (
            [PROSE, failed(fresh())],
            "stopped: 2 errors in a row (failed tool calls: 1, unparseable replies: 1), circuit breaker tripped",
        ),
    ],
)
def test_its_message_names_the_kinds(steps: list[Step], message: str) -> None:
    assert message_of(play(*steps), ENGLISH) == message


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (failed(A), "stopped: 1 failed tool call in a row, circuit breaker tripped"),
        (PROSE, "stopped: 1 unparseable reply in a row, circuit breaker tripped"),
    ],
)
def test_its_message_knows_the_singular(step: Step, message: str) -> None:
    assert message_of(play(step, guards=classic(max_errors=1)), ENGLISH) == message


# --- max_steps ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_steps", [1, 2, 10])
def test_the_run_halts_after_max_steps_model_calls(max_steps: int) -> None:
    run = play(*[fresh() for _ in range(12)], guards=classic(max_steps))
    assert (run.reason, run.step) == ("max_steps", max_steps)
    assert isinstance(run.log[-2], Taken)
    assert run.log[-2].edge == "tools_returned"
    assert reading(run, "max_steps") == Reading("max_steps", max_steps, max_steps, trips=True)


def test_every_model_call_counts_whatever_it_gave() -> None:
    run = play(fresh(), PROSE, TALK, fresh(), guards=classic(max_steps=4))
    assert (run.reason, run.step) == ("max_steps", 4)


def test_a_person_who_speaks_makes_no_model_call() -> None:
    run = play(*[UserSpoke("well?")] * 5, fresh(), guards=classic(max_steps=2))
    assert (run.reason, run.step) == (None, 1)


def test_an_answer_in_the_last_step_is_an_answer() -> None:
    run = play(fresh(), ANSWER, guards=classic(max_steps=2))
    assert (run.reason, run.step) == ("final_answer", 2)


def test_messages_of_the_other_two() -> None:
    assert message_of(play(A, A, A), ENGLISH) == "stopped: repeated call look{at=1}, the model is going in circles"
    assert (
        message_of(play(fresh(), guards=classic(max_steps=1)), ENGLISH)
        == "stopped: reached the cap of 1 steps, halted so that an endless loop cannot burn the budget"
    )


# --- several at once ---------------------------------------------------------------------------------------------


def test_errors_come_before_the_cap_and_the_record_keeps_both() -> None:
    run = play(failed(fresh()), failed(fresh()), guards=classic(max_steps=2))
    assert run.reason == "consecutive_errors"
    last = run.log[-1]
    assert isinstance(last, Taken)
    assert [(each.guard, each.trips) for each in last.readings] == [("consecutive_errors", True), ("max_steps", True)]


def test_a_repetition_comes_before_errors_and_the_cap() -> None:
    run = play(failed(A), failed(A), failed(A), guards=classic(max_steps=3, max_errors=3))
    assert (run.reason, run.step) == ("repeated_call", 3)


def test_an_answer_comes_before_a_guard_that_would_trip() -> None:
    """The answer is there, and the reading of the guard, which the calls before had tripped nearly, is on record."""
    run = play(A, A, ANSWER)
    last = run.log[-1]
    assert isinstance(last, Taken)
    assert (last.edge, [(each.guard, each.value) for each in last.readings]) == ("final_answer", [("repeated_call", 1)])


def test_a_model_that_fails_halts_at_once() -> None:
    run = Run("task", guards=classic())
    run.feed(ModelFailed("ConnectionError", "refused"))
    assert (run.reason, run.step) == ("model_error", 1)
    assert message_of(run, ENGLISH) == "stopped: the model failed (ConnectionError: refused)"


# --- limits ------------------------------------------------------------------------------------------------------

FIELDS = ["max_steps", "max_repeats", "max_errors"]


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("value", [0, -1, -(10**30)])
def test_a_limit_below_one_is_refused_by_its_name(field: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"^{field} is {value}; it must be at least 1$"):
        classic(**{field: value})


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("value", [True, False, 2.0, "3", None, [1]], ids=repr)
def test_a_limit_that_is_no_whole_number_is_refused_by_its_name(field: str, value: Any) -> None:
    with pytest.raises(TypeError, match=f"^{field} is {re.escape(repr(value))}; it must be a whole number$"):
        classic(**{field: value})


def test_guards_with_equal_limits_are_equal_and_their_defaults_are_those_of_the_preset() -> None:
    assert classic() == (RepeatedCall(2), ConsecutiveErrors(2), MaxSteps(10)) == (RepeatedCall(), ConsecutiveErrors(), MaxSteps())
    assert classic(3) != classic(4)
    assert len({classic(), classic(), classic(3)}) == 2


def test_guards_do_not_change() -> None:
    with pytest.raises(AttributeError):
        MaxSteps(3).max_steps = 4  # type: ignore[misc]  # that is the test


def test_limits_lists_every_limit_by_its_field() -> None:
    assert {name: value for name, value in limits(classic(5, 3, 4)).items() if name in FIELDS} == dict(zip(FIELDS, (5, 3, 4), strict=True))


# --- purity ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("guard", classic(), ids=lambda guard: guard.reason)
def test_a_guard_changes_no_memory_and_judges_it_the_same_each_time(guard: Guard) -> None:
    facts: list[Fact] = [
        ToolCalls((ToolCall("look", {"at": 1}),)),
        ToolsReturned((Observation("look", "x", "tool_error"),)),
        ModelReplied(PROSE),
    ]
    facts = [fact for fact in facts * 3 if type(fact) in guard.folds]
    memories = [guard.start()]
    for step, fact in enumerate(facts, 1):
        memories.append(guard.fold(memories[-1], fact, step))
    as_they_were, readings = repr(memories), [guard.judge(memory) for memory in memories]
    for memory in memories:
        guard.fold(memory, facts[0], 99)
    assert repr(memories) == as_they_were
    assert [guard.judge(memory) for memory in memories] == readings


def test_effects_are_not_changed_by_a_guard_that_only_reads() -> None:
    guarded, bare = play(A, B, PROSE), play(A, B, PROSE, guards=())
    assert guarded.history == bare.history
    assert isinstance(guarded.effect, AskModel)
    assert isinstance(play(A).effect, AskModel | CallTools)
