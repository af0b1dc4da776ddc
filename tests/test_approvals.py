"""A person agrees to a call before it is made, denies it, changes it, or lets the run wait: nothing is made that nobody agreed to."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from fsm_agent import Approval, ApprovalRequest, Message, Reply, Result, Tool, ToolCall, aresume, arun, load, resume, run, tool
from fsm_agent.events import ApprovalAsked, ApprovalGiven
from fsm_agent.machine import Run
from tests.driving import ASYNC, SYNC, Driver, Script, both, call, calls, edges, observed, whole


class World:
    """Tools whose effects can be counted."""

    def __init__(self) -> None:
        self.deleted: list[str] = []
        self.read: list[str] = []
        self.tools: list[Tool] = [
            tool(name="delete", side_effects=True)(self._delete),
            tool(name="read")(self._read),
        ]

    def _delete(self, path: str, force: bool = False) -> str:
        self.deleted.append(f"{path}!" if force else path)
        return f"deleted {path}"

    def _read(self, path: str) -> str:
        self.read.append(path)
        return f"content of {path}"


def delete(path: str, id: str = "call_1") -> Any:  # noqa: A002  # as the field
    return call("delete", f'{{"path": "{path}"}}', id)


def read(path: str, id: str = "call_2") -> Any:  # noqa: A002  # as above
    return call("read", f'{{"path": "{path}"}}', id)


def approvals(result: Result) -> list[tuple[str, str]]:
    return [(each.verdict, each.words) for event in result.trace.events if isinstance(event, ApprovalGiven) for each in event.approvals]


ASKED = ["model_replied", "call_tools", "ask_approval", "approval_given", "tools_returned", "go_on", "model_replied", "final_answer"]
UNASKED = ["model_replied", "call_tools", "tools_returned", "go_on", "model_replied", "final_answer"]


# --- what a person says --------------------------------------------------------------------------------------------


@both
def test_a_yes_makes_the_call(driver: Driver, tmp_path: Path) -> None:
    world, asked = World(), []

    def approve(request: ApprovalRequest) -> bool:
        asked.append(request)
        assert world.deleted == []
        return True

    model = Script(calls(delete("a"), text="I clean up."), "done")
    result = driver.run(task="Clean up.", model=model, tools=world.tools, approve=approve, trace=tmp_path / "t.jsonl")
    assert (result.reason, edges(result), world.deleted) == ("final_answer", ASKED, ["a"])
    (request,) = asked
    key = f"{result.trace.header.id}/1/1"
    assert request == ApprovalRequest(ToolCall("delete", {"path": "a"}, "call_1", key), world.tools[0], "I clean up.", "Clean up.", 1)
    assert observed(result) == [[("delete", "deleted a", "ok")]]
    whole(tmp_path / "t.jsonl")


@both
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (False, "denied by a person"),
        (Approval("no"), "denied by a person"),
        (Approval("no", "that file is mine"), "denied by a person: that file is mine"),
    ],
    ids=["False", "no", "no, and why"],
)
def test_a_no_is_an_observation_with_the_persons_words(driver: Driver, answer: Any, told: str, tmp_path: Path) -> None:
    world = World()
    model = Script(calls(delete("a")), "done")
    result = driver.run(model=model, tools=world.tools, approve=lambda _: answer, trace=tmp_path / "t.jsonl")
    assert (result.reason, world.deleted) == ("final_answer", [])
    assert observed(result) == [[("delete", told, "denied")]]
    assert model.asked[1][-1] == Message("tool", told, (), "delete", "call_1")
    whole(tmp_path / "t.jsonl")


@both
def test_an_edit_is_what_the_tool_gets_and_what_the_model_is_told(driver: Driver, tmp_path: Path) -> None:
    world = World()
    model = Script(calls(delete("a")), "done")
    arguments = {"path": "b", "force": True}
    result = driver.run(model=model, tools=world.tools, approve=lambda _: Approval("edit", arguments=arguments), trace=tmp_path / "t.jsonl")
    assert world.deleted == ["b!"]
    told = "(a person changed the call; it was made as delete{path=b, force=true})\ndeleted b"
    assert model.asked[1][-1] == Message("tool", told, (), "delete", "call_1")
    assert observed(result) == [[("delete", "deleted b", "ok")]]
    arguments["path"] = "c"  # what a person does later to what was said is nothing to the record
    assert result.trace.replay().history == whole(tmp_path / "t.jsonl").history


@both
def test_an_edit_that_the_tool_does_not_take_is_an_error_that_the_model_reads(driver: Driver) -> None:
    world = World()
    model = Script(calls(delete("a")), "done")
    result = driver.run(model=model, tools=world.tools, approve=lambda _: Approval("edit", arguments={"paht": "b"}))
    (((_, text, kind),),) = observed(result)
    assert (kind, world.deleted) == ("bad_arguments", [])
    assert text.startswith("TOOL_ERROR: delete has no parameter paht")


@both
def test_none_lets_the_run_wait(driver: Driver, tmp_path: Path) -> None:
    world = World()
    model = Script(calls(delete("a"), read("b")))
    result = driver.run(model=model, tools=world.tools, approve=lambda _: None, trace=tmp_path / "t.jsonl")
    assert (result.reason, result.answer, result.steps) == ("awaiting_approval", None, 1)
    assert result.message == "waits for a person to agree to delete{path=a}"
    assert result.awaiting == (ToolCall("delete", {"path": "a"}, "call_1", f"{result.trace.header.id}/1/1"),)
    assert (world.deleted, world.read) == ([], [])
    assert edges(result) == ["model_replied", "call_tools", "ask_approval"]
    assert whole(tmp_path / "t.jsonl").state == "Executing"


@both
def test_an_async_approver_is_awaited_or_refused(driver: Driver) -> None:
    world = World()

    async def approve(request: ApprovalRequest) -> bool:
        await asyncio.sleep(0)
        return True

    options: dict[str, Any] = {"model": Script(calls(delete("a")), "done"), "tools": world.tools, "approve": approve}
    if driver.awaits:
        assert edges(driver.run(**options)) == ASKED
        assert world.deleted == ["a"]
    else:
        with pytest.raises(TypeError, match=r"^approve is async; run it with arun$"):
            driver.run(**options)


@both
def test_a_function_that_gives_an_awaitable_is_awaited_or_refused(driver: Driver) -> None:
    """Nothing tells beforehand that it will."""
    world = World()

    async def later() -> bool:
        return True

    options: dict[str, Any] = {"model": Script(calls(delete("a")), "done"), "tools": world.tools, "approve": lambda _: later()}
    if driver.awaits:
        assert edges(driver.run(**options)) == ASKED
    else:
        with pytest.raises(TypeError, match=r"is no answer to an approval request"):
            driver.run(**options)


@both
def test_an_approver_that_raises_breaks_the_run_off_and_the_record_is_whole(driver: Driver, tmp_path: Path) -> None:
    class Gone(Exception):
        pass

    def approve(request: ApprovalRequest) -> bool:
        raise Gone

    world, path = World(), tmp_path / "t.jsonl"
    with pytest.raises(Gone):
        driver.run(model=Script(calls(delete("a"))), tools=world.tools, approve=approve, trace=path)
    assert world.deleted == []
    assert [taken.edge for taken in load(path).edges] == ["model_replied", "call_tools", "ask_approval"]
    assert whole(path).state == "Executing"
    result = driver.resume(path, True, model=Script("done"), tools=world.tools)
    assert (result.reason, world.deleted) == ("final_answer", ["a"])


@both
@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("yes", "'yes' is no answer to an approval request; it must be an Approval, True, False, or None for none yet"),
        (1, "1 is no answer to an approval request; it must be an Approval, True, False, or None for none yet"),
        (Approval("nope"), "the verdict of an approval is 'nope'; it must be one of yes, no, edit"),  # type: ignore[arg-type]  # on purpose
        (Approval("no", None), "the words of an approval are None; they must be text"),  # type: ignore[arg-type]  # on purpose
        (Approval("edit"), "an approval with the verdict 'edit' needs the arguments to call the tool with"),
        (Approval("edit", arguments={"path": object()}), "an approval's arguments must be a JSON object: "),
        (Approval("edit", arguments=["a"]), "an approval's arguments must be a JSON object: "),  # type: ignore[arg-type]  # on purpose
    ],
    ids=["text", "a number", "another verdict", "no words", "no arguments", "no JSON", "a list"],
)
def test_what_is_no_answer_is_refused_in_one_line_and_nothing_is_made(driver: Driver, answer: Any, problem: str) -> None:
    world = World()
    with pytest.raises((TypeError, ValueError)) as caught:
        driver.run(model=Script(calls(delete("a"))), tools=world.tools, approve=lambda _: answer)
    assert str(caught.value).startswith(problem)
    assert "\n" not in str(caught.value)
    assert world.deleted == []


@both
def test_words_that_no_file_can_hold_are_written_as_escapes(driver: Driver, tmp_path: Path) -> None:
    world = World()
    driver.run(
        model=Script(calls(delete("a")), "done"), tools=world.tools, approve=lambda _: Approval("no", "\ud800"), trace=tmp_path / "t.jsonl"
    )
    assert approvals_of(tmp_path / "t.jsonl") == [("no", "\\ud800")]


def approvals_of(path: Path) -> list[tuple[str, str]]:
    return [(each.verdict, each.words) for event in load(path).events if isinstance(event, ApprovalGiven) for each in event.approvals]


# --- several calls of one reply ------------------------------------------------------------------------------------


@both
def test_of_several_calls_those_with_side_effects_are_asked_about_one_by_one(driver: Driver, tmp_path: Path) -> None:
    world = World()
    said = {"a": True, "c": Approval("no", "keep it"), "d": Approval("edit", arguments={"path": "e"})}
    asked: list[str] = []

    def approve(request: ApprovalRequest) -> Any:
        asked.append(str(request.call))
        return said[request.call.arguments["path"]]

    reply = calls(delete("a", "1"), read("b", "2"), delete("c", "3"), delete("d", "4"), call("unknown", id="5"))
    result = driver.run(model=Script(reply, "done"), tools=world.tools, approve=approve, trace=tmp_path / "t.jsonl")
    assert asked == ["delete{path=a}", "delete{path=c}", "delete{path=d}"]
    assert [event.calls for event in result.trace.events if isinstance(event, ApprovalAsked)] == [(0, 2, 3)]
    assert observed(result) == [
        [
            ("delete", "deleted a", "ok"),
            ("read", "content of b", "ok"),
            ("delete", "denied by a person: keep it", "denied"),
            ("delete", "deleted e", "ok"),
            ("unknown", "TOOL_ERROR: unknown tool unknown", "unknown_tool"),
        ]
    ]
    assert (sorted(world.deleted), world.read) == (["a", "e"], ["b"])
    whole(tmp_path / "t.jsonl")


@both
def test_one_none_lets_all_calls_of_the_reply_wait(driver: Driver) -> None:
    world = World()
    reply = calls(delete("a", "1"), delete("b", "2"))
    result = driver.run(
        model=Script(reply), tools=world.tools, approve=lambda request: True if request.call.arguments["path"] == "a" else None
    )
    assert (result.reason, [str(each) for each in result.awaiting], world.deleted) == (
        "awaiting_approval",
        ["delete{path=a}", "delete{path=b}"],
        [],
    )


@both
def test_a_call_that_cannot_be_made_is_not_asked_about(driver: Driver) -> None:
    """A person shall not agree to what the tool would refuse anyway; nor does a policy have to reckon with it."""
    world = World()
    asked: list[str] = []

    def policy(made: ToolCall) -> bool:
        return bool(made.arguments["path"])  # which raises where there is none

    def approve(request: ApprovalRequest) -> bool:
        asked.append(str(request.call))
        return True

    reply = calls(call("delete", '{"paht": "a"}', "1"), call("no_such", '{"path": "a"}', "2"), delete("b", "3"))
    result = driver.run(model=Script(reply, "done"), tools=world.tools, policy=policy, approve=approve)
    assert asked == ["delete{path=b}"]
    assert [kind for _, _, kind in observed(result)[0]] == ["bad_arguments", "unknown_tool", "ok"]


# --- policies ------------------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize(
    ("policy", "asked"),
    [
        ("side_effects", ["delete{path=a}"]),
        ("always", ["delete{path=a}", "read{path=b}"]),
        ("never", []),
        (("read",), ["read{path=b}"]),
        ({"read", "delete"}, ["delete{path=a}", "read{path=b}"]),
        ((), []),
        (lambda call: call.arguments["path"] == "b", ["read{path=b}"]),
        (lambda call: call.arguments["path"].startswith("/etc"), []),
    ],
    ids=["side_effects", "always", "never", "a name", "names", "no names", "a predicate", "a predicate that never holds"],
)
def test_a_policy_says_which_calls_are_asked_about(driver: Driver, policy: Any, asked: list[str]) -> None:
    world, seen = World(), []

    def approve(request: ApprovalRequest) -> bool:
        seen.append(str(request.call))
        return True

    model = Script(calls(delete("a"), read("b")), "done")
    result = driver.run(model=model, tools=world.tools, policy=policy, approve=approve)
    assert seen == asked
    assert edges(result) == (ASKED if asked else UNASKED)
    assert (world.deleted, world.read) == (["a"], ["b"])


@both
@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        (
            "sometimes",
            "policy is 'sometimes'; it must be one of side_effects, always, never, a list of tools' names, or a function of a call",
        ),
        (5, "policy is 5; it must be one of side_effects, always, never, a list of tools' names, or a function of a call"),
        (("delte", "read"), "policy names the tool 'delte', which is not there; the tools are delete, read"),
        ((1,), "policy is (1,); it must be one of side_effects, always, never, a list of tools' names, or a function of a call"),
    ],
)
def test_what_is_no_policy_is_refused_before_the_model_is_asked(driver: Driver, policy: Any, problem: str) -> None:
    model = Script()
    with pytest.raises((TypeError, ValueError)) as caught:
        driver.run(model=model, tools=World().tools, policy=policy)
    assert (str(caught.value), model.asked) == (problem, [])


@both
def test_an_async_policy_is_refused(driver: Driver) -> None:
    async def policy(made: ToolCall) -> bool:
        return False

    with pytest.raises(TypeError, match=r"^policy is <function .*>; it must be one of "):
        driver.run(model=Script(), policy=policy)


@both
@pytest.mark.parametrize("approve", [True, "ask", {}])
def test_who_is_no_function_cannot_be_asked(driver: Driver, approve: Any) -> None:
    with pytest.raises(TypeError, match=r"^approve is .*; it must be a function of an ApprovalRequest$"):
        driver.run(model=Script(), approve=approve)


@both
def test_a_policy_that_raises_breaks_the_run_off_and_nothing_is_made(driver: Driver, tmp_path: Path) -> None:
    world = World()

    def policy(made: ToolCall) -> bool:
        raise KeyError("who knows")

    with pytest.raises(KeyError, match="who knows"):
        driver.run(model=Script(calls(delete("a"))), tools=world.tools, policy=policy, trace=tmp_path / "t.jsonl")
    assert world.deleted == []
    assert whole(tmp_path / "t.jsonl").state == "Executing"


def test_a_run_that_never_asks_has_no_edge_for_it() -> None:
    choices: list[dict[str, Any]] = [{"policy": "never", "tools": World().tools}, {"tools": World().tools[1:]}]
    for options in choices:
        result = SYNC.run(model=Script("done"), **options)
        assert not result.trace.header.options.approvals


# --- waiting, and going on -----------------------------------------------------------------------------------------


def suspended(driver: Driver, path: Path | None, *requests: Any) -> tuple[World, Result]:
    """A run that waits for a person."""
    world = World()
    result = driver.run(
        model=Script(calls(*(requests or (delete("a", "1"), read("b", "2"), delete("c", "3"))))), tools=world.tools, trace=path
    )
    assert result.reason == "awaiting_approval"
    return world, result


@both
@pytest.mark.parametrize("in_file", [True, False], ids=["file", "trace"])
def test_a_run_that_waits_is_gone_on_with_and_nothing_is_asked_or_made_again(driver: Driver, in_file: bool, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl" if in_file else None
    world, waits = suspended(driver, path)
    assert [str(each) for each in waits.awaiting] == ["delete{path=a}", "delete{path=c}"]
    model = Script("done")
    result = driver.resume(path or waits.trace, True, model=model, tools=world.tools)
    assert (result.reason, result.answer, result.steps, result.awaiting) == ("final_answer", "done", 2, ())
    assert (sorted(world.deleted), world.read, len(model.asked)) == (["a", "c"], ["b"], 1)
    assert edges(result) == ASKED
    assert result.trace.header == waits.trace.header
    if path is not None:
        assert whole(path).log == result.trace.log
    assert len(waits.trace.log) < len(result.trace.log), "the result that waited is as it was"


@both
def test_each_call_is_answered_by_its_key(driver: Driver, tmp_path: Path) -> None:
    world, waits = suspended(driver, tmp_path / "t.jsonl")
    first, second = (each.key for each in waits.awaiting)
    answers: Mapping[str, Any] = {second: Approval("edit", arguments={"path": "d"}), first: False}
    result = driver.resume(tmp_path / "t.jsonl", answers, model=Script("done"), tools=world.tools)
    assert [(text, kind) for _, text, kind in observed(result)[0]] == [
        ("denied by a person", "denied"),
        ("content of b", "ok"),
        ("deleted d", "ok"),
    ]
    assert world.deleted == ["d"]


@both
def test_answers_for_some_of_the_calls_let_the_run_wait_on(driver: Driver, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    world, waits = suspended(driver, path)
    before = path.read_bytes()
    first, second = (each.key for each in waits.awaiting)
    again = driver.resume(path, {first: True}, model=Script(), tools=world.tools)
    assert (again.reason, again.awaiting, world.deleted) == ("awaiting_approval", waits.awaiting, [])
    assert path.read_bytes() == before
    result = driver.resume(path, {first: True, second: True}, model=Script("done"), tools=world.tools)
    assert (result.reason, sorted(world.deleted)) == ("final_answer", ["a", "c"])


@both
def test_without_an_answer_the_run_still_waits(driver: Driver, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    world, waits = suspended(driver, path)
    before = path.read_bytes()
    again = driver.resume(path, model=Script(), tools=world.tools)
    assert (again.reason, again.awaiting, again.message) == ("awaiting_approval", waits.awaiting, waits.message)
    assert path.read_bytes() == before


@both
def test_a_key_that_no_call_has_is_refused(driver: Driver, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    world, waits = suspended(driver, path, delete("a"))
    (waiting,) = waits.awaiting
    with pytest.raises(ValueError, match=rf"^no call with the key 'x/1/1' waits for an approval; {waiting.key} does$"):
        driver.resume(path, {waiting.key: True, "x/1/1": True}, model=Script(), tools=world.tools)
    assert world.deleted == []
    done = driver.resume(path, {waiting.key: True}, model=Script("done"), tools=world.tools)
    assert done.answer == "done"
    with pytest.raises(ValueError, match=r"waits for an approval; none does$"):
        driver.resume(path, {waiting.key: True}, model=Script(), tools=world.tools)


@both
def test_a_function_is_asked_about_what_waits_and_about_what_comes_later(driver: Driver, tmp_path: Path) -> None:
    world, _ = suspended(driver, tmp_path / "t.jsonl", delete("a"))
    asked: list[tuple[int, str]] = []

    def approve(request: ApprovalRequest) -> bool:
        asked.append((request.step, str(request.call)))
        return True

    result = driver.resume(tmp_path / "t.jsonl", approve, model=Script(calls(delete("b")), "done"), tools=world.tools)
    assert asked == [(1, "delete{path=a}"), (2, "delete{path=b}")]
    assert (result.answer, world.deleted) == ("done", ["a", "b"])
    whole(tmp_path / "t.jsonl")


@both
def test_answers_by_key_leave_a_later_question_open(driver: Driver, tmp_path: Path) -> None:
    world, waits = suspended(driver, tmp_path / "t.jsonl", delete("a"))
    again = driver.resume(tmp_path / "t.jsonl", {waits.awaiting[0].key: True}, model=Script(calls(delete("b"))), tools=world.tools)
    assert (again.reason, [each.key for each in again.awaiting]) == ("awaiting_approval", [f"{again.trace.header.id}/2/1"])
    result = driver.resume(tmp_path / "t.jsonl", True, model=Script("done"), tools=world.tools)
    assert (result.steps, world.deleted) == (3, ["a", "b"])
    whole(tmp_path / "t.jsonl")


@both
@pytest.mark.parametrize("answer", ["yes", Approval("maybe")], ids=["text", "another verdict"])  # type: ignore[arg-type]  # on purpose
def test_what_is_no_answer_is_refused_before_anything_is_made(driver: Driver, answer: Any, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    world, _ = suspended(driver, path)
    before = path.read_bytes()
    with pytest.raises((TypeError, ValueError)):
        driver.resume(path, answer, model=Script(), tools=world.tools)
    assert (world.deleted, path.read_bytes()) == ([], before)


OTHER = """
    import sys
    from fsm_agent import {imports}, tool

    @tool(side_effects=True)
    def delete(path: str, force: bool = False) -> str:
        with open({effects!r}, "a") as file:
            file.write(path)
        return "deleted " + path

    @tool
    def read(path: str) -> str:
        return "content of " + path

    def model(messages):
        print(messages[-1].content, len(messages))
        return "FINAL done"

    {statement}
