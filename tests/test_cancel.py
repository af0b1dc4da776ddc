"""Stopping a run: by ``Run.cancel`` from anywhere, by cancelling the task, by Ctrl-C. Each call has its observation, and the record is whole."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from fsm_agent import ApprovalRequest, Message, Reply, Result, Summarise, Tool, Watcher, arun, classic, load, run, tool
from fsm_agent.events import AskModel, Cancelled, ToolCall
from fsm_agent.guards import Deadline
from fsm_agent.machine import Run, Taken
from tests.driving import ASYNC, SYNC, Driver, Held, Script, both, call, calls, edges, observed, soon, whole

UNKNOWN, UNSTARTED = "cancelled by the user; its outcome is unknown", "cancelled by the user; it was not started"


class Handle(Watcher):
    """Gets hold of the run, and can cancel it when something begins."""

    def __init__(self, cancels_when: str = "", of: str = "") -> None:
        """``cancels_when``: the watcher's method that cancels; ``of``: the edge, or the tool, at which it does."""
        self.run: Run | None = None
        self._when, self._of = cancels_when, of

    def began(self, run: Run) -> None:
        self.run = run
        self._at("began", "")

    def asks(self, run: Run, question: AskModel) -> None:
        self._at("asks", "")

    def calls(self, run: Run, index: int, call: ToolCall) -> None:
        self._at("calls", call.name)

    def called(self, run: Run, index: int, observation: Any) -> None:
        self._at("called", observation.tool)

    def took(self, run: Run, event: Any, edges: Sequence[Taken], /) -> None:
        for edge in edges:
            self._at("took", edge.edge)

    def cancel(self) -> None:
        assert self.run is not None
        self.run.cancel()

    def _at(self, when: str, of: str) -> None:
        if (when, of) == (self._when, self._of):
            self.cancel()


@tool
def quick() -> str:
    return "quick"


def last_of(result: Result) -> Cancelled:
    last = result.trace.events[-1]
    assert isinstance(last, Cancelled)
    return last


# --- from a hook ---------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize(
    ("when", "of", "taken", "steps", "seen"),
    [
        ("began", "", ["cancelled"], 0, []),
        ("took", "model_replied", ["model_replied", "call_tools", "cancelled_executing"], 1, [UNSTARTED, UNSTARTED]),
        ("took", "go_on", ["model_replied", "call_tools", "tools_returned", "go_on", "cancelled"], 1, ["quick", "quick"]),
    ],
)
def test_a_hook_cancels_between_two_effects_and_nothing_more_is_begun(
    driver: Driver, when: str, of: str, taken: list[str], steps: int, seen: list[str], tmp_path: Path
) -> None:
    model = Script(calls(call("quick"), call("quick", id="2")), "done")
    result = driver.run(model=model, tools=[quick], hooks=[Handle(when, of)], trace=tmp_path / "t.jsonl")
    assert (result.reason, result.message) == ("cancelled", "stopped: cancelled by the user")
    assert (edges(result), result.steps, len(model.asked)) == (taken, steps, steps)
    assert [text for batch in observed(result) for _, text, _ in batch] == seen
    assert not (steps != 1 or of == "model_replied") or last_of(result).asked == (of == "model_replied")
    whole(tmp_path / "t.jsonl")


@both
def test_a_hook_that_cancels_as_a_call_is_about_to_be_made(driver: Driver, tmp_path: Path) -> None:
    """What begins is of unknown outcome; the calls after it do not begin."""
    made: list[str] = []
    go = threading.Event()

    @tool
    def slow() -> str:
        made.append("slow")
        go.wait(20)
        return "slow"

    reply = calls(call("slow", id="1"), call("quick", id="2"), call("quick", id="3"))
    result = driver.run(
        model=Script(reply), tools=[slow, quick], hooks=[Handle("calls", "slow")], trace=tmp_path / "t.jsonl", max_parallel=1
    )
    go.set()
    assert [text for _, text, _ in observed(result)[0]] == [UNKNOWN, UNSTARTED, UNSTARTED]
    whole(tmp_path / "t.jsonl")


