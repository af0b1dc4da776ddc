"""What a model is shown of a long conversation: the last steps, or all without the oldest observations."""

from __future__ import annotations

import cProfile
import pstats
import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm_agent.context import Context, DropOldObservations, KeepLast, Summarise, Summary
from fsm_agent.context.steps import first_step, last_steps, step_of
from fsm_agent.events import Message, Messages, Reply, ToolSpec, Usage
from fsm_agent.language import ENGLISH
from fsm_agent.models.conversation import NO_RESULT, Names, conversation

from .histories import HEAD, SYSTEM, TASK, counting, histories, history, is_whole, messages, step

HURRY = Message("user", "Hurry.")

# --- where steps begin ---------------------------------------------------------------------------------------------


def test_a_step_is_a_reply_and_all_that_follows_it_up_to_the_next() -> None:
    given = history(HEAD, step(0, "a", "b"), [HURRY], step(1, "c"), step(2))
    assert first_step(given) == 2
    assert [last_steps(given, n) for n in (1, 2, 3, 4)] == [8, 6, 2, 2]
    assert [step_of(given, at) for at in range(len(given) + 1)] == [2, 2, 2, 2, 2, 2, 6, 6, 8, 8]


@pytest.mark.parametrize("given", [[], [SYSTEM], [TASK], HEAD, [SYSTEM, TASK, HURRY], [Message("assistant", "Hello.")]])
def test_a_history_without_a_reply_to_the_task_is_all_before_the_first_step(given: list[Message]) -> None:
    assert first_step(given) == last_steps(given, 1) == last_steps(given, 9) == len(given)


def test_a_greeting_stands_before_the_task() -> None:
    given = [SYSTEM, Message("assistant", "Hello."), TASK, *step(0, "a")]
    assert first_step(given) == last_steps(given, 1) == 3


# --- the last steps ------------------------------------------------------------------------------------------------


def test_the_task_and_the_last_steps_are_shown() -> None:
    given = history(HEAD, step(0, "a", "b"), [HURRY], step(1, "c"), step(2, "d"))
    assert KeepLast(2).shown(given, counting()) == [
        *HEAD,
        Message("user", "(4 earlier messages are left out here, to save space.)"),
        *step(1, "c"),
        *step(2, "d"),
    ]
    assert KeepLast(1).shown(history(HEAD, step(0), step(1, "a", "b"), [HURRY]), counting()) == [
        *HEAD,
        Message("user", "(1 earlier message is left out here, to save space.)"),
        *step(1, "a", "b"),
        HURRY,
    ]


def test_what_is_left_out_is_told_in_the_language_of_the_run() -> None:
    class Shouting:
        code = "xx"

        def count(self, one: str, many: str, /, n: int, **fields: object) -> str:
            return ENGLISH.count(one, many, n).upper()

    given = history(HEAD, step(0, "a"), step(1, "b"))
    shown = KeepLast(1).shown(given, counting(), Shouting())  # type: ignore[arg-type]  # as much of a language as is needed
    assert shown[2] == Message("user", "(2 EARLIER MESSAGES ARE LEFT OUT HERE, TO SAVE SPACE.)")


# --- old observations ----------------------------------------------------------------------------------------------


def out(text: str) -> str:
    return f"(This output of {len(text)} characters is left out, to save space.)"


A, B, C = "a" * 1000, "b" * 1000, "c" * 1000


def size(given: Sequence[Message]) -> int:
    return counting().of(given).tokens


def test_the_oldest_observations_give_way_to_a_line_each() -> None:
    given = history(HEAD, step(0, A), step(1, "7"), step(2, B), [HURRY], step(3, C))
    limit = size(given) - 1
    assert DropOldObservations(limit).shown(given, counting()) == history(
        HEAD, step(0, out(A)), step(1, "7"), step(2, B), [HURRY], step(3, C)
    )
    assert DropOldObservations(limit - 1000).shown(given, counting()) == history(
        HEAD, step(0, out(A)), step(1, "7"), step(2, out(B)), [HURRY], step(3, C)
    )


