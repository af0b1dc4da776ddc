"""How many tokens a conversation has: as the server counted them last, and an estimate of what came since."""

from __future__ import annotations

import cProfile
import pstats
from importlib.util import find_spec

import pytest

from fsm_agent.context.estimate import CHARACTERS, PIECE, SAMPLE, best_estimator, by_characters, by_tokenizer
from fsm_agent.context.tokens import PER_MESSAGE, Count, Tokens
from fsm_agent.events import Message, Messages, Reply, ToolRequest, Usage
from fsm_agent.tools.builtin import add

from .histories import HEAD, LETTERS, TASK, counting, history, messages, step

# --- the estimate --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("four", 1), ("a" * 401, 101), ("三加四等于七", 5), ("\ud800", 1)])
def test_a_quarter_of_the_characters_is_the_estimate_without_a_tokenizer(text: str, tokens: int) -> None:
    assert by_characters(text) == tokens


def test_a_tokenizer_is_given_a_long_text_in_pieces_and_no_more_of_it_than_a_sample() -> None:
    given: list[int] = []

    def encode(text: str) -> list[int]:
        given.append(len(text))
        return [0] * (len(text) // 2)

    estimator = by_tokenizer("pairs", encode)
    assert (estimator.name, estimator.count("")) == ("pairs", 0)
    assert estimator.count("x" * (2 * PIECE + 10)) == PIECE + 5
    assert given == [PIECE, PIECE, 10]
    given.clear()
    assert estimator.count("x" * 10_000_000) == 5_000_000
    assert sum(given) == SAMPLE


def test_a_tokenizer_counts_where_one_is_at_hand() -> None:
    best = best_estimator()
    if find_spec("tiktoken") is None:
        assert best == CHARACTERS
    else:
        assert best == CHARACTERS or best.name.startswith("tiktoken ")
    assert 0 < best.count("It is seven, as three and four make seven.") < 40


def test_the_estimate_is_named() -> None:
    assert (counting().estimate, Tokens(estimator=CHARACTERS).estimate) == ("letters", "characters")
    assert Tokens().estimate == best_estimator().name


# --- the count -----------------------------------------------------------------------------------------------------


def test_before_any_reply_all_is_estimated() -> None:
    size = len("Be brief.") + len("What is the sum?") + 2 * PER_MESSAGE
    assert counting().of(HEAD) == Count(size, size)
    called = Message("assistant", "", (ToolRequest("1", "read", '{"part":0}'),))
    assert counting().of([called]) == Count(PER_MESSAGE + 14, PER_MESSAGE + 14)
    with_tools = Tokens((add.spec,), LETTERS).of(HEAD).tokens - size
    assert with_tools > len("add") + len("Add two integers.")


def test_after_a_reply_the_servers_count_stands_and_what_came_since_is_estimated() -> None:
    tokens = counting()
    shown = history(HEAD)
    tokens.replied(shown, Reply("I read 0.", step(0, "x")[0].tool_calls, usage=Usage(1000, 50)))
    assert tokens.of(history(HEAD, step(0, "x")[:1])) == Count(1050, 0)
    since = 4 + 1 + PER_MESSAGE
    assert tokens.of(history(HEAD, step(0, "x"))) == Count(1050 + since, since)


def test_where_the_server_counts_fewer_all_is_taken_to_be_so_much_less() -> None:
    tokens = counting()
    long = [TASK, Message("user", "x" * (1000 - 2 * PER_MESSAGE - len(TASK.content) - PER_MESSAGE - 2))]
    tokens.replied(long, Reply("ok", usage=Usage(490, 10)))
    assert tokens.of([*long, Message("assistant", "ok")]) == Count(500, 0)
    assert tokens.of([*long, Message("assistant", "ok"), Message("user", "y" * (100 - PER_MESSAGE))]) == Count(550, 100)
    half = tokens.estimated(long) // 2
    assert tokens.corrected(half).tokens == half // 2


@pytest.mark.parametrize("usage", [None, Usage(), Usage(None, 5), Usage(0, 5)])
def test_a_reply_that_tells_no_tokens_changes_nothing(usage: Usage | None) -> None:
    tokens = counting()
    tokens.replied(HEAD, Reply("ok", usage=usage))
    assert tokens.of(HEAD) == counting().of(HEAD)


def test_a_reply_whose_length_is_not_told_is_estimated() -> None:
    tokens = counting()
    tokens.replied(HEAD, Reply("ok", usage=Usage(1000)))
    assert tokens.of([*HEAD, Message("assistant", "ok")]).tokens == 1000 + 2 + PER_MESSAGE


@pytest.mark.parametrize("usage", [None, Usage(1000, 50), Usage(7, 1)])
@pytest.mark.parametrize("limit", [1, 50, 1000, 12_345])
def test_the_room_under_a_limit_is_the_largest_estimate_that_is_within_it(usage: Usage | None, limit: int) -> None:
    tokens = Tokens((add.spec,), LETTERS)
    tokens.replied(HEAD, Reply("ok", usage=usage))
    room = tokens.room(limit)
    if room >= 0:
        assert tokens.corrected(room).tokens <= limit
        assert tokens.corrected(room + 1000).tokens > limit


def test_a_history_is_counted_once() -> None:
    """The calls that a step takes do not grow with the run, and a tokenizer sees each text once."""
    seen: list[str] = []

    def count(text: str) -> int:
        seen.append(text)
        return len(text)

    def calls(steps: int) -> int:
        tokens, kept = Tokens(estimator=LETTERS._replace(count=count)), list(HEAD)
        profile = cProfile.Profile()
        with profile:
            for n in range(steps):
                view = Messages(kept, len(kept))
                tokens.of(view)
                tokens.replied(view, Reply(f"reply {n}", usage=Usage(100 + n, 5)))
                kept += [Message("assistant", f"reply {n}"), Message("tool", f"said {n}", (), "read")]
        return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]  # typeshed does not know it

    few, more = calls(100), calls(200)
    assert (more - few) / 100 < few / 100 * 1.1
    seen.clear()
    calls(50)
    assert len(seen) == len([text for text in seen if text != "read"]) + seen.count("read")
    assert max(seen.count(f"reply {n}") for n in range(50)) == 1


def test_messages_of_a_list_are_counted_as_those_of_a_run() -> None:
    given = history(HEAD, step(0, "x" * 100), step(1, "y", "z"))
    assert counting().of(given) == counting().of(messages(given))
    assert counting().estimated(given, 3) == counting().estimated(messages(given), 3) == counting().estimated(given[:3])