@both
def test_a_hook_that_cancels_as_a_call_has_ended(driver: Driver, tmp_path: Path) -> None:
    reply = calls(call("quick", id="1"), call("quick", id="2"))
    result = driver.run(model=Script(reply), tools=[quick], hooks=[Handle("called", "quick")], trace=tmp_path / "t.jsonl", max_parallel=1)
    assert [text for _, text, _ in observed(result)[0]] == ["quick", UNSTARTED]
    whole(tmp_path / "t.jsonl")


@both
def test_a_hook_that_cancels_at_the_halt_changes_nothing(driver: Driver, tmp_path: Path) -> None:
    result = driver.run(model=Script("done"), hooks=[Handle("took", "final_answer")], trace=tmp_path / "t.jsonl")
    assert (result.reason, result.answer) == ("final_answer", "done")


@both
def test_who_is_not_driven_cannot_be_cancelled(driver: Driver) -> None:
    handle = Handle()
    driver.run(model=Script("done"), hooks=[handle])
    with pytest.raises(RuntimeError, match=r"^this run is not being driven; there is nothing to cancel$"):
        handle.cancel()


# --- from a tool ---------------------------------------------------------------------------------------------------


@both
def test_a_tool_cancels_the_run_in_which_it_runs(driver: Driver, tmp_path: Path) -> None:
    """It may end before that is seen, or not: its observation says which."""
    handle = Handle()

    @tool
    def stop() -> str:
        handle.cancel()
        return "stopped it"

    reply = calls(call("stop", id="1"), call("quick", id="2"))
    result = driver.run(model=Script(reply, "done"), tools=[stop, quick], hooks=[handle], trace=tmp_path / "t.jsonl", max_parallel=1)
    assert result.reason == "cancelled"
    first, second = observed(result)[0]
    assert first[1:] in {("stopped it", "ok"), (UNKNOWN, "cancelled")}
    assert second[1:] == (UNSTARTED, "cancelled")
    whole(tmp_path / "t.jsonl")


def test_an_async_tool_cancels_the_run_in_which_it_runs(tmp_path: Path) -> None:
    handle = Handle()

    @tool
    async def stop() -> str:
        handle.cancel()
        await asyncio.sleep(20)
        return "never"

    result = ASYNC.run(model=Script(calls(call("stop"))), tools=[stop], hooks=[handle], trace=tmp_path / "t.jsonl")
    assert (result.reason, observed(result)) == ("cancelled", [[("stop", UNKNOWN, "cancelled")]])
    whole(tmp_path / "t.jsonl")


# --- from another thread -------------------------------------------------------------------------------------------


class Cancelling:
    """A thread that cancels the run as soon as ``when`` is set."""

    def __init__(self, handle: Handle, when: threading.Event) -> None:
        def cancel() -> None:
            assert when.wait(20)
            handle.cancel()

        self._thread = threading.Thread(target=cancel)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._thread.join()


@both
@pytest.mark.parametrize("parallel", [False, True], ids=["one call", "three calls"])
@pytest.mark.parametrize("awaited", [False, True], ids=["plain tool", "async tool"])
def test_while_tools_run(driver: Driver, parallel: bool, awaited: bool, tmp_path: Path) -> None:
    if awaited and not driver.awaits:
        return  # run takes no async tools
    began, go = threading.Event(), threading.Event()

    @tool(name="slow")
    def blocks() -> str:
        began.set()
        go.wait(20)
        return "too late"

    @tool(name="slow")
    async def waits() -> str:
        began.set()
        await asyncio.sleep(20)
        return "too late"

    slow: Tool = waits if awaited else blocks
    handle = Handle()
    names = ("quick", "slow", "quick") if parallel else ("slow",)
    reply = calls(*(call(name, id=str(at)) for at, name in enumerate(names)))
    with Cancelling(handle, began):
        result = driver.run(model=Script(reply), tools=[slow, quick], hooks=[handle], trace=tmp_path / "t.jsonl", max_parallel=1)
    go.set()
    assert (result.reason, edges(result)) == ("cancelled", ["model_replied", "call_tools", "cancelled_executing"])
    expected = [("quick", "quick", "ok"), ("slow", UNKNOWN, "cancelled"), ("quick", UNSTARTED, "cancelled")]
    assert observed(result) == [expected if parallel else expected[1:2]]
    whole(tmp_path / "t.jsonl")


