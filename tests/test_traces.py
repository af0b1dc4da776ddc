"""Records: written as the run goes, read back whatever became of the file, replayed to the same edges, and verified."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import attrs
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsm_agent import Reply, Result, ScriptedModel, Trace, classic, load, run, tool, verify
from fsm_agent.diagrams import path_view
from fsm_agent.events import Cancelled, Decision, ModelReplied, RecordingEnded, ToolRequest, ToolsReturned, UserSpoke
from fsm_agent.guards import BUILT_IN, MaxSteps, Reading
from fsm_agent.machine import GuardError, Run, Taken
from fsm_agent.protocols import PROTOCOLS, LineProtocol, Protocol
from fsm_agent.tools import add
from fsm_agent.traces import Header, TraceError
from fsm_agent.traces.notes import Note
from fsm_agent.traces.record import decode_entry, decode_header, encode, header_of

from .watching import Told


@tool(idempotent=True)
def fail(how: str) -> str:
    """Fail, in one way or another."""
    if how == "raise":
        raise ValueError("as you wish")
    return f"TOOL_ERROR: {how}"


SCRIPT = ["TOOL add a=3,b=4", "What now?", "TOOL fail how=三", "TOOL add a=3,b=4", "FINAL (3+4) = 7"]

GOLDEN = """\
{"trace":1,"task":"计算 3+4","protocol":"line","guards":[{"reason":"repeated_call","guard":"RepeatedCall","limits":{"max_repeats":2}},{"reason":"consecutive_errors","guard":"ConsecutiveErrors","limits":{"max_errors":3,"count_malformed":true,"warn_at":null}},{"reason":"max_steps","guard":"MaxSteps","limits":{"max_steps":10}}],"tools":[{"name":"add","description":"Add two integers.","parameters":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"],"additionalProperties":false},"idempotent":true},{"name":"fail","description":"Fail, in one way or another.","parameters":{"type":"object","properties":{"how":{"type":"string"}},"required":["how"],"additionalProperties":false},"idempotent":true}],"title":"golden","at":0,"id":"0"}
{"event":"ModelReplied","reply":{"text":"TOOL add a=3,b=4"},"at":0}
{"edge":"model_replied","step":1}
{"edge":"call_tools","step":1,"readings":[{"guard":"repeated_call","value":0,"limit":2,"trips":false,"evidence":[{"step":1,"kind":"call","text":"add{a=3, b=4}"}]}]}
{"event":"ToolsReturned","observations":[{"tool":"add","text":"7"}],"at":0}
{"edge":"tools_returned","step":1}
{"edge":"go_on","step":1,"readings":[{"guard":"consecutive_errors","value":0,"limit":3,"trips":false},{"guard":"max_steps","value":1,"limit":10,"trips":false}]}
{"event":"ModelReplied","reply":{"text":"What now?"},"at":0}
{"edge":"model_replied","step":2}
{"edge":"malformed","step":2,"readings":[{"guard":"repeated_call","value":0,"limit":2,"trips":false,"evidence":[{"step":1,"kind":"call","text":"add{a=3, b=4}"}]}]}
{"edge":"go_on","step":2,"readings":[{"guard":"consecutive_errors","value":1,"limit":3,"trips":false,"evidence":[{"step":2,"kind":"unparseable","text":"The reply cannot be parsed: a reply starts with TOOL or FINAL, this one with 'What now?'."}]},{"guard":"max_steps","value":2,"limit":10,"trips":false}]}
{"event":"ModelReplied","reply":{"text":"TOOL fail how=三"},"at":0}
{"edge":"model_replied","step":3}
{"edge":"call_tools","step":3,"readings":[{"guard":"repeated_call","value":0,"limit":2,"trips":false,"evidence":[{"step":3,"kind":"call","text":"fail{how=三}"}]}]}
{"event":"ToolsReturned","observations":[{"tool":"fail","text":"TOOL_ERROR: 三","kind":"tool_error"}],"at":0}
{"edge":"tools_returned","step":3}
{"edge":"go_on","step":3,"readings":[{"guard":"consecutive_errors","value":2,"limit":3,"trips":false,"evidence":[{"step":2,"kind":"unparseable","text":"The reply cannot be parsed: a reply starts with TOOL or FINAL, this one with 'What now?'."},{"step":3,"kind":"tool_error","text":"三"}]},{"guard":"max_steps","value":3,"limit":10,"trips":false}]}
{"event":"ModelReplied","reply":{"text":"TOOL add a=3,b=4"},"at":0}
{"edge":"model_replied","step":4}
{"edge":"call_tools","step":4,"readings":[{"guard":"repeated_call","value":0,"limit":2,"trips":false,"evidence":[{"step":4,"kind":"call","text":"add{a=3, b=4}"}]}]}
{"event":"ToolsReturned","observations":[{"tool":"add","text":"7"}],"at":0}
{"edge":"tools_returned","step":4}
{"edge":"go_on","step":4,"readings":[{"guard":"consecutive_errors","value":0,"limit":3,"trips":false},{"guard":"max_steps","value":4,"limit":10,"trips":false}]}
{"event":"ModelReplied","reply":{"text":"FINAL (3+4) = 7"},"at":0}
{"edge":"model_replied","step":5}
{"edge":"final_answer","step":5,"readings":[{"guard":"repeated_call","value":0,"limit":2,"trips":false,"evidence":[{"step":4,"kind":"call","text":"add{a=3, b=4}"}]}]}
"""

LINES = GOLDEN.encode().splitlines(keepends=True)


def recorded(path: Path | None, **options: Any) -> Result:
    model = ScriptedModel(SCRIPT)
    return run("计算 3+4", model=model, tools=[add, fail], guards=classic(max_errors=3), lang="en", trace=path, title="golden", **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for the tests that write the same file over and over."""
    return tmp_path_factory.mktemp("traces")


def trace_of(lines: list[bytes]) -> Trace:
    """The trace of a file with these lines."""
    return Trace(decode_header(lines[0]), [entry for entry in map(decode_entry, lines[1:]) if not isinstance(entry, Note)])


def written(path: Path, content: bytes | list[bytes]) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else b"".join(content))
    return path


# --- writing -----------------------------------------------------------------------------------------------------


def test_a_record_is_these_lines(tmp_path: Path) -> None:
    recorded(tmp_path / "t.jsonl")
    text = (tmp_path / "t.jsonl").read_bytes().decode()
    assert re.sub(r'"id":"[0-9a-f]{16}"', '"id":"0"', re.sub(r'"at":\d+\.\d+', '"at":0', text)) == GOLDEN


def test_the_file_is_whole_after_every_event(tmp_path: Path) -> None:
    """So a process that is killed while the world is waited for leaves all that happened."""
    sizes: list[int] = []

    def hook(machine: Run) -> None:
        trace = load(tmp_path / "t.jsonl")
        assert trace.log == machine.log
        assert not trace.cut_off
        sizes.append(len(trace.log))

    recorded(tmp_path / "t.jsonl", hooks=[Told(hook)])
    assert sizes == [0, 3, 6, 10, 13, 16, 19, 22, 25]


def test_the_result_has_the_record_without_a_file() -> None:
    trace = recorded(None).trace
    assert len(trace.log) == len(LINES) - 1
    assert without_time(trace.header) == without_time(trace_of(LINES).header)


def without_time(header: Header) -> dict[str, object]:
    return {name: getattr(header, name) for name in header.__struct_fields__ if name not in {"at", "id"}}


def test_a_file_that_was_there_is_made_anew(tmp_path: Path) -> None:
    path = written(tmp_path / "t.jsonl", b"x" * 100_000)
    recorded(path)
    assert len(load(path).log) == len(LINES) - 1


# --- reading back, replaying, verifying --------------------------------------------------------------------------


def test_a_record_is_read_back_replayed_and_verified(tmp_path: Path) -> None:
    result = recorded(tmp_path / "t.jsonl")
    trace = load(tmp_path / "t.jsonl")
    assert trace == result.trace
    again = trace.replay()
    assert (again.log, again.reason, again.step, again.state) == (trace.log, "final_answer", 5, "Halted")
    verdict = verify(trace)
    assert (verdict.line, verdict.recorded, verdict.replayed) == (None, "", "")
    assert verdict.run.log == trace.log


def test_events_and_edges_can_be_had_apart() -> None:
    trace = trace_of(LINES)
    assert [type(event) for event in trace.events] == [
        ModelReplied,
        ToolsReturned,
        ModelReplied,
        *[ModelReplied, ToolsReturned] * 2,
        ModelReplied,
    ]
    assert [taken.edge for taken in trace.edges[:4]] == ["model_replied", "call_tools", "tools_returned", "go_on"]
    assert [*trace.events, *trace.edges] == sorted(trace.log, key=lambda entry: isinstance(entry, Taken))


def test_a_replay_can_be_gone_on_with() -> None:
    half = trace_of(LINES[:11]).replay()
    assert (half.state, half.step) == ("Deciding", 2)
    half.feed(ModelReplied(Reply("FINAL 7")))
    assert half.reason == "final_answer"


def test_a_replay_under_other_guards_halts_elsewhere() -> None:
    trace = trace_of(LINES)
    assert trace.replay(classic(max_errors=9)).reason == "final_answer"
    with pytest.raises(TraceError, match=r"^these events belong to no run under these guards: ModelReplied in Halted \(step 2\)"):
        trace.replay(classic(max_steps=2))


def test_verifying_under_other_guards_shows_the_first_line_that_would_differ() -> None:
    verdict = verify(trace_of(LINES), classic(max_errors=3, max_steps=2))
    assert verdict.line == 7
    assert '"limit":10' in verdict.recorded
    assert '"limit":2' in verdict.replayed


# --- tampering ---------------------------------------------------------------------------------------------------


def edited(line: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    fields = json.loads(line)
    change(fields)
    return json.dumps(fields, ensure_ascii=False).encode() + b"\n"


EDGES = [n for n, line in enumerate(LINES, 1) if line.startswith(b'{"edge"')]
READINGS = [n for n in EDGES if b"readings" in LINES[n - 1]]
EVENTS = [n for n, line in enumerate(LINES, 1) if line.startswith(b'{"event"')]


def differs_at(lines: list[bytes]) -> int | None:
    return verify(trace_of(lines)).line


@pytest.mark.parametrize("number", EDGES)
@pytest.mark.parametrize(
    "change",
    [lambda fields: fields.update(edge="max_steps"), lambda fields: fields.update(step=fields["step"] + 1)],
    ids=["another edge", "another step"],
)
def test_an_edge_that_was_changed_is_named(number: int, change: Callable[[dict[str, Any]], object]) -> None:
    lines = [*LINES[: number - 1], edited(LINES[number - 1], change), *LINES[number:]]
    verdict = verify(trace_of(lines))
    assert verdict.line == number
    assert json.loads(verdict.recorded) == json.loads(lines[number - 1])
    assert verdict.replayed == LINES[number - 1].decode().rstrip("\n")


@pytest.mark.parametrize("number", READINGS)
@pytest.mark.parametrize(
    ("field", "value"), [("value", 99), ("limit", 99), ("trips", True), ("guard", "x"), ("evidence", []), ("warns", True)]
)
def test_a_reading_that_was_changed_is_named(number: int, field: str, value: object) -> None:
    def change(fields: dict[str, Any]) -> None:
        fields["readings"][0][field] = value

    line = edited(LINES[number - 1], change)
    expected = None if decode_entry(line) == decode_entry(LINES[number - 1]) else number
    assert differs_at([*LINES[: number - 1], line, *LINES[number:]]) == expected


@pytest.mark.parametrize("number", range(2, len(LINES)))
def test_a_line_that_was_taken_out_is_missed_at_its_place(number: int) -> None:
    assert differs_at([*LINES[: number - 1], *LINES[number:]]) == number


@pytest.mark.parametrize("number", range(2, len(LINES) + 1))
def test_a_line_that_was_put_in_twice_is_named(number: int) -> None:
    assert differs_at([*LINES[:number], *LINES[number - 1 :]]) == number + 1


@pytest.mark.parametrize("number", EVENTS)
@pytest.mark.parametrize(
    "event", [Cancelled(), RecordingEnded(), UserSpoke("x"), ModelReplied(Reply("FINAL x"))], ids=lambda event: type(event).__name__
)
def test_an_event_that_was_exchanged_is_found_where_the_edges_part(number: int, event: Any) -> None:
    line = encode(event)
    found = differs_at([*LINES[: number - 1], line, *LINES[number:]])
    same = number == EVENTS[-1] and isinstance(event, ModelReplied)
    assert found in ({None} if same else {number, number + 1, number + 2})


def test_an_event_that_cannot_happen_is_named_with_the_reason() -> None:
    verdict = verify(trace_of([*LINES, LINES[1]]))
    assert verdict.line == len(LINES) + 1
    assert json.loads(verdict.recorded) == json.loads(LINES[1])
    assert verdict.replayed == "ModelReplied in Halted (step 5): this state takes nothing, ever again"


def test_an_edge_that_follows_no_event_is_named() -> None:
    verdict = verify(trace_of([*LINES, LINES[-1]]))
    assert (verdict.line, verdict.replayed) == (len(LINES) + 1, "nothing: no edge is taken here")


@pytest.mark.parametrize(("limit", "line"), [("max_repeats", 4), ("max_errors", 7), ("max_steps", 7)])
def test_a_limit_that_was_changed_shows_in_the_first_reading(limit: str, line: int) -> None:
    def change(fields: dict[str, Any]) -> None:
        for guard in fields["guards"]:
            if limit in guard["limits"]:
                guard["limits"][limit] += 1

    assert differs_at([edited(LINES[0], change), *LINES[1:]]) == line


# --- files that were cut off -------------------------------------------------------------------------------------


def test_a_file_cut_at_any_byte_loads_with_its_whole_lines_or_says_that_the_header_is_cut(tmp_path: Path) -> None:
    whole = GOLDEN.encode()
    path = tmp_path / "t.jsonl"
    entries = load(written(path, whole)).log
    verified: set[int] = set()
    for size in reversed(range(len(whole))):
        os.truncate(path, size)
        part = whole[:size]
        ended, rest = part.count(b"\n"), part.rpartition(b"\n")[2]
        if size < len(LINES[0]) - 1:
            with pytest.raises(TraceError, match=re.escape(f"{path}, line 1: ") if size else "the file is empty"):
                load(path)
            continue
        trace = load(path)
        complete = bool(rest) and rest + b"\n" in LINES and ended > 0
        assert len(trace.log) == max(ended - 1, 0) + complete
        assert trace.log == entries[: len(trace.log)]
        assert trace.cut_off == (bool(rest) and not complete and ended > 0)
        if len(trace.log) not in verified:
            assert verify(trace).line is None
            verified.add(len(trace.log))
    assert len(verified) == len(LINES)


def test_a_run_whose_file_was_cut_off_did_not_end(tmp_path: Path) -> None:
    trace = load(written(tmp_path / "t.jsonl", GOLDEN.encode()[:-400]))
    assert (trace.cut_off, trace.replay().reason) == (True, None)


# --- files that are no records -----------------------------------------------------------------------------------

HEADER = LINES[0]
DEEP = b"[" * 100_000


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        (b"", None, "the file is empty"),
        (b"hello\n", 1, "JSON is malformed: invalid character (byte 0)"),
        (b"\x00\x01\xff", 1, "JSON is malformed: invalid character (byte 0)"),
        (HEADER.decode().encode("utf-16"), 1, "JSON is malformed: invalid character (byte 0)"),
        (b"[]\n", 1, "Expected `object`, got `array`"),
        (b"{}\n", 1, 'this is no trace: the first line has no "trace" field'),
        (LINES[1], 1, 'this is no trace: the first line has no "trace" field'),
        (b'{"trace": "1"}\n', 1, "Expected `int | null`, got `str` - at `$.trace`"),
        (b'{"trace": 2, "odd": 1}\n', 1, "the trace has format 2, and this version of fsm_agent reads format 1"),
        (b'{"trace": 1}\n', 1, "Object missing required field `task`"),
        (b'{"trace": 1, "task": 3, "protocol": "line"}\n', 1, "Expected `str`, got `int` - at `$.task`"),
        (DEEP, 1, None),
        (b'{"trace": 1, "task": ' + DEEP + b"\n", 1, None),
        ([HEADER, b"garbage\n", *LINES[1:]], 2, "JSON is malformed: invalid character (byte 0)"),
        ([*LINES[:5], b"{}\n"], 6, 'neither an event nor an edge: one of the fields "event" and "edge" is needed'),
        ([*LINES[:5], b"[]\n"], 6, "Expected `object`, got `array`"),
        ([HEADER, HEADER], 2, 'neither an event nor an edge: one of the fields "event" and "edge" is needed'),
        (
            [HEADER, b'{"event": "Cancelled", "edge": "go_on"}\n'],
            2,
            'neither an event nor an edge: one of the fields "event" and "edge" is needed',
        ),
        ([HEADER, b'{"event": "Exploded"}\n'], 2, "Invalid value 'Exploded' - at `$.event`"),
        ([HEADER, b'{"event": 3}\n'], 2, "Expected `str | null`, got `int` - at `$.event`"),
        ([HEADER, b'{"event": "ModelReplied"}\n'], 2, "Object missing required field `reply`"),
        ([HEADER, b'{"event": "ModelReplied", "reply": "FINAL"}\n'], 2, "Expected `object`, got `str` - at `$.reply`"),
        ([HEADER, b'{"event": "ModelReplied", "reply": {"text": null}}\n'], 2, "Expected `str`, got `null` - at `$.reply.text`"),
        ([HEADER, b'{"event": "Cancelled", "at": "noon"}\n'], 2, "Expected `float | null`, got `str` - at `$.at`"),
        ([HEADER, b'{"edge": "go_on", "step": 1.5}\n'], 2, "Expected `int`, got `float` - at `$.step`"),
        ([HEADER, b'{"edge": "go_on", "step": 1, "readings": [{}]}\n'], 2, "Object missing required field `guard` - at `$.readings[0]`"),
        ([HEADER, b'{"event": "ModelReplied", "reply": {"text": "\xff"}}\n'], 2, None),
        ([HEADER, b'{"event": "ModelReplied", "x": ' + DEEP + b"\n"], 2, None),
        ([HEADER, b'{"event": "ModelReplied", "reply": {"text": "\\ud800"}}\n'], 2, None),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_file_that_is_no_record_is_refused_in_one_line_that_says_where(
    content: bytes | list[bytes], line: int | None, problem: str | None, folder: Path
) -> None:
    path = written(folder / "t.jsonl", content)
    with pytest.raises(TraceError) as error:
        load(path)
    message = str(error.value)
    place = f"{path}: " if line is None else f"{path}, line {line}: "
    assert message.startswith(place)
    assert len(message.splitlines()) == 1
    assert problem is None or message == place + problem


def test_fields_that_are_not_known_are_passed_over(tmp_path: Path) -> None:
    """A newer version may write more, and still be read."""
    lines = [line.replace(b"{", b'{"of_a_newer_version": [1, {}], ', 1) for line in LINES]
    trace = load(written(tmp_path / "t.jsonl", lines))
    assert trace.log == load(written(tmp_path / "u.jsonl", LINES)).log
    assert verify(trace).line is None


def test_lines_may_end_as_on_windows(tmp_path: Path) -> None:
    trace = load(written(tmp_path / "t.jsonl", [line.replace(b"\n", b"\r\n") for line in LINES]))
    assert verify(trace).line is None
    assert len(trace.log) == len(LINES) - 1


def test_a_path_that_cannot_be_read_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"none\.jsonl"):
        load(tmp_path / "none.jsonl")


# --- headers that this package cannot replay ---------------------------------------------------------------------


@attrs.frozen
class MyCap(MaxSteps):
    """A user's own guard."""

    reason: ClassVar[str] = "my_cap"


def with_header(**changes: Any) -> Trace:
    return trace_of([edited(LINES[0], lambda fields: fields.update(changes)), *LINES[1:]])


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"protocol": "morse"}, "the protocol 'morse' is not known; known are "),
        ({"lang": "tlh"}, "lang is 'tlh'; it must be one of en, zh"),
        (
            {"guards": [{"reason": "my_cap", "guard": "MyCap", "limits": {"max_steps": 3}}]},
            "the guard MyCap (my_cap) is not one of this package's; give the guards to replay with",
        ),
        (
            {"guards": [{"reason": "max_steps", "guard": "RepeatedCall"}]},
            "the guard RepeatedCall has the reason 'repeated_call', not 'max_steps'",
        ),
        (
            {"guards": [{"reason": "max_steps", "guard": "MaxSteps", "limits": {"max_steps": 0}}]},
            "the guard MaxSteps (max_steps): max_steps is 0; it must be at least 1",
        ),
        (
            {"guards": [{"reason": "max_steps", "guard": "MaxSteps", "limits": {"max_steps": "3"}}]},
            "the guard MaxSteps (max_steps): max_steps is '3'",
        ),
        ({"guards": [{"reason": "max_steps", "guard": "MaxSteps", "limits": {"steps": 3}}]}, "the guard MaxSteps (max_steps): "),
        ({"guards": [{"reason": "max_steps", "guard": "MaxSteps"}] * 2}, "MaxSteps and MaxSteps both halt with the reason 'max_steps'"),
    ],
    ids=[
        "protocol",
        "language",
        "a user's guard",
        "a guard of another reason",
        "a low limit",
        "a wrong limit",
        "no such limit",
        "two of one",
    ],
)
def test_a_header_that_cannot_be_replayed_is_refused_in_one_line(changes: dict[str, Any], problem: str) -> None:
    trace = with_header(**changes)
    for attempt in (trace.replay, lambda: verify(trace)):
        with pytest.raises(TraceError) as error:
            attempt()
        assert str(error.value).startswith(problem)
        assert len(str(error.value).splitlines()) == 1