def test_observations_of_calls_written_as_text_are_left_out_alike() -> None:
    given = history(HEAD, step(0, A, structured=False), step(1, B, structured=False))
    assert DropOldObservations(1500).shown(given, counting()) == history(
        HEAD, step(0, out(A), structured=False), step(1, B, structured=False)
    )


def test_they_go_in_portions_so_that_the_beginning_stays_the_same_for_some_steps() -> None:
    """A server that keeps what it read before reads on from where the conversation differs."""
    context, tokens, kept = DropOldObservations(8000), counting(), list(HEAD)
    beginnings: list[int] = []
    for n in range(40):
        kept += step(n, "x" * 400)
        shown = context.shown(messages(kept), tokens)
        assert tokens.of(shown).tokens <= 8000
        beginnings.append(sum(message.content.startswith("(This output") for message in shown))
    assert beginnings == sorted(beginnings)
    assert len(set(beginnings)) < 10


def test_the_newest_observation_stays_at_least_in_part() -> None:
    given = history(HEAD, step(0, A), step(1, "d" * 100_000 + "end"))
    shown = DropOldObservations(2000).shown(given, counting())
    assert shown[:4] == history(HEAD, step(0, out(A)))[:4]
    newest = shown[-1].content
    assert newest.startswith("d" * 1000)
    assert newest.endswith("d" * 100 + "end")
    left_out = 100_003 - newest.count("d") - len("end")
    assert f"\n[... {left_out + 1} characters left out ...]\n" in newest  # one d is in the line itself
    assert 1900 < size(shown) <= 2000 + 24


def test_a_limit_that_nothing_can_keep_leaves_a_little_of_the_newest() -> None:
    given = history(HEAD, step(0, A), step(1, B, C, "7"))
    shown = DropOldObservations(1).shown(given, counting())
    assert [message.content for message in shown if message.role == "tool"] == [
        out(A),
        f"{'b' * 19}\n[... 975 characters left out ...]\n{'b' * 6}",
        f"{'c' * 19}\n[... 975 characters left out ...]\n{'c' * 6}",
        "7",
    ]


def test_small_observations_leave_the_long_ones_what_they_do_not_need() -> None:
    given = history(HEAD, step(0, "7", "x" * 300, A + B))
    shown = DropOldObservations(size(given) - 500).shown(given, counting())
    assert [len(message.content) for message in shown[3:5]] == [1, 300]
    assert 1400 < len(shown[5].content) < 1550


def test_a_task_that_is_too_long_by_itself_is_shown_all_the_same() -> None:
    given = [Message("user", A), *step(0), *step(1)]
    assert DropOldObservations(100).shown(given, counting()) is given


# --- all of them ---------------------------------------------------------------------------------------------------

CONTEXTS: list[Context] = [
    *map(KeepLast, (1, 2, 5)),
    *map(DropOldObservations, (1, 100, 1000, 3000)),
    *(Summarise(lambda _: "", at_tokens) for at_tokens in (1, 1000)),
]
NAMES = Names((ToolSpec("read"),))