@both
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_while_the_model_is_asked(driver: Driver, streams: bool, tmp_path: Path) -> None:
    model, handle = Held(), Handle()
    options: dict[str, Any] = {"on_text": lambda _: None} if streams else {}
    with Cancelling(handle, model.asked):
        result = driver.run(model=model, hooks=[handle], trace=tmp_path / "t.jsonl", **options)
    model.go.set()
    assert (result.reason, edges(result), result.steps, last_of(result).asked) == ("cancelled", ["cancelled"], 1, True)
    whole(tmp_path / "t.jsonl")


def test_while_an_async_function_is_asked(tmp_path: Path) -> None:
    asked, handle = threading.Event(), Handle()

    async def model(messages: Sequence[Message]) -> str:
        asked.set()
        await asyncio.sleep(20)
        return "too late"

    with Cancelling(handle, asked):
        result = ASYNC.run(model=model, hooks=[handle], trace=tmp_path / "t.jsonl")
    assert (result.reason, result.steps) == ("cancelled", 1)
    whole(tmp_path / "t.jsonl")


@both
def test_while_a_plain_function_is_asked(driver: Driver, tmp_path: Path) -> None:
    """``run`` asks it in the caller's thread, and sees that it is cancelled when it has answered; ``arun`` leaves it behind in its own."""
    asked, cancelled, handle = threading.Event(), threading.Event(), Handle()

    def model(messages: Sequence[Message]) -> Reply:
        asked.set()
        cancelled.wait(0.2 if driver.awaits else 20)
        return calls(call("quick"))

    def cancel() -> None:
        assert asked.wait(20)
        handle.cancel()
        cancelled.set()

    canceller = threading.Thread(target=cancel)
    canceller.start()
    result = driver.run(model=model, tools=[quick], hooks=[handle], trace=tmp_path / "t.jsonl")
    canceller.join()
    taken = ["cancelled"] if driver.awaits else ["model_replied", "call_tools", "cancelled_executing"]
    assert (result.reason, edges(result), result.steps) == ("cancelled", taken, 1)
    whole(tmp_path / "t.jsonl")


@both
def test_while_a_summary_is_made(driver: Driver, tmp_path: Path) -> None:
    held, handle = Held(), Handle()
    reply = calls(call("quick", id="1"))
    context = Summarise(held, at_tokens=1, steps=1)
    with Cancelling(handle, held.asked):
        result = driver.run(model=Script(reply, reply, "done"), tools=[quick], hooks=[handle], context=context, trace=tmp_path / "t.jsonl")
    held.go.set()
    assert (result.reason, edges(result)[-1], result.steps, last_of(result).asked) == ("cancelled", "cancelled", 2, False)
    whole(tmp_path / "t.jsonl")


def agreeing(asked: threading.Event, go: threading.Event) -> Callable[[ApprovalRequest], bool]:
    def approve(request: ApprovalRequest) -> bool:
        asked.set()
        return go.wait(20)

    return approve


