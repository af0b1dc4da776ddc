"""Chat completions, the protocol of OpenAI and of every server compatible with it: a request from a history, a reply from an answer.

Pure. What a server sent is believed in nothing: fields may be missing, null, or of any type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fsm_agent.events import Message, Reply, ToolRequest, ToolSpec, Usage
from fsm_agent.models.conversation import Names, arguments_object, conversation, schema_of
from fsm_agent.models.errors import BrokenOff, NoReply
from fsm_agent.models.wary import as_count, as_json, as_list, as_mapping, as_text


def request_of(messages: Sequence[Message], tools: Sequence[ToolSpec]) -> dict[str, Any]:
    """The part of a request that says what was said, and which tools there are."""
    names = Names(tools)
    request: dict[str, Any] = {"messages": [_message(message, names) for message in conversation(messages, tools, names)]}
    if tools:
        request["tools"] = [_tool(tool, names) for tool in tools]
    return request


def _message(message: Message, names: Names) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id, "content": message.content}
    if not message.tool_calls:
        return {"role": message.role, "content": message.content}
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": names.sent(call.name), "arguments": as_json(arguments_object(call))},
        }
        for call in message.tool_calls
    ]
    return {"role": "assistant", "content": message.content or None, "tool_calls": calls}


def _tool(tool: ToolSpec, names: Names) -> dict[str, Any]:
    return {"type": "function", "function": {"name": names.sent(tool.name), "description": tool.description, "parameters": schema_of(tool)}}


def reply_of(answer: Mapping[str, Any], tools: Sequence[ToolSpec]) -> Reply:
    """The reply in a whole answer. Raises ``NoReply`` where there is none in it."""
    choices = as_list(answer.get("choices"))
    if not choices:
        raise NoReply(answer)
    choice = as_mapping(choices[0])
    message = as_mapping(choice.get("message"))
    calls = [
        (as_text(call.get("id")), as_text(function.get("name")), as_json(function.get("arguments")))
        for call in map(as_mapping, as_list(message.get("tool_calls")))
        if (function := as_mapping(call.get("function")))
    ]
    return _reply(message, calls, choice.get("finish_reason"), answer, Names(tools))


class StreamReader:
    """Puts a streamed answer together."""

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        self._names = Names(tools)
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._calls: list[tuple[object, list[str], list[str], list[str]]] = []
        """The index, and the pieces of id, name and arguments."""
        self._finish: object = None
        self._answer: dict[str, Any] = {}

    def take(self, chunk: Mapping[str, Any]) -> str:
        """Take one chunk. Gives the text in it."""
        for field in ("model", "usage"):
            if chunk.get(field):
                self._answer[field] = chunk[field]
        shown = ""
        for choice in map(as_mapping, as_list(chunk.get("choices"))[:1]):
            delta = as_mapping(choice.get("delta"))
            self._finish = choice.get("finish_reason") or self._finish
            text, refusal = as_text(delta.get("content")), as_text(delta.get("refusal"))
            self._text.append(text)
            self._refusal.append(refusal)
            shown += text + refusal
            for call in map(as_mapping, as_list(delta.get("tool_calls"))):
                self._take_call(call)
        return shown

    def _take_call(self, piece: Mapping[str, Any]) -> None:
        """A call's first piece has its id and name. Some servers number no calls, or all of them alike; a new id then tells them apart."""
        index, id_ = piece.get("index"), as_text(piece.get("id"))
        call = next((call for call in reversed(self._calls) if call[0] == index), None)
        if call is None or (id_ and call[1] and id_ != call[1][0]):
            call = (index, [], [], [])
            self._calls.append(call)
        function = as_mapping(piece.get("function"))
        for field, value in ((call[1], id_), (call[2], as_text(function.get("name")))):
            if value and not field:
                field.append(value)
        call[3].append(as_json(function.get("arguments")))

    @property
    def usage(self) -> object:
        """What the server said of tokens, as it came."""
        return self._answer.get("usage")

    def reply(self) -> Reply:
        """The whole reply. Raises ``BrokenOff`` where the stream ended before it did."""
        if self._finish is None:
            raise BrokenOff
        message = {"content": "".join(self._text), "refusal": "".join(self._refusal)}
        calls = [("".join(id_), "".join(name), "".join(arguments)) for _, id_, name, arguments in self._calls]
        return _reply(message, calls, self._finish, self._answer, self._names)


def _reply(
    message: Mapping[str, Any], calls: Iterable[tuple[str, str, str]], finish: object, answer: Mapping[str, Any], names: Names
) -> Reply:
    text, refusal = as_text(message.get("content")), as_text(message.get("refusal"))
    requests = tuple(ToolRequest(id_, names.own(name), arguments) for id_, name, arguments in calls)
    reason = "refusal" if refusal and not text and not requests else as_text(finish) or None
    return Reply(text or refusal, requests, reason, _usage(answer.get("usage")), as_text(answer.get("model")) or None)


def _usage(sent: object) -> Usage | None:
    """Tokens, and the cost in US dollars where the server tells it, as OpenRouter does."""
    usage = as_mapping(sent)
    cost = usage.get("cost")
    known = float(cost) if isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < float("inf") else None
    found = Usage(as_count(usage.get("prompt_tokens")), as_count(usage.get("completion_tokens")), known)
    return None if found == Usage() else found


def cached(usage: Mapping[str, Any]) -> tuple[int, int]:
    """How many of the tokens came from the server's cache; nothing is charged for putting them there."""
    return as_count(as_mapping(usage.get("prompt_tokens_details")).get("cached_tokens")) or 0, 0
