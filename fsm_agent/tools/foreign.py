"""A tool's parameters from a JSON Schema that somebody else wrote: what is not understood of it is left to whoever runs the tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Union

import msgspec

from fsm_agent.language import ENGLISH, Language
from fsm_agent.tools.schema import Parameter, check_arguments

_SIMPLE: dict[Any, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "null": None,
    "array": list[Any],
    "object": dict[str, Any],
}


def parameters_of_schema(schema: Mapping[str, Any]) -> tuple[Parameter, ...]:
    """The parameters that a schema of type ``object`` describes. What is not understood of it may be anything."""
    properties = schema.get("properties")
    required = schema.get("required")
    needed = [name for name in required if isinstance(name, str)] if isinstance(required, list | tuple) else []
    described = properties if isinstance(properties, Mapping) else {}
    return tuple(
        Parameter(name, kind_of(each), _description(each), *(() if name in needed else (None,)))  # an optional one may be left out
        for name, each in {**described, **{name: None for name in needed if name not in described}}.items()
    )


def check_by_schema(
    tool: str, parameters: tuple[Parameter, ...], schema: Mapping[str, Any], arguments: Mapping[str, Any], lang: Language = ENGLISH
) -> dict[str, Any]:
    """The arguments for a tool with this schema: text is read as what the parameter takes, and all else stays as it came.

    Raises ``BadArguments`` for what cannot fit. Whoever runs the tool checks them anyway, and more thoroughly.
    """
    more = schema.get("additionalProperties", True) is not False or bool(schema.get("patternProperties"))
    fitting = check_arguments(tool, parameters, arguments, lang, more=more)
    return {name: fitting.get(name, value) if isinstance(value, str) else value for name, value in arguments.items()}


def kind_of(schema: Any) -> Any:
    """The Python type of the values that a schema takes; ``Any`` where it says nothing of it, or it is not understood."""
    try:
        kind = _kind(schema)
        msgspec.convert(None, kind)
    except msgspec.ValidationError:
        return kind
    except (TypeError, RecursionError):  # a union of types that cannot be told apart, or a schema without end
        return Any
    return kind


def _kind(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return Any
    options = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(options, list | tuple):
        simple = options and all(isinstance(each, str | int | None) and not isinstance(each, bool) for each in options)
        return Literal[tuple(options)] if simple else Any
    for word in ("anyOf", "oneOf"):
        if isinstance(schema.get(word), list | tuple):
            return _union([_kind(each) for each in schema[word]])
    kind = schema.get("type")
    if kind == "array":
        return list[_kind(schema["items"])] if "items" in schema else list[Any]  # type: ignore[misc]  # a type that is known only now
    if isinstance(kind, list | tuple):
        return _union([_simple(each) for each in kind])
    return _simple(kind)


def _simple(kind: Any) -> Any:
    return _SIMPLE.get(kind, Any) if isinstance(kind, str) else Any


def _union(kinds: list[Any]) -> Any:
    return Any if not kinds or Any in kinds else Union[tuple(kinds)]  # noqa: UP007  # they are known only now


def _description(schema: Any) -> str:
    return str(schema.get("description") or "") if isinstance(schema, Mapping) else ""
