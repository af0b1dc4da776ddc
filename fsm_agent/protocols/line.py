"""The line protocol: ``TOOL name key=value,key=value`` calls a tool, ``FINAL text`` answers.

White space around the reply, the keyword, ``=`` and ``,`` does not matter. A value is text up to the next comma, or a JSON
string in double quotes, which may hold commas. A value without quotes may hold spaces, but nothing that looks like another pair
(``a=1 b=2``): a comma was forgotten there. ``FINAL`` may go on over several lines, a ``TOOL`` reply may not.
"""

from __future__ import annotations

import re
from typing import ClassVar

import attrs
import msgspec

from fsm_agent.events import Decision, Final, Malformed, Reply, ToolCall, ToolCalls, ToolSpec
from fsm_agent.protocols.base import Protocol
from fsm_agent.protocols.tool_list import tool_list

_NAME = re.compile(r'[^\s=,"]+')
_SECOND = re.compile(r'\s[^\s=,"]+=')
"""What looks like another pair, in an unquoted value."""

_PAIR = re.compile(r'\s*(?P<key>[^\s=,"]+)\s*=\s*(?:(?P<quoted>"(?:[^"\\]|\\.)*")|(?P<plain>[^",][^,]*)?)\s*(?P<end>,|$)', re.DOTALL)


@attrs.frozen
class LineProtocol(Protocol):
    """Reads one-line replies. Argument values are text; a tool converts them by its signature."""

    name: ClassVar[str] = "line"

    def system_prompt(self, tools: tuple[ToolSpec, ...]) -> str:
        say = self.lang.say
        lines = [say("Solve the task. Answer every time with exactly one line, in one of these forms:"), *self._forms(), ""]
        lines[-1:] = [say("A value with a comma goes into double quotes."), ""]
        return "\n".join([*lines, *tool_list(tools, self.lang)])

    def parse(self, reply: Reply) -> Decision:
        text = reply.text.strip()
        if not text:
            return self._malformed(self.lang.say("the reply is empty"), "empty")
        keyword, *rest = text.split(maxsplit=1)
        if keyword == "FINAL":
            return Final(rest[0]) if rest else self._malformed(self.lang.say("FINAL stands without an answer"))
        if keyword == "TOOL":
            return self._tool(rest[0] if rest else "")
        return self._malformed(self.lang.say("a reply starts with TOOL or FINAL, this one with {start}", start=repr(text[:40])))

    def _tool(self, rest: str) -> Decision:
        say = self.lang.say
        if len(rest.splitlines()) > 1:
            return self._malformed(say("a TOOL reply has one line only"))
        name = _NAME.match(rest)
        if name is None or rest[name.end() : name.end() + 1].strip():
            return self._malformed(say("after TOOL a tool's name must follow, alone"))
        arguments: dict[str, str] = {}
        at = len(rest) if not rest[name.end() :].strip() else name.end()
        comma = False
        while at < len(rest) or comma:
            pair = _PAIR.match(rest, at)
            if pair is None or (pair["plain"] and _SECOND.search(pair["plain"])):
                return self._malformed(self._why_no_pair(rest[at:], pair[0] if pair else None, first=not arguments))
            key = pair["key"]
            if key in arguments:
                return self._malformed(say("{key} is given twice", key=key))
            try:
                arguments[key] = msgspec.json.decode(pair["quoted"], type=str) if pair["quoted"] else (pair["plain"] or "").strip()
            except (msgspec.DecodeError, UnicodeEncodeError):
                return self._malformed(say("the value of {key} is not a JSON string", key=key))
            at, comma = pair.end(), pair["end"] == ","
        return ToolCalls((ToolCall(name[0], arguments),))

    def _why_no_pair(self, rest: str, two: str | None, *, first: bool) -> str:
        """What is wrong with the next pair: it is ``two`` in one, or none at all."""
        say = self.lang.say
        if two is not None:
            return say(
                "{pair} holds more than one key=value; pairs are separated by commas, and a text with = in it goes into double quotes",
                pair=repr(two.rstrip(",").strip()),
            )
        piece = rest.partition(",")[0].strip()
        if piece and "=" not in piece and not first:
            return say("{pair} is not of the form key=value; a value with a comma goes into double quotes", pair=repr(piece))
        return say("{pair} is not of the form key=value", pair=repr(piece))

    def _malformed(self, problem: str, kind: str = "unparseable") -> Malformed:
        parts = [
            self.lang.say("The reply cannot be parsed: {problem}.", problem=problem),
            self.lang.say("Answer with exactly one line:"),
            *self._forms(),
        ]
        return Malformed("\n".join(parts), "empty" if kind == "empty" else "unparseable")

    def _forms(self) -> list[str]:
        return ["TOOL name key=value,key=value", self.lang.say("FINAL the answer")]


def print_call(call: ToolCall) -> str:
    """The call as a line of this protocol, which parses back to the same call.

    Values are text here: a value of another type is printed as its JSON. Raises ``ValueError`` for a tool name or a key
    that the form cannot hold (with white space, ``=``, ``,`` or ``"``), and for a value that no file can (a lone surrogate).
    """
    for name in (call.name, *call.arguments):
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} cannot stand in a TOOL line: white space, '=', ',' and '\"' are not allowed in names")
    pairs = ",".join(f"{key}={_printed(value)}" for key, value in call.arguments.items())
    return f"TOOL {call.name} {pairs}".rstrip()


def _printed(value: object) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    if text.isprintable() and text == text.strip() and "," not in text and not text.startswith('"') and not _SECOND.search(text):
        return text
    return _escape(msgspec.json.encode(text).decode())


def _escape(quoted: str) -> str:
    """Line breaks that JSON lets stand (U+2028 and the like), escaped, so that the call stays one line."""
    return "".join(char if char.isprintable() else "".join(f"\\u{unit:04x}" for unit in _utf16(char)) for char in quoted)


def _utf16(char: str) -> list[int]:
    raw = char.encode("utf-16-be")
    return [int.from_bytes(raw[i : i + 2], "big") for i in range(0, len(raw), 2)]
