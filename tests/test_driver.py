"""``run``: a model, tools and guards driven to the halt; Ctrl-C wherever it comes; and whatever a model may be."""

from __future__ import annotations

import asyncio
import re
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from fsm_agent import Message, Reply, Result, ScriptedModel, Tool, ToolError, classic, load, run, tool, verify
from fsm_agent.events import Cancelled, Fact, ModelFailed, ModelReplied, Observation, ToolRequest, ToolsReturned
from fsm_agent.guards import Guard, MaxSteps, Reading
from fsm_agent.language import language
from fsm_agent.machine import Run
from fsm_agent.outcome import message_of
from fsm_agent.protocols import RecordedProtocol
from fsm_agent.tools import add, mul, now

from .watching import Told


@pytest.fixture(autouse=True)
def _pythons_own_handler() -> Iterator[None]:
    """Test runners may set another handler for Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, "the run has to put the handler back"
    signal.signal(signal.SIGINT, before)


def interrupt() -> None:
    """Ctrl-C, as the system sends it."""
    signal.raise_signal(signal.SIGINT)


@tool
def boom() -> None:
    """Fail."""
    raise RuntimeError("boom")


def three_calls(*names: str) -> Reply:
    return Reply("", tuple(ToolRequest(str(n), name, "{}") for n, name in enumerate(names)))


def structured(*replies: Reply, tools: Sequence[Tool] = (), **options: Any) -> Result:
    return run("task", model=ScriptedModel(replies), tools=tools, protocol="recorded", lang="en", **options)


# --- a run and its result ----------------------------------------------------------------------------------------


def test_the_interface_that_is_promised() -> None:
    model = ScriptedModel(["TOOL add a=1,b=2", "FINAL 3"], then="TOOL add a=1,b={n}")
    result = run("task", model=model, tools=[add, mul, now], guards=classic(max_steps=6, max_repeats=2, max_errors=2))
    assert result.reason == "final_answer"
    assert (result.answer, result.message, result.model_calls, result.steps) == ("3", "3", 2, 2)
    assert [entry.edge for entry in result.trace.edges] == [
        "model_replied",
        "call_tools",
        "tools_returned",
        "go_on",
        "model_replied",
        "final_answer",
    ]


def test_guards_are_the_classic_ones_by_default() -> None:
    result = run("task", model=ScriptedModel(then="TOOL add a=1,b={n}"), tools=[add], lang="en")
    assert (result.reason, result.answer, result.model_calls) == ("max_steps", None, 10)
    assert result.message == "stopped: reached the cap of 10 steps, halted so that an endless loop cannot burn the budget"


def test_the_model_is_shown_the_whole_history_at_every_step() -> None:
    shown: list[list[tuple[str, str]]] = []
    script = ["TOOL add a=1,b=2", "hm", "TOOL sub a=1", "TOOL boom", "FINAL ok"]

    def model(messages: Sequence[Message]) -> str:
        shown.append([(message.role, message.content) for message in messages])
        return script[len(shown) - 1]

    run("task", model=model, tools=[add, boom], guards=classic(max_errors=9), lang="en")
    system, correction = shown[0][0][1], shown[2][-1][1]
    assert system.startswith("Solve the task.")
    assert correction.startswith("The reply cannot be parsed: a reply starts with TOOL or FINAL, this one with 'hm'.")
    history = [
        ("system", system),
        ("user", "task"),
        ("assistant", "TOOL add a=1,b=2"),
        ("tool", "3"),
        ("assistant", "hm"),
        ("user", correction),
        ("assistant", "TOOL sub a=1"),
        ("tool", "TOOL_ERROR: unknown tool sub"),
        ("assistant", "TOOL boom"),
        ("tool", "TOOL_ERROR: RuntimeError: boom"),
    ]
    assert shown == [history[:n] for n in (2, 4, 6, 8, 10)]


def test_a_model_that_keeps_the_messages_keeps_what_it_was_shown() -> None:
    kept: list[Sequence[Message]] = []
    script = ScriptedModel(["TOOL add a=1,b=2", "FINAL 3"])

    def model(messages: Sequence[Message]) -> str | Reply:
        kept.append(messages)
        return script(messages)

    run("task", model=model, tools=[add])
    assert [len(messages) for messages in kept] == [2, 4]
    assert list(kept[0]) == list(kept[1])[:2]


@pytest.mark.parametrize(
    "model",
    [
        ScriptedModel(["FINAL 1"]),
        ScriptedModel(["TOOL add a=1,b=2", "FINAL 3"]),
        ScriptedModel(["TOOL add a=1,b=2"] * 5),
        ScriptedModel(["?"] * 5),
        ScriptedModel(then="TOOL add a={n},b=1"),
        ScriptedModel(["TOOL add a=1,b=2"]),
    ],
)
def test_model_calls_are_the_calls_of_the_model(model: ScriptedModel) -> None:
    result = run("task", model=model, tools=[add])
    assert result.model_calls == result.steps == model.calls


def test_a_hook_sees_the_run_at_its_beginning_and_after_every_event() -> None:
    seen: list[tuple[str, int]] = []
    run(
        "task",
        model=ScriptedModel(["TOOL add a=1,b=2", "FINAL 3"]),
        tools=[add],
        hooks=[Told(lambda run: seen.append((run.state, run.step)))],
    )
    assert seen == [("Deciding", 0), ("Executing", 1), ("Deciding", 1), ("Halted", 2)]


def test_the_traceback_of_a_tool_is_on_record_and_not_in_the_history() -> None:
    result = run("task", model=ScriptedModel(["TOOL boom", "FINAL ok"]), tools=[boom])
    observation = next(event for event in result.trace.events if isinstance(event, ToolsReturned)).observations[0]
    assert observation.text == "TOOL_ERROR: RuntimeError: boom"
    assert 'raise RuntimeError("boom")' in (observation.traceback or "")


def test_what_models_and_tools_say_is_in_the_language_of_the_run() -> None:
    result = run("任务", model=ScriptedModel(["TOOL add a=三,b=四", "TOOL search q=天气"]), tools=[add], lang="zh")
    texts = [event.observations[0].text for event in result.trace.events if isinstance(event, ToolsReturned)]
    assert texts == ["TOOL_ERROR: add 的参数必须是整数，收到 a=三, b=四", "TOOL_ERROR: 未注册的工具 search"]
    assert result.message == "终止：连续 2 次工具调用失败，熔断退出"


# --- models, of any kind -----------------------------------------------------------------------------------------


class Unsayable(Exception):
    def __str__(self) -> str:
        raise ValueError


@pytest.mark.parametrize(
    ("error", "name", "message"),
    [
        (ConnectionError("refused"), "ConnectionError", "refused"),
        (ValueError(), "ValueError", ""),
        (OSError("\udcff"), "OSError", "\\udcff"),
        (Unsayable(), "Unsayable", "(its message raised ValueError)"),
        (RecursionError("deep"), "RecursionError", "deep"),
        (StopIteration(), "StopIteration", ""),
        (SystemExit(3), "SystemExit", "3"),
        (GeneratorExit(), "GeneratorExit", ""),
        (asyncio.CancelledError(), "CancelledError", ""),
    ],
)
def test_a_model_that_raises_halts_the_run_with_type_and_message(error: BaseException, name: str, message: str, tmp_path: Path) -> None:
    def model(messages: Sequence[Message]) -> str:
        raise error

    result = run("task", model=model, trace=tmp_path / "t.jsonl", lang="en")
    assert (result.reason, result.answer, result.model_calls) == ("model_error", None, 1)
    assert result.message == f"stopped: the model failed ({name}: {message})"
    last = result.trace.events[-1]
    assert isinstance(last, ModelFailed)
    assert (last.error, last.message) == (name, message)
    assert verify(load(tmp_path / "t.jsonl")).line is None


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (None, "the model returned NoneType; it must return text or a Reply"),
        (42, "the model returned int; it must return text or a Reply"),
        (b"FINAL 1", "the model returned bytes; it must return text or a Reply"),
        ({"role": "assistant"}, "the model returned dict; it must return text or a Reply"),
        (Reply(None), "the model returned a Reply that cannot be used: Expected `str`, got `null` - at `$.text`"),  # type: ignore[arg-type]
        (
            Reply("", ({"id": 1},)),  # type: ignore[arg-type]
            "the model returned a Reply that cannot be used: Expected `str`, got `int` - at `$.tool_calls[0].id`",
        ),
        (Reply("", model=object()), "the model returned a Reply that cannot be used: Encoding objects of type object is unsupported"),  # type: ignore[arg-type]
    ],
    ids=["None", "int", "bytes", "dict", "no text", "a wrong call", "an object"],
)
def test_a_model_that_returns_no_reply_has_failed(returned: Any, message: str) -> None:
    result = run("task", model=lambda messages: returned)
    assert next(event.message for event in result.trace.events if isinstance(event, ModelFailed)) == message
    assert result.reason == "model_error"


class Text(str):
    __slots__ = ()


@pytest.mark.parametrize(
    "returned", ["FINAL 1", Text("FINAL 1"), Reply("FINAL 1"), Reply("FINAL 1", finish_reason="stop", latency_s=0.5)], ids=repr
)
def test_a_model_returns_text_or_a_reply(returned: str | Reply, tmp_path: Path) -> None:
    result = run("task", model=lambda messages: returned, trace=tmp_path / "t.jsonl")
    assert (result.reason, result.answer) == ("final_answer", "1")
    assert load(tmp_path / "t.jsonl").log == result.trace.log


@pytest.mark.parametrize(
    "returned",
    ["FINAL \ud800", Reply("FINAL \ud800"), Reply("FINAL 1", (ToolRequest("\udc00", "a\ud800", '{"x": "\ud800"}'),), model="\ud800")],
    ids=["text", "a reply", "in all its fields"],
)
def test_text_that_no_file_can_hold_is_written_as_escapes(returned: str | Reply, tmp_path: Path) -> None:
    result = run("a \ud800 task", model=lambda messages: returned, trace=tmp_path / "t.jsonl")
    assert result.reason == "final_answer"
    assert result.trace.header.task == "a \\ud800 task"
    assert load(tmp_path / "t.jsonl").log == result.trace.log


def test_a_model_can_be_any_callable() -> None:
    class Model:
        def answer(self, messages: Sequence[Message]) -> str:
            return f"FINAL {len(messages)}"

    assert run("task", model=Model().answer).answer == "2"


class Plain(Guard):
    """A guard without attrs."""

    reason = "plain"

    def start(self) -> int:
        return 0

    def fold(self, memory: int, fact: Fact, step: int) -> int:
        return memory

    def judge(self, memory: int) -> Reading:
        return Reading(self.reason, 0, 1, trips=False)


# --- wrong use ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"tools": [add, add]}, ValueError, "two tools have the name 'add'; give one of them another with @tool(name=...)"),
        ({"tools": [len]}, TypeError, "<built-in function len> is not a tool; decorate the function with @tool"),
        ({"tools": ["add"]}, TypeError, "'add' is not a tool; decorate the function with @tool"),
        ({"protocol": "morse"}, ValueError, "protocol is 'morse'; known are "),
        ({"lang": "fr"}, ValueError, "lang is 'fr'; it must be one of en, zh"),
        ({"guards": MaxSteps(3)}, TypeError, "guards is one guard, MaxSteps(max_steps=3); it must be a tuple of guards"),
        ({"guards": "classic"}, TypeError, "guards is 'classic'; it must be a tuple of guards, such as classic()"),
        ({"guards": 3}, TypeError, "guards is 3; it must be a tuple of guards, such as classic()"),
        ({"guards": ["max_steps"]}, TypeError, "'max_steps' is not a guard; a guard is a subclass of Guard"),
        (
            {"guards": [MaxSteps]},
            TypeError,
            "<class 'fsm_agent.guards.classic.MaxSteps'> is not a guard; it is a class, and a guard is made by calling it",
        ),
        ({"guards": [Plain()]}, TypeError, "the guard Plain is not an attrs class; decorate it with @attrs.frozen"),
        ({"guards": (*classic(), *classic())}, ValueError, "RepeatedCall and RepeatedCall both halt with the reason 'repeated_call'"),
    ],
    ids=[
        *("two of one name", "a function", "a name", "protocol", "language"),
        *("one guard", "a name of guards", "a number", "a guard's name", "a guard's class", "a plain guard", "guards"),
    ],
)
def test_wrong_use_is_refused_before_the_model_is_asked(
    options: dict[str, Any], error: type[Exception], message: str, tmp_path: Path
) -> None:
    model = ScriptedModel(["FINAL 1"])
    with pytest.raises(error, match="^" + re.escape(message)):
        run("task", model=model, trace=tmp_path / "t.jsonl", **options)
    assert (model.calls, list(tmp_path.iterdir())) == (0, [])


@pytest.mark.parametrize("task", [None, 3, b"task", ["task"]])
def test_a_task_is_text(task: Any) -> None:
    with pytest.raises(TypeError, match=f"^{re.escape(f'task is {task!r}; it must be text')}$"):
        run(task, model=ScriptedModel(["FINAL 1"]))


def test_guards_may_come_as_any_iterable() -> None:
    given: Any = (guard for guard in classic(max_steps=1))
    assert run("task", model=ScriptedModel(then="?"), guards=given).reason == "max_steps"


def test_a_trace_that_cannot_be_written_is_an_error_before_the_model_is_asked(tmp_path: Path) -> None:
    model = ScriptedModel(["FINAL 1"])
    with pytest.raises(FileNotFoundError):
        run("task", model=model, trace=tmp_path / "no such folder" / "t.jsonl")
    assert model.calls == 0


def test_a_protocol_can_be_given_as_such() -> None:
    result = run("task", model=ScriptedModel([Reply("42", taken_as="answer")]), protocol=RecordedProtocol(language("zh")))
    assert (result.answer, result.trace.header.protocol, result.trace.header.lang) == ("42", "recorded", "zh")


# --- Ctrl-C ------------------------------------------------------------------------------------------------------


def cancelled(start: Callable[[Path], object], folder: Path) -> tuple[list[str], Cancelled, Run]:
    """The edges of a run that ended with ``KeyboardInterrupt``, its last event, and the run as its trace replays it."""
    path = folder / "t.jsonl"
    with pytest.raises(KeyboardInterrupt):
        start(path)
    trace = load(path)
    verdict = verify(trace)
    assert (verdict.line, trace.cut_off, verdict.run.reason) == (None, False, "cancelled")
    assert verdict.run.log == trace.log
    last = trace.events[-1]
    assert isinstance(last, Cancelled)
    return [taken.edge for taken in trace.edges], last, verdict.run


def test_ctrl_c_in_the_model(tmp_path: Path) -> None:
    def model(messages: Sequence[Message]) -> str:
        interrupt()
        raise AssertionError("it was to be interrupted")

    edges, last, replayed = cancelled(lambda path: run("task", model=model, trace=path), tmp_path)
    assert edges == ["cancelled"]
    assert (last.observations, replayed.step) == ((), 1)
    assert message_of(replayed, language("en")) == "stopped: cancelled by the user"


def test_ctrl_c_in_the_second_of_three_calls_leaves_an_observation_of_each(tmp_path: Path) -> None:
    made: list[str] = []
    held = threading.Event()

    @tool
    def first() -> str:
        made.append("first")
        return "done"

    @tool
    def second() -> str:
        made.append("second")
        interrupt()
        held.wait(20)
        return "never"

    @tool
    def third() -> str:
        made.append("third")
        return "never"

    def start(path: Path) -> object:
        return structured(three_calls("first", "second", "third"), tools=[first, second, third], trace=path, max_parallel=1)

    edges, last, replayed = cancelled(start, tmp_path)
    assert made == ["first", "second"]
    assert edges == ["model_replied", "call_tools", "cancelled_executing"]
    unknown, unstarted = "cancelled by the user; its outcome is unknown", "cancelled by the user; it was not started"
    assert last.observations == (
        Observation("first", "done"),
        Observation("second", unknown, "cancelled"),
        Observation("third", unstarted, "cancelled"),
    )
    held.set()
    assert [(message.tool_call_id, message.content) for message in replayed.history if message.role == "tool"] == [
        ("0", "done"),
        ("1", unknown),
        ("2", unstarted),
    ]


@pytest.mark.parametrize("at", [0, 1, 2])
def test_ctrl_c_between_the_effects_waits_for_the_next_one(at: int, tmp_path: Path) -> None:
    """The hook runs where the record is written: nothing may be interrupted there."""
    hooked: list[str] = []

    def hook(machine: Run) -> None:
        if len(hooked) == at:
            interrupt()
        hooked.append(machine.state)

    model = ScriptedModel(["TOOL add a=1,b=2", "FINAL 3"])
    edges, last, replayed = cancelled(lambda path: run("task", model=model, tools=[add], trace=path, hooks=[Told(hook)]), tmp_path)
    assert hooked == [*["Deciding", "Executing", "Deciding"][: at + 1], "Halted"]
    assert (
        edges
        == [
            ["cancelled"],
            ["model_replied", "call_tools", "cancelled_executing"],
            ["model_replied", "call_tools", "tools_returned", "go_on", "cancelled"],
        ][at]
    )
    assert model.calls == (at + 1) // 2
    assert [observation.kind for observation in last.observations] == ["cancelled"] * (at == 1)
    assert (last.asked, replayed.step) == (at == 1, model.calls)


def test_ctrl_c_after_the_halt_is_not_lost_and_the_halt_stands(tmp_path: Path) -> None:
    def hook(machine: Run) -> None:
        if machine.reason is not None:
            interrupt()

    with pytest.raises(KeyboardInterrupt):
        run("task", model=ScriptedModel(["FINAL 3"]), trace=tmp_path / "t.jsonl", hooks=[Told(hook)])
    verdict = verify(load(tmp_path / "t.jsonl"))
    assert (verdict.line, verdict.run.reason) == (None, "final_answer")


def test_a_second_ctrl_c_while_the_first_is_recorded_changes_nothing(tmp_path: Path) -> None:
    def model(messages: Sequence[Message]) -> str:
        interrupt()
        return "never"

    edges, _, _ = cancelled(
        lambda path: run("task", model=model, trace=path, hooks=[Told(lambda machine: interrupt() if machine.reason else None)]), tmp_path
    )
    assert edges == ["cancelled"]


def test_a_tool_may_clean_up_after_ctrl_c(tmp_path: Path) -> None:
    cleaned: list[str] = []

    @tool
    def careful() -> str:
        try:
            interrupt()
        finally:
            cleaned.append("yes")
        return "never"

    cancelled(lambda path: run("task", model=ScriptedModel(["TOOL careful"]), tools=[careful], trace=path), tmp_path)
    assert cleaned == ["yes"]


def test_ctrl_c_in_a_run_within_a_tool_stops_both(tmp_path: Path) -> None:
    @tool
    def slow() -> str:
        interrupt()
        return "never"

    @tool
    def delegate() -> str:
        hooked = tmp_path / "inner.jsonl"
        return run("inner", model=ScriptedModel(["TOOL slow"]), tools=[slow], trace=hooked).message

    edges, last, _ = cancelled(lambda path: run("outer", model=ScriptedModel(["TOOL delegate"]), tools=[delegate], trace=path), tmp_path)
    assert edges == ["model_replied", "call_tools", "cancelled_executing"]
    assert [observation.kind for observation in last.observations] == ["cancelled"]
    inner = load(tmp_path / "inner.jsonl")
    assert (verify(inner).line, verify(inner).run.reason) == (None, "cancelled")


def test_a_run_within_a_tool_is_not_interrupted_between_its_effects(tmp_path: Path) -> None:
    def hook(machine: Run) -> None:
        if machine.state == "Executing":
            interrupt()

    @tool
    def delegate() -> str:
        return run(
            "inner", model=ScriptedModel(["TOOL add a=1,b=2"]), tools=[add], trace=tmp_path / "inner.jsonl", hooks=[Told(hook)]
        ).message

    cancelled(lambda path: run("outer", model=ScriptedModel(["TOOL delegate"]), tools=[delegate], trace=path), tmp_path)
    assert [taken.edge for taken in load(tmp_path / "inner.jsonl").edges] == ["model_replied", "call_tools", "cancelled_executing"]


def test_someone_elses_handler_is_left_alone() -> None:
    caught: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: caught.append(number))
    try:

        def model(messages: Sequence[Message]) -> str:
            interrupt()
            return "FINAL went on"

        assert run("task", model=model).answer == "went on"
        assert caught == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_run_in_another_thread_needs_no_signals() -> None:
    results: list[Result] = []
    thread = threading.Thread(target=lambda: results.append(run("task", model=ScriptedModel(["FINAL 1"]))))
    thread.start()
    thread.join()
    assert [result.answer for result in results] == ["1"]


def test_the_interrupt_can_be_raised_by_the_model_or_a_tool_itself(tmp_path: Path) -> None:
    @tool
    def stop() -> None:
        raise KeyboardInterrupt

    edges, _, _ = cancelled(lambda path: run("task", model=ScriptedModel(["TOOL stop"]), tools=[stop], trace=path), tmp_path)
    assert edges[-1] == "cancelled_executing"


def test_a_failed_call_of_a_batch_does_not_stop_the_others() -> None:
    @tool
    def refuse() -> None:
        raise ToolError("no")

    result = structured(three_calls("now", "refuse", "no_such"), Reply("ok", taken_as="answer"), tools=[now, refuse])
    returned = [event for event in result.trace.events if isinstance(event, ToolsReturned)]
    assert [observation.kind for observation in returned[0].observations] == ["ok", "tool_error", "unknown_tool"]
    assert result.reason == "final_answer"
    assert isinstance(result.trace.events[0], ModelReplied)
