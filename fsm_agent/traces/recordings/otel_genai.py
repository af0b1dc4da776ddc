"""OpenTelemetry's GenAI spans: model calls, tool executions and the agent around them, of which each run is made.

Spans are written when they end, the agent's last: here they are put in order of their start. A run is an ``invoke_agent`` span with
what it did itself, not what an agent that it invoked did; without such a span, it is a trace. Content is recorded only where
somebody asked for it: a model call without any is taken to have called the tools that ran after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from fsm_agent.events import ModelFailed, Reply, ToolRequest, ToolSpec
from fsm_agent.protocols.recorded import read_request
from fsm_agent.traces.recordings.base import Damaged, Ending, Recording, RecordingError
from fsm_agent.traces.recordings.openai_chat import ERROR
from fsm_agent.traces.recordings.otel_content import Output, input_of, output_of, text_of, tool_call, tool_result, tool_specs, usage_of
from fsm_agent.traces.recordings.otel_spans import Span, batches
from fsm_agent.traces.recordings.peek import first_run
from fsm_agent.traces.recordings.transcript import Transcript

OPERATION = "gen_ai.operation.name"
AGENT = "invoke_agent"
MODEL = frozenset({"chat", "generate_content", "text_completion", "call_llm"})
TOOL = "execute_tool"
FINAL_TOOL = "final_answer"
"""The tool by which the models of smolagents answer."""


class GenAISpans:
    """The reader."""

    name = "otel"

    def recognises(self, head: bytes, _path: Path, /) -> bool:
        first = first_run(head)
        return "resourceSpans" in first or isinstance(first.get("spans"), list) or {"traceId", "spanId"} <= first.keys() or _is_span(first)

    def read(self, path: Path, is_error: re.Pattern[str] | None = None) -> Iterator[Recording | Damaged]:
        found = 0
        for batch in batches(path):
            for damaged in (*batch.damaged, *_without_model(batch.spans)):
                found += 1
                yield damaged
            for name, agent, spans in _runs(batch.spans):
                found += 1
                yield _recording(name, agent, spans, batch.final_output if agent and agent.parent is None else None, is_error or ERROR)
        if not found:
            raise RecordingError(f"{path}: none of its spans is a model call or an agent's (by {OPERATION})")


def _is_span(first: Mapping[str, Any]) -> bool:
    context = first.get("context")
    return isinstance(context, dict) and "span_id" in context


def _runs(spans: Sequence[Span]) -> Iterator[tuple[str, Span | None, list[Span]]]:
    """Each run's name, its agent's span, and its model and tool spans in order of their start."""
    by_id = {(span.trace, span.id): span for span in spans}
    owned: dict[tuple[str, str], list[Span]] = {}
    for span in sorted(spans, key=lambda span: span.start_ns or 0):
        if _operation(span) in MODEL or _operation(span) == TOOL:
            agent = _agent_of(span, by_id)
            owned.setdefault((span.trace, agent.id if agent else ""), []).append(span)
    named: set[str] = set()
    for (trace, agent_id), own in owned.items():
        if any(_operation(span) in MODEL for span in own):
            name = f"{trace}/{agent_id}" if trace in named else trace
            named.add(trace)
            yield name, by_id.get((trace, agent_id)), own


def _without_model(spans: Sequence[Span]) -> Iterator[Damaged]:
    """The traces of an agent in which no model was called, or the call was not recorded."""
    traces = dict.fromkeys(span.trace for span in spans if _operation(span) in {AGENT, TOOL})
    for trace in traces.keys() - {span.trace for span in spans if _operation(span) in MODEL}:
        yield Damaged(f"trace {trace}", "it holds an agent's spans and no model call")


def _operation(span: Span) -> str:
    return text_of(span.attributes.get(OPERATION))


def _agent_of(span: Span, by_id: Mapping[tuple[str, str], Span]) -> Span | None:
    """The nearest agent around the span."""
    seen: set[str] = set()
    above = by_id.get((span.trace, span.parent or ""))
    while above is not None and above.id not in seen:
        if _operation(above) == AGENT:
            return above
        seen.add(above.id)
        above = by_id.get((above.trace, above.parent or ""))
    return None


def _recording(name: str, agent: Span | None, spans: list[Span], final_output: Any, is_error: re.Pattern[str]) -> Recording:
    models = [span for span in spans if _operation(span) in MODEL]
    shown = [input_of(span.attributes) for span in (*models[:1], *((agent,) if agent else ()))]
    replayed = _replayed(spans, is_error)
    about = agent.attributes if agent else {}
    told = {
        "system": next((each.system for each in shown if each.system), ""),
        "agent": text_of(about.get("gen_ai.agent.name")),
        "conversation": text_of(about.get("gen_ai.conversation.id")),
        "final_output": final_output,
        "model_failures": replayed.failures,
        "thoughts": list(replayed.thoughts),
    }
    return Recording(
        id=name,
        source=GenAISpans.name,
        task=next((each.user for each in shown if each.user), ""),
        events=replayed.transcript.end(spans[-1].end_s),
        tools=_tools(agent, spans),
        outcome="failure" if agent is not None and agent.failed else "unknown",
        ending=replayed.ending,
        model=_model(models[0]) or None,
        extra={key: value for key, value in told.items() if value} | replayed.transcript.notes(),
    )


@attrs.define
class _Replayed:
    transcript: Transcript = attrs.field(factory=Transcript)
    failures: list[str] = attrs.field(factory=list)
    """Model calls that failed and were made again."""
    thoughts: list[str] = attrs.field(factory=list)
    ending: Ending = "unknown"


def _replayed(spans: Sequence[Span], is_error: re.Pattern[str]) -> _Replayed:
    """The spans as events: each model call with the tool spans that follow it."""
    done = _Replayed()
    turns: list[tuple[Span | None, list[Span]]] = [(None, [])]
    for span in spans:
        if _operation(span) == TOOL:
            turns[-1][1].append(span)
        else:
            turns.append((span, []))
    for i, (model, tools) in enumerate(turns):
        if model is not None:
            _take_reply(done, model, tools, last=i == len(turns) - 1, is_error=is_error)
        if not done.transcript.answered:
            for tool in tools:
                _take_result(done.transcript, tool, is_error)
    return done


def _take_reply(done: _Replayed, model: Span, tools: Sequence[Span], *, last: bool, is_error: re.Pattern[str]) -> None:
    output = output_of(model.attributes)
    for call_id, text in input_of(model.attributes).results.items():
        if call_id in done.transcript.open_calls:
            done.transcript.result(text, failed=is_error.search(text) is not None, place=model.name, call_id=call_id, at=model.start_s)
    if model.failed and not output.recorded and not tools:
        error = text_of(model.attributes.get("error.type")) or "error"
        if last:
            done.transcript.settle()
            done.transcript.events.append(ModelFailed(error, model.problem, model.end_s))
            done.ending = "model_error"
        else:
            done.failures.append(f"{error}: {model.problem}")
        return
    calls = output.calls or tuple(tool_call(tool.attributes) for tool in tools)
    answer = _answer(output, calls) if last else None
    if answer is not None:
        done.ending = "answer"
    if output.thoughts and (answer is not None or not calls):
        done.thoughts.append(output.thoughts)
    thought = output.thoughts if calls and answer is None else ""
    done.transcript.reply(
        Reply(
            "\n".join(part for part in (thought, output.text) if part) if answer is None else answer,
            calls if answer is None else (),
            output.finish_reason,
            usage_of(model.attributes),
            _model(model) or None,
            model.duration_s,
            None if answer is None else "answer",
        ),
        model.end_s,
    )


def _answer(output: Output, calls: Sequence[ToolRequest]) -> str | None:
    """The answer in the last reply: a text without calls, or a call of the tool that is there to answer."""
    if not calls:
        return output.text if output.text.strip() or not output.recorded else None
    if len(calls) > 1 or calls[0].name != FINAL_TOOL:
        return None
    call = read_request(calls[0])
    return text_of(call.arguments["answer"]) if call and "answer" in call.arguments else calls[0].arguments


def _take_result(transcript: Transcript, tool: Span, is_error: re.Pattern[str]) -> None:
    call = tool_call(tool.attributes)
    text = tool_result(tool.attributes) or (tool.problem if tool.failed else "")
    failed = tool.failed or "error.type" in tool.attributes or is_error.search(text) is not None
    known = call.id if call.id in transcript.open_calls else None
    transcript.result(text, failed=failed, place=tool.name, call_id=known, tool=call.name, at=tool.end_s)


def _model(span: Span) -> str:
    return text_of(span.attributes.get("gen_ai.response.model", span.attributes.get("gen_ai.request.model")))


def _tools(agent: Span | None, spans: Sequence[Span]) -> tuple[ToolSpec, ...]:
    """The tools that were offered, and those that ran."""
    found = {spec.name: spec for span in (*((agent,) if agent else ()), *spans) for spec in tool_specs(span.attributes)}
    for span in spans:
        name = text_of(span.attributes.get("gen_ai.tool.name"))
        if name and name not in found:
            found[name] = ToolSpec(name, text_of(span.attributes.get("gen_ai.tool.description")))
    return tuple(found.values())
