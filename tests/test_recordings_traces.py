"""The package's own traces, read as recordings: they replay to the same edges."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsm_agent.drivers import run
from fsm_agent.events import ModelReplied, RecordingEnded, Reply, ToolRequest, ToolsReturned
from fsm_agent.guards import classic
from fsm_agent.models import ScriptedModel
from fsm_agent.tools import add
from fsm_agent.traces.recordings import RecordingError, detect, read
from fsm_agent.traces.replay import replay
from tests.fixtures import both, edges


def trace(folder: Path, *script: str, then: str | None = None) -> Path:
    path = folder / "run-1.jsonl"
    run("a task", model=ScriptedModel(list(script), then=then), tools=[add], guards=classic(6, 2, 2), lang="en", trace=path, title="One")
    return path


def test_replies_are_told_with_what_the_protocol_took_them_for(tmp_path: Path) -> None:
    path = trace(tmp_path, "TOOL add a=3,b=4", "what?", "TOOL add a=1,b=1", "TOOL add a=x,b=1", "FINAL 7")
    assert detect(path) == "trace"
    [found], damaged = both(path)
    assert damaged == []
    assert [event.reply for event in found.events if isinstance(event, ModelReplied)] == [
        Reply("", (ToolRequest("", "add", '{"a":"3","b":"4"}'),)),
        Reply("what?", taken_as="unparseable"),
        Reply("", (ToolRequest("", "add", '{"a":"1","b":"1"}'),)),
        Reply("", (ToolRequest("", "add", '{"a":"x","b":"1"}'),)),
        Reply("7", taken_as="answer"),
    ]


@pytest.mark.parametrize(
    ("script", "then", "ending", "halted"),
    [
        (["TOOL add a=3,b=4", "what?", "FINAL 7"], None, "answer", "final_answer"),
        ([], "TOOL add a=3,b=4", "guard", "repeated_call"),
        ([], "TOOL add a=3,b={n}", "cap", "max_steps"),
        (["", "well"], None, "guard", "consecutive_errors"),
        (["TOOL add a=3,b=4"], None, "model_error", "model_error"),
    ],
)
def test_a_trace_replays_to_its_own_edges(tmp_path: Path, script: list[str], then: str | None, ending: str, halted: str) -> None:
    path = trace(tmp_path, *script, then=then)
    [found], _ = both(path)
    assert (found.id, found.task, found.ending, found.outcome) == ("run-1", "a task", ending, "unknown")
    assert found.extra == {"title": "One", "halted": halted, "protocol": "line"}
    assert found.tools == (add.spec,)
    assert replay(found, classic(6, 2, 2)).reason == halted


def test_a_trace_that_was_cut_off_simply_ends(tmp_path: Path) -> None:
    path = trace(tmp_path, "TOOL add a=3,b=4", "FINAL 7")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:5]) + lines[5][:20])
    [found], _ = both(path)
    assert found.extra["cut_off"] is True
    assert (found.ending, found.events[-1]) == ("unknown", RecordingEnded())
    assert edges(found)[-1].startswith("recording_ended")


def test_a_rule_for_errors_is_put_to_what_the_tools_returned(tmp_path: Path) -> None:
    path = trace(tmp_path, "TOOL add a=3,b=4", "FINAL 7")
    [found], _ = both(path, None, "7")
    assert [o.kind for event in found.events if isinstance(event, ToolsReturned) for o in event.observations] == ["tool_error"]


def test_a_trace_that_is_none_is_told_with_its_line(tmp_path: Path) -> None:
    path = trace(tmp_path, "FINAL 7")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b'{"event": "Nothing"}\n')
    with pytest.raises(RecordingError, match=r"run-1\.jsonl, line 2: "):
        list(read(path))
    path.write_bytes(lines[0] + b'{"event": "ToolsReturned", "observations": []}\n')
    with pytest.raises(RecordingError, match="these events belong to no run: ToolsReturned in Deciding"):
        list(read(path))
