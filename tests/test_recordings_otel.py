"""Recordings of OpenTelemetry's GenAI spans, by current and by older names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fsm_agent.events import ModelFailed, ModelReplied, Observation, Reply, ToolRequest, ToolSpec, ToolsReturned, Usage
from fsm_agent.traces.recordings import Damaged, Recording, RecordingError, detect, read
from tests.fixtures import FOLDER, both, edges

TRACE = "5b8aa5a2d2c872e8321cf37308d69df2"
START_S = 1_700_000_000.0


def after(seconds: float) -> float:
    return START_S + seconds


def test_otlp_with_the_current_names_an_agent_within_an_agent_and_failed_model_calls() -> None:
    path = FOLDER / "otel_otlp.json"
    assert detect(path) == "otel"
    looks = (ToolRequest("a", "look", '{"at":"hill"}'), ToolRequest("b", "look", '{"at":"lake"}'))
    seen = (Observation("look", '{"seen":["tree"]}'), Observation("look", "no answer", "tool_error"))
    assert both(path) == (
        [
            Recording(
                id="00000000000000000000000000000abc",
                source="otel",
                task="Hello?",
                events=(ModelFailed("RateLimit", "429", after(3)),),
                outcome="failure",
                ending="model_error",
                model="m",
                extra={"model_failures": ["overloaded: try later"]},
            ),
            Recording(
                id=TRACE,
                source="otel",
                task="What is there?",
                events=(
                    ModelReplied(Reply("Two looks.\nI look.", looks, "tool_call", Usage(30, 7), "m-1", 1.0), after(2)),
                    ToolsReturned(seen, after(5)),
                    ModelReplied(Reply("", (ToolRequest("c", "botanist", "{}"),), latency_s=1.0), after(6)),
                    ToolsReturned((Observation("botanist", "It is an oak."),), after(9)),
                    ModelReplied(Reply("An oak on a hill.", finish_reason="stop", latency_s=1.0, taken_as="answer"), after(11)),
                ),
                tools=(ToolSpec("look", "Looks.", {"type": "object"}), ToolSpec("botanist")),
                ending="answer",
                model="m-1",
                extra={"system": "Be brief.", "agent": "guide", "conversation": "conv-1", "thoughts": ["All known."]},
            ),
            Recording(
                id=f"{TRACE}/0000000000000007",
                source="otel",
                task="Which tree?",
                events=(ModelReplied(Reply("It is an oak.", finish_reason="stop", latency_s=1.0, taken_as="answer"), after(8)),),
                ending="answer",
                extra={"agent": "botanist"},
            ),
        ],
        [
            Damaged("span 15", "the span has no trace id and span id"),
            Damaged("trace 00000000000000000000000000000def", "it holds an agent's spans and no model call"),
        ],
    )


def test_the_older_names_and_ids_beyond_64_bits() -> None:
    path = FOLDER / "otel_older.json"
    assert detect(path) == "otel"
    assert both(path) == (
        [
            Recording(
                id="8000000000000000ab54a98ceb1f0ad2",
                source="otel",
                task="What year is it?",
                events=(
                    ModelReplied(Reply("", (ToolRequest("", "year", '{"zone":"UTC"}'),), None, Usage(20, 5, 0.75), "m", 1.0), after(2)),
                    ToolsReturned((Observation("year", "2025"),), after(4)),
                    ModelReplied(Reply("I have it.", latency_s=1.0), after(6)),
                    ModelReplied(Reply("2025", latency_s=1.0, taken_as="answer"), after(8)),
                ),
                tools=(ToolSpec("year", "The year."), ToolSpec("final_answer")),
                ending="answer",
                model="m",
                extra={"system": "Be brief.", "agent": "a", "final_output": {"year": 2025}},
            )
        ],
        [],
    )


def test_a_span_a_line_without_content() -> None:
    path = FOLDER / "otel_lines.jsonl"
    assert detect(path) == "otel"
    runs, damaged = both(path)
    assert damaged == [Damaged("line 6", "the JSON is cut off at column 39")]
    assert runs == [
        Recording(
            id=TRACE,
            source="otel",
            task="",
            events=(
                ModelReplied(Reply("", (ToolRequest("a", "look", ""),), "tool_calls", latency_s=1.5), after(1.5)),
                ToolsReturned((Observation("look", ""),), after(3.5)),
                ModelReplied(Reply("", (ToolRequest("q", "look", "{}"),), "length", latency_s=1.5), after(5.5)),
                ModelReplied(Reply("", (ToolRequest("r", "look", "{}"),), latency_s=1.5), after(7.5)),
                ToolsReturned((Observation("look", "Error: dark", "tool_error"),), after(8)),
                ModelReplied(Reply("", finish_reason="stop", latency_s=1.5, taken_as="answer"), after(9.5)),
            ),
            tools=(ToolSpec("look"),),
            ending="answer",
        )
    ]
    assert edges(runs[0]) == [
        *("model_replied", "call_tools", "tools_returned", "go_on"),
        *("model_replied", "malformed", "go_on"),
        *("model_replied", "call_tools", "tools_returned", "go_on"),
        *("model_replied", "final_answer"),
    ]


@pytest.mark.parametrize(
    ("span", "problem"),
    [
        ({"traceId": "a", "spanId": "b"}, "none of its spans is a model call or an agent's (by gen_ai.operation.name)"),
        ({"traceId": "a", "spanId": "b", "startTimeUnixNano": "soon"}, None),
    ],
)
def test_spans_that_are_of_no_use_are_told(tmp_path: Path, span: dict[str, str], problem: str | None) -> None:
    path = tmp_path / "spans.json"
    path.write_text(json.dumps([span]), encoding="utf-8")
    if problem is None:
        assert list(read(path)) == [Damaged("span 1", "'soon' is no time")]
        return
    with pytest.raises(RecordingError) as caught:
        list(read(path))
    assert str(caught.value) == f"{path}: {problem}"


def test_a_parent_that_is_its_own_child_ends_the_search_for_an_agent(tmp_path: Path) -> None:
    path = tmp_path / "spans.json"
    span = {
        "traceId": "a",
        "spanId": "b",
        "parentSpanId": "b",
        "attributes": [{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}],
    }
    path.write_text(json.dumps([span]), encoding="utf-8")
    [run], damaged = both(path)
    assert (run.id, run.ending, damaged) == ("a".zfill(32), "answer", [])
