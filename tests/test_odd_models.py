"""Models that do what no decent model does: each has a sensible end, a record that is whole, and no exception."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from fsm_agent import Message, Reply, Result, classic, tool
from fsm_agent.events import ModelFailed, ToolRequest, Usage
from fsm_agent.models.base import ChatModel
from tests.driving import ASYNC, Driver, Script, both, call, calls, edges, observed, whole


@tool
def look(n: int = 0) -> str:
    return f"saw {n}"


class Odd(ChatModel):
    """An adapter that does whatever it is made with."""

    name = "test:odd"

    def __init__(self, does: Callable[[], Any]) -> None:
        self._does = does

    def ask(self, messages: Any, tools: Any = (), *, on_text: Any = None) -> Reply:
        said: Reply = self._does()
        return said

    async def aask(self, messages: Any, tools: Any = (), *, on_text: Any = None) -> Reply:
        await asyncio.sleep(0)
        said: Reply = self._does()
        return said


def kinds_of_model(does: Callable[[], Any]) -> dict[str, Any]:
    """The kinds of model, all of which do the same."""

    def function(messages: Sequence[Message]) -> Any:
        return does()

    async def awaited(messages: Sequence[Message]) -> Any:
        await asyncio.sleep(0)
        return does()

    return {"a function": function, "an adapter": Odd(does), "an async function": awaited}


every_kind = pytest.mark.parametrize("kind", ["a function", "an adapter", "an async function"])


def ran(driver: Driver, kind: str, does: Callable[[], Any], path: Path) -> Result | None:
    """The run with such a model, its record looked at; None where the driver takes no such model."""
    if kind == "an async function" and not driver.awaits:
        return None
    result = driver.run(model=kinds_of_model(does)[kind], tools=[look], trace=path)
    assert whole(path).log == result.trace.log
    return result


# --- what is no reply ----------------------------------------------------------------------------------------------


@both
@every_kind
@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (None, "the model returned NoneType; it must return text or a Reply"),
        (b"done", "the model returned bytes; it must return text or a Reply"),
        (["done"], "the model returned list; it must return text or a Reply"),
        ({"text": "done"}, "the model returned dict; it must return text or a Reply"),
        (Reply(None), "the model returned a Reply that cannot be used: Expected `str`, got `null` - at `$.text`"),  # type: ignore[arg-type]  # on purpose
        (Reply(tool_calls=[{"name": "look"}]), "the model returned a Reply that cannot be used: "),  # type: ignore[arg-type]  # on purpose
        (Reply("x", usage=Usage("many")), "the model returned a Reply that cannot be used: "),  # type: ignore[arg-type]  # on purpose
    ],
    ids=["None", "bytes", "a list", "a dict", "None for text", "calls that are none", "usage that is none"],
)
def test_what_is_no_reply_halts_the_run(driver: Driver, kind: str, said: Any, problem: str, tmp_path: Path) -> None:
    result = ran(driver, kind, lambda: said, tmp_path / "t.jsonl")
    if result is not None:
        (event,) = result.trace.events
        assert isinstance(event, ModelFailed)
        assert (result.reason, event.error) == ("model_error", "TypeError")
        assert event.message.startswith(problem)


def raising(error: BaseException) -> Callable[[], Any]:
    def does() -> Any:
        raise error

    return does


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


@both
@every_kind
@pytest.mark.parametrize(
    ("error", "name", "message"),
    [
        (ValueError("no"), "ValueError", "no"),
        (SystemExit(3), "SystemExit", "3"),
        (GeneratorExit(), "GeneratorExit", ""),
        (BaseException("all"), "BaseException", "all"),
        (asyncio.CancelledError("by itself"), "CancelledError", "by itself"),
        (RecursionError("deep"), "RecursionError", "deep"),
        (MemoryError(), "MemoryError", ""),
        (TimeoutError("slow"), "TimeoutError", "slow"),
        (BaseExceptionGroup("all", [SystemExit(1)]), "BaseExceptionGroup", "all (1 sub-exception)"),
        (Mute(), "Mute", "(its message raised ValueError)"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_whatever_it_raises_halts_the_run(driver: Driver, kind: str, error: BaseException, name: str, message: str, tmp_path: Path) -> None:
    result = ran(driver, kind, raising(error), tmp_path / "t.jsonl")
    if result is not None:
        (event,) = result.trace.events
        assert isinstance(event, ModelFailed)
        assert (result.reason, event.error, event.message) == ("model_error", name, message)


@both
@pytest.mark.parametrize("kind", ["a function", "an adapter"])
def test_a_script_that_has_run_out_halts_the_run(driver: Driver, kind: str, tmp_path: Path) -> None:
    """``StopIteration`` can be raised neither from a coroutine nor into a future."""
    replies = iter([calls(call("look"))])
    result = ran(driver, kind, lambda: next(replies), tmp_path / "t.jsonl")
    assert result is not None
    last = result.trace.events[-1]
    assert isinstance(last, ModelFailed)
    assert (result.reason, last.error) == ("model_error", "StopIteration" if kind == "a function" or not driver.awaits else "RuntimeError")


@both
def test_an_endless_recursion_halts_the_run(driver: Driver, tmp_path: Path) -> None:
    def deep(n: int) -> int:
        return deep(n + 1)

    result = ran(driver, "a function", lambda: deep(0), tmp_path / "t.jsonl")
    assert result is not None
    assert (result.reason, "RecursionError" in result.message) == ("model_error", True)
    assert sys.getrecursionlimit() > 100


# --- what is async where it should not be --------------------------------------------------------------------------


@both
@pytest.mark.parametrize("awaitable", ["an async function", "a function that gives a coroutine"])
def test_an_async_model_is_awaited_or_told_of(driver: Driver, awaitable: str, tmp_path: Path) -> None:
    async def awaited(messages: Sequence[Message]) -> str:
        await asyncio.sleep(0)
        return "done"

    def gives(messages: Sequence[Message]) -> Any:
        return awaited(messages)

    result = driver.run(model=awaited if awaitable == "an async function" else gives, trace=tmp_path / "t.jsonl")
    if driver.awaits:
        assert result.answer == "done"
    else:
        assert result.message == "stopped: the model failed (TypeError: the model is async; run it with arun)"
    whole(tmp_path / "t.jsonl")


def test_an_adapter_that_is_async_in_one_way_only(tmp_path: Path) -> None:
    class Half(Odd):
        async def aask(self, messages: Any, tools: Any = (), *, on_text: Any = None) -> Reply:
            return lambda: None  # type: ignore[return-value]  # on purpose

    result = ASYNC.run(model=Half(lambda: None), trace=tmp_path / "t.jsonl")
    assert result.reason == "model_error"


# --- replies that contradict themselves ----------------------------------------------------------------------------


@both
def test_two_answers_in_one_reply_are_its_first_or_a_correction(driver: Driver, tmp_path: Path) -> None:
    """By protocol; never both, and never a crash."""
    path = tmp_path / "t.jsonl"
    for protocol, reply, answer in (
        ("line", "FINAL one\nFINAL two", None),
        ("react", "Final Answer: one\nFinal Answer: two", None),
        ("json_text", '{"answer": "one"} {"answer": "two"}', None),
        ("function_calling", "one\ntwo", "one\ntwo"),
    ):
        result = driver.run(model=Script(reply, reply, reply), tools=[look], protocol=protocol, trace=path, guards=classic(max_errors=2))
        assert result.reason in {"final_answer", "consecutive_errors"}, protocol
        assert answer is None or result.answer == answer
        if result.reason == "final_answer":
            assert result.answer in {"one", "two", "one\nFINAL two", "one\nFinal Answer: two", "one\ntwo"}, protocol
        whole(path)


@both
def test_an_unknown_tool_beside_a_known_one(driver: Driver, tmp_path: Path) -> None:
    model = Script(calls(call("fly", id="1"), call("look", id="2")), "done")
    result = driver.run(model=model, tools=[look], trace=tmp_path / "t.jsonl")
    assert observed(result) == [[("fly", "TOOL_ERROR: unknown tool fly", "unknown_tool"), ("look", "saw 0", "ok")]]
    assert [message.tool_call_id for message in model.asked[1][-2:]] == ["1", "2"]
    assert result.answer == "done"
    whole(tmp_path / "t.jsonl")


@both
def test_the_same_id_twice_in_one_reply(driver: Driver, tmp_path: Path) -> None:
    """Two calls, two keys, two observations."""
    keys: list[str] = []

    @tool
    def note(n: int, call: Any = None) -> str:
        keys.append(str(n))
        return f"noted {n}"

    model = Script(calls(call("note", '{"n": 1}', "same"), call("note", '{"n": 2}', "same")), "done")
    result = driver.run(model=model, tools=[note], trace=tmp_path / "t.jsonl")
    assert sorted(keys) == ["1", "2"]
    assert observed(result) == [[("note", "noted 1", "ok"), ("note", "noted 2", "ok")]]
    assert [(message.tool_call_id, message.content) for message in model.asked[1][-2:]] == [("same", "noted 1"), ("same", "noted 2")]
    whole(tmp_path / "t.jsonl")


@both
def test_the_same_call_and_id_in_every_reply_is_a_repeat(driver: Driver, tmp_path: Path) -> None:
    result = driver.run(model=Script(*[calls(call("look"))] * 9), tools=[look], guards=classic(), trace=tmp_path / "t.jsonl")
    assert result.reason == "repeated_call"
    whole(tmp_path / "t.jsonl")


@both
@pytest.mark.parametrize(
    "reply",
    [
        Reply("", (ToolRequest("", "", ""),)),
        Reply("", (ToolRequest("1", "look", "null"),)),
        Reply("", (ToolRequest("1", "look", "[" * 10_000),)),
        Reply("", (ToolRequest("\ud800", "\ud800", '{"n": "\\ud800"}'),)),
        Reply("", (ToolRequest("1", "look", '{"n": NaN}'),)),
        Reply("", (ToolRequest("1", "look", '{"n": 1, "n": 2}'),)),
        Reply("", (ToolRequest("1", "look" * 1000, "{}"),) * 40),
        Reply("text", finish_reason="length"),
        Reply("", finish_reason="content_filter"),
        Reply("\x00\x1b[2J\u202e"),
    ],
    ids=["nothing", "null", "deep", "surrogates", "NaN", "twice the same name", "many", "cut off", "filtered", "control characters"],
)
def test_a_reply_of_any_kind_leaves_a_record_that_is_whole(driver: Driver, reply: Reply, tmp_path: Path) -> None:
    result = driver.run(model=Script(reply, reply, reply, "done"), tools=[look], trace=tmp_path / "t.jsonl", guards=classic())
    assert result.reason in {"final_answer", "consecutive_errors", "repeated_call"}
    assert whole(tmp_path / "t.jsonl").log == result.trace.log


@both
def test_a_model_that_changes_what_it_is_shown_changes_nothing(driver: Driver) -> None:
    """What an adapter is shown is its own, at most."""

    def model(messages: Any) -> Reply:
        if isinstance(messages, list):
            messages.clear()
        return calls(call("look")) if len(messages) < 4 else Reply("done")

    result = driver.run(model=model, tools=[look])
    assert edges(result)[-1] == "final_answer"
    assert len(result.trace.replay().history) == 5
