"""Anthropic messages: ``tool_use`` blocks in what the assistant says, ``tool_result`` blocks in what is said to it.

An object with ``messages`` may hold ``system`` and ``tools`` as the API takes them; the rest is in ``chats``. An assistant message
may keep the API's ``stop_reason`` and ``usage``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from fsm_agent.events import Reply, ToolRequest, ToolSpec, Usage
from fsm_agent.traces.recordings.base import Damaged, Recording, UnreadableError
from fsm_agent.traces.recordings.chats import Chat, first_chat, read_chats, starts_with
from fsm_agent.traces.recordings.documents import decode
from fsm_agent.traces.recordings.transcript import Transcript

_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use"})
"""Blocks that no other format has."""
_FINISH = {"max_tokens": "length", "end_turn": "stop", "stop_sequence": "stop", "tool_use": "tool_calls"}
"""Stop reasons in the words of ``Reply.finish_reason``."""


class _Block(msgspec.Struct):
    """A block of content of any type."""

    type: str
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    input: Any = None
    tool_use_id: str | None = None
    content: Any = None
    is_error: bool | None = None


class _Usage(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None


class _Message(msgspec.Struct):
    role: str
    content: str | list[_Block] | None = None
    stop_reason: str | None = None
    usage: _Usage | None = None
    model: str | None = None

    @property
    def blocks(self) -> list[_Block]:
        return self.content if isinstance(self.content, list) else [_Block("text", self.content)] if self.content else []


class _Tool(msgspec.Struct):
    name: str
    description: str | None = None
    input_schema: dict[str, Any] | None = None


class _AnthropicChat(Chat, kw_only=True):
    messages: list[_Message]
    system: str | list[_Block] | None = None
    tools: list[_Tool] | None = None


class AnthropicMessages:
    """The reader."""

    name = "anthropic"

    def recognises(self, head: bytes, _path: Path, /) -> bool:
        told, messages = first_chat(head)
        contents = [message.get("content") for message in messages]
        blocks = [block for content in contents if isinstance(content, list) for block in content if isinstance(block, dict)]
        marked = any(block.get("type") in _BLOCKS for block in blocks) or any("stop_reason" in message for message in messages)
        return marked or (bool(messages) and "system" in told)

    def read(self, path: Path, is_error: re.Pattern[str] | None = None) -> Iterator[Recording | Damaged]:
        yield from read_chats(path, lambda item, name: _recording(item, name, is_error))


def _recording(item: msgspec.Raw, name: str, is_error: re.Pattern[str] | None) -> Recording:
    chat = _AnthropicChat(messages=decode(item, list[_Message])) if starts_with(item, b"[") else decode(item, _AnthropicChat)
    if not chat.messages:
        raise UnreadableError("there are no messages")
    lone_task = sum(message.role == "user" and bool(_text(message.blocks)) for message in chat.messages) == 1
    transcript = Transcript()
    task: str | None = None
    thoughts: list[str] = []
    for i, message in enumerate(chat.messages, 1):
        match message.role:
            case "user":
                for block in message.blocks:
                    _take_result(transcript, block, is_error, f"message {i}")
                text = _text(message.blocks)
                if text and (transcript.events or task is not None):
                    transcript.user(text)
                task = text if task is None else task
            case "assistant":
                reply = _reply(message, may_answer=lone_task and i == len(chat.messages))
                thoughts += [thought] if (thought := _thinking(message.blocks)) and not reply.tool_calls else []
                transcript.reply(reply)
            case role:
                raise UnreadableError(f"message {i} has the role {role!r}; known are user and assistant")
    told = {"system": chat.system if isinstance(chat.system, str) else _text(chat.system or []), "thoughts": thoughts}
    return Recording(
        id=chat.name(name),
        source=AnthropicMessages.name,
        task=task or "",
        events=transcript.end(),
        tools=_specs(chat.tools or ()),
        outcome=chat.recorded_outcome,
        score=chat.recorded_score,
        ending="answer" if transcript.answered else "unknown",
        model=chat.model or next((message.model for message in chat.messages if message.model), None),
        extra={key: value for key, value in told.items() if value} | transcript.notes(),
    )


def _take_result(transcript: Transcript, block: _Block, is_error: re.Pattern[str] | None, place: str) -> None:
    if block.type != "tool_result":
        return
    try:
        text = block.content if isinstance(block.content, str) else _text(msgspec.convert(block.content or [], list[_Block]))
    except msgspec.ValidationError as error:
        raise UnreadableError(f"{place}: the content of a tool_result: {error}") from None
    failed = bool(block.is_error) or (is_error is not None and is_error.search(text) is not None)
    transcript.result(text, failed=failed, place=place, call_id=block.tool_use_id)


def _reply(message: _Message, *, may_answer: bool) -> Reply:
    calls = tuple(
        ToolRequest(block.id or "", block.name or "", msgspec.json.encode(block.input or {}).decode())
        for block in message.blocks
        if block.type == "tool_use"
    )
    text = _text(message.blocks)
    usage = Usage(message.usage.input_tokens, message.usage.output_tokens) if message.usage else None
    return Reply(
        "\n".join(part for part in (_thinking(message.blocks) if calls else "", text) if part),
        calls,
        _FINISH.get(message.stop_reason, message.stop_reason) if message.stop_reason else None,
        usage,
        message.model,
        taken_as="answer" if may_answer and text.strip() and not calls else None,
    )


def _text(blocks: Sequence[_Block]) -> str:
    """The texts of the blocks; of a block of a type that is none of a conversation's own, the type in brackets."""
    shown = [block.text or "" if block.type == "text" else f"[{block.type}]" for block in blocks if block.type not in _BLOCKS]
    return "\n".join(text for text in shown if text)


def _thinking(blocks: Sequence[_Block]) -> str:
    return "\n".join(block.thinking.strip() for block in blocks if block.thinking)


def _specs(tools: Sequence[_Tool]) -> tuple[ToolSpec, ...]:
    return tuple(ToolSpec(tool.name, tool.description or "", tool.input_schema or {}) for tool in tools)