@pytest.mark.parametrize("way", ["run in a thread", "arun", "arun with an async person"])
def test_while_a_person_is_asked(way: str, tmp_path: Path) -> None:
    asked, go, handle = threading.Event(), threading.Event(), Handle()

    async def approve(request: ApprovalRequest) -> bool:
        asked.set()
        await asyncio.sleep(20)
        return True

    person: Any = approve if way == "arun with an async person" else agreeing(asked, go)
    options: dict[str, Any] = {"tools": [quick], "policy": "always", "approve": person, "hooks": [handle], "trace": tmp_path / "t.jsonl"}
    results: list[Result] = []
    model = Script(calls(call("quick"), call("quick", id="2")))

    def start() -> None:
        results.append((SYNC if way == "run in a thread" else ASYNC).run(model=model, **options))

    with Cancelling(handle, asked):
        thread = threading.Thread(target=start)
        thread.start()
        thread.join(20)
    go.set()
    (result,) = results
    assert (result.reason, edges(result)[-2:]) == ("cancelled", ["ask_approval", "cancelled_executing"])
    assert observed(result) == [[("quick", UNSTARTED, "cancelled")] * 2]
    whole(tmp_path / "t.jsonl")


@pytest.mark.parametrize("answer", [True, None], ids=["who then agrees", "who then says nothing"])
def test_while_a_person_types_in_the_main_thread(answer: bool | None, tmp_path: Path) -> None:
    """Nobody can be called away from a prompt but by Ctrl-C: the run is stopped when the person has answered, and no call is made."""
    handle = Handle()

    def approve(request: ApprovalRequest) -> bool | None:
        canceller = threading.Thread(target=handle.cancel)
        canceller.start()
        canceller.join()
        return answer

    model = Script(calls(call("quick")))
    result = SYNC.run(model=model, tools=[quick], policy="always", approve=approve, hooks=[handle], trace=tmp_path / "t.jsonl")
    assert (result.reason, observed(result)) == ("cancelled", [[("quick", UNSTARTED, "cancelled")]])
    whole(tmp_path / "t.jsonl")


# --- the task ------------------------------------------------------------------------------------------------------


def cancelled_task(begun: threading.Event, path: Path, **options: Any) -> Run:
    """Cancel a task that drives a run, as soon as that has begun something."""

    async def main() -> None:
        task = asyncio.create_task(arun("t", trace=path, protocol="function_calling", lang="en", **options))
        assert await asyncio.to_thread(begun.wait, 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled()

    asyncio.run(main())
    return whole(path)


def test_cancelling_the_task_while_tools_run_in_threads(tmp_path: Path) -> None:
    began, go = threading.Event(), threading.Event()

    @tool
    def slow() -> str:
        began.set()
        go.wait(20)
        return "too late"

    reply = calls(call("slow", id="1"), call("slow", id="2"))
    replayed = cancelled_task(began, tmp_path / "t.jsonl", model=Script(reply), tools=[slow])
    go.set()
    assert replayed.reason == "cancelled"
    assert [text for _, text, _ in observed(load(tmp_path / "t.jsonl"))[0]] == [UNKNOWN, UNKNOWN]


def test_cancelling_the_task_while_a_plain_model_is_asked_leaves_that_behind(tmp_path: Path) -> None:
    asked, go = threading.Event(), threading.Event()

    def model(messages: Sequence[Message]) -> str:
        asked.set()
        go.wait(20)
        return "too late"

    replayed = cancelled_task(asked, tmp_path / "t.jsonl", model=model)
    go.set()
    assert (replayed.reason, replayed.step) == ("cancelled", 1)


def test_cancelling_the_task_while_a_person_is_asked(tmp_path: Path) -> None:
    asked, go = threading.Event(), threading.Event()
    options: dict[str, Any] = {"tools": [quick], "policy": "always", "approve": agreeing(asked, go)}
    replayed = cancelled_task(asked, tmp_path / "t.jsonl", model=Script(calls(call("quick"))), **options)
    go.set()
    assert replayed.reason == "cancelled"
    assert observed(load(tmp_path / "t.jsonl")) == [[("quick", UNSTARTED, "cancelled")]]


def test_an_async_tool_may_tidy_up_when_the_task_is_cancelled(tmp_path: Path) -> None:
    began, tidied = threading.Event(), []

    @tool
    async def careful() -> str:
        began.set()
        try:
            await asyncio.sleep(20)
        finally:
            await asyncio.sleep(0.001)
            tidied.append("yes")
        return "never"

    reply = calls(call("careful", id="1"), call("careful", id="2"))
    cancelled_task(began, tmp_path / "t.jsonl", model=Script(reply), tools=[careful])
    assert tidied == ["yes", "yes"]


def test_an_async_tool_that_will_not_be_called_off_is_abandoned(tmp_path: Path) -> None:
    """By a batch, by a timeout, and by a deadline."""
    let_go = threading.Event()

    @tool(timeout_s=0.01)
    async def stubborn() -> str:
        while not let_go.is_set():
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)
        return "at last"

    async def main() -> Result:
        result = await arun("t", model=Script(calls(call("stubborn")), "done"), tools=[stubborn], protocol="function_calling", lang="en")
        let_go.set()
        return result

    result = asyncio.run(main())
    (((_, text, kind),),) = observed(result)
    assert (result.answer, kind) == ("done", "timeout")
    assert text.startswith("TOOL_ERROR: no result of stubborn after 0.")


