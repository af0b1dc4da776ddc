"""Spans of a run for OpenTelemetry: ``run(..., hooks=[OpenTelemetry()])``, with ``pip install "fsm-agent[otel]"``.

One span ``invoke_agent`` for the run, and in it one ``chat`` for each time that the model is asked and one ``execute_tool`` for each call
of a tool. Their attributes have the names of OpenTelemetry's conventions for generative AI (as of version 1.41, in development), written
out here because the package that holds them marks them as passing. What the conventions have no name for begins with ``fsm_agent.``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import msgspec

from fsm_agent.drivers.setup import AWAITING
from fsm_agent.drivers.watching import Watcher
from fsm_agent.events import (
    AskApproval,
    AskModel,
    AttemptFailed,
    Event,
    Message,
    ModelFailed,
    ModelReplied,
    Observation,
    Reply,
    ToolCall,
    ToolRequest,
)
from fsm_agent.machine import Run, Taken

try:
    from opentelemetry import context, trace
    from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TracerProvider
except ImportError:
    raise ImportError('spans need the package opentelemetry-api: pip install "fsm-agent[otel]"') from None

FAILURES = frozenset({"model_error", "tools_failed"})
"""The halt reasons that make the run's span one of an error. A guard that halts a run does what it is there for."""


@attrs.define(eq=False)
class _Spans:
    """The open spans of one run."""

    agent: Span
    inside: Any
    """The context in which the run's span is the current one."""
    token: Any
    """With it the context of before is put back."""
    chat: Span | None = None
    tools: dict[int, Span] = attrs.field(factory=dict)


class OpenTelemetry(Watcher):
    """A hook that makes spans. One of them can watch many runs at a time."""

    def __init__(self, *, model: str = "", name: str = "fsm_agent", content: bool = False, provider: TracerProvider | None = None) -> None:
        """``model``: its name, such as ``openai:gpt-5``; ``name``: the agent's. ``content``: what was said goes into the spans, too: it may
        be private, and is left out by default. ``provider``: whose tracer is used; by default the global one.
        """
        self._tracer = trace.get_tracer("fsm_agent", tracer_provider=provider)
        self._provider, _, self._model = model.rpartition(":")
        self._name = name
        self._content = content
        self._runs: dict[int, _Spans] = {}

    def began(self, run: Run) -> None:
        attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": self._name, **self._of_model()}
        if run.id:
            attributes["gen_ai.conversation.id"] = run.id
        agent = self._tracer.start_span(f"invoke_agent {self._name}", kind=SpanKind.INTERNAL, attributes=attributes)
        inside = trace.set_span_in_context(agent)
        self._runs[id(run)] = _Spans(agent, inside, context.attach(inside))

    def asks(self, run: Run, question: AskModel) -> None:
        spans = self._runs[id(run)]
        attributes: dict[str, Any] = {"gen_ai.operation.name": "chat", **self._of_model(), "fsm_agent.step": run.step + 1}
        if question.attempt > 1:
            attributes["fsm_agent.attempt"] = question.attempt
        if self._content:
            attributes["gen_ai.input.messages"] = _json([_message(each) for each in question.messages])
            attributes["gen_ai.tool.definitions"] = _json(
                [
                    {"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.parameters}
                    for tool in question.tools
                ]
            )
        spans.chat = self._tracer.start_span(
            f"chat {self._model}".strip(), context=spans.inside, kind=SpanKind.CLIENT, attributes=attributes
        )

    def took(self, run: Run, event: Event, edges: Sequence[Taken], /) -> None:
        spans = self._runs[id(run)]
        for edge in edges:
            spans.agent.add_event("fsm_agent.edge", {"fsm_agent.edge": edge.edge, "fsm_agent.step": edge.step})
        if spans.chat is None:
            return
        match event:
            case ModelReplied(reply=reply):
                spans.chat.set_attributes(_of_reply(reply, content=self._content))
            case ModelFailed(error=error, message=message) | AttemptFailed(error=error, message=message):
                _fail(spans.chat, error, message)
            case _:
                _fail(spans.chat, "cancelled", "")
        spans.chat.end()
        spans.chat = None

    def calls(self, run: Run, index: int, call: ToolCall) -> None:
        spans = self._runs[id(run)]
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": call.id or call.key,
            "fsm_agent.step": run.step,
        }
        if self._content:
            attributes["gen_ai.tool.call.arguments"] = _json(call.arguments)
        span = self._tracer.start_span(f"execute_tool {call.name}", context=spans.inside, kind=SpanKind.INTERNAL, attributes=attributes)
        spans.tools[index] = span
        context.attach(trace.set_span_in_context(span, spans.inside))  # for what the tool does itself; ``ended`` puts back what was before

    def called(self, run: Run, index: int, observation: Observation) -> None:
        spans = self._runs[id(run)]
        context.attach(spans.inside)
        span = spans.tools.pop(index)
        if self._content:
            span.set_attribute("gen_ai.tool.call.result", observation.text)
        if observation.is_error:
            _fail(span, observation.kind, observation.text if self._content else "")
        span.end()

    def ended(self, run: Run) -> None:
        spans = self._runs.pop(id(run))
        for span in (*spans.tools.values(), *([spans.chat] if spans.chat else [])):
            _fail(span, "abandoned", "")
            span.end()
        reason = run.reason or (AWAITING if isinstance(run.effect, AskApproval) else "broken_off")
        spans.agent.set_attributes({"fsm_agent.halt_reason": reason, "fsm_agent.steps": run.step, **_usage(_total(run))})
        if reason in FAILURES:
            _fail(spans.agent, reason, "")
        spans.agent.end()
        context.detach(spans.token)

    def _of_model(self) -> dict[str, str]:
        told = {"gen_ai.provider.name": self._provider, "gen_ai.request.model": self._model}
        return {name: value for name, value in told.items() if value}


