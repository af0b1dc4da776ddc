"""``arun``: the same edges as ``run`` for the same events, async models and tools awaited, cancellation recorded."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fsm_agent import Message, Reply, Result, ScriptedModel, arun, classic, load, run, tool, verify
from fsm_agent.events import Cancelled, ModelFailed, ToolRequest, ToolsReturned
from fsm_agent.guards import Deadline
from fsm_agent.scenarios import load_all
from fsm_agent.tools import Tool, add, mul

SCENARIOS = load_all()


class Replies:
    """An async model that plays replies."""

    def __init__(self, *replies: str | Reply) -> None:
        self._script = ScriptedModel(replies)

    async def __call__(self, messages: Sequence[Message]) -> str | Reply:
        await asyncio.sleep(0)
        return self._script(messages)


def calls(*names: str) -> Reply:
    return Reply(tool_calls=tuple(ToolRequest(str(i), name, "{}") for i, name in enumerate(names)))


def edges(result: Result) -> list[tuple[str, int]]:
    return [(taken.edge, taken.step) for taken in result.trace.edges]


def observed(result: Result) -> list[tuple[str, str, str]]:
    returned = next(event for event in result.trace.events if isinstance(event, ToolsReturned))
    return [(seen.tool, seen.text, seen.kind) for seen in returned.observations]


@pytest.mark.parametrize("name", SCENARIOS)
def test_sync_and_async_take_the_same_edges(name: str) -> None:
    scenario = SCENARIOS[name]
    given: dict[str, Any] = {"tools": scenario.named_tools.values(), "guards": scenario.guards, "lang": "en"}
    waited = asyncio.run(arun(scenario.task, model=scenario.model, **given))
    plain = run(scenario.task, model=scenario.model, **given)
    assert edges(waited) == edges(plain)
    assert (waited.reason, waited.answer, waited.message, waited.steps) == (plain.reason, plain.answer, plain.message, plain.steps)


def test_an_async_model_and_async_tools_are_awaited(tmp_path: Path) -> None:
    @tool
    async def wait(n: int) -> str:
        """Wait."""
        await asyncio.sleep(0)
        return f"waited {n}"

    result = asyncio.run(arun("t", model=Replies("TOOL wait n=2", "FINAL ok"), tools=[wait], trace=tmp_path / "t.jsonl"))
    assert (result.reason, observed(result)) == ("final_answer", [("wait", "waited 2", "ok")])
    assert verify(load(tmp_path / "t.jsonl")).line is None


def test_an_async_tools_errors_are_observations() -> None:
    @tool
    async def bad(n: int) -> str:
        raise ValueError(f"no {n}")

    guards = classic(max_errors=3)
    result = asyncio.run(arun("t", model=Replies("TOOL bad n=1", "TOOL bad n=x", "FINAL ok"), tools=[bad], guards=guards, lang="en"))
    texts = [event.observations[0].text for event in result.trace.events if isinstance(event, ToolsReturned)]
    assert texts == ["TOOL_ERROR: ValueError: no 1", "TOOL_ERROR: bad expected an integer, got n=x"]


def test_run_refuses_an_async_tool_before_it_starts() -> None:
    @tool
    async def wait() -> str:
        return ""

    with pytest.raises(TypeError, match=r"^the tool wait is async; run it with arun$"):
        run("t", model=ScriptedModel(["FINAL x"]), tools=[wait])


def test_calls_of_one_reply_run_at_the_same_time_sync_and_async_ones() -> None:
    started = threading.Event()

    @tool
    async def waits() -> str:
        await asyncio.to_thread(started.wait, 20)
        return "async"

    @tool
    def starts() -> str:
        started.set()
        return "sync"

    result = asyncio.run(
        arun("t", model=Replies(calls("waits", "starts"), Reply("x", taken_as="answer")), tools=[waits, starts], protocol="recorded")
    )
    assert observed(result) == [("waits", "async", "ok"), ("starts", "sync", "ok")]


@pytest.mark.parametrize("asynchronous", [True, False])
def test_a_tool_is_given_up_on_after_its_timeout(asynchronous: bool) -> None:
    held = threading.Event()

    @tool(name="stuck", timeout_s=0.05)
    async def waits() -> str:
        await asyncio.sleep(20)
        return ""

    @tool(name="stuck", timeout_s=0.05)
    def blocks() -> str:
        held.wait(20)
        return ""

    stuck: Tool = waits if asynchronous else blocks
    result = asyncio.run(arun("t", model=Replies("TOOL stuck", "FINAL ok"), tools=[stuck], lang="en"))
    held.set()
    (seen,) = observed(result)
    assert re.match(r"TOOL_ERROR: no result of stuck after [\d.]+ s", seen[1])
    assert seen[2] == "timeout"
    assert result.reason == "final_answer"


def test_the_deadline_interrupts_a_tool_and_halts_the_run() -> None:
    @tool
    async def stuck() -> str:
        await asyncio.Event().wait()
        return ""

    result = asyncio.run(asyncio.wait_for(arun("t", model=Replies("TOOL stuck"), tools=[stuck], guards=(*classic(), Deadline(0.1))), 60))
    assert result.reason == "deadline"


def test_cancelling_the_task_records_the_halt_with_an_observation_for_each_call(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    begun = asyncio.Event()

    @tool
    async def quick() -> str:
        return "done"

    @tool
    async def slow() -> str:
        begun.set()
        await asyncio.sleep(20)
        return ""

    async def main() -> None:
        task = asyncio.create_task(
            arun(
                "t",
                model=Replies(calls("quick", "slow", "quick")),
                tools=[quick, slow],
                protocol="recorded",
                trace=path,
                lang="en",
                max_parallel=1,
            )
        )
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    trace = load(path)
    last = trace.events[-1]
    assert isinstance(last, Cancelled)
    assert [(seen.text, seen.kind) for seen in last.observations] == [
        ("done", "ok"),
        ("cancelled by the user; its outcome is unknown", "cancelled"),
        ("cancelled by the user; it was not started", "cancelled"),
    ]
    assert verify(trace).run.reason == "cancelled"


def test_cancelling_while_the_model_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    asked = asyncio.Event()

    async def model(messages: Sequence[Message]) -> str:
        asked.set()
        await asyncio.Event().wait()
        return ""

    async def main() -> None:
        task = asyncio.create_task(arun("t", model=model, trace=path))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert verify(load(path)).run.reason == "cancelled"


def test_many_runs_share_one_event_loop() -> None:
    async def main() -> list[Result]:
        return await asyncio.gather(
            *(arun(f"{i}", model=Replies(f"TOOL add a={i},b=1", f"TOOL mul a={i},b=2", f"FINAL {i}"), tools=[add, mul]) for i in range(50))
        )

    assert [(result.reason, result.answer, result.steps) for result in asyncio.run(main())] == [
        ("final_answer", str(i), 3) for i in range(50)
    ]


@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit(), KeyError("no")], ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("asynchronous", [True, False])
def test_whatever_a_model_raises_halts_the_run(error: BaseException, asynchronous: bool, tmp_path: Path) -> None:
    async def waits(messages: Sequence[Message]) -> str:
        raise error

    def blocks(messages: Sequence[Message]) -> str:
        raise error

    result = asyncio.run(arun("t", model=waits if asynchronous else blocks, trace=tmp_path / "t.jsonl"))
    last = load(tmp_path / "t.jsonl").events[-1]
    assert isinstance(last, ModelFailed)
    assert (result.reason, last.error) == ("model_error", type(error).__name__)


def test_a_sync_model_whose_script_has_run_out_halts_the_run() -> None:
    replies = iter(["TOOL add a=1,b=2"])
    result = asyncio.run(arun("t", model=lambda messages: next(replies), tools=[add]))
    assert [(event.error, event.message) for event in result.trace.events if isinstance(event, ModelFailed)] == [("StopIteration", "")]
