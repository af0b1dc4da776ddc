"""The tools in plain text, for models that are told of them in the system prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from fsm_agent.events import ToolSpec
from fsm_agent.language import Language

_DEPTH = 4
"""Types are spelled out so deep; what lies deeper is ``any``."""


def tool_list(tools: tuple[ToolSpec, ...], lang: Language) -> list[str]:
    """One line a tool, such as ``- add(a: integer, b: integer): Add two integers.``, and one for each parameter that is described."""
    if not tools:
        return [lang.say("There are no tools.")]
    lines = [lang.say("Tools:")]
    for tool in tools:
        parameters = parameters_of(tool)
        required = tool.parameters.get("required")
        needed = required if isinstance(required, list | tuple) else ()
        signature = ", ".join(_parameter(name, schema, required=name in needed) for name, schema in parameters.items())
        lines.append(f"- {tool.name}({signature}): {_one_line(tool.description)}".rstrip(": "))
        lines += [f"  {name}: {_one_line(told)}" for name, schema in parameters.items() if (told := _get(schema, "description"))]
    return lines


def call_form(tool: ToolSpec) -> str:
    """A call of the tool as JSON, with types in the place of values: ``{"tool": "add", "arguments": {"a": <integer>}}``."""
    arguments = ", ".join(f"{_json(name)}: <{_kind(schema)}>" for name, schema in parameters_of(tool).items())
    return f'{{"tool": {_json(tool.name)}, "arguments": {{{arguments}}}}}'


def parameters_of(tool: ToolSpec) -> Mapping[str, Any]:
    """The JSON Schemas of the tool's parameters, by name; none where its schema is not one of an object."""
    properties = tool.parameters.get("properties")
    return properties if isinstance(properties, Mapping) else {}


def _parameter(name: str, schema: Any, *, required: bool) -> str:
    kind = _kind(schema)
    if required:
        return f"{name}: {kind}"
    if isinstance(schema, Mapping) and "default" in schema:
        return f"{name}: {kind} = {_json(schema['default'])}"
    return f"{name}?: {kind}"


def _kind(schema: Any, depth: int = _DEPTH) -> str:
    if not depth or not isinstance(schema, Mapping):
        return "any"
    for word in ("enum", "anyOf", "oneOf"):
        options = schema.get(word)
        if isinstance(options, list | tuple) and options:
            return " | ".join(_json(option) if word == "enum" else _kind(option, depth - 1) for option in options)
    if "const" in schema:
        return _json(schema["const"])
    kind = schema.get("type")
    if isinstance(kind, list | tuple):
        return " | ".join(str(each) for each in kind)
    if kind == "array":
        return f"array<{_kind(schema.get('items'), depth - 1)}>"
    return str(kind) if kind else "object" if "$ref" in schema else "any"


def _get(schema: Any, field: str) -> str:
    return str(schema.get(field) or "") if isinstance(schema, Mapping) else ""


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
