"""OpenAI chat messages: ``tool_calls`` whose arguments are JSON text, and their results in messages with the role ``tool``.

An object with ``messages`` may hold ``tools`` as the API takes them; the rest is in ``chats``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import msgspec

from fsm_agent.events import Reply, ToolRequest, ToolSpec
from fsm_agent.traces.recordings.base import Damaged, Recording, UnreadableError
from fsm_agent.traces.recordings.chats import Chat, first_chat, read_chats, starts_with
from fsm_agent.traces.recordings.documents import decode
from fsm_agent.traces.recordings.transcript import Transcript

ERROR = re.compile(r'\A\s*(?:Error|ERROR|TOOL_ERROR|Traceback \(most recent call last\)|\{\s*"error"\s*:\s*(?!null|false|""|\{\}|\[\]))')
"""What a failed tool's result looks like, as long as the user gives no rule of his own."""

_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})


class Function(msgspec.Struct):
    """A call's name and arguments; some exports hold the arguments as an object in place of its text."""

    name: str = ""
    arguments: str | dict[str, Any] | None = None


class Call(msgspec.Struct):
    """One of an assistant message's ``tool_calls``."""

    id: str | None = None
    function: Function | None = None


class ChatMessage(msgspec.Struct):
    """One message. Fields that say nothing of the run are not read."""

    role: str
    content: str | list[Any] | None = None
    tool_calls: list[Call] | None = None
    function_call: Function | None = None
    """The older form of ``tool_calls``; its result has the role ``function``."""
    tool_call_id: str | None = None
    name: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    """Thoughts, as several servers send them."""
    finish_reason: str | None = None


class _Described(msgspec.Struct):
    name: str = ""
    description: str | None = None
    parameters: dict[str, Any] | None = None


class _Tool(msgspec.Struct):
    function: _Described | None = None


class _OpenAIChat(Chat, kw_only=True):
    messages: list[ChatMessage]
    tools: list[_Tool] | None = None


@attrs.frozen
class Replayed:
    """What messages came to."""

    task: str
    """What a person said first."""
    transcript: Transcript
    told: Mapping[str, Any]
    """For a recording's ``extra``: the ``system`` prompt, and the ``thoughts`` beside texts, which have no room for them."""


class OpenAIChat:
    """The reader."""

    name = "openai"

    def recognises(self, head: bytes, _path: Path, /) -> bool:
        _, messages = first_chat(head)
        return bool(messages) and messages[0].get("role") in _ROLES

    def read(self, path: Path, is_error: re.Pattern[str] | None = None) -> Iterator[Recording | Damaged]:
        yield from read_chats(path, lambda item, name: _recording(item, name, is_error or ERROR))


def _recording(item: msgspec.Raw, name: str, is_error: re.Pattern[str]) -> Recording:
    chat = _OpenAIChat(messages=decode(item, list[ChatMessage])) if starts_with(item, b"[") else decode(item, _OpenAIChat)
    lone_task = sum(message.role == "user" for message in chat.messages) == 1
    replayed = replay_messages(chat.messages, is_error, last_text_answers=lone_task)
    return Recording(
        id=chat.name(name),
        source=OpenAIChat.name,
        task=replayed.task,
        events=replayed.transcript.end(),
        tools=_specs(chat.tools or ()),
        outcome=chat.recorded_outcome,
        score=chat.recorded_score,
        ending="answer" if replayed.transcript.answered else "unknown",
        model=chat.model,
        extra={**replayed.told, **replayed.transcript.notes()},
    )


def replay_messages(messages: Sequence[ChatMessage], is_error: re.Pattern[str], *, last_text_answers: bool) -> Replayed:
    """The messages as events. ``last_text_answers``: a text without calls, with which they end, is the answer.

    Raises ``UnreadableError`` for messages that are no conversation.
    """
    if not messages:
        raise UnreadableError("there are no messages")
    transcript = Transcript()
    system: list[str] = []
    thoughts: list[str] = []
    task: str | None = None
    said: list[str] = []  # by persons since the last reply: told after the results that belong to that reply
    for i, message in enumerate(messages, 1):
        match message.role:
            case "system" | "developer":
                system.append(text_of(message.content))
            case "user":
                text = text_of(message.content)
                said += [text] if transcript.events or task is not None else []
                task = text if task is None else task
            case "tool" | "function":
                text = text_of(message.content)
                failed = is_error.search(text) is not None
                transcript.result(text, failed=failed, place=f"message {i}", call_id=message.tool_call_id, tool=message.name or "")
            case "assistant":
                _tell(transcript, said)
                thoughts += [message.reasoning_content] if message.reasoning_content and not _calls(message) else []
                transcript.reply(_reply(message, may_answer=last_text_answers and i == len(messages)))
            case role:
                raise UnreadableError(f"message {i} has the role {role!r}; known are {', '.join(sorted(_ROLES))}")
    _tell(transcript, said)
    told = {"system": "\n\n".join(system), "thoughts": thoughts}
    return Replayed(task or "", transcript, {name: value for name, value in told.items() if value})


def _tell(transcript: Transcript, said: list[str]) -> None:
    for text in said:
        transcript.user(text)
    said.clear()


def _reply(message: ChatMessage, *, may_answer: bool) -> Reply:
    calls = _calls(message)
    thoughts = (message.reasoning_content or "").strip() if calls else ""
    text = "\n".join(part for part in (thoughts, text_of(message.content or message.refusal)) if part)
    return Reply(text, calls, message.finish_reason, taken_as="answer" if may_answer and text.strip() and not calls else None)


def _calls(message: ChatMessage) -> tuple[ToolRequest, ...]:
    calls = [*(message.tool_calls or ()), *([Call(None, message.function_call)] if message.function_call else [])]
    return tuple(
        ToolRequest(call.id or "", function.name, arguments if isinstance(arguments := function.arguments, str) else _json(arguments))
        for call in calls
        for function in (call.function or Function(),)
    )


def _json(arguments: Mapping[str, Any] | None) -> str:
    return msgspec.json.encode(arguments or {}).decode()


def text_of(content: str | list[Any] | None) -> str:
    """A message's text. Of a list of parts, the texts; of a part that is no text, its type in brackets. Raises ``UnreadableError``."""
    if isinstance(content, list):
        return "\n".join(_part(part) for part in content)
    return content or ""


def _part(part: object) -> str:
    if isinstance(part, str):
        return part
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(part, dict) or not isinstance(kind, str):
        raise UnreadableError("a part of a message's content has no type")
    if kind in {"tool_use", "tool_result"}:
        raise UnreadableError(f"a message holds a {kind} block, which is Anthropic's form; read it with the format anthropic")
    text = part.get("text", part.get("refusal"))
    return text if isinstance(text, str) else f"[{kind}]"


def _specs(tools: Sequence[_Tool]) -> tuple[ToolSpec, ...]:
    described = [tool.function for tool in tools if tool.function is not None]
    return tuple(ToolSpec(each.name, each.description or "", each.parameters or {}) for each in described)