@pytest.mark.parametrize("calls_it", ["began", "took"])
def test_whoever_awaits_the_run_is_not_cancelled_with_it(calls_it: str) -> None:
    """``Run.cancel`` ends what the driver waits for, and nothing of the task's that comes after it."""

    async def main() -> str:
        result = await arun("t", model=Script("FINAL done"), hooks=[Handle(calls_it, "model_replied" if calls_it == "took" else "")])
        await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        return result.reason

    assert asyncio.run(main()) == ("cancelled" if calls_it == "began" else "final_answer")


def test_a_timeout_around_a_run_still_works_when_the_run_was_cancelled(tmp_path: Path) -> None:
    model, handle = Held(), Handle()

    async def main() -> str:
        async with asyncio.timeout(20):
            result = await arun("t", model=model, hooks=[handle])
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await arun("t", model=Held(), trace=tmp_path / "t.jsonl")
        return result.reason

    with Cancelling(handle, model.asked):
        assert asyncio.run(main()) == "cancelled"
    assert whole(tmp_path / "t.jsonl").reason == "cancelled"


def test_a_run_that_is_cancelled_in_both_ways_raises(tmp_path: Path) -> None:
    handle = Handle()

    tasks: list[asyncio.Task[Result]] = []

    @tool
    async def slow() -> str:
        handle.cancel()
        tasks[0].cancel()
        await asyncio.sleep(20)
        return "never"

    async def main() -> None:
        task = asyncio.create_task(
            arun(
                "t",
                model=Script(calls(call("slow"))),
                tools=[slow],
                hooks=[handle],
                protocol="function_calling",
                trace=tmp_path / "t.jsonl",
            )
        )
        tasks.append(task)
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert whole(tmp_path / "t.jsonl").reason == "cancelled"


def test_a_model_that_will_not_be_called_off_is_heard(tmp_path: Path) -> None:
    """Its reply is taken; then the run is stopped, and its task is as good as before."""
    asked, handle = threading.Event(), Handle()

    async def model(messages: Sequence[Message]) -> Reply:
        asked.set()
        try:
            await asyncio.sleep(20)
        except asyncio.CancelledError:
            return calls(call("quick"))
        return Reply("never")

    async def main() -> Result:
        result = await arun("t", model=model, tools=[quick], hooks=[handle], protocol="function_calling", trace=tmp_path / "t.jsonl")
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        return result

    with Cancelling(handle, asked):
        result = asyncio.run(main())
    assert (result.reason, edges(result)) == ("cancelled", ["model_replied", "call_tools", "cancelled_executing"])
    whole(tmp_path / "t.jsonl")


