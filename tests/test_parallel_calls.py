"""The calls of one reply are made at the same time, each with its own observation, and none is waited for beyond its time."""

from __future__ import annotations

import re
import threading
import time
from typing import Any

import pytest

from fsm_agent import Reply, Result, ScriptedModel, classic, run, tool
from fsm_agent.events import ToolRequest, ToolsReturned
from fsm_agent.guards import Deadline
from fsm_agent.tools import Tool

held = threading.Event()
"""Set at the end of a test: what was abandoned may go home."""


@pytest.fixture(autouse=True)
def _release() -> Any:
    held.clear()
    yield
    held.set()


def call_all(*names: str, tools: list[Tool], **options: Any) -> Result:
    requests = tuple(ToolRequest(str(i), name, "{}") for i, name in enumerate(names))
    model = ScriptedModel([Reply(tool_calls=requests), Reply("done", taken_as="answer")])
    return run("t", model=model, tools=tools, protocol="recorded", lang="en", **options)


def observed(result: Result) -> list[tuple[str, str, str]]:
    returned = next(event for event in result.trace.events if isinstance(event, ToolsReturned))
    return [(seen.tool, seen.text, seen.kind) for seen in returned.observations]


def test_calls_of_one_reply_run_at_the_same_time_and_are_observed_in_call_order() -> None:
    both = threading.Barrier(2, timeout=20)

    @tool
    def late() -> str:
        both.wait()
        time.sleep(0.05)
        return "late"

    @tool
    def soon() -> str:
        both.wait()
        return "soon"

    assert observed(call_all("late", "soon", tools=[late, soon])) == [("late", "late", "ok"), ("soon", "soon", "ok")]


def test_no_more_than_max_parallel_run_at_a_time() -> None:
    lock = threading.Lock()
    running: list[int] = [0, 0]

    @tool
    def work() -> str:
        with lock:
            running[0] += 1
            running[1] = max(running)
        time.sleep(0.02)
        with lock:
            running[0] -= 1
        return "ok"

    call_all(*["work"] * 7, tools=[work], max_parallel=3)
    assert running == [0, 3]


def test_each_call_has_its_own_observation_whatever_happens_to_the_others() -> None:
    @tool
    def fine() -> str:
        return "fine"

    @tool
    def bad() -> str:
        raise ValueError("no")

    @tool
    def leaves() -> str:
        raise SystemExit(3)

    assert observed(call_all("bad", "fine", "leaves", "unknown", tools=[fine, bad, leaves])) == [
        ("bad", "TOOL_ERROR: ValueError: no", "tool_error"),
        ("fine", "fine", "ok"),
        ("leaves", "TOOL_ERROR: SystemExit: 3", "tool_error"),
        ("unknown", "TOOL_ERROR: unknown tool unknown", "unknown_tool"),
    ]


def test_a_tool_that_never_returns_is_given_up_on_after_its_timeout() -> None:
    @tool(timeout_s=0.05)
    def stuck() -> str:
        held.wait(20)
        return "too late"

    @tool
    def fine() -> str:
        return "fine"

    for names in (("stuck",), ("stuck", "fine")):
        first, *others = observed(call_all(*names, tools=[stuck, fine]))
        assert first[0] == "stuck"
        assert re.fullmatch(r"TOOL_ERROR: no result of stuck after [\d.]+ s; whether it took effect is not known", first[1])
        assert first[2] == "timeout"
        assert others == [("fine", "fine", "ok")][: len(others)]


def test_the_deadline_of_the_run_interrupts_its_tools_and_halts_it() -> None:
    @tool
    def stuck() -> str:
        held.wait(20)
        return "too late"

    result = call_all("stuck", "stuck", "stuck", tools=[stuck], guards=(*classic(), Deadline(2)), max_parallel=2)
    assert result.reason == "deadline"
    assert [(text.partition(" after ")[0], kind) for _, text, kind in observed(result)] == [
        ("TOOL_ERROR: no result of stuck", "timeout"),
        ("TOOL_ERROR: no result of stuck", "timeout"),
        ("TOOL_ERROR: not started, the time of the run was up", "refused"),
    ]


def test_a_tool_in_a_thread_that_raises_ctrl_c_cancels_the_run() -> None:
    @tool
    def interrupts() -> str:
        raise KeyboardInterrupt

    @tool
    def waits() -> str:
        held.wait(20)
        return "too late"

    with pytest.raises(KeyboardInterrupt):
        call_all("waits", "interrupts", tools=[waits, interrupts])


@pytest.mark.parametrize("timeout_s", [0, -1, float("nan")])
def test_a_timeout_that_is_none_is_refused(timeout_s: float) -> None:
    with pytest.raises(ValueError, match=r"timeout_s is .*; it must be above 0"):
        tool(timeout_s=timeout_s)
