"""OpenAI chat messages: a JSON list of messages, an object with ``messages``, or many of either (a list of them, or JSON Lines).

Beside ``messages`` an object may say ``id`` (or ``task_id``), ``model``, ``tools``, ``outcome`` (success, failure), ``success`` (true,
false) and ``score`` or ``reward``. A text without calls is talk to a person, with one exception: where the task is all that a person ever
said, a text that ends the recording is the answer, as it is for every agent that calls functions in a loop.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from fsm_agent.events import Reply, ToolRequest, ToolSpec
from fsm_agent.traces.recordings.base import Damaged, Outcome, Recording, RecordingError, UnreadableError
from fsm_agent.traces.recordings.documents import decode, documents
from fsm_agent.traces.recordings.peek import peek
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


class _Shape(msgspec.Struct):
    messages: msgspec.Raw | None = None


class Chat(msgspec.Struct):
    """An object that holds a run."""

    messages: list[ChatMessage]
    id: str | int | None = None
    task_id: str | int | None = None
    model: str | None = None
    tools: list[_Tool] | None = None
    outcome: str | None = None
    success: bool | None = None
    score: float | None = None
    reward: float | None = None


class OpenAIChat:
    """The reader."""

    name = "openai"

    def recognises(self, head: bytes, _path: Path, /) -> bool:
        document = peek(head)
        if isinstance(document, list) and document and not _is_message(document[0]):
            document = document[0]
        messages = document.get("messages") if isinstance(document, dict) else document
        return isinstance(messages, list) and bool(messages) and _is_message(messages[0])

    def read(self, path: Path, is_error: re.Pattern[str] | None = None) -> Iterator[Recording | Damaged]:
        numbers = count(1)
        for place, document in documents(path):
            for where, item in _runs(document, place):
                number = next(numbers)
                try:
                    yield _recording(_chat(item), str(number) if where else path.stem, is_error or ERROR)
                except UnreadableError as error:
                    if not where:
                        raise RecordingError(f"{path}: {error}") from None
                    yield Damaged(where, str(error))


def _is_message(item: object) -> bool:
    return isinstance(item, dict) and item.get("role") in _ROLES


def _runs(document: msgspec.Raw | UnreadableError, place: str) -> Iterator[tuple[str, msgspec.Raw | UnreadableError]]:
    """The document's runs, each with its place: itself, or the items of a list of runs."""
    items = decode(document, list[msgspec.Raw]) if isinstance(document, msgspec.Raw) and starts_with(document, b"[") else []
    if items and (starts_with(items[0], b"[") or (starts_with(items[0], b"{") and decode(items[0], _Shape).messages is not None)):
        for i, item in enumerate(items, 1):
            yield f"{place}, item {i}".removeprefix(", "), item
    else:
        yield place, document


def starts_with(document: msgspec.Raw, sign: bytes) -> bool:
    """Whether the JSON starts with this character."""
    return bytes(memoryview(document)[:64]).lstrip()[:1] == sign


def _chat(item: msgspec.Raw | UnreadableError) -> Chat:
    if isinstance(item, UnreadableError):
        raise item
    return Chat(decode(item, list[ChatMessage])) if starts_with(item, b"[") else decode(item, Chat)


def _recording(chat: Chat, number: str, is_error: re.Pattern[str]) -> Recording:
    ident = chat.id if chat.id is not None else chat.task_id
    persons = sum(message.role == "user" for message in chat.messages)
    task, transcript, system = replayed(chat.messages, is_error, last_text_answers=persons == 1)
    return Recording(
        id=number if ident is None else str(ident),
        source=OpenAIChat.name,
        task=task,
        events=transcript.end(),
        tools=_specs(chat.tools or ()),
        outcome=_outcome(chat),
        score=chat.reward if chat.score is None else chat.score,
        ending="answer" if transcript.answered else "unknown",
        model=chat.model,
        extra=({"system": system} if system else {}) | transcript.notes(),
    )


def replayed(messages: Sequence[ChatMessage], is_error: re.Pattern[str], *, last_text_answers: bool) -> tuple[str, Transcript, str]:
    """The task (what a person said first), the run, and the system prompt.

    ``last_text_answers``: a text without calls, with which the messages end, is the answer. Raises ``UnreadableError`` for messages
    that are no conversation.
    """
    if not messages:
        raise UnreadableError("there are no messages")
    transcript = Transcript()
    system: list[str] = []
    task: str | None = None
    said: list[str] = []  # by persons, since the last reply: told after the results that belong to that reply
    for i, message in enumerate(messages, 1):
        match message.role:
            case "system" | "developer":
                system.append(text_of(message.content))
            case "user":
                text = text_of(message.content)
                if task is None:
                    task = text
                    said += [text] if transcript.events else []
                else:
                    said.append(text)
            case "tool" | "function":
                text = text_of(message.content)
                failed = is_error.search(text) is not None
                transcript.result(text, failed=failed, place=f"message {i}", call_id=message.tool_call_id, tool=message.name or "")
            case "assistant":
                _tell(transcript, said)
                transcript.reply(_reply(message, may_answer=last_text_answers and i == len(messages)))
            case role:
                raise UnreadableError(f"message {i} has the role {role!r}; known are {', '.join(sorted(_ROLES))}")
    _tell(transcript, said)
    return task or "", transcript, "\n\n".join(system)


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


def _outcome(chat: Chat) -> Outcome:
    if chat.success is not None:
        return "success" if chat.success else "failure"
    return "success" if chat.outcome == "success" else "failure" if chat.outcome == "failure" else "unknown"
