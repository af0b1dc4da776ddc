"""``NoProgress``, line by line of its rule; the cases of ``test_conformance.py`` go with it."""

from __future__ import annotations

import pytest

from fsm_agent.events import ToolSpec
from fsm_agent.guards import Evidence, NoProgress, Reading
from fsm_agent.language import ENGLISH
from fsm_agent.outcome import message_of
from tests.guard_steps import EMPTY, Events, batch, did, end, failed, malformed, play, readings, said, spoke

A, B, C = did("a", "1"), did("b", "2"), did("c", "3")


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([A] * 6, ("no_progress", 4)),
        ([A, B] * 3, ("no_progress", 4)),
        ([A, B, C] * 3, ("no_progress", 6)),
        ([B, C, A, A, A, A], ("no_progress", 6)),
        ([A, A, A, B, A, A, A], (None, 7)),
        ([A, A, A, B, A, A, A, B], ("no_progress", 8)),
    ],
)
def test_by_default_a_cycle_of_two_rounds_that_makes_up_four_steps_halts(steps: list[Events], expected: tuple[str | None, int]) -> None:
    assert end(play(NoProgress(), *steps)) == expected


def test_three_identical_steps_are_left_alone_by_default_and_two_with_min_steps_1() -> None:
    assert end(play(NoProgress(), A, A, A, B)) == (None, 4)
    assert end(play(NoProgress(min_steps=1), A, A)) == ("no_progress", 2)


def test_min_steps_asks_for_more_rounds_of_a_short_cycle_and_not_of_a_long_one() -> None:
    guard = NoProgress(min_steps=6)
    assert end(play(guard, *[A] * 9)) == ("no_progress", 6)
    assert end(play(guard, *[A, B] * 9)) == ("no_progress", 6)
    assert end(play(guard, *[A, B, C, did("d")] * 9)) == ("no_progress", 8)


def test_the_reading_is_the_cycle_that_wants_the_fewest_steps_more() -> None:
    run = play(NoProgress(), A, B, A, B)
    assert readings(run, "no_progress") == [
        Reading("no_progress", 1, 4, trips=False),
        Reading("no_progress", 1, 4, trips=False),
        Reading("no_progress", 3, 4, trips=False, period=2, evidence=tuple(Evidence(i + 1, "call", "aba"[i] + "{}") for i in range(3))),
        Reading("no_progress", 4, 4, trips=True, period=2, evidence=tuple(Evidence(i + 1, "call", "abab"[i] + "{}") for i in range(4))),
    ]


def test_nothing_has_happened_yet() -> None:
    assert NoProgress().judge(NoProgress().start()) == Reading("no_progress", 0, 4, trips=False)


def test_the_sentence_names_the_cycle_once() -> None:
    assert message_of(play(NoProgress(), *[did("add", "7", a=3, b=4)] * 4), ENGLISH) == (
        "stopped: no progress, the last 4 steps did the same: add{a=3, b=4}"
    )
    assert message_of(play(NoProgress(), *[A, B] * 2), ENGLISH) == "stopped: no progress, the last 4 steps are a cycle of 2: a{}; b{}"


def test_a_changed_observation_is_progress_and_a_changed_error_is_not() -> None:
    assert end(play(NoProgress(), *[did(text=str(i)) for i in range(9)])) == (None, 9)
    assert end(play(NoProgress(), *[failed(text=str(i)) for i in range(9)])) == ("no_progress", 4)


def test_the_kind_of_an_error_makes_no_difference_but_whether_it_is_one_does() -> None:
    assert end(play(NoProgress(), failed(), failed(kind="timeout"), failed(kind="unknown_tool"), failed())) == ("no_progress", 4)
    assert end(play(NoProgress(), failed(), failed(), did(), failed())) == (None, 4)


def test_compare_call_does_not_look_at_observations() -> None:
    assert end(play(NoProgress(compare="call"), *[did(text=str(i)) for i in range(9)])) == ("no_progress", 4)


def test_a_batch_is_the_set_of_its_calls_and_a_batch_of_duplicates_is_the_single_call() -> None:
    ab = batch(("a", {}, "1", "ok"), ("b", {}, "2", "ok"))
    ba = batch(("b", {}, "2", "ok"), ("a", {}, "1", "ok"))
    assert end(play(NoProgress(), ab, ba, ab, ba)) == ("no_progress", 4)
    assert end(play(NoProgress(), A, batch(("a", {}, "1", "ok"), ("a", {}, "1", "ok")), A, A)) == ("no_progress", 4)