# --- Ctrl-C --------------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("at", ["model", "tool", "one of several tools", "person", "summary", "adapter"])
def test_ctrl_c_raised_by_whoever_is_asked_is_recorded_and_raised(driver: Driver, at: str, tmp_path: Path) -> None:
    """As Ctrl-C comes where the main thread just is: in a model, a tool, or a prompt."""

    def interrupted(*_: object, **__: object) -> Any:
        raise KeyboardInterrupt

    class Interrupted(Script):
        ask = interrupted

        async def aask(self, *_: Any, **__: Any) -> Reply:
            raise KeyboardInterrupt

    @tool
    def stop() -> str:
        raise KeyboardInterrupt

    one, several = calls(call("stop")), calls(call("quick", id="1"), call("stop", id="2"), call("quick", id="3"))
    chosen: dict[str, dict[str, Any]] = {
        "model": {"model": interrupted},
        "adapter": {"model": Interrupted()},
        "tool": {"model": Script(one)},
        "one of several tools": {"model": Script(several)},
        "person": {"model": Script(one), "policy": "always", "approve": interrupted},
        "summary": {"model": Script(calls(call("quick")), calls(call("quick"))), "context": Summarise(Interrupted(), 1)},
    }
    with pytest.raises(KeyboardInterrupt):
        driver.run(tools=[quick, stop], max_parallel=1, trace=tmp_path / "t.jsonl", **chosen[at])
    assert whole(tmp_path / "t.jsonl").reason == "cancelled"
    seen = {"tool": [UNKNOWN], "one of several tools": ["quick", UNKNOWN, UNSTARTED], "person": [UNSTARTED], "summary": ["quick", "quick"]}
    assert [text for batch in observed(load(tmp_path / "t.jsonl")) for _, text, _ in batch] == seen.get(at, [])


ABANDONS = """
import asyncio, os, signal, sys, threading, time
from fsm_agent import Reply, Watcher, arun, run, tool
from fsm_agent.events import ToolRequest

@tool
def slow() -> str:
    went()
    time.sleep(60)
    return "too late"

@tool
async def waits() -> str:
    went()
    await asyncio.sleep(60)
    return "too late"

def went():
    print("began", flush=True)

def model(messages):
    {model}
    return Reply("", (ToolRequest("1", "{tool}", "{{}}"), ToolRequest("2", "{tool}", "{{}}")))

class Adapter(__import__("fsm_agent.models.base", fromlist=["x"]).ChatModel):
    name = "x"
    def ask(self, messages, tools=(), *, on_text=None):
        return model(messages)
    async def aask(self, messages, tools=(), *, on_text=None):
        return await asyncio.to_thread(model, messages)

def approve(request):
    {approve}
    return True

options = dict(model={asked}, tools=[slow, waits] if {awaits} else [slow], policy="{policy}", approve=approve,
               protocol="function_calling", trace={trace!r}, lang="en", hooks={hooks})
if {awaits}:
    asyncio.run(arun("t", **options))
else:
    run("t", **options)
"""


