"""The protocol of recordings: structured calls, and text as the recording system took it."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fsm_agent.events import Decision, Final, Malformed, Reply, Said, ToolCall, ToolCalls, ToolRequest
from fsm_agent.protocols import RecordedProtocol
from fsm_agent.protocols.recorded import read_request

RECORDED = RecordedProtocol()
ADD = ToolRequest("call_1", "add", '{"a": 3, "b": [1, {"x": null}]}')
NOW = ToolRequest("call_2", "now", "{}")
BROKEN = ToolRequest("call_3", "add", '{"a": 3')


@pytest.mark.parametrize(
    ("reply", "decision"),
    [
        (
            Reply("let me see", (ADD, NOW)),
            ToolCalls((ToolCall("add", {"a": 3, "b": [1, {"x": None}]}, "call_1"), ToolCall("now", {}, "call_2")), "let me see"),
        ),
        (Reply("how are you?"), Said("how are you?")),
        (Reply("42", taken_as="answer"), Final("42")),
        (Reply("", taken_as="answer"), Final("")),
        (Reply("42", (ADD,), taken_as="answer"), Final("42")),
        (Reply("TOOL add", taken_as="unparseable"), Malformed("the recorded system could not parse the reply")),
        (Reply("", (ADD,), taken_as="unparseable"), Malformed("the recorded system could not parse the reply")),
        (Reply(""), Malformed("the reply is empty", "empty")),
        (Reply(" \n"), Malformed("the reply is empty", "empty")),
        (Reply("", (BROKEN,)), Malformed("the arguments of add are not a JSON object")),
        (Reply("", (NOW, BROKEN)), Malformed("the arguments of add are not a JSON object")),
        (Reply("hello", taken_as="talk"), Said("hello")),
    ],
)
def test_replies(reply: Reply, decision: Decision) -> None:
    assert RECORDED.parse(reply) == decision


def test_recordings_bring_their_own_system_message() -> None:
    assert RECORDED.system_prompt(()) == ""


@pytest.mark.parametrize(
    ("arguments", "read"),
    [
        ("", {}),
        ("{}", {}),
        (' {"a": 1} ', {"a": 1}),
        ('{"a": 1, "a": 2}', {"a": 2}),
        ("null", None),
        ("[]", None),
        ("3", None),
        ('"{}"', None),
        ("{", None),
        ("{} {}", None),
        ("{'a': 1}", None),
        ('{"a": NaN}', None),
        ('{"a": "\\ud800"}', None),
        ('{"a": "\ud800"}', None),
        ("[" * 100_000, None),
        ('{"a":' * 100_000, None),
    ],
)
def test_arguments_are_a_json_object_or_nothing(arguments: str, read: dict[str, object] | None) -> None:
    call = read_request(ToolRequest("id", "add", arguments))
    assert call == (None if read is None else ToolCall("add", read, "id"))


ANY_TEXT = st.text(st.characters(exclude_categories=()))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=5,
)
ARGUMENTS = ANY_TEXT | JSON.map(json.dumps) | st.dictionaries(ANY_TEXT, JSON, max_size=3).map(json.dumps)


@given(ANY_TEXT, st.lists(st.tuples(ANY_TEXT, ARGUMENTS), max_size=3), st.sampled_from([None, "length"]))
@example("", [("add", '{"a": ' + "1" * 5000 + "}")], None)
def test_any_reply_gives_a_decision(text: str, calls: list[tuple[str, str]], finish_reason: str | None) -> None:
    requests = tuple(ToolRequest("id", name, arguments) for name, arguments in calls)
    decision = RECORDED.parse(Reply(text, requests, finish_reason))
    assert isinstance(decision, ToolCalls | Said | Malformed)
    if isinstance(decision, ToolCalls):
        assert [call.signature[0] for call in decision.calls] == [name for name, _ in calls]
