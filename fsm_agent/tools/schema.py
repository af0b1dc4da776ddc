"""A tool's parameters from its signature: a JSON Schema for models, and the check and conversion of the arguments of a call."""

from __future__ import annotations

import copy
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Literal, Union

import attrs
import msgspec

from fsm_agent.events import ToolCall
from fsm_agent.language import ENGLISH, Language

_UNCHANGEABLE = (str, int, float, bool, bytes, type(None))
"""Defaults that every call may share."""


@attrs.frozen
class Parameter:
    """One parameter of a tool."""

    name: str
    type: Any
    description: str = ""
    default: Any = inspect.Parameter.empty

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty


class BadArguments(Exception):
    """Arguments that do not fit a tool's signature; the message names each and what was expected."""


def parameters_of(function: Callable[..., Any], descriptions: Mapping[str, str]) -> tuple[tuple[Parameter, ...], tuple[str, ...]]:
    """The parameters of ``function``, and the names of those that take the ``ToolCall`` itself. Raises ``TypeError``, naming the
    parameter, for a signature that a model cannot call.
    """
    hints = _hints(function)
    found, calls = [], []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in {parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY}:
            raise TypeError(f"tool {function.__name__}: {parameter} cannot be given by name; use plain named parameters")
        if _is_call(hints.get(name)):
            calls.append(name)
            continue
        hint = hints.get(name, Any)
        try:
            msgspec.json.schema(hint)
        except (TypeError, RuntimeError) as error:
            why = str(error).splitlines()[-1]
            raise TypeError(f"tool {function.__name__}: {name} has a type that JSON cannot hold ({why})") from None
        if parameter.default is not parameter.empty:
            try:
                msgspec.json.encode(parameter.default)
            except (TypeError, ValueError) as error:
                raise TypeError(f"tool {function.__name__}: {name} has a default that JSON cannot hold ({error})") from None
        found.append(Parameter(name, hint, descriptions.get(name, ""), parameter.default))
    return tuple(found), tuple(calls)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations. ``ToolCall`` is known also where it was imported for type checkers only."""
    known: dict[str, Any] = {}
    while True:
        try:
            return typing.get_type_hints(function, localns=known, include_extras=True)
        except NameError as error:
            if error.name != ToolCall.__name__ or known:
                raise TypeError(f"tool {function.__name__}: its annotations cannot be read ({error})") from None
            known = {ToolCall.__name__: ToolCall}


def _is_call(hint: Any) -> bool:
    """Whether it asks for the call itself: ``ToolCall``, or that or None."""
    return hint is ToolCall or (
        typing.get_origin(hint) in {Union, types.UnionType} and set(typing.get_args(hint)) == {ToolCall, type(None)}
    )


def json_schema(parameters: tuple[Parameter, ...]) -> dict[str, Any]:
    """A JSON Schema of type ``object`` that takes these parameters and no others."""
    schemas, components = msgspec.json.schema_components([parameter.type for parameter in parameters], ref_template="#/$defs/{name}")
    properties: dict[str, Any] = {}
    for parameter, schema in zip(parameters, schemas, strict=True):
        extra: dict[str, Any] = {"description": parameter.description} if parameter.description else {}
        if not parameter.required:
            extra["default"] = msgspec.json.decode(msgspec.json.encode(parameter.default))
        properties[parameter.name] = {**schema, **extra}
    required = [parameter.name for parameter in parameters if parameter.required]
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return {**schema, "$defs": components} if components else schema


def check_arguments(
    tool: str, parameters: tuple[Parameter, ...], arguments: Mapping[str, Any], lang: Language = ENGLISH, *, more: bool = False
) -> dict[str, Any]:
    """The arguments, converted to the parameters' types. Raises ``BadArguments`` naming every one that is missing, surplus or ill-typed.
    With ``more``, none is surplus; those beyond the parameters are left out.
    """
    converted: dict[str, Any] = {}
    missing: list[Parameter] = []
    bad: list[Parameter] = []
    for parameter in parameters:
        if parameter.name not in arguments:
            if parameter.required:
                missing.append(parameter)
            continue
        try:
            converted[parameter.name] = convert(arguments[parameter.name], parameter.type)
        except (msgspec.ValidationError, ValueError, RecursionError):
            bad.append(parameter)
    if missing or bad or (len(converted) < len(arguments) and not more):
        known = {each.name for each in parameters}
        say = lang.say
        takes = ", ".join(each.name for each in parameters) or say("none")
        problems = [
            say("{tool} has no parameter {name} (its parameters: {names})", tool=tool, name=name, names=takes)
            for name in arguments
            if name not in known and not more
        ]
        problems += [
            say("{tool} needs the argument {name}: {expected}", tool=tool, name=each.name, expected=expected(each.type, lang))
            for each in missing
        ]
        raise BadArguments(say("; ").join([*problems, *_ill_typed(tool, bad, arguments, lang)]))
    for parameter in parameters:
        if parameter.name not in converted and not isinstance(parameter.default, _UNCHANGEABLE):
            converted[parameter.name] = copy.deepcopy(parameter.default)  # what one call does to it is nothing to the next
    return converted


def _ill_typed(tool: str, bad: list[Parameter], arguments: Mapping[str, Any], lang: Language) -> list[str]:
    """One problem for each kind of value that was expected."""
    wanted: dict[str, list[str]] = {}
    for each in bad:
        wanted.setdefault(expected(each.type, lang), []).append(f"{each.name}={_shown(arguments[each.name])}")
    return [
        lang.say("{tool} expected {expected}, got {pairs}", tool=tool, expected=what, pairs=", ".join(pairs))
        for what, pairs in wanted.items()
    ]


def convert(value: Any, kind: Any) -> Any:
    """``value`` as a ``kind``: text is read as the number, truth value or JSON that it spells. Raises ``msgspec.ValidationError``."""
    if isinstance(value, str):
        value = value.strip() if kind in {int, float, bool} else value
        try:
            return msgspec.convert(value, kind, strict=False)
        except msgspec.ValidationError as error:
            try:
                return msgspec.json.decode(value, type=kind, strict=False)
            except (msgspec.DecodeError, UnicodeEncodeError):
                raise error from None
    return msgspec.convert(value, kind, strict=False)


def expected(kind: Any, lang: Language = ENGLISH) -> str:
    """The type in words: what a value of it must be."""
    say = lang.say
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return expected(inner[0], lang) + "".join(_bounds(each) for each in inner[1:] if isinstance(each, msgspec.Meta))
    if origin is Literal:
        return say("one of {values}", values=", ".join(repr(value) for value in inner))
    if origin in {Union, types.UnionType}:
        return say(" or ").join(expected(option, lang) for option in inner)
    if origin in {list, tuple, set, frozenset} or kind in {list, tuple, set, frozenset}:
        return say("a list (of: {item})", item=expected(inner[0], lang)) if inner else say("a list")
    words: dict[Any, str] = {
        int: say("an integer"),
        float: say("a number"),
        bool: say("true or false"),
        str: say("text"),
        type(None): "null",
        dict: say("an object"),
    }
    return words.get(kind) or words.get(origin) or str(getattr(kind, "__name__", kind))


def _bounds(meta: msgspec.Meta) -> str:
    signs = {"gt": ">", "ge": ">=", "lt": "<", "le": "<=", "multiple_of": "n *", "pattern": "~"}
    signs |= {"min_length": "len >=", "max_length": "len <="}
    given = [f"{sign} {getattr(meta, name)}" for name, sign in signs.items() if getattr(meta, name) is not None]
    return f" ({', '.join(given)})" if given else ""


def _shown(value: Any, width: int = 200) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= width else text[: width - 1] + "…"