def test_a_users_guard_is_replayed_when_it_is_given(tmp_path: Path) -> None:
    guards = (*classic(), MyCap(3))
    result = run("task", model=ScriptedModel(then="TOOL add a={n},b=1"), tools=[add], guards=guards, trace=tmp_path / "t.jsonl")
    trace = load(tmp_path / "t.jsonl")
    assert (result.reason, verify(trace, guards).line, trace.replay(guards).reason) == ("my_cap", None, "my_cap")


@attrs.frozen
class Shouting(LineProtocol):
    """A user's own form, which has the name of the one that it is made of."""

    def parse(self, reply: Reply) -> Decision:
        return super().parse(unshouted(reply))


def unshouted(reply: Reply) -> Reply:
    return msgspec.structs.replace(reply, text=reply.text.removesuffix("!"))


@attrs.frozen
class Morse(Shouting):
    name: ClassVar[str] = "morse"


@pytest.mark.parametrize(("protocol", "name"), [(Shouting(), "Shouting"), (Morse(), "morse"), (LineProtocol(), "line")])
def test_a_users_guards_and_protocol_are_at_hand_in_the_process_that_ran_them(protocol: Protocol, name: str, tmp_path: Path) -> None:
    guards = (*classic(), MyCap(3))
    end = "" if name == "line" else "!"
    model = ScriptedModel(then="TOOL add a={n},b=1" + end)
    result = run("task", model=model, tools=[add], guards=guards, protocol=protocol, trace=tmp_path / "t.jsonl")
    assert (result.trace.header.protocol, result.reason) == (name, "my_cap")
    again = result.trace.replay()
    assert (again.log, verify(result.trace).line) == (result.trace.log, None)
    assert path_view(again) == path_view(result.trace)
    loaded = load(tmp_path / "t.jsonl")
    assert loaded == result.trace
    assert verify(loaded, guards, protocol=protocol).line is None
    assert loaded.replay(guards, protocol=protocol).log == result.trace.log
    if name != "line":
        with pytest.raises(TraceError, match=f"^the protocol '{name}' is not known; known are .*; give any other to replay with$"):
            loaded.replay(guards)


