"""What was said, from the attributes of a GenAI span: messages, calls and results, by current and by older names.

Attributes hold JSON, as values or as text. Nothing here raises: what cannot be read is taken for text, or for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import msgspec

from fsm_agent.events import ToolRequest, ToolSpec, Usage
from fsm_agent.traces.recordings.base import UnreadableError
from fsm_agent.traces.recordings.documents import decode

_FINISH = {"max_tokens": "length", "length": "length"}
"""The reasons to stop that mean a reply was cut off; other words are kept."""


@attrs.frozen
class Output:
    """What a model call gave."""

    text: str = ""
    thoughts: str = ""
    calls: tuple[ToolRequest, ...] = ()
    finish_reason: str | None = None
    recorded: bool = False
    """Whether any content was recorded at all."""


@attrs.frozen
class Input:
    """What a model call was shown."""

    system: str = ""
    user: str = ""
    """The first that a person said."""
    results: Mapping[str, str] = attrs.field(factory=dict)
    """Tool results by the id of their call."""


def output_of(attributes: Mapping[str, Any]) -> Output:
    """The reply in a model span's attributes."""
    finish = next((reason for reason in _list(attributes.get("gen_ai.response.finish_reasons")) if isinstance(reason, str)), None)
    finish = _FINISH.get(finish, finish) if finish else None
    messages = [message for message in _list(attributes.get("gen_ai.output.messages")) if isinstance(message, dict)]
    if messages:
        parts = [part for message in messages for part in _parts(message)]
        told = next((message["finish_reason"] for message in messages if isinstance(message.get("finish_reason"), str)), None)
        return Output(
            _joined(parts, "text"),
            _joined(parts, "reasoning"),
            tuple(_request(part, "name", "arguments") for part in parts if part.get("type") == "tool_call"),
            finish or (_FINISH.get(told, told) if told else None),
            recorded=True,
        )
    output = attributes.get("gen_ai.output")
    calls = _list(output) if attributes.get("gen_ai.output.type") == "json" else []
    if calls and all(isinstance(call, dict) and "tool.name" in call for call in calls):
        return Output(calls=tuple(_request(call, "tool.name", "tool.args") for call in calls), finish_reason=finish, recorded=True)
    return Output(text_of(output), finish_reason=finish, recorded=output is not None)


def input_of(attributes: Mapping[str, Any]) -> Input:
    """What a model or agent span was given."""
    messages = [message for message in _list(attributes.get("gen_ai.input.messages")) if isinstance(message, dict)]
    system = [_joined(_list(attributes.get("gen_ai.system_instructions")), "text")]
    system += [_joined(_parts(message), "text") for message in messages if message.get("role") == "system"]
    users = [_joined(_parts(message), "text") for message in messages if message.get("role") == "user"]
    results = {
        str(part.get("id")): text_of(part.get("response", part.get("result")))
        for message in messages
        for part in _parts(message)
        if part.get("type") == "tool_call_response"
    }
    return Input("\n\n".join(text for text in system if text), next((text for text in users if text), ""), results)


def tool_call(attributes: Mapping[str, Any]) -> ToolRequest:
    """The call that a tool span made."""
    arguments = attributes.get("gen_ai.tool.call.arguments", attributes.get("gen_ai.tool.args"))
    name, call_id = attributes.get("gen_ai.tool.name"), attributes.get("gen_ai.tool.call.id")
    return ToolRequest(text_of(call_id), text_of(name), text_of(arguments))


def tool_result(attributes: Mapping[str, Any]) -> str:
    """What a tool span returned."""
    return text_of(attributes.get("gen_ai.tool.call.result", attributes.get("gen_ai.output")))


def tool_specs(attributes: Mapping[str, Any]) -> list[ToolSpec]:
    """The tools that a model or agent span was offered."""
    found = []
    for each in _list(attributes.get("gen_ai.tool.definitions")):
        told = each.get("function", each) if isinstance(each, dict) else None
        if isinstance(told, dict) and isinstance(told.get("name"), str):
            parameters = told.get("parameters")
            found.append(ToolSpec(told["name"], text_of(told.get("description")), parameters if isinstance(parameters, dict) else {}))
    return found


def usage_of(attributes: Mapping[str, Any]) -> Usage | None:
    """The tokens of a model span, and their cost in US dollars where the span tells it."""
    tokens = [_number(attributes.get(f"gen_ai.usage.{kind}_tokens")) for kind in ("input", "output")]
    costs = [_number(attributes.get(f"gen_ai.usage.{kind}_cost")) for kind in ("input", "output")]
    if tokens == [None, None] and costs == [None, None]:
        return None
    prompt, completion = (None if count is None else int(count) for count in tokens)
    return Usage(prompt, completion, None if None in costs else sum(cost for cost in costs if cost is not None))


def text_of(value: object) -> str:
    """A value as text: text as it is, anything else as JSON, nothing as ""."""
    return value if isinstance(value, str) else "" if value is None else msgspec.json.encode(value).decode()


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _list(value: object) -> list[Any]:
    """A list, or the list that a text spells; else an empty one."""
    if isinstance(value, str):
        try:
            value = decode(value.encode(), object)
        except UnreadableError:
            return []
    return value if isinstance(value, list) else []


def _parts(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A message's parts; in the older form the content is a text."""
    content = message.get("content")
    parts = message.get("parts", content)
    if isinstance(parts, str):
        return [{"type": "text", "content": parts}]
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _joined(parts: list[Any], kind: str) -> str:
    texts = [part.get("content", part.get("text")) for part in parts if isinstance(part, dict) and part.get("type") == kind]
    return "\n".join(text for text in texts if isinstance(text, str) and text)


def _request(part: Mapping[str, Any], name: str, arguments: str) -> ToolRequest:
    return ToolRequest(text_of(part.get("id")), text_of(part.get(name)), text_of(part.get(arguments)))