def test_a_malformed_reply_is_a_step_and_the_same_only_as_the_same_reply() -> None:
    assert end(play(NoProgress(), *[malformed()] * 4)) == ("no_progress", 4)
    assert end(play(NoProgress(), *[malformed(str(i)) for i in range(6)])) == (None, 6)
    assert end(play(NoProgress(), *[EMPTY] * 4)) == ("no_progress", 4)
    assert [evidence.text for evidence in readings(play(NoProgress(), *[malformed("I think\nso")] * 4), "no_progress")[-1].evidence] == [
        "I think"
    ] * 4


def test_talk_that_nobody_answers_is_a_step_like_others() -> None:
    assert end(play(NoProgress(), *[said()] * 4)) == ("no_progress", 4)
    assert end(play(NoProgress(), *[A, said()] * 2)) == ("no_progress", 4)


def test_a_message_from_a_person_starts_afresh() -> None:
    assert end(play(NoProgress(), A, A, A, spoke(), A, A, A, spoke(), A, A, A, A)) == ("no_progress", 10)
    assert end(play(NoProgress(), *[said(), spoke()] * 9)) == (None, 9)


def test_successful_polls_are_left_out_and_failing_ones_are_not() -> None:
    tools = [ToolSpec("wait", polls=True)]
    assert end(play(NoProgress(), *[did("wait")] * 9, tools=tools)) == (None, 9)
    assert end(play(NoProgress(), *[failed("wait")] * 9, tools=tools)) == ("no_progress", 4)
    assert end(play(NoProgress(compare="call"), *[did("wait")] * 9, tools=tools)) == (None, 9)


def test_a_step_of_polls_alone_breaks_a_cycle_and_a_poll_within_a_batch_does_not() -> None:
    tools = [ToolSpec("wait", polls=True)]
    assert end(play(NoProgress(), *[A, did("wait")] * 4, tools=tools)) == (None, 8)
    both = [batch(("a", {}, "1", "ok"), ("wait", {}, str(i), "ok")) for i in range(4)]
    assert end(play(NoProgress(), *both, tools=tools)) == ("no_progress", 4)


def test_volatile_fields_are_left_out_of_arguments_and_of_json_observations_at_any_depth() -> None:
    tools = [ToolSpec("look", volatile=("pid", "at"))]
    steps = [
        did("look", f'{{"pid": {i}, "jobs": [{{"at": {i}, "name": "x"}}], "n": 1}}', where="here", pid=i, o={"at": i}) for i in range(4)
    ]
    assert end(play(NoProgress(), *steps)) == (None, 4)
    assert end(play(NoProgress(), *steps, tools=tools)) == ("no_progress", 4)
    other = [did("look", f'{{"pid": 1, "n": {i}}}') for i in range(4)]
    assert end(play(NoProgress(), *other, tools=tools)) == (None, 4)


def test_the_fields_of_one_tool_are_not_volatile_in_another() -> None:
    steps = [did("see", f'{{"pid": {i}}}') for i in range(4)]
    assert end(play(NoProgress(), *steps, tools=[ToolSpec("look", volatile=("pid",))])) == (None, 4)


@pytest.mark.parametrize("text", ["pid 1", "[" * 100_000, "\ud800", ""])
def test_an_observation_that_is_not_json_has_no_volatile_fields(text: str) -> None:
    tools = [ToolSpec("look", volatile=("pid",))]
    assert end(play(NoProgress(), *[did("look", text)] * 4, tools=tools)) == ("no_progress", 4)


def test_the_memory_stays_as_long_as_the_longest_cycle() -> None:
    guard = NoProgress(max_period=3, max_cycles=4, min_steps=2)
    memory = play(guard, *[did(text=str(i)) for i in range(50)]).memories[0]
    assert (len(memory.steps), len(memory.keys), memory.runs) == (12, 3, ())


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"max_period": 0}, "max_period is 0; it must be at least 1"),
        ({"max_cycles": 1}, "max_cycles is 1; it must be at least 2"),
        ({"min_steps": 0}, "min_steps is 0; it must be at least 1"),
        ({"compare": "all"}, "compare is 'all'; it must be one of call, call+observation"),
    ],
)
def test_limits_are_refused_when_configured(limits: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("+", r"\+")):
        NoProgress(**limits)  # type: ignore[arg-type]  # wrong on purpose
