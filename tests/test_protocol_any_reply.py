"""No reply whatever breaks a protocol: every one has a decision, which a record can hold, in time that grows with its length."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm_agent.events import Decision, Final, Malformed, ModelReplied, Reply, Said, ToolCalls, ToolRequest, ToolSpec
from fsm_agent.guards import classic
from fsm_agent.language import language
from fsm_agent.machine import Run
from fsm_agent.protocols import PROTOCOLS, Protocol, ReactProtocol
from fsm_agent.protocols.tool_list import tool_list


def objects(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    words = st.sampled_from(["type", "properties", "required", "enum", "anyOf", "items", "default", "const", "$ref", "description", "a"])
    return st.dictionaries(words | st.text(max_size=3), values, max_size=4)


FRAGMENTS = st.sampled_from(
    ["{", "}", "[", "]", '"', "\\", ":", ",", "\n", " ", "```", "```json\n", '{"tool": "add", "arguments": ', '{"answer": ', '{"a": 1}', "null", "1e999",
     "NaN", "\\ud800", "\x00", "\u2028", "Thought", "Action", "Action Input", "Observation 1:", "Final Answer:", "Action: add[", "Finish[", "1", "：", "**",
     "TOOL add a=", "FINAL "]
)  # fmt: skip
TEXTS = st.lists(st.one_of(FRAGMENTS, st.text(st.characters(codec="utf-8"), max_size=8)), max_size=30).map("".join)
REQUESTS = st.builds(ToolRequest, TEXTS, TEXTS, TEXTS)
REPLIES = st.builds(
    Reply,
    text=TEXTS,
    tool_calls=st.lists(REQUESTS, max_size=3).map(tuple),
    finish_reason=st.sampled_from([None, "stop", "length", "refusal"]),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | objects(inner),
    max_leaves=8,
)
TOOLS = (
    ToolSpec("add", "", {"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}, "required": ["a"]}),
    ToolSpec("one", "", {"properties": {"x": {}}}),
)


def protocols() -> list[Protocol]:
    made = [make(language(lang)) for make in PROTOCOLS.values() for lang in ("en", "zh")]
    return [*made, ReactProtocol().for_tools(TOOLS)]


@given(reply=REPLIES)
def test_every_reply_has_a_decision_that_a_record_can_hold(reply: Reply) -> None:
    for protocol in protocols():
        decision: Decision = protocol.parse(reply)
        assert isinstance(decision, Final | ToolCalls | Said | Malformed)
        msgspec.json.encode(decision)
        assert protocol.parse(reply) == decision
        if isinstance(decision, ToolCalls):
            assert [(call.signature, str(call)) for call in decision.calls]
    assert reply.text.startswith(ReactProtocol().kept(reply))


@given(reply=REPLIES)
def test_a_run_takes_every_reply(reply: Reply) -> None:
    for protocol in protocols():
        run = Run("task", protocol=protocol, guards=classic(), tools=TOOLS)
        run.feed(ModelReplied(reply))
        assert run.state in {"Deciding", "Executing", "Halted"}


@given(st.lists(st.builds(ToolSpec, st.text(max_size=5), st.text(max_size=9), objects(JSON)), max_size=3).map(tuple))
def test_every_schema_can_be_told_in_a_prompt(tools: tuple[ToolSpec, ...]) -> None:
    for name in ("function_calling", "json_text", "react"):
        assert isinstance(PROTOCOLS[name](language("zh")).system_prompt(tools), str)
    ReactProtocol().for_tools(tools).parse(Reply(f"Action: {tools[0].name if tools else 'x'}[text]"))


def test_types_are_told_in_a_few_words() -> None:
    properties = {
        "mode": {"enum": ["r", "w"]},
        "ids": {"type": "array", "items": {"type": ["integer", "null"]}},
        "when": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        "point": {"$ref": "#/$defs/Point"},
        "kind": {"const": 3},
        "free": {},
    }
    spec = ToolSpec("open", "Open\n it.", {"properties": properties, "required": ["mode", "ids", "point"]})
    assert tool_list((spec,), language("en")) == [
        "Tools:",
        '- open(mode: "r" | "w", ids: array<integer | null>, when: string | null = null, point: object, kind?: 3, free?: any): Open it.',
    ]


N = 40_000
HOSTILE = {
    "nested objects": '{"a":' * N,
    "braces": "{" * N,
    "false starts": '{"' * N,
    "a long list, many starts": '{"a":[' * 400 + "0," * N,
    "objects of no use": '{"a":1}' * N,
    "a long number": '{"a":' + "9" * N,
    "an open string": '{"a":"' + "\\" * N,
    "labels": "Action:" * N,
    "actions": "Action: a\n" * N,
    "thoughts": "Thought:\n" * N + "Action: a",
    "observations": "Final Answer:\n" + "Observation:\n" * N,
    "opening brackets": "Action: a[" + "[" * N,
    "closing brackets": "Action: a[" + "]" * N,
    "white space": " " * N,
    "white space after a label": "thought" + " " * N,
    "stars": "*" * N,
    "backticks": "Action: a\nAction Input: ```" + "`" * N,
    "an open fence": "Action: a\nAction Input: ```" + "\n " * N,
    "quotes": "Action: a\nAction Input: " + '"' * N,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_text_is_read_in_time_that_grows_with_its_length(kind: str) -> None:
    text = HOSTILE[kind]
    for name in ("function_calling", "json_text", "react"):
        protocol = PROTOCOLS[name](language("en"))
        ratios: list[float] = []
        while not ratios or (ratios[-1] > 40 and len(ratios) < 5):  # a machine that others slow down errs once, and not each time
            ratios.append((_seconds(protocol, text) - FREE_S) / _seconds(protocol, text[: len(text) // 8]))
        assert ratios[-1] <= 40, (name, ratios)  # a quadratic reading would take 64 times as long


FREE_S = 0.2
"""What is read so soon is no matter; of shorter times a clock tells nothing."""


def _seconds(protocol: Protocol, text: str) -> float:
    start = time.process_time()
    protocol.parse(Reply(text, (ToolRequest("1", "a", text),)))
    protocol.parse(Reply(text))
    return max(time.process_time() - start, 1e-9)