def interrupted_to_its_end(process: subprocess.Popen[str]) -> str:
    """Send Ctrl-C, and give what the process said to its end.

    Python may miss a signal that comes in the very moment in which its event loop goes to sleep, as it is not woken by it: not likely when
    a person presses keys, but here somebody waits for that moment.
    """
    for _ in range(3):
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=15)[1]  # what it is held up by takes a minute
    raise AssertionError("it did not end")


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C cannot be sent to a single process there")
@pytest.mark.parametrize(
    ("awaits", "held"),
    [
        (False, "tool"),
        (True, "tool"),
        (True, "async tool"),
        (True, "model"),
        (False, "hooked adapter"),
        (False, "person"),
        (True, "person"),
    ],
)
def test_ctrl_c_ends_the_process_at_once_and_no_thread_is_waited_for(awaits: bool, held: str, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    wait = "went(); time.sleep(60)"
    source = ABANDONS.format(
        model=wait if held in {"model", "hooked adapter"} else "pass",
        approve=wait if held == "person" else "pass",
        asked="Adapter()" if held == "hooked adapter" else "model",
        tool="waits" if held == "async tool" else "slow",
        policy="always" if held == "person" else "never",
        hooks="[Watcher()]" if held == "hooked adapter" else "[]",
        awaits=awaits,
        trace=str(path),
    )
    root = Path(__file__).parent.parent
    command = [sys.executable, "-c", textwrap.dedent(source)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=root) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("began")  # two calls may say so at once
        error = interrupted_to_its_end(process)
    assert error.rstrip().splitlines()[-1] == "KeyboardInterrupt"
    assert process.returncode == -signal.SIGINT
    replayed = whole(path)
    assert replayed.reason == "cancelled"
    kinds = [kind for batch in observed(load(path)) for _, _, kind in batch]
    assert kinds == ([] if held in {"model", "hooked adapter"} else ["cancelled", "cancelled"])


def test_a_signals_handler_may_cancel(tmp_path: Path) -> None:
    """As a service does on SIGTERM; the handler runs in the thread that drives."""
    handle = Handle()
    number = signal.SIGTERM
    before = signal.signal(number, lambda *_: handle.cancel())
    began = threading.Event()

    @tool
    def slow() -> str:
        began.set()
        threading.Event().wait(20)
        return "never"

    def kill() -> None:
        began.wait(20)
        signal.raise_signal(number)

    try:
        killer = threading.Thread(target=kill)
        killer.start()
        result = SYNC.run(model=Script(calls(call("slow"))), tools=[slow], hooks=[handle], trace=tmp_path / "t.jsonl")
        killer.join()
    finally:
        signal.signal(number, before)
    assert result.reason == "cancelled"
    whole(tmp_path / "t.jsonl")


# --- the text of an adapter that was left behind --------------------------------------------------------------------


def test_the_text_of_a_model_that_was_left_behind_is_not_shown(tmp_path: Path) -> None:
    asked, go, ended, handle = threading.Event(), threading.Event(), threading.Event(), Handle()
    shown: list[str] = []

    class Slow(Held):
        def ask(self, messages: Any, tools: Any = (), *, on_text: Any = None) -> Reply:
            on_text("one")
            asked.set()
            go.wait(20)
            try:
                on_text("two")
                on_text("three")
            finally:
                ended.set()
            return Reply("one two three")

    with Cancelling(handle, asked):
        result = SYNC.run(model=Slow(), hooks=[handle], on_text=shown.append)
    go.set()
    assert ended.wait(20)
    assert (result.reason, shown) == ("cancelled", ["one"])


# --- deadlines -----------------------------------------------------------------------------------------------------


@both
def test_a_deadline_ends_a_tool_that_would_not_end_by_itself(driver: Driver, tmp_path: Path) -> None:
    go = threading.Event()

    @tool
    def slow() -> str:
        go.wait(20)
        return "too late"

    guards = (*classic(), Deadline(0.05))
    result = driver.run(model=Script(calls(call("slow"), call("slow", id="2"))), tools=[slow], guards=guards, trace=tmp_path / "t.jsonl")
    go.set()
    assert result.reason == "deadline"
    assert [kind for _, _, kind in observed(result)[0]] == ["timeout", "timeout"]
    whole(tmp_path / "t.jsonl")


def test_runs_of_both_kinds_can_be_cancelled_from_one_thread() -> None:
    models = [Held(), Held()]
    handles = [Handle(), Handle()]
    results: list[Result] = []
    threads = [
        threading.Thread(target=lambda: results.append(run("t", model=models[0], hooks=[handles[0]]))),
        threading.Thread(target=lambda: results.append(asyncio.run(arun("t", model=models[1], hooks=[handles[1]])))),
    ]
    for thread in threads:
        thread.start()
    for model, handle in zip(models, handles, strict=True):
        soon(model.asked.is_set)
        handle.cancel()
        model.go.set()
    for thread in threads:
        thread.join(20)
    assert [result.reason for result in results] == ["cancelled", "cancelled"]
