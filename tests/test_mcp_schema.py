"""Tools whose JSON Schema somebody else wrote: what of it is checked, what is converted, and what goes through as it came."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Union

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsm_agent.events import Observation, ToolCall, ToolSpec
from fsm_agent.tools import Tool
from fsm_agent.tools.foreign import kind_of, parameters_of_schema

FIND: dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "Where."},
        "depth": {"type": "integer", "minimum": 0},
        "unit": {"enum": ["km", "mi"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "filter": {"type": "object", "properties": {"size": {"type": "number"}}},
        "class": {"type": ["boolean", "null"], "default": False},
        "call": {},
    },
    "required": ["path", "token"],
    "additionalProperties": False,
}
OPEN = {**FIND, "additionalProperties": {"type": "string"}}


def given_back(**arguments: Any) -> dict[str, Any]:
    return arguments


def tool_with(schema: Mapping[str, Any]) -> Tool:
    return Tool(given_back, "find", "Find.", parameters_of_schema(schema), schema=schema)


def called(schema: Mapping[str, Any], **arguments: Any) -> Observation:
    return tool_with(schema).observe(ToolCall("find", arguments))


def test_a_model_is_shown_the_schema_as_it_was_written() -> None:
    assert tool_with(FIND).spec == ToolSpec("find", "Find.", FIND)
    assert [(each.name, each.description, each.required) for each in tool_with(FIND).parameters] == [
        ("path", "Where.", True),
        ("depth", "", False),
        ("unit", "", False),
        ("tags", "", False),
        ("filter", "", False),
        ("class", "", False),
        ("call", "", False),
        ("token", "", True),
    ]


def test_text_is_read_as_what_the_parameter_takes_and_all_else_goes_through_as_it_came() -> None:
    given: dict[str, Any] = {
        "path": "7",
        "token": "7",
        "depth": " 3 ",
        "tags": '["a"]',
        "filter": '{"size": "2"}',
        "class": "true",
        "call": "[1]",
    }
    assert called(FIND, **given).text == ('{"path":"7","token":"7","depth":3,"tags":["a"],"filter":{"size":"2"},"class":true,"call":"[1]"}')
    same: dict[str, Any] = {
        "path": "x",
        "token": None,
        "depth": 3.0,
        "tags": [],
        "filter": {"size": 2**70},
        "class": None,
        "call": {"a": 1},
    }
    assert msgspec.json.decode(called(FIND, **same).text) == same


def test_what_is_left_out_stays_left_out() -> None:
    assert called(FIND, path="x", token=1).text == '{"path":"x","token":1}'


def test_every_problem_is_named_at_once() -> None:
    assert called(FIND, depth="deep", unit="m", tags="a, b", other=1) == Observation(
        "find",
        "TOOL_ERROR: find has no parameter other (its parameters: path, depth, unit, tags, filter, class, call, token); "
        "find needs the argument path: text; find needs the argument token: Any; find expected an integer, got depth=deep; "
        "find expected one of 'km', 'mi', got unit=m; find expected a list (of: text), got tags=a, b",
        "bad_arguments",
    )


@pytest.mark.parametrize("extra", [{"additionalProperties": True}, {"additionalProperties": {}}, {"patternProperties": {"^x-": {}}}])
def test_further_arguments_go_through_where_the_schema_lets_them(extra: dict[str, Any]) -> None:
    assert called({**FIND, **extra}, path="x", token=1, other="3").text == '{"path":"x","token":1,"other":"3"}'


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "number"}, float),
        ({"type": "null"}, None),
        ({"type": "array"}, list[Any]),
        ({"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}, list[list[int]]),
        ({"const": "x"}, Literal["x"]),
        ({"enum": ["a", 1, None]}, Literal["a", 1, None]),  # noqa: PYI061  # as it is made
        ({"enum": [1.5]}, Any),
        ({"enum": [True]}, Any),
        ({"enum": [["a"]]}, Any),
        ({"enum": []}, Any),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, Union[int, None]),  # noqa: UP007  # as it is made
        ({"oneOf": [{"type": "integer"}, {"$ref": "#/$defs/X"}]}, Any),
        ({"anyOf": []}, Any),
        ({"anyOf": [{"type": "array"}, {"type": "array", "items": {"type": "string"}}]}, Any),
        ({"type": ["string", "integer"]}, Union[str, int]),  # noqa: UP007  # as it is made
        ({"type": ["string", "file"]}, Any),
        ({"type": "file"}, Any),
        ({"type": 3}, Any),
        ({"type": {}}, Any),
        ({}, Any),
        (True, Any),
        (None, Any),
    ],
)
def test_what_a_schema_says_of_a_parameter(schema: Any, kind: Any) -> None:
    assert kind_of(schema) == kind


def test_a_schema_without_end_is_not_understood() -> None:
    endless: dict[str, Any] = {}
    endless["anyOf"] = [endless]
    assert kind_of(endless) is Any


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "enum", "anyOf", "items", "const", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=200)
@given(
    st.fixed_dictionaries(
        {}, optional={"properties": JSON | st.dictionaries(st.sampled_from("abc"), JSON), "required": JSON, "additionalProperties": JSON}
    ),
    st.dictionaries(st.sampled_from("abcd"), JSON),
)
def test_any_schema_and_any_arguments_give_an_observation(schema: dict[str, Any], arguments: dict[str, Any]) -> None:
    seen = called(schema, **arguments)
    assert seen.kind in {"ok", "bad_arguments"}
    assert msgspec.json.decode(msgspec.json.encode(seen), type=Observation) == seen
