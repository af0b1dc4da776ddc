"""A run's history as the servers of models accept it: each call is answered at once, under an id and a name that they allow.

What tools said is delimited. Where no tool may be called any more, earlier calls and their results are shown as text: some servers
refuse a history with calls in it and no tools, others let the model call on, and fail.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from fsm_agent.events import Message, ToolRequest, ToolSpec
from fsm_agent.models.delimited import tool_output
from fsm_agent.protocols.recorded import read_request

NO_RESULT = "(what came of this call is not known)"
"""The result of a call that has none in the history."""

_ID = re.compile(r"[A-Za-z0-9_-]+")
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")


class Names:
    """The tools' names as servers allow them (letters, digits, ``_`` and ``-``, 64 at most), and back."""

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        self._own: dict[str, str] = {}
        self._sent: dict[str, str] = {}
        for tool in tools:
            name, number = _plain(tool.name), 1
            while name in self._own:
                number += 1
                name = f"{_plain(tool.name)[:60]}_{number}"
            self._own[name] = tool.name
            self._sent[tool.name] = name

    def sent(self, name: str) -> str:
        """The name for the server; a name that no tool has is made fit, too: the model may have invented it."""
        return self._sent.get(name) or _plain(name)

    def own(self, sent: str) -> str:
        return self._own.get(sent, sent)


def _plain(name: str) -> str:
    return _FOREIGN.sub("_", name)[:64] or "_"


def conversation(messages: Sequence[Message], tools: Sequence[ToolSpec], names: Names) -> list[Message]:
    """``messages`` with each structured call followed by its result, and with ids that are unique. Without ``tools``, all of it is text.

    The observation of a call that was written as text becomes the user's: ``Observation: ...``. Neighbouring messages of the user are one.
    """
    shown: list[Message] = []
    used: set[str] = set()
    at = 0
    while at < len(messages):
        message = messages[at]
        at += 1
        if message.role == "assistant" and message.tool_calls and tools:
            calls = tuple(ToolRequest(_fresh(call.id, used), call.name, call.arguments) for call in message.tool_calls)
            shown.append(Message("assistant", message.content, calls))
            for call in calls:
                result = messages[at] if at < len(messages) and messages[at].role == "tool" else None
                said = NO_RESULT if result is None else _said(result, names.sent(call.name))
                shown.append(Message("tool", said, (), call.name, call.id))
                at += result is not None
        elif message.role == "assistant" and message.tool_calls:
            shown.append(Message("assistant", _told(message)))
        elif message.role in {"tool", "user"}:
            text = f"Observation: {_said(message, message.tool)}" if message.role == "tool" else message.content
            if shown and shown[-1].role == "user":
                text = f"{shown.pop().content}\n\n{text}"
            shown.append(Message("user", text))
        else:
            shown.append(message)
    return shown


def _said(result: Message, name: str) -> str:
    """What came of a call. Without the name of a tool it is the run's own word, such as a correction, and no data."""
    return tool_output(name, result.content) if result.tool else result.content


def _told(message: Message) -> str:
    """The message with its calls written out."""
    calls = [f"Action: {call.name} {call.arguments}".rstrip() for call in message.tool_calls]
    return "\n\n".join([*([message.content] if message.content.strip() else []), "\n".join(calls)])


def _fresh(id_: str, used: set[str]) -> str:
    """``id_``, or another where servers would not take it: empty, used before, or with characters that they refuse."""
    number = len(used)
    while id_ in used or not _ID.fullmatch(id_):
        number += 1
        id_ = f"call_{number}"
    used.add(id_)
    return id_


def arguments_object(request: ToolRequest) -> dict[str, Any]:
    """The call's arguments; where they were no JSON object, one that shows them, as servers take nothing else."""
    call = read_request(request)
    return dict(call.arguments) if call else {"INVALID_JSON": request.arguments}


def schema_of(tool: ToolSpec) -> dict[str, Any]:
    """The tool's JSON Schema, which says at least that it is one of an object."""
    return {"type": "object", "properties": {}, **tool.parameters}
