"""Hooks and watchers: each edge once, in order, with the run; what they raise breaks the run off, and the record is whole."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fsm_agent import ApprovalRequest, KeepLast, Message, Reply, ScriptedModel, Tool, ToolCall, Watcher, load, tool
from fsm_agent.events import AskModel, Event, Observation
from fsm_agent.machine import Run, Taken
from fsm_agent.models.errors import ModelUnavailable
from tests.driving import ASYNC, SYNC, Driver, Script, both, call, calls, edges, whole


@tool
def quick(n: int = 0) -> str:
    return f"quick {n}"


@tool(side_effects=True)
def pay(n: int = 0) -> str:
    return f"paid {n}"


TOOLS: list[Tool] = [quick, pay]


class Diary(Watcher):
    """Writes down what it is told."""

    def __init__(self, name: str = "", told: list[str] | None = None) -> None:
        self.told: list[str] = [] if told is None else told
        self._name = name

    def began(self, run: Run) -> None:
        self._write(f"began in {run.state}")

    def asks(self, run: Run, question: AskModel) -> None:
        self._write(f"asks {question.attempt}: {len(question.messages)} messages, {len(question.tools)} tools")

    def calls(self, run: Run, index: int, call: ToolCall) -> None:
        self._write(f"calls {index} {call.key.partition('/')[2]} {call}")

    def called(self, run: Run, index: int, observation: Observation) -> None:
        self._write(f"called {index} {observation.text}")

    def took(self, run: Run, event: Event, edges: Sequence[Taken], /) -> None:
        self._write(f"took {type(event).__name__}: {' '.join(each.edge for each in edges)}")

    def ended(self, run: Run) -> None:
        self._write(f"ended in {run.state}")

    def _write(self, line: str) -> None:
        self.told.append(f"{self._name}{line}")


def script() -> Script:
    return Script(
        ModelUnavailable("busy", 429, 0.0),
        calls(call("quick", '{"n": 1}', "1"), call("pay", '{"n": 2}', "2")),
        calls(call("quick")),
        "done",
    )


WHOLE = [
    "began in Deciding",
    "asks 1: 2 messages, 2 tools",
    "took AttemptFailed: retry",
    "asks 2: 2 messages, 2 tools",
    "took ModelReplied: model_replied call_tools",
    "took ApprovalAsked: ask_approval",
    "a person is asked",
    "took ApprovalGiven: approval_given",
    "calls 0 1/1 quick{n=1}",
    "called 0 quick 1",
    "calls 1 1/2 pay{n=2}",
    "called 1 paid 2",
    "took ToolsReturned: tools_returned go_on",
    "asks 1: 5 messages, 2 tools",
    "took ModelReplied: model_replied call_tools",
    "calls 0 2/1 quick{}",
    "called 0 quick 0",
    "took ToolsReturned: tools_returned go_on",
    "asks 1: 7 messages, 2 tools",
    "took ModelReplied: model_replied final_answer",
    "ended in Halted",
]


@both
@pytest.mark.parametrize("traced", [False, True], ids=["no file", "file"])
def test_a_watcher_is_told_everything_in_order(driver: Driver, traced: bool, tmp_path: Path) -> None:
    diary = Diary()

    def approve(request: ApprovalRequest) -> bool:
        diary.told.append("a person is asked")
        return True

    path = tmp_path / "t.jsonl" if traced else None
    driver.run(model=script(), tools=TOOLS, hooks=[diary], approve=approve, max_parallel=1, trace=path)
    assert diary.told == WHOLE


@both
def test_a_hook_is_called_on_every_edge_once_in_order_with_the_run(driver: Driver) -> None:
    seen: list[tuple[int, Taken]] = []
    runs: set[int] = set()

    def hook(run: Run, taken: Taken) -> None:
        runs.add(id(run))
        assert taken in run.log, "it is called after the event on which the edge was taken"
        seen.append((taken.step, taken))

    result = driver.run(model=script(), tools=TOOLS, hooks=[hook], approve=lambda _: True)
    assert [taken for _, taken in seen] == result.trace.edges
    assert len(runs) == 1


@both
def test_hooks_are_called_in_their_order(driver: Driver) -> None:
    told: list[str] = []
    driver.run(model=Script("done"), hooks=[Diary("1 ", told), Diary("2 ", told)])
    assert told == [
        f"{n} {line}"
        for line in ("began in Deciding", "asks 1: 2 messages, 0 tools", "took ModelReplied: model_replied final_answer", "ended in Halted")
        for n in (1, 2)
    ]


@both
def test_the_record_is_written_before_a_hook_is_called(driver: Driver, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    on_file: list[bool] = []
    driver.run(
        model=script(),
        tools=TOOLS,
        policy="never",
        trace=path,
        hooks=[lambda run, taken: on_file.append(load(path).log == run.log)],
    )
    assert on_file == [True] * 11


@both
def test_a_watcher_is_shown_what_the_model_is_shown(driver: Driver) -> None:
    class Shown(Watcher):
        def __init__(self) -> None:
            self.messages: list[list[Message]] = []

        def asks(self, run: Run, question: AskModel) -> None:
            self.messages.append(list(question.messages))

    shown, model = Shown(), Script(*(calls(call("quick", f'{{"n": {n}}}')) for n in range(3)), "done")
    driver.run(model=model, tools=TOOLS, hooks=[shown], context=KeepLast(1))
    assert shown.messages == model.asked
    assert len(shown.messages[3]) == 5, "the system's message, the task, a note, and the last step"


# --- a hook that raises --------------------------------------------------------------------------------------------


class Broke(Exception):
    pass


class Breaking(Diary):
    """Raises at the first thing that begins so."""

    def __init__(self, at: str) -> None:
        super().__init__()
        self._at = at

    def _write(self, line: str) -> None:
        super()._write(line)
        if line.startswith(self._at):
            raise Broke(line)


PLACES = {
    "began": "Deciding",
    "asks 1": "Deciding",
    "took AttemptFailed": "Deciding",
    "took ModelReplied": "Executing",
    "took ApprovalAsked": "Executing",
    "took ApprovalGiven": "Executing",
    "calls 0": "Executing",
    "calls 1": "Executing",
    "called 0": "Executing",
    "called 1": "Executing",
    "took ToolsReturned": "Deciding",
    "calls 0 2/1": "Executing",
    "called 0 quick 0": "Executing",
    "took ModelReplied: model_replied final_answer": "Halted",
    "ended": "Halted",
}


@both
@pytest.mark.parametrize("at", PLACES)
def test_what_a_watcher_raises_breaks_the_run_off_and_the_record_is_whole(driver: Driver, at: str, tmp_path: Path) -> None:
    """Nobody else is blamed for it, the other watchers hear of the end, and the run can be gone on with."""
    path = tmp_path / "t.jsonl"
    breaking, other = Breaking(at), Diary()
    with pytest.raises(Broke, match=f"^{at}"):
        driver.run(model=script(), tools=TOOLS, hooks=[other, breaking], approve=lambda _: True, trace=path, max_parallel=1)
    assert other.told[-1] == f"ended in {PLACES[at]}"
    assert sum(line.startswith("ended") for line in breaking.told) == 1
    assert whole(path).state == PLACES[at]
    model = Script(*script()._says[1 + sum(edge == "model_replied" for edge in edges(load(path))) :])
    assert driver.resume(path, lambda _: True, model=model, tools=TOOLS).answer == "done"
    whole(path)


@both
def test_what_a_hook_raises_in_a_batch_is_raised_as_it_is(driver: Driver, tmp_path: Path) -> None:
    """Not as a group of exceptions, though calls run side by side."""

    class Once(Watcher):
        def called(self, run: Run, index: int, observation: Observation) -> None:
            raise Broke(observation.tool)

    reply = calls(*(call("quick", id=str(n)) for n in range(5)))
    with pytest.raises(Broke, match=r"^quick$"):
        driver.run(model=Script(reply), tools=TOOLS, hooks=[Once()], trace=tmp_path / "t.jsonl")
    assert whole(tmp_path / "t.jsonl").state == "Executing"


@both
def test_a_watcher_that_was_not_told_of_the_beginning_is_not_told_of_the_end(driver: Driver) -> None:
    first, second, third = Diary(), Breaking("began"), Diary()
    with pytest.raises(Broke):
        driver.run(model=Script("done"), hooks=[first, second, third])
    assert (first.told, second.told, third.told) == (
        ["began in Deciding", "ended in Deciding"],
        ["began in Deciding", "ended in Deciding"],
        [],
    )


@both
def test_all_are_told_of_the_end_also_when_one_of_them_raises_there(driver: Driver) -> None:
    first, second = Breaking("ended"), Diary()
    with pytest.raises(Broke, match=r"^ended in Halted$"):
        driver.run(model=Script("done"), hooks=[first, second])
    assert second.told[-1] == "ended in Halted"


@both
def test_a_halt_that_a_hook_breaks_off_is_on_file(driver: Driver, tmp_path: Path) -> None:
    def hook(run: Run, taken: Taken) -> None:
        if run.reason is not None:
            raise Broke

    path = tmp_path / "t.jsonl"
    with pytest.raises(Broke):
        driver.run(model=Script("done"), hooks=[hook], trace=path)
    assert whole(path).reason == "final_answer"
    assert driver.resume(path, model=Script()).answer == "done"


# --- what is no hook -----------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("hook", [5, "hook", None])
def test_what_is_no_hook_is_refused(driver: Driver, hook: Any) -> None:
    model = Script()
    with pytest.raises(TypeError, match=r"is no hook; a hook is a plain function of the run and an edge, or a Watcher$"):
        driver.run(model=model, hooks=[hook])
    assert model.asked == []


@both
def test_an_async_hook_is_refused_as_nobody_would_await_it(driver: Driver) -> None:
    async def hook(run: Run, taken: Taken) -> None:
        await asyncio.sleep(0)

    with pytest.raises(TypeError, match=r"is no hook; a hook is a plain function"):
        driver.run(model=Script(), hooks=[hook])


def test_both_drivers_tell_alike() -> None:
    told = []
    for driver in (SYNC, ASYNC):
        diary = Diary()
        reply = Reply("", (call("quick", id="1"), call("nothing", id="2"), call("quick", '{"m": 1}', "3")))
        driver.run(model=Script(reply, ModelUnavailable("busy", 429, 0.0), "done"), tools=TOOLS, hooks=[diary], max_parallel=1)
        told.append(diary.told)
    assert told[0] == told[1]


def test_a_hook_costs_a_run_no_step(tmp_path: Path) -> None:
    """A run with hooks is the same run."""
    model = ScriptedModel(["TOOL quick n=1", "FINAL done"])
    hooked = SYNC.run(model=model, tools=TOOLS, hooks=[Diary()], protocol="line")
    plain = SYNC.run(model=ScriptedModel(model.replies), tools=TOOLS, protocol="line")
    assert edges(hooked) == edges(plain)
