"""The protocol of recordings: structured tool calls are calls, and text is what the recording system took it for.

A recording of a chat holds turns, not final answers: text that nothing is known of is talk to a person. What a live model's
text means is another protocol's matter.
"""

from __future__ import annotations

from typing import ClassVar

import attrs
import msgspec

from fsm_agent.events import Decision, Final, Malformed, Reply, Said, ToolCall, ToolCalls, ToolRequest, ToolSpec
from fsm_agent.protocols.base import Protocol


@attrs.frozen
class RecordedProtocol(Protocol):
    """Reads ``Reply.taken_as`` first, then structured calls (the text beside them is the thought), then text."""

    name: ClassVar[str] = "recorded"

    def system_prompt(self, tools: tuple[ToolSpec, ...]) -> str:  # noqa: ARG002  # nobody is prompted
        return ""

    def parse(self, reply: Reply) -> Decision:
        say = self.lang.say
        if reply.taken_as == "answer":
            return Final(reply.text)
        if reply.taken_as == "unparseable":
            return Malformed(say("the recorded system could not parse the reply"))
        if reply.tool_calls:
            calls = []
            for request in reply.tool_calls:
                call = read_request(request)
                if call is None:
                    return Malformed(say("the arguments of {tool} are not a JSON object", tool=request.name))
                calls.append(call)
            return ToolCalls(tuple(calls), reply.text)
        if not reply.text.strip():
            return Malformed(say("the reply is empty"), "empty")
        return Said(reply.text)


def read_request(request: ToolRequest) -> ToolCall | None:
    """The call, its arguments decoded; None where they are not a JSON object (nothing at all stands for no arguments)."""
    try:
        arguments = msgspec.json.decode(request.arguments or "{}")
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    return ToolCall(request.name, arguments, request.id) if isinstance(arguments, dict) else None
