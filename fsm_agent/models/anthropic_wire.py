"""Anthropic's Messages API: a request from a history, a reply from an answer.

Pure, and as wary as ``openai_wire``. What the model thinks apart from its text is not kept, and not sent back: a server that
checks it refuses a conversation that was shortened in the meantime.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fsm_agent.events import Message, Reply, ToolRequest, ToolSpec, Usage
from fsm_agent.models.conversation import Names, arguments_object, conversation, schema_of
from fsm_agent.models.errors import BrokenOff, NoReply
from fsm_agent.models.wary import as_count, as_json, as_list, as_mapping, as_text

FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
}
"""Stop reasons in the words of chat completions; others (``refusal``, ``pause_turn``) stay as they are."""

EMPTY = "(empty)"
"""In place of a text of white space, which the API refuses."""


def request_of(messages: Sequence[Message], tools: Sequence[ToolSpec]) -> dict[str, Any]:
    """The part of a request that says what was said, and which tools there are."""
    names = Names(tools)
    system: list[str] = []
    turns: list[dict[str, Any]] = []
    for message in conversation(messages, tools, names):
        if message.role == "system":
            system.append(message.content)
            continue
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _blocks(message, names)
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        elif blocks:
            turns.append({"role": role, "content": blocks})
    request: dict[str, Any] = {"messages": turns or [{"role": "user", "content": EMPTY}]}
    if any(text.strip() for text in system):
        request["system"] = "\n\n".join(system)
    if tools:
        request["tools"] = [
            {"name": names.sent(tool.name), "description": tool.description, "input_schema": schema_of(tool)} for tool in tools
        ]
    return request


def _blocks(message: Message, names: Names) -> list[dict[str, Any]]:
    text = message.content
    if message.role == "tool":
        return [{"type": "tool_result", "tool_use_id": message.tool_call_id, "content": text if text.strip() else EMPTY}]
    if message.role == "user":
        return [{"type": "text", "text": text if text.strip() else EMPTY}]
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text.strip() else []
    blocks += [
        {"type": "tool_use", "id": call.id, "name": names.sent(call.name), "input": arguments_object(call)} for call in message.tool_calls
    ]
    return blocks


def reply_of(answer: Mapping[str, Any], tools: Sequence[ToolSpec]) -> Reply:
    """The reply in a whole answer. Raises ``NoReply`` where there is none in it."""
    if not isinstance(answer.get("content"), list):
        raise NoReply(answer)
    blocks = [as_mapping(block) for block in as_list(answer.get("content"))]
    return _reply(blocks, answer, Names(tools))


class StreamReader:
    """Puts a streamed answer together."""

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        self._names = Names(tools)
        self._blocks: dict[object, dict[str, Any]] = {}
        self._pieces: dict[object, list[str]] = {}
        """Of each block, by its index: pieces of its text, or of its input's JSON."""
        self._answer: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}

    def take(self, event: Mapping[str, Any]) -> str:
        """Take one event. Gives the text in it."""
        index = as_text(event.get("index"))
        match event.get("type"):
            case "message_start":
                self._answer |= as_mapping(event.get("message"))
                self._usage |= as_mapping(self._answer.get("usage"))
            case "content_block_start":
                self._blocks[index] = dict(as_mapping(event.get("content_block")))
                return self._add(index, as_text(self._blocks[index].get("text")))
            case "content_block_delta":
                delta = as_mapping(event.get("delta"))
                if delta.get("type") == "input_json_delta":
                    self._pieces.setdefault(index, []).append(as_text(delta.get("partial_json")))
                elif delta.get("type") == "text_delta":
                    return self._add(index, as_text(delta.get("text")))
            case "message_delta":
                self._answer |= {name: value for name, value in as_mapping(event.get("delta")).items() if value is not None}
                self._usage |= {name: value for name, value in as_mapping(event.get("usage")).items() if value is not None}
        return ""

    def _add(self, index: str, text: str) -> str:
        self._pieces.setdefault(index, []).append(text)
        return text

    @property
    def usage(self) -> object:
        """What the server said of tokens, as it came."""
        return self._usage

    def reply(self) -> Reply:
        """The whole reply. Raises ``BrokenOff`` where the stream ended before it did."""
        if not self._answer.get("stop_reason"):
            raise BrokenOff
        for index, block in self._blocks.items():
            joined = "".join(self._pieces.get(index, ()))
            if block.get("type") == "tool_use":
                block["input"] = joined or block.get("input")
            else:
                block["text"] = joined
        return _reply(list(self._blocks.values()), {**self._answer, "usage": self._usage}, self._names)


def _reply(blocks: Sequence[Mapping[str, Any]], answer: Mapping[str, Any], names: Names) -> Reply:
    text = "".join(as_text(block.get("text")) for block in blocks if block.get("type") == "text")
    calls = tuple(
        ToolRequest(as_text(block.get("id")), names.own(as_text(block.get("name"))), as_json(block.get("input")))
        for block in blocks
        if block.get("type") == "tool_use"
    )
    reason = as_text(answer.get("stop_reason")) or None
    if reason == "refusal" and not text and not calls:
        text = as_text(as_mapping(answer.get("stop_details")).get("explanation"))
    return Reply(text, calls, FINISH.get(reason or "", reason), _usage(answer.get("usage")), as_text(answer.get("model")) or None)


def _usage(sent: object) -> Usage | None:
    """All tokens that were read count, from the cache or not."""
    usage = as_mapping(sent)
    counts = [as_count(usage.get(name)) for name in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")]
    read = None if counts[0] is None else sum(count or 0 for count in counts)
    found = Usage(read, as_count(usage.get("output_tokens")))
    return None if found == Usage() else found


def cached(usage: Mapping[str, Any]) -> tuple[int, int]:
    """How many of the tokens that were read came from the server's cache, and how many were put there."""
    return as_count(usage.get("cache_read_input_tokens")) or 0, as_count(usage.get("cache_creation_input_tokens")) or 0
