"""Going on with a run whose process ended anywhere: what was recorded is not done again, and what nobody knows of is not done by itself."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import msgspec
import pytest

import fsm_agent
from fsm_agent import (
    Approval,
    ApprovalRequest,
    Message,
    Reply,
    Result,
    ScriptedModel,
    Summarise,
    Tool,
    ToolCall,
    Watcher,
    classic,
    load,
    run,
    tool,
    verify,
)
from fsm_agent.events import Event, ModelReplied
from fsm_agent.guards import CostBudget, Guard, Reading
from fsm_agent.machine import Run, Taken
from fsm_agent.traces.notes import CallEnded, CallStarted
from fsm_agent.traces.record import TraceError
from fsm_agent.traces.writer import TraceWriter
from tests.driving import ASYNC, SYNC, Driver, Script, both, call, calls, edges, observed, whole

UNKNOWN = "TOOL_ERROR: the process ended while {} ran; whether it took effect is not known"


class World:
    """Tools that keep the keys of the calls that were made."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.tools: list[Tool] = [tool(self.pay), tool(idempotent=True)(self.look)]

    def pay(self, n: int, call: ToolCall) -> str:
        self.made.append(f"pay {call.key.partition('/')[2]}")
        return f"paid {n}"

    def look(self, n: int, call: ToolCall) -> str:
        self.made.append(f"look {call.key.partition('/')[2]}")
        return f"saw {n}"


def pay(n: int, id: str = "call_1") -> Any:  # noqa: A002  # as the field
    return call("pay", f'{{"n": {n}}}', id)


def look(n: int, id: str = "call_2") -> Any:  # noqa: A002  # as above
    return call("look", f'{{"n": {n}}}', id)


class Steps:
    """A model whose replies depend on nothing but how many it gave already, whichever process it is in."""

    def __init__(self, *replies: str | Reply) -> None:
        self._replies = replies
        self.asked: list[int] = []
        """The steps in which it was asked."""

    def __call__(self, messages: Sequence[Message]) -> str | Reply:
        step = 1 + sum(message.role == "assistant" for message in messages)
        self.asked.append(step)
        return self._replies[step - 1]


TASK: tuple[str | Reply, ...] = (
    calls(pay(1)),
    calls(pay(2, "1"), look(3, "2"), pay(4, "3")),
    calls(look(5)),
    calls(pay(6)),
    "done",
)
"""Five steps: calls alone and side by side, idempotent ones and others."""


def recorded(path: Path, driver: Driver = SYNC, **options: Any) -> Result:
    """The whole run of ``TASK``."""
    return driver.run(model=Steps(*TASK), tools=World().tools, trace=path, max_parallel=1, **options)


def cut_before(path: Path, begins: str, nth: int = 1) -> None:
    """Leave of the file what stands before the ``nth`` line that begins so."""
    kept, seen = [], 0
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        seen += line.startswith(begins)
        if seen == nth:
            break
        kept.append(line)
    assert seen == nth
    path.write_text("".join(kept), encoding="utf-8", newline="")


STARTED, ENDED, RETURNED = '{"note":"CallStarted"', '{"note":"CallEnded"', '{"event":"ToolsReturned"'


# --- where the process may end -------------------------------------------------------------------------------------


@both
def test_a_file_that_is_cut_is_gone_on_with(driver: Driver, tmp_path: Path) -> None:
    """Whatever had begun is not begun again, no reply that is recorded is asked for again, and the answer is the same."""
    path = tmp_path / "t.jsonl"
    recorded(path, driver)
    content = path.read_bytes()
    ends = [at for at, byte in enumerate(content) if byte == ord("\n")]
    every = {*range(len(content) - 300, len(content) + 1), *(end + by for end in ends for by in (-30, -1, 0, 1, 2, 30))}
    for size in sorted(each for each in every if ends[0] <= each <= len(content)):
        path.write_bytes(content[:size])
        before = load(path)
        begun = {note.step * 10 + note.index for _, note in before.notes if isinstance(note, CallStarted)}
        replies = sum(isinstance(event, ModelReplied) for event in before.events)
        world, model = World(), Steps(*TASK)
        result = driver.resume(path, model=model, tools=world.tools, max_parallel=1)
        assert (result.reason, result.answer, result.steps) == ("final_answer", "done", 5), size
        assert model.asked == list(range(replies + 1, 6)), size
        paid = {int(key[4]) * 10 + int(key[6]) - 1 for key in world.made if key.startswith("pay")}
        assert not paid & begun, size
        assert {10, 20, 22, 40} <= paid | begun, size
        assert whole(path).log == result.trace.log, size