"""


@both
def test_a_run_that_waits_is_gone_on_with_in_another_process(driver: Driver, tmp_path: Path) -> None:
    path, effects = tmp_path / "t.jsonl", tmp_path / "effects"
    world = World()
    waits = driver.run(model=lambda messages: 'TOOL delete path="a"', tools=world.tools, trace=path, protocol="line")
    assert waits.reason == "awaiting_approval"
    call_it = f"resume({str(path)!r}, {{{waits.awaiting[0].key!r}: True}}, model=model, tools=[delete, read])"
    statement = f"import asyncio; result = asyncio.run(a{call_it})" if driver.awaits else f"result = {call_it}"
    source = OTHER.format(imports="aresume" if driver.awaits else "resume", effects=str(effects), statement=statement)
    source = textwrap.dedent(source) + "\nprint(result.reason, result.answer, result.steps)\n"
    root = Path(__file__).parent.parent
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60, cwd=root, check=False)
    assert (done.stderr, done.stdout.splitlines()[-1]) == ("", "final_answer done 2")
    assert (effects.read_text(), world.deleted) == ("a", [])
    assert edges(load(path)) == ASKED
    assert whole(path).reason == "final_answer"


def test_either_driver_goes_on_with_a_run_of_the_other(tmp_path: Path) -> None:
    told = []
    for first, second in ((SYNC, ASYNC), (ASYNC, SYNC)):
        path = tmp_path / f"{first}.jsonl"
        world, _ = suspended(first, path)
        result = second.resume(path, True, model=Script("done"), tools=world.tools)
        whole(path)
        told.append((edges(result), observed(result), sorted(world.deleted)))
    assert told[0] == told[1]


# --- hooks, threads ------------------------------------------------------------------------------------------------


def test_a_plain_approver_holds_up_no_other_task() -> None:
    """Under ``arun`` it is asked in a thread."""
    world, released = World(), threading.Event()

    async def main() -> Result:
        def approve(request: ApprovalRequest) -> bool:
            return released.wait(20)

        task = asyncio.create_task(
            arun("t", model=Script(calls(delete("a")), "done"), tools=world.tools, approve=approve, protocol="function_calling")
        )
        await asyncio.sleep(0)
        released.set()
        return await task

    assert asyncio.run(main()).answer == "done"
    assert world.deleted == ["a"]


@both
def test_a_hook_sees_the_question_before_the_person_does(driver: Driver) -> None:
    world, happened = World(), []

    def approve(request: ApprovalRequest) -> bool:
        happened.append("asked")
        return True

    def hook(run: Run, taken: Any) -> None:
        happened.append(taken.edge)

    driver.run(model=Script(calls(delete("a")), "done"), tools=world.tools, approve=approve, hooks=[hook])
    assert happened == [*ASKED[:3], "asked", *ASKED[3:]]


def test_the_interface_that_is_promised(tmp_path: Path) -> None:
    """As the README tells it."""
    world = World()
    model: Callable[..., Any] = Script(calls(delete("a")), Reply("done"))
    waits = run("Clean up.", model=model, tools=world.tools, trace=tmp_path / "t.jsonl", protocol="function_calling")
    result = resume(tmp_path / "t.jsonl", {each.key: True for each in waits.awaiting}, model=model, tools=world.tools)
    assert result.answer == "done"
    assert asyncio.run(aresume(tmp_path / "t.jsonl", model=model, tools=world.tools)).answer == "done"