# --- runs that are broken off, and runs that meet in a file ------------------------------------------------------


@attrs.frozen
class Breaks(MaxSteps):
    """A user's own guard that breaks at its limit."""

    reason: ClassVar[str] = "breaks"

    def judge(self, memory: int) -> Reading:
        return Reading(self.reason, memory, self.max_steps, trips=1 // (self.max_steps - memory) == 0 and memory < 0)


def test_what_was_logged_before_a_guard_broke_is_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    with pytest.raises(GuardError, match=r"^the guard Breaks \(breaks\): judge raised ZeroDivisionError: .* \(in Observing, step 2\)$"):
        run("task", model=ScriptedModel(then="TOOL add a={n},b=1"), tools=[add], guards=[Breaks(2)], trace=path)
    trace = load(path)
    assert [type(event) for event in trace.events] == [ModelReplied, ToolsReturned] * 2
    assert [taken.edge for taken in trace.edges][-1] == "tools_returned"


def test_a_file_that_a_run_is_writing_is_refused_to_another(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"

    @tool
    def delegate() -> str:
        return run("inner", model=ScriptedModel(["FINAL 1"]), trace=tmp_path / "." / "t.jsonl").message

    result = run("outer", model=ScriptedModel(["TOOL delegate", "FINAL 2"]), tools=[delegate], trace=path, lang="en")
    told = f"the trace {path} is being written by another run; give each run a file of its own"
    (seen,) = next(event for event in result.trace.events if isinstance(event, ToolsReturned)).observations
    assert seen.text == f"TOOL_ERROR: ValueError: {told}"
    assert verify(load(path)).line is None
    assert recorded(path).reason == "final_answer"
    with pytest.raises(IsADirectoryError):
        recorded(tmp_path)
    with pytest.raises(IsADirectoryError):
        recorded(tmp_path)


def test_a_machines_own_header() -> None:
    header = header_of(Run("task", guards=classic()), "title")
    assert (header.task, header.protocol, header.lang, header.title) == ("task", "line", "en", "title")
    assert [(guard.reason, guard.guard) for guard in header.guards] == [
        ("repeated_call", "RepeatedCall"),
        ("consecutive_errors", "ConsecutiveErrors"),
        ("max_steps", "MaxSteps"),
    ]


# --- hostile headers ---------------------------------------------------------------------------------------------

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
SCHEMA = st.recursive(
    JSON,
    lambda inner: st.dictionaries(
        st.sampled_from(["properties", "required", "type", "enum", "anyOf", "oneOf", "const", "items", "default", "description", "$ref"]),
        inner | st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2),
        max_size=4,
    ),
    max_leaves=8,
)
TOOL = st.fixed_dictionaries(
    {"name": st.text(max_size=5)},
    optional={"parameters": SCHEMA, "description": JSON, "volatile": st.lists(st.text(max_size=3), max_size=2) | JSON, "polls": JSON},
)
HOSTILE_LIMITS = st.dictionaries(
    st.sampled_from(["max_steps", "max_repeats", "tool", "parts", "name", "compare", "warn_at"]), JSON, max_size=3
)
GUARD = st.fixed_dictionaries(
    {
        "reason": st.sampled_from([*BUILT_IN, "tool_budget:x"]) | st.text(max_size=5),
        "guard": st.sampled_from([*(kind.__name__ for kind in BUILT_IN.values()), "AllOf", "Not"]) | st.text(max_size=5),
    },
    optional={"limits": HOSTILE_LIMITS | JSON},
)
HOSTILE = st.fixed_dictionaries(
    {"trace": st.just(1) | JSON, "task": st.text(max_size=5), "protocol": st.sampled_from(list(PROTOCOLS)) | st.text(max_size=5)},
    optional={
        "lang": st.sampled_from(["en", "zh"]) | JSON,
        "guards": st.lists(GUARD, max_size=2),
        "tools": st.lists(TOOL, max_size=2),
        "at": JSON,
    },
)


def opened(header: object) -> None:
    """The header makes a run, or a ``TraceError`` of one line."""
    try:
        trace = Trace(decode_header(json.dumps(header).encode()), [])
        made = trace.new_run()
        assert made.step == 0
        made.feed(ModelReplied(Reply("Thought: x\nAction: a\nAction Input: x")))
    except TraceError:
        pass


@settings(max_examples=400, deadline=None)
@given(HOSTILE | JSON)
def test_any_header_makes_a_run_or_a_trace_error(header: object) -> None:
    opened(header)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "parameters",
    [
        {"properties": 5},
        {"properties": {"a": 5}, "required": 3},
        {"properties": {"a": None}, "required": {"a": 1}},
        {"properties": {"a": {"enum": [[], {}, None], "description": [1]}}, "required": [[], {}]},
        {"properties": {"a": {"type": {"x": []}}, "b": {"type": ["x", 3]}, "c": {"type": "array", "items": 3}}},
        {"properties": {"a": {"default": 2**70, "const": 2**70}, "b": {"const": 2**70}}},
        {"properties": {"a": {"anyOf": 3, "oneOf": [3, {"anyOf": [{"oneOf": [{"anyOf": [{}]}]}]}]}}},
    ],
)
def test_a_tool_with_an_odd_schema_makes_a_run_of_every_protocol(protocol: str, parameters: object) -> None:
    opened({"trace": 1, "task": "t", "protocol": protocol, "tools": [{"name": "a", "parameters": parameters}]})