@both
@pytest.mark.parametrize("end", [b"", b"\n", b"\n\n  \n", b"\n  "])
@pytest.mark.parametrize("begin", [b"", b"\xef\xbb\xbf", b"\n"], ids=["plain", "BOM", "blank line"])
def test_a_header_alone_is_kept_whatever_stands_around_it(driver: Driver, begin: bytes, end: bytes, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    recorded(path)
    path.write_bytes(begin + path.read_bytes().splitlines()[0] + end)
    result = driver.resume(path, model=Steps(*TASK), tools=World().tools)
    assert (result.answer, result.steps) == ("done", 5)
    whole(path)


@both
def test_a_record_that_lacks_its_last_edges_gets_them(driver: Driver, tmp_path: Path) -> None:
    """The halt had been written but for an edge, or half of one: nothing is asked, and the record is made whole."""
    path = tmp_path / "t.jsonl"
    full = recorded(path)
    content = path.read_bytes()
    for lost in (2, 60):
        path.write_bytes(content[:-lost])
        model = Steps()
        result = driver.resume(path, model=model, tools=World().tools)
        assert (result.reason, result.answer, model.asked) == ("final_answer", "done", [])
        assert not result.trace.cut_off
        assert whole(path).log == full.trace.log
        assert path.read_bytes() == content


@both
def test_a_run_that_has_halted_is_given_back_as_it_is(driver: Driver, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    full = recorded(path)
    content, told, model = path.read_bytes(), [], Steps()
    result = driver.resume(path, model=model, tools=World().tools, hooks=[lambda _run, taken: told.append(taken)])
    assert (result.reason, result.answer, result.message, result.steps) == (full.reason, full.answer, full.message, full.steps)
    assert (model.asked, told, path.read_bytes()) == ([], [], content)


# --- calls of which nobody knows what came of them -----------------------------------------------------------------


@pytest.fixture(name="broken")
def broken_off(tmp_path: Path) -> Path:
    """In the second step, the first call (pay 2) had ended, the second (look 3, idempotent) may have begun, the third (pay 4) had begun."""
    path = tmp_path / "t.jsonl"
    recorded(path)
    cut_before(path, ENDED, 3)
    assert [note for _, note in load(path).notes][2:] == [
        CallStarted(2, 0, load(path).notes[2][1].at),
        CallEnded(2, 0, load(path).notes[3][1].observation, load(path).notes[3][1].at),  # type: ignore[union-attr]  # it is one
        CallStarted(2, 2, load(path).notes[4][1].at),
    ]
    return path


@both
@pytest.mark.parametrize(
    "answer",
    [None, False, True, Approval("no"), Approval("edit", arguments={"n": 9}), lambda request: None, lambda request: False],
    ids=["none", "False", "True to all", "no", "an edit", "a function that does not know", "a function that says no"],
)
def test_a_call_that_had_begun_is_not_made_again_and_the_model_is_told(driver: Driver, broken: Path, answer: Any) -> None:
    world = World()
    result = driver.resume(broken, answer, model=Steps(*TASK), tools=world.tools)
    assert world.made == ["look 2/2", "look 3/1", "pay 4/1"]
    assert observed(result)[1] == [
        ("pay", "paid 2", "ok"),
        ("look", "saw 3", "ok"),
        ("pay", UNKNOWN.format("pay"), "interrupted"),
    ]
    assert result.answer == "done"
    whole(broken)


@both
def test_it_is_made_again_when_the_person_who_is_asked_says_so(driver: Driver, broken: Path) -> None:
    asked: list[ApprovalRequest] = []

    def approve(request: ApprovalRequest) -> bool:
        asked.append(request)
        return True

    world = World()
    result = driver.resume(broken, approve, model=Steps(*TASK), tools=world.tools, max_parallel=1)
    key = f"{result.trace.header.id}/2/3"
    assert asked == [ApprovalRequest(ToolCall("pay", {"n": 4}, "3", key), world.tools[0], "", "task", 2, interrupted=True)]
    assert world.made == ["look 2/2", "pay 2/3", "look 3/1", "pay 4/1"]
    assert [text for _, text, _ in observed(result)[1]] == ["paid 2", "saw 3", "paid 4"]
    whole(broken)


@both
def test_it_is_made_again_when_its_key_is_answered_with_yes(driver: Driver, broken: Path) -> None:
    world = World()
    key = f"{load(broken).header.id}/2/3"
    result = driver.resume(broken, {key: True}, model=Steps(*TASK), tools=world.tools, max_parallel=1)
    assert world.made == ["look 2/2", "pay 2/3", "look 3/1", "pay 4/1"]
    assert result.answer == "done"


@both
def test_a_key_of_a_call_that_does_not_wait_is_refused(driver: Driver, broken: Path) -> None:
    own = load(broken).header.id
    with pytest.raises(ValueError, match=rf"^no call with the key '{own}/2/1' waits for an approval; {own}/2/3 does$"):
        driver.resume(broken, {f"{own}/2/1": True}, model=Steps(*TASK), tools=World().tools)


@both
def test_a_call_that_was_interrupted_twice_is_asked_about_twice(driver: Driver, broken: Path) -> None:
    """The person said yes, the call began, and the process ended once more."""

    class Killed(Watcher):
        def calls(self, run: Run, index: int, call: ToolCall) -> None:
            if call.name == "pay":
                raise KeyError("killed")

    with pytest.raises(KeyError, match="killed"):
        driver.resume(broken, lambda _: True, model=Steps(*TASK), tools=World().tools, hooks=[Killed()], max_parallel=1)
    asked, world = [], World()
    result = driver.resume(broken, lambda request: asked.append(request.call.key), model=Steps(*TASK), tools=world.tools)
    assert asked == [f"{result.trace.header.id}/2/3"]
    assert "pay 2/3" not in world.made
    assert observed(result)[1][2] == ("pay", UNKNOWN.format("pay"), "interrupted")
    whole(broken)


@both
def test_an_approver_that_raises_leaves_the_record_as_it_was(driver: Driver, broken: Path) -> None:
    def approve(request: ApprovalRequest) -> bool:
        raise KeyError("gone")

    before, world = broken.read_bytes(), World()
    with pytest.raises(KeyError, match="gone"):
        driver.resume(broken, approve, model=Steps(*TASK), tools=world.tools)
    assert (broken.read_bytes(), world.made) == (before, [])


@both
def test_whether_a_tool_is_idempotent_is_what_it_says_now(driver: Driver, broken: Path) -> None:
    world = World()
    tools = [attrs.evolve(each, idempotent=True) for each in world.tools]
    result = driver.resume(broken, model=Steps(*TASK), tools=tools, max_parallel=1)
    assert sorted(world.made[:2]) == ["look 2/2", "pay 2/3"]
    assert result.answer == "done"


# --- what a person had said ----------------------------------------------------------------------------------------


@both
def test_what_a_person_had_said_is_not_asked_again(driver: Driver, tmp_path: Path) -> None:
    """A yes, a no and an edit were recorded; then the process ended, before or between the calls."""
    path = tmp_path / "t.jsonl"
    said = {1: True, 2: Approval("no", "too dear"), 3: Approval("edit", arguments={"n": 30})}
    script = (calls(pay(1, "1"), pay(2, "2"), pay(3, "3")), "done")
    options: dict[str, Any] = {"policy": ("pay",), "trace": path, "approve": lambda request: said[request.call.arguments["n"]]}
    driver.run(model=Steps(*script), tools=World().tools, max_parallel=1, **options)
    content = path.read_bytes()
    for begins, made in ((STARTED, ["pay 1/1", "pay 1/3"]), (ENDED, ["pay 1/3"]), (RETURNED, [])):
        path.write_bytes(content)
        cut_before(path, begins)
        world = World()
        result = driver.resume(
            path, lambda request: pytest.fail(f"{request}") if not request.interrupted else None, model=Steps(*script), tools=world.tools
        )
        assert sorted(world.made) == made
        first = ("pay", UNKNOWN.format("pay"), "interrupted") if begins == ENDED else ("pay", "paid 1", "ok")
        assert observed(result) == [[first, ("pay", "denied by a person: too dear", "denied"), ("pay", "paid 30", "ok")]]
        whole(path)


# --- what must be as it was ----------------------------------------------------------------------------------------


@both
def test_a_tool_that_the_run_had_is_needed(driver: Driver, broken: Path) -> None:
    with pytest.raises(ValueError, match=r"^the run was begun with the tool 'look'; give it, too$"):
        driver.resume(broken, model=Steps(*TASK), tools=World().tools[:1])


@both
def test_a_record_that_does_not_hold_is_not_gone_on_with(driver: Driver, broken: Path) -> None:
    text = broken.read_text(encoding="utf-8").replace('"edge":"go_on"', '"edge":"nudge"', 1)
    broken.write_text(text, encoding="utf-8", newline="")
    with pytest.raises(
        TraceError, match=r"^the record does not hold: its events give other edges than those recorded; see fsm-agent verify$"
    ):
        driver.resume(broken, model=Steps(*TASK), tools=World().tools)


@attrs.frozen
class Five(Guard):
    """A user's own guard, which halts at five steps."""

    reason = "five"
    label = "five"

    def start(self) -> int:
        return 0

    def fold(self, memory: int, fact: object, step: int) -> int:
        return step

    def judge(self, memory: int) -> Reading:
        return Reading(self.reason, memory, 2, memory >= 2)


@both
def test_a_users_own_guard_is_given_again(driver: Driver, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    guards = (*classic(), Five())
    recorded(path, driver, guards=guards)
    cut_before(path, RETURNED, 2)
    with pytest.raises(TraceError, match="Five"):
        driver.resume(path, model=Steps(*TASK), tools=World().tools)
    assert driver.resume(path, model=Steps(*TASK), tools=World().tools, guards=guards).reason == "five"
    assert verify(load(path), guards).line is None


@both
def test_a_cost_budget_needs_a_price_when_a_run_is_taken_up_too(driver: Driver, tmp_path: Path) -> None:
    class Dear(Script):
        has_price = True

    class Unpriced(Script):
        has_price = False

    path = tmp_path / "t.jsonl"
    with pytest.raises(IndexError):
        driver.run(model=Dear(), trace=path, guards=(CostBudget(1.0),), hooks=[Broken()])
    assert load(path).log == []
    with pytest.raises(ValueError, match=r"^the price of test:script is not known, and a cost budget needs it"):
        driver.resume(path, model=Unpriced("done"))
    assert driver.resume(path, model=Dear("done")).answer == "done"


class Broken(Watcher):
    """Breaks a run off at its beginning."""

    def began(self, run: Run) -> None:
        raise IndexError


@both
def test_a_run_without_summaries_gets_none_when_it_is_taken_up(driver: Driver, tmp_path: Path) -> None:
    """Its machine has no edge for them; the context is of use in other ways, and the run goes on."""
    path = tmp_path / "t.jsonl"
    recorded(path)
    cut_before(path, RETURNED, 3)
    summariser = ScriptedModel([], then="all is well")
    context = Summarise(summariser, at_tokens=1)
    result = driver.resume(path, model=Steps(*TASK), tools=World().tools, context=context)
    assert (result.answer, summariser.calls) == ("done", 0)
    whole(path)


@both
def test_hooks_are_told_what_is_new(driver: Driver, broken: Path) -> None:
    began: list[int] = []
    told: list[str] = []

    class Told(Watcher):
        def began(self, run: Run) -> None:
            began.append(run.step)

        def took(self, run: Run, event: Event, edges: Sequence[Taken], /) -> None:
            told.extend(each.edge for each in edges)

    before = edges(load(broken))
    result = driver.resume(broken, model=Steps(*TASK), tools=World().tools, hooks=[Told()])
    assert began == [2]
    assert [*before, *told] == edges(result)


# --- one file, one run ---------------------------------------------------------------------------------------------


def busy(path: Path) -> str:
    return f"the trace {path} is being written by another run; give each run a file of its own"


@both
@pytest.mark.parametrize("taken_up", [False, True], ids=["run", "resume"])
def test_a_file_that_a_run_of_this_process_writes_is_refused(driver: Driver, taken_up: bool, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    inner: list[str] = []

    def model(messages: Sequence[Message]) -> str:
        starts: list[Callable[[], object]] = [
            lambda: driver.resume(path, model=Steps("done")),
            lambda: driver.run(model=Steps("done"), trace=path),
            lambda: driver.run(model=Steps("done"), trace=tmp_path / "sub" / ".." / "t.jsonl"),
        ]
        for start in starts:
            thread = threading.Thread(target=refused, args=(start, inner))
            thread.start()
            thread.join()
        return "outer"

    (tmp_path / "sub").mkdir()
    if taken_up:
        SYNC.run(model=Steps("done"), trace=path, hooks=[])
        path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
        result = driver.resume(path, model=model)
    else:
        result = driver.run(model=model, trace=path)
    assert inner == [busy(path), busy(path), busy(tmp_path / "sub" / ".." / "t.jsonl")]
    assert result.answer == "outer"
    whole(path)


def refused(start: Callable[[], object], told: list[str]) -> None:
    try:
        start()
    except ValueError as error:
        told.append(str(error))


HOLDER = """
import sys
from fsm_agent.traces.load import load
from fsm_agent.traces.writer import TraceWriter
trace = load({path!r})
with TraceWriter(trace, {path!r}, read=trace):
    print("holds", flush=True)
    sys.stdin.read()
"""


@both
def test_a_file_that_another_process_writes_is_refused_until_that_has_ended(driver: Driver, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    recorded(path)
    cut_before(path, RETURNED)
    content = path.read_bytes()
    command = [sys.executable, "-c", HOLDER.format(path=str(path))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent.parent) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "holds\n"
        starts: list[Callable[[], object]] = [
            lambda: driver.resume(path, model=Steps(*TASK), tools=World().tools),
            lambda: driver.run(model=Steps("done"), trace=path),
        ]
        for start in starts:
            with pytest.raises(ValueError, match=r"is being written by another run; give each run a file of its own$"):
                start()
        assert path.read_bytes() == content
        other.kill()
    assert driver.resume(path, model=Steps(*TASK), tools=World().tools).answer == "done"
    whole(path)


@pytest.mark.parametrize("kind", ["an event", "a note"])
def test_a_record_that_grew_since_it_was_read_is_not_gone_on_with(kind: str, broken: Path) -> None:
    """Two processes read it, one goes on and is killed: what the other knows of it is too old, if only by one call that had begun."""
    read = load(broken)
    with broken.open("ab") as file:
        note = msgspec.json.encode(CallStarted(2, 1))
        event = msgspec.json.encode(ModelReplied(Reply("x")))
        file.write((note if kind == "a note" else event) + b"\n")
    content = broken.read_bytes()
    with (
        pytest.raises(ValueError, match=rf"^the trace {re.escape(str(broken))} has changed since it was read; take it up again$"),
        TraceWriter(read, broken, read=read),
    ):
        pass
    assert broken.read_bytes() == content


def test_a_file_that_was_made_anew_since_it_was_read_is_not_gone_on_with(broken: Path) -> None:
    read = load(broken)
    recorded(broken)
    with pytest.raises(ValueError, match=r"has changed since it was read; take it up again$"), TraceWriter(read, broken, read=read):
        pass


@pytest.mark.skipif(sys.platform == "win32", reason="a pipe has a path on POSIX only")
def test_a_record_can_be_written_to_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    lines: list[bytes] = []
    reader = threading.Thread(target=lambda: lines.extend(pipe.read_bytes().splitlines()))
    reader.start()
    result = run("t", model=ScriptedModel(["FINAL done"]), trace=pipe)
    reader.join(20)
    assert len(lines) == 1 + len(result.trace.log)


def test_results_of_both_drivers_are_equal_traces(tmp_path: Path) -> None:
    """What is taken up in either way ends as the same run."""
    told: list[tuple[list[str], Any]] = []
    for driver in (SYNC, ASYNC):
        path = tmp_path / f"{driver}.jsonl"
        recorded(path, driver)
        cut_before(path, RETURNED, 2)
        result = driver.resume(path, model=Steps(*TASK), tools=World().tools)
        told.append((edges(result), observed(result)))
    assert told[0] == told[1]


def test_a_trace_that_was_read_is_taken_up_without_a_file(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    recorded(path)
    cut_before(path, RETURNED, 2)
    content, read = path.read_bytes(), load(path)
    result = SYNC.resume(read, model=Steps(*TASK), tools=World().tools)
    assert (result.answer, path.read_bytes()) == ("done", content)
    assert verify(result.trace).line is None
    assert len(read.log) < len(result.trace.log)


def test_a_run_that_was_begun_without_questions_is_gone_on_with_so_and_not_otherwise(tmp_path: Path) -> None:
    """Its record has no place for a question: with a policy that asks it is refused, rather than that nobody is asked."""
    done: list[str] = []

    @tool(side_effects=True)
    def pay(to: str) -> str:
        done.append(to)
        return "paid"

    path = tmp_path / "t.jsonl"
    fsm_agent.run("Pay", model=ScriptedModel(["TOOL pay to=Ada", "FINAL ok"]), tools=[pay], policy="never", trace=path)
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    done.clear()
    for policy in ("side_effects", "always", ["pay"]):
        with pytest.raises(ValueError, match="the run was begun with nobody to be asked about its calls, so nobody can be asked now"):
            fsm_agent.resume(path, True, model=ScriptedModel(["TOOL pay to=Ada", "FINAL ok"]), tools=[pay], policy=policy)
    assert done == []
    result = fsm_agent.resume(path, model=ScriptedModel(["TOOL pay to=Ada", "FINAL ok"]), tools=[pay])
    assert (result.reason, done) == ("final_answer", ["Ada"])
