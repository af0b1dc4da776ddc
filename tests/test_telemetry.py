"""Spans of a run: their tree, their attributes, and that what was said stays out of them unless it is asked for."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace as otel
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from fsm_agent import Message, Reply, ScriptedModel, ToolError, arun, classic, run, tool
from fsm_agent.events import Event, ModelReplied, ToolRequest, ToolsReturned, Usage
from fsm_agent.models import ModelUnavailable
from fsm_agent.telemetry import OpenTelemetry
from fsm_agent.tools import add
from fsm_agent.traces.recordings import Recording, read

ADD = Reply("Adding.", (ToolRequest("c1", "add", '{"a":3,"b":4}'),), "tool_calls", Usage(100, 20), model="gpt-x-2026", latency_s=0.5)
ANSWER = Reply("7", (), "stop", Usage(130, 5), model="gpt-x-2026")


class Watched:
    """A hook and the spans that it made."""

    def __init__(self, **options: Any) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.hook = OpenTelemetry(provider=self.provider, **options)

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        return sorted(self._exporter.get_finished_spans(), key=lambda span: span.start_time or 0)

    def told(self) -> list[tuple[str, dict[str, Any]]]:
        """Names and attributes in order of their start, but for what is another in each run."""
        return [(span.name, {k: v for k, v in (span.attributes or {}).items() if k != "gen_ai.conversation.id"}) for span in self.spans]


def test_a_run_is_a_tree_of_spans_with_the_conventions_names() -> None:
    watched = Watched(model="openai:gpt-x")
    run("What is 3 + 4?", model=ScriptedModel([ADD, ANSWER]), tools=[add], protocol="function_calling", hooks=[watched.hook])
    asked = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-x"}
    assert watched.told() == [
        (
            "invoke_agent fsm_agent",
            {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": "fsm_agent",
                "gen_ai.provider.name": "openai",
                "gen_ai.request.model": "gpt-x",
                "gen_ai.usage.input_tokens": 230,
                "gen_ai.usage.output_tokens": 25,
                "fsm_agent.halt_reason": "final_answer",
                "fsm_agent.steps": 2,
            },
        ),
        (
            "chat gpt-x",
            {
                **asked,
                "fsm_agent.step": 1,
                "gen_ai.response.model": "gpt-x-2026",
                "gen_ai.response.finish_reasons": ("tool_calls",),
                "gen_ai.usage.input_tokens": 100,
                "gen_ai.usage.output_tokens": 20,
            },
        ),
        (
            "execute_tool add",
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "add",
                "gen_ai.tool.type": "function",
                "gen_ai.tool.call.id": "c1",
                "fsm_agent.step": 1,
            },
        ),
        (
            "chat gpt-x",
            {
                **asked,
                "fsm_agent.step": 2,
                "gen_ai.response.model": "gpt-x-2026",
                "gen_ai.response.finish_reasons": ("stop",),
                "gen_ai.usage.input_tokens": 130,
                "gen_ai.usage.output_tokens": 5,
            },
        ),
    ]
    agent = watched.spans[0]
    assert [(span.parent.span_id if span.parent else None) for span in watched.spans] == [None, *[agent.context.span_id] * 3]
    edges = [(event.attributes or {})["fsm_agent.edge"] for event in agent.events]
    assert edges == ["model_replied", "call_tools", "tools_returned", "go_on", "model_replied", "final_answer"]
    assert all(span.status.is_ok or span.status.is_unset for span in watched.spans)


def test_what_was_said_is_in_the_spans_only_when_it_is_asked_for(tmp_path: Path) -> None:
    for content in (False, True):
        watched = Watched(content=content)
        run("a secret", model=ScriptedModel([ADD, ANSWER]), tools=[add], protocol="function_calling", hooks=[watched.hook])
        text = "\n".join(span.to_json(indent=None) for span in watched.spans)
        assert ("a secret" in text, "Adding." in text) == (content, content)


def test_spans_with_content_are_read_back_as_the_run_that_made_them(tmp_path: Path) -> None:
    watched = Watched(content=True, model="openai:gpt-x")
    result = run("What is 3 + 4?", model=ScriptedModel([ADD, ANSWER]), tools=[add], protocol="function_calling", hooks=[watched.hook])
    path = tmp_path / "spans.jsonl"
    path.write_text("".join(span.to_json(indent=None) + "\n" for span in watched.spans), encoding="utf-8")
    (found,) = read(path)
    assert isinstance(found, Recording)
    assert found.task == "What is 3 + 4?"
    assert [tool.name for tool in found.tools] == ["add"]
    assert list(map(said, found.events)) == list(map(said, result.trace.events))


def said(event: Event) -> object:
    """What an event tells, but for its time and how a reply is to be taken."""
    match event:
        case ModelReplied(reply=reply):
            return reply.text, reply.tool_calls, reply.usage, reply.finish_reason
        case ToolsReturned(observations=observations):
            return observations
    return type(event)


def test_failures_are_errors_and_a_guards_halt_is_none() -> None:
    @tool
    def broken() -> str:
        raise ToolError("no luck")

    def model(messages: Sequence[Message]) -> str:
        if len(messages) > 3:
            raise ModelUnavailable("too many requests", retry_after_s=0)
        return "TOOL broken"

    def errors(watched: Watched) -> list[tuple[str, object, bool]]:
        return [(span.name, (span.attributes or {}).get("error.type"), span.status.is_ok or span.status.is_unset) for span in watched.spans]

    failed = Watched()
    run("t", model=model, tools=[broken], max_retries=1, hooks=[failed.hook])
    assert errors(failed) == [
        ("invoke_agent fsm_agent", "model_error", False),
        ("chat", None, True),
        ("execute_tool broken", "tool_error", False),
        ("chat", "ModelUnavailable", False),
        ("chat", "ModelUnavailable", False),
    ]
    assert [(span.attributes or {}).get("fsm_agent.attempt") for span in failed.spans if span.name == "chat"] == [None, None, 2]
    halted = Watched()
    run("t", model=ScriptedModel(["TOOL broken"] * 2), tools=[broken], guards=classic(), hooks=[halted.hook])
    assert errors(halted)[0] == ("invoke_agent fsm_agent", None, True)
    assert (halted.spans[0].attributes or {})["fsm_agent.halt_reason"] == "consecutive_errors"


def test_a_run_is_a_child_of_what_it_runs_in_and_what_a_tool_does_is_its_child() -> None:
    watched = Watched()
    tracer = watched.provider.get_tracer("test")

    @tool
    def search(q: str) -> str:
        with tracer.start_as_current_span(f"query {q}"):
            return "found"

    calls = Reply("", tuple(ToolRequest(q, "search", f'{{"q":"{q}"}}') for q in "ab"))
    with tracer.start_as_current_span("outside") as outside:
        run("t", model=ScriptedModel([calls, Reply("ok")]), tools=[search], protocol="function_calling", hooks=[watched.hook])
        assert otel.get_current_span() is outside
    by_id = {span.context.span_id: span.name for span in watched.spans}
    parents = {span.name: by_id[span.parent.span_id] for span in watched.spans if span.parent}
    ids = {span.context.span_id: (span.attributes or {}).get("gen_ai.tool.call.id") for span in watched.spans}
    assert parents["invoke_agent fsm_agent"] == "outside"
    assert {span.name: ids[span.parent.span_id] for span in watched.spans if span.name.startswith("query") and span.parent} == {
        "query a": "a",
        "query b": "b",
    }


def test_runs_at_the_same_time_have_trees_of_their_own() -> None:
    watched = Watched()

    async def model(messages: Sequence[Message]) -> str:
        await asyncio.sleep(0)
        return "FINAL ok" if len(messages) > 2 else "TOOL add a=1,b=2"

    async def several() -> None:
        await asyncio.gather(*(arun(f"task {n}", model=model, tools=[add], hooks=[watched.hook]) for n in range(5)))

    asyncio.run(several())
    threads = [
        threading.Thread(
            target=run,
            args=("t",),
            kwargs={"model": ScriptedModel(["TOOL add a=1,b=2", "FINAL 3"]), "tools": [add], "hooks": [watched.hook]},
        )
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    trees: dict[int, list[str]] = {}
    for span in watched.spans:
        trees.setdefault(span.context.trace_id, []).append(span.name)
    assert list(trees.values()) == [["invoke_agent fsm_agent", "chat", "execute_tool add", "chat"]] * 8
    assert watched.hook._runs == {}


def test_a_run_that_is_broken_off_or_waits_leaves_no_span_open() -> None:
    @tool(side_effects=True)
    def pay() -> str:
        return "paid"

    waiting = Watched()
    run("t", model=ScriptedModel(["TOOL pay"]), tools=[pay], hooks=[waiting.hook])
    assert (waiting.spans[0].attributes or {})["fsm_agent.halt_reason"] == "awaiting_approval"

    def raises(*_: object) -> None:
        raise RuntimeError("a hook of the user's")

    broken = Watched()
    with pytest.raises(RuntimeError, match="a hook of the user's"):
        run("t", model=ScriptedModel(["TOOL pay"]), tools=[pay], hooks=[raises, broken.hook])
    assert [(span.name, (span.attributes or {}).get("error.type")) for span in broken.spans] == [
        ("invoke_agent fsm_agent", None),
        ("chat", "abandoned"),
    ]
    assert (broken.spans[0].attributes or {})["fsm_agent.halt_reason"] == "broken_off"


def test_without_the_package_one_line_says_what_to_install() -> None:
    code = "import sys; sys.modules['opentelemetry'] = None\nimport fsm_agent.telemetry"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == 'ImportError: spans need the package opentelemetry-api: pip install "fsm-agent[otel]"'