# --- properties --------------------------------------------------------------------------------------------------

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=20)

LINE_REPLIES = st.one_of(
    st.sampled_from(
        ["TOOL add a=1,b=2", "TOOL add a=x,b=2", "TOOL fail how=raise", "TOOL fail how=no", "TOOL nothing", "", "prose", "FINAL done"]
    ),
    ANY_TEXT,
    ANY_TEXT.map("FINAL ".__add__),
    ANY_TEXT.map("TOOL fail how=".__add__),
)

REQUESTS = st.builds(
    ToolRequest,
    id=st.sampled_from(["", "1", "2"]),
    name=st.sampled_from(["add", "fail", "nothing"]),
    arguments=st.sampled_from(['{"a": 1, "b": 2}', '{"b": 2, "a": 1}', '{"how": "raise"}', '{"how": "no"}', "{", "[]", ""]),
)
STRUCTURED_REPLIES = st.builds(
    Reply,
    text=ANY_TEXT,
    tool_calls=st.lists(REQUESTS, max_size=3).map(tuple),
    finish_reason=st.sampled_from([None, "stop", "length"]),
    taken_as=st.sampled_from([None, None, None, "answer", "talk", "unparseable"]),
    latency_s=st.none() | st.floats(0, 10),
)


def replays_from_its_file(replies: list[str | Reply], then: str | None, protocol: str, limits: tuple[int, int, int], folder: Path) -> None:
    path = folder / "t.jsonl"
    model = ScriptedModel(replies, then)
    result = run("task", model=model, tools=[add, fail], guards=classic(*limits), protocol=protocol, lang="en", trace=path)
    trace = load(path)
    assert trace == result.trace
    assert verify(trace).line is None
    again = trace.replay()
    assert (again.log, again.reason, again.step) == (result.trace.log, result.reason, result.steps)
    assert result.model_calls == model.calls <= limits[0]


LIMITS = st.tuples(st.integers(1, 6), st.integers(1, 3), st.integers(1, 4))


@settings(max_examples=60)
@given(st.lists(LINE_REPLIES, max_size=8), st.sampled_from([None, "TOOL add a=1,b={n}"]), LIMITS)
def test_any_script_of_lines_replays_from_its_trace(
    folder: Path, replies: list[str], then: str | None, limits: tuple[int, int, int]
) -> None:
    replays_from_its_file(list(replies), then, "line", limits, folder)


@settings(max_examples=60)
@given(st.lists(STRUCTURED_REPLIES, max_size=8), LIMITS)
def test_any_script_of_structured_replies_replays_from_its_trace(folder: Path, replies: list[Reply], limits: tuple[int, int, int]) -> None:
    replays_from_its_file(list(replies), None, "recorded", limits, folder)