@pytest.mark.parametrize("context", CONTEXTS, ids=lambda each: re.sub(r"model=.* at 0x\w+>, ", "", repr(each)))
@given(written=histories(), usage=st.sampled_from([None, Usage(100, 5), Usage(10_000, 50)]), covers=st.integers(0, 40))
def test_a_call_is_never_parted_from_its_result_and_the_task_and_the_newest_step_stay(
    context: Context, written: list[Message], usage: Usage | None, covers: int
) -> None:
    tokens = counting()
    tokens.replied(written[:1], Reply("ok", usage=usage))
    before = list(written)
    view = messages(written)
    for summary in (None, Summary(min(covers, len(written)), "They read.")):
        shown = context.shown(view, tokens, ENGLISH, summary)
        assert list(view) == before
        assert is_whole(shown)
        assert all(message.content != NO_RESULT for message in conversation(shown, (ToolSpec("read"),), NAMES))
        first, newest = first_step(view), last_steps(view, 1)
        assert list(shown[:first]) == before[:first]
        tail = list(shown[len(shown) - (len(view) - newest) :]) if newest < len(view) else []
        assert [message.role for message in tail] == [message.role for message in before[newest:]]
        assert all(a == b or a.role == "tool" for a, b in zip(tail, before[newest:], strict=True))
        assert shown is view or list(shown) != before
    due = context.due(view, tokens)
    assert due is None or first_step(view) < due <= last_steps(view, 1)


@pytest.mark.parametrize("context", CONTEXTS, ids=lambda each: re.sub(r"model=.* at 0x\w+>, ", "", repr(each)))
@pytest.mark.parametrize("given", [[], [TASK], HEAD, history(HEAD, step(0)), history(HEAD, step(0, "7"))])
def test_a_short_conversation_is_shown_as_it_is(context: Context, given: list[Message]) -> None:
    view = messages(given)
    assert context.shown(view, counting()) is view
    assert context.due(view, counting()) is None


@pytest.mark.parametrize(
    "context",
    [KeepLast(3), DropOldObservations(10**9), Summarise(lambda _: "They read.", 2000)],
    ids=["the last steps", "below the limit", "summaries"],
)
def test_what_is_shown_costs_as_much_in_a_long_run_as_in_a_short_one(context: Context) -> None:
    def calls(steps: int) -> int:
        tokens, kept, summary = counting(), list(HEAD), None
        profile = cProfile.Profile()
        with profile:
            for n in range(steps):
                view = Messages(kept, len(kept))
                if (covers := context.due(view, tokens, summary)) is not None:
                    summary = context.summarise(view[:covers], ENGLISH, summary)
                shown = context.shown(view, tokens, ENGLISH, summary)
                tokens.replied(shown, Reply(f"I read {n}.", usage=Usage(tokens.estimated(shown) + 10, 5)))
                kept += step(n, "x" * 50)
        return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]  # typeshed does not know it

    short, middle, long = map(calls, (100, 200, 400))
    assert (long - middle) / 200 == pytest.approx((middle - short) / 100, rel=0.1)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: KeepLast(0), "steps is 0; it must be at least 1"),
        (lambda: KeepLast("3"), "steps is '3'; it must be a whole number"),  # type: ignore[arg-type]  # a slip of a user
        (lambda: DropOldObservations(0), "max_tokens is 0; it must be at least 1"),
        (lambda: Summarise(lambda _: "", 0), "at_tokens is 0; it must be at least 1"),
        (lambda: Summarise(None, 1000), "model is None; it must be an adapter, a callable, or a name such as openai:gpt-5-mini"),  # type: ignore[arg-type]  # as above
        (lambda: Summarise("gpt-5", 1000), "the model is 'gpt-5'; it must be one of openai:MODEL, anthropic:MODEL"),
    ],
)
def test_what_cannot_be_meant_is_refused_when_it_is_made(make: object, error: str) -> None:
    with pytest.raises((ValueError, TypeError)) as caught:
        make()  # type: ignore[operator]  # a callable
    assert str(caught.value) == error


def test_contexts_are_values() -> None:
    assert KeepLast(3) == KeepLast(3) != KeepLast(4)
    assert len({DropOldObservations(10), DropOldObservations(10)}) == 1
    assert repr(DropOldObservations(10)) == "DropOldObservations(max_tokens=10)"
    assert (KeepLast(1).summarises, Summarise(len, 10).summarises) == (False, True)  # type: ignore[arg-type]  # a callable
    with pytest.raises(NotImplementedError, match="KeepLast makes no summaries"):
        KeepLast(1).summarise(HEAD)