def _of_reply(reply: Reply, *, content: bool) -> dict[str, Any]:
    attributes: dict[str, Any] = _usage((reply.usage.prompt_tokens, reply.usage.completion_tokens)) if reply.usage else {}
    if reply.model:
        attributes["gen_ai.response.model"] = reply.model
    if reply.finish_reason:
        attributes["gen_ai.response.finish_reasons"] = [reply.finish_reason]
    if content:
        said = _message(Message("assistant", reply.text, reply.tool_calls))
        attributes["gen_ai.output.messages"] = _json([{**said, "finish_reason": reply.finish_reason or "stop"}])
    return attributes


def _usage(tokens: tuple[int | None, int | None]) -> dict[str, int]:
    names = ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens")
    return {name: count for name, count in zip(names, tokens, strict=True) if count is not None}


def _total(run: Run) -> tuple[int | None, int | None]:
    """Tokens read and written in the whole run; None: nobody told."""
    usages = [entry.reply.usage for entry in run.log if isinstance(entry, ModelReplied) and entry.reply.usage]
    read = [usage.prompt_tokens for usage in usages if usage.prompt_tokens is not None]
    written = [usage.completion_tokens for usage in usages if usage.completion_tokens is not None]
    return sum(read) if read else None, sum(written) if written else None


def _message(message: Message) -> dict[str, Any]:
    """A message in the conventions' form: a role and parts."""
    if message.role == "tool":
        return {"role": "tool", "parts": [{"type": "tool_call_response", "id": message.tool_call_id, "response": message.content}]}
    parts: list[dict[str, Any]] = [{"type": "text", "content": message.content}] if message.content else []
    return {"role": message.role, "parts": [*parts, *map(_call, message.tool_calls)]}


def _call(request: ToolRequest) -> dict[str, Any]:
    return {"type": "tool_call", "id": request.id, "name": request.name, "arguments": request.arguments}


def _fail(span: Span, kind: str, message: str) -> None:
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR, message or None))


def _json(value: Mapping[str, Any] | Sequence[Any]) -> str:
    return msgspec.json.encode(value).decode()
