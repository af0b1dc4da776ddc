"""Settings for ``ask`` and ``resume`` in a file: ``fsm-agent.toml``, or ``[tool.fsm-agent]`` in ``pyproject.toml``.

They are the defaults of the options of the same names. What the command line says is taken in their place.
"""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import attrs
import msgspec

from fsm_agent.cli import agent_words as words
from fsm_agent.text import first_line

FILE = "fsm-agent.toml"
PYPROJECT = "pyproject.toml"
TABLE = "fsm-agent"

Count = Annotated[int, msgspec.Meta(ge=0)]
Positive = Annotated[int, msgspec.Meta(ge=1)]
Texts = str | list[str]


class SettingsError(ValueError):
    """A file of settings that cannot be read: which, what, and how to mend it, in one line."""


class Settings(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """The settings, as the options of the same names are explained by ``fsm-agent ask --help``. None: not given.

    What an option takes several times may be a list, ``limits`` and ``model-option`` a table, ``prices`` a list of two numbers. Paths are
    those of the working directory.
    """

    model: str | None = None
    base_url: str | None = None
    temperature: float | None = None
    max_reply_tokens: Positive | None = None
    timeout: Annotated[float, msgspec.Meta(gt=0)] | None = None
    model_option: dict[str, Any] | None = None
    prices: str | list[float] | None = None
    tools: Texts | None = None
    mcp: Texts | None = None
    mcp_env: Texts | None = None
    approve: str | None = None
    trace: str | None = None
    draw: str | None = None
    guards: Literal["classic", "production", "none"] | None = None
    limits: str | dict[str, bool | int | float | str] | None = None
    protocol: Literal["function_calling", "json_text", "react", "line"] | None = None
    lang: Literal["en", "zh"] | None = None
    last_chance: bool | None = None
    max_retries: Count | None = None
    max_observation_chars: Positive | None = None
    max_parallel: Positive | None = None
    context: str | None = None
    stream: bool | None = None


@attrs.frozen
class Found:
    """Settings, and where they are from."""

    source: str
    """The file's name, for people."""
    defaults: Mapping[str, Any]
    """By the options' parameter names, what they are by default: text, as on the command line, or lists of it."""
    path: Path


def find(folder: Path | None = None) -> Found | None:
    """The settings of a folder, which is the working directory if not given; None: it has none. Raises as ``read`` does."""
    folder = folder or Path()
    for name in (FILE, PYPROJECT):
        path = folder / name
        if path.is_file() and (found := read(path)) is not None:
            return found
    return None


def read(path: Path) -> Found | None:
    """The settings of a file; None: a ``pyproject.toml`` without any. Raises ``SettingsError``, or ``OSError`` where it cannot be read."""
    try:
        fields: Any = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise SettingsError(f"{path}: not TOML: {first_line(str(error))}") from None
    source = str(path)
    if path.name == PYPROJECT:
        tools = fields.get("tool")
        if not isinstance(tools, dict) or TABLE not in tools:
            return None
        fields, source = tools[TABLE], f"{path}, [tool.{TABLE}]"
        if not isinstance(fields, dict):
            raise SettingsError(f"{path}: tool.{TABLE} is no table")
    return Found(source, _defaults(fields, source), path)


def _defaults(fields: Mapping[str, Any], source: str) -> dict[str, Any]:
    known = {field.encode_name: field for field in msgspec.structs.fields(Settings)}
    types = get_type_hints(Settings, include_extras=True)
    defaults: dict[str, Any] = {}
    for given, value in fields.items():
        name = given.replace("_", "-")
        if name not in known:
            raise SettingsError(f"{source}: {_unknown(given, list(known))}")
        field = known[name]
        if field.name in defaults:
            raise SettingsError(f"{source}: {name} is given twice, with - and with _")
        try:
            msgspec.convert(value, types[field.name])
            defaults[field.name] = _as_given(name, value)
        except msgspec.ValidationError:
            raise SettingsError(f"{source}: {given} is {_shown(value)}; it must be {_expected(types[field.name])}") from None
        except RecursionError:
            raise SettingsError(f"{source}: {given}: its value is nested too deeply") from None
        except ValueError as error:
            raise SettingsError(f"{source}: {given}: {error}") from None
    try:
        words.guards_of(defaults.get("guards", "production"), defaults.get("limits", ""))
    except ValueError as error:
        raise SettingsError(f"{source}: limits: {error}") from None
    return defaults


def _unknown(name: str, known: list[str]) -> str:
    if words.is_key(name):
        return f"{name} does not belong into a file: set OPENAI_API_KEY or ANTHROPIC_API_KEY in the environment"
    close = difflib.get_close_matches(name.lower().replace("_", "-"), known, 1)
    meant = f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"
    return f"{name} is not known; {meant}"


def _expected(kind: Any) -> str:
    """The type in words, without the None that stands for what is not given."""
    from fsm_agent.tools.schema import expected

    return expected(kind).removesuffix(" or null").replace("an object", "a table").replace(" (of: text)", " of them")


def _shown(value: object) -> str:
    return first_line(json.dumps(value, ensure_ascii=False, default=str), 60)


def _as_given(name: str, value: Any) -> Any:
    """A value as the command line would give it. Raises ``ValueError`` for what its option cannot mean."""
    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, str) and "\0" in text:
            raise ValueError("there is a NUL character in it")
        if name in _NAMES and not text.strip():
            raise ValueError("it is empty; give a name, or leave it out")
    if name in {"tools", "mcp", "mcp-env"}:
        return [value] if isinstance(value, str) else value
    if name == "model-option":
        for field in value:
            words.check_request_field(field)
        return [f"{field}={json.dumps(each, ensure_ascii=False, default=str)}" for field, each in value.items()]
    if name == "limits" and isinstance(value, dict):
        value = ",".join(f"{limit}={str(each).lower() if isinstance(each, bool) else each}" for limit, each in value.items())
    if name == "prices" and isinstance(value, list):
        value = ",".join(map(str, value))
    check = _CHECKS.get(name)
    if check is not None:
        check(value)
    return os.path.expanduser(value) if name in {"trace", "draw"} else value  # noqa: PTH111  # it stays text, as on the command line


_NAMES = frozenset({"model", "tools", "mcp", "mcp-env", "trace", "draw"})
"""Settings that are names of something: none of them may be empty."""

_CHECKS: dict[str, Callable[[Any], object]] = {
    "approve": words.approving,
    "context": words.context_of,
    "base-url": words.check_url,
    "prices": words.prices_of,
    "temperature": words.check_finite,
    "timeout": words.check_timeout,
}
