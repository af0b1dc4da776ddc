"""A run's deadline, as the drivers keep it: retries count, the time of a person does not, and a tool is given up when the time is up.

The runs are taken up from records whose times lie in the past, so that no test has to wait.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest

from fsm_agent import Reply, Tool, classic, tool
from fsm_agent.events import ApprovalAsked, ApprovalGiven, AttemptFailed, Event, ModelReplied, ToolsReturned
from fsm_agent.guards import Deadline
from fsm_agent.machine import Run
from fsm_agent.options import Options
from fsm_agent.protocols import FunctionCallingProtocol
from fsm_agent.traces.record import Trace, header_of
from tests.driving import Driver, Script, both, call, calls, observed

TWO = calls(call("work", id="1"), call("work", id="2"))


@tool(side_effects=True)
def work() -> str:
    return "worked"


def record(deadline_s: float, began_s: float, events: Sequence[Event], tools: Sequence[Tool] = (work,)) -> Trace:
    """A record of a run that began ``began_s`` seconds ago."""
    guards = (*classic(), Deadline(deadline_s))
    specs = tuple(each.spec for each in tools)
    run = Run(
        "task",
        guards=guards,
        protocol=FunctionCallingProtocol(),
        tools=specs,
        options=Options(max_retries=3, approvals=True),
        run_id="run",
        at=time.time() - began_s,
    )
    for event in events:
        run.feed(event)
    return Trace(header_of(run), run.log)


def ago(seconds: float) -> float:
    return time.time() - seconds


@both
def test_the_wait_before_a_retry_counts(driver: Driver) -> None:
    """The model answers when the time is up: what it asks for is not begun."""
    trace = record(50, 100, [AttemptFailed("ModelUnavailable", "busy", 0.0, ago(60))])
    result = driver.resume(trace, True, model=Script(TWO), tools=[work])
    assert result.reason == "deadline"
    refused = ("work", "TOOL_ERROR: not started, the time of the run was up", "refused")
    assert observed(result) == [[refused, refused]]


@both
def test_the_wait_before_a_retry_counts_until_the_time_is_up(driver: Driver) -> None:
    trace = record(5000, 100, [AttemptFailed("ModelUnavailable", "busy", 0.0, ago(60))])
    result = driver.resume(trace, True, model=Script(TWO, "done"), tools=[work])
    assert result.answer == "done"
    reading = next(each for edge in result.trace.edges for each in edge.readings if each.guard == "deadline")
    assert 100 <= reading.value < 200


@both
def test_the_time_of_a_person_does_not_count(driver: Driver) -> None:
    """It took the model a second, and the person all day."""
    trace = record(50, 86_402, [ModelReplied(TWO, ago(86_401)), ApprovalAsked((0, 1), ago(86_401))])
    result = driver.resume(trace, True, model=Script("done"), tools=[work])
    assert (result.reason, observed(result)) == ("final_answer", [[("work", "worked", "ok")] * 2])
    reading = next(each for edge in result.trace.edges for each in edge.readings if each.guard == "deadline")
    assert 1 <= reading.value < 50


@both
@pytest.mark.parametrize("names", [("stuck",), ("stuck", "stuck", "stuck")], ids=["one call", "three calls"])
def test_a_tool_is_given_up_when_what_is_left_of_the_time_is_up(driver: Driver, names: tuple[str, ...]) -> None:
    """The time that was spent before the person was asked counts."""
    held = threading.Event()

    @tool
    def stuck() -> str:
        held.wait(60)
        return "too late"

    reply = calls(*(call(name, id=str(at)) for at, name in enumerate(names)))
    tools = [stuck, work]
    asked: list[Event] = [ModelReplied(reply, ago(1000)), ApprovalAsked((0,), ago(1000))]
    trace = record(41, 1040, asked, tools)
    result = driver.resume(trace, True, model=Script(), tools=tools)
    held.set()
    assert result.reason == "deadline"
    seen = [(each, text.partition(" after ")[0], kind) for each, text, kind in observed(result)[0]]
    assert seen == [("stuck", "TOOL_ERROR: no result of stuck", "timeout")] * len(names)


@both
def test_what_a_tool_may_take_is_the_shorter_of_its_time_and_the_runs(driver: Driver) -> None:
    held = threading.Event()

    @tool(timeout_s=0.01)
    def stuck() -> str:
        held.wait(60)
        return "too late"

    trace = record(1000, 1, [ModelReplied(calls(call("stuck")), ago(0)), ApprovalAsked((0,), ago(0))], [stuck])
    result = driver.resume(trace, True, model=Script("done"), tools=[stuck])
    held.set()
    assert (result.reason, [kind for _, _, kind in observed(result)[0]]) == ("final_answer", ["timeout"])


@both
def test_a_record_without_a_deadline_has_all_the_time(driver: Driver) -> None:
    events: list[Any] = [ModelReplied(TWO, ago(9e6)), ApprovalAsked((0,), ago(9e6))]
    run = Run(
        "task", guards=classic(), protocol=FunctionCallingProtocol(), tools=(work.spec,), options=Options(approvals=True), at=ago(9e6)
    )
    for event in events:
        run.feed(event)
    result = driver.resume(Trace(header_of(run), run.log), True, model=Script(Reply("done")), tools=[work])
    assert result.answer == "done"
    assert [type(each) for each in result.trace.events] == [ModelReplied, ApprovalAsked, ApprovalGiven, ToolsReturned, ModelReplied]
