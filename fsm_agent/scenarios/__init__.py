"""Scenarios: small scripted runs, each of which teaches one thing. One TOML file each; ``a.toml`` shows the form.

A scenario is played by a scripted model, so it always takes the same path through the machine.
"""

from __future__ import annotations

import tomllib
from functools import lru_cache
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

import msgspec

from fsm_agent.guards import Guard, classic
from fsm_agent.models import ScriptedModel
from fsm_agent.table import ROWS
from fsm_agent.tools import BUILT_IN, Tool

MAX_SIZE = 16 * 2**20
"""Bytes that a scenario file may have."""

REASONS = tuple(dict.fromkeys(row.reason for row in ROWS if row.reason))
"""How a scenario may end, in the order of the table."""


class ScenarioError(ValueError):
    """A scenario file that cannot be used: what, where, and how to mend it, in one line."""


class Expected(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a scenario says of its own end; only what is given is compared."""

    reason: str | None = None
    """One of ``REASONS``."""
    model_calls: int | None = None
    answer: str | None = None


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The limits of the classic guards."""

    max_steps: int = 10
    max_repeats: int = 2
    max_errors: int = 2


Text = str | dict[str, str]
"""A text, or a table with one for each language."""


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A scripted run and what it teaches."""

    title: Text
    task: str
    teaches: Text = ""
    tools: tuple[str, ...] = ()
    """Names of built-in tools."""
    limits: Limits = Limits()
    script: tuple[str, ...] = ()
    """The model's replies, in order."""
    then: str | None = None
    """The reply of every later call; ``{n}`` counts 1, 2, 3, ..."""
    expect: Expected = Expected()
    name: str = ""
    """The file's name without ``.toml``; a file need not give it."""

    def titled(self, lang: str) -> str:
        """The title in a language."""
        return _in(self.title, lang)

    def taught(self, lang: str) -> str:
        """What it teaches, in a language."""
        return _in(self.teaches, lang)

    @property
    def guards(self) -> tuple[Guard, ...]:
        return classic(**msgspec.structs.asdict(self.limits))

    @property
    def model(self) -> ScriptedModel:
        """A scripted model at the beginning of the script."""
        return ScriptedModel(self.script, self.then)

    @property
    def named_tools(self) -> dict[str, Tool]:
        return {name: BUILT_IN[name] for name in self.tools}


def load_all() -> dict[str, Scenario]:
    """The scenarios that come with the package, by name, in order."""
    return {name: built_in(name) for name in names()}


@lru_cache
def names() -> tuple[str, ...]:
    """The names of the scenarios that come with the package, in order."""
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in files(__name__).iterdir() if entry.name.endswith(".toml")))


def built_in(name: str) -> Scenario:
    """The scenario of this name that comes with the package. Raises ``ScenarioError`` listing the names."""
    if not name:
        raise ScenarioError(f"no scenario is named; name one of {', '.join(names())}, or give the path of a .toml file")
    if name not in names():
        raise ScenarioError(f"there is no scenario {name!r}; there are {', '.join(names())}, or give the path of a .toml file")
    return parse((files(__name__) / f"{name}.toml").read_text(encoding="utf-8"), name)


def load(path: str | PathLike[str]) -> Scenario:
    """The scenario in a file. Raises ``ScenarioError`` for a file that is none, ``OSError`` where it cannot be read."""
    path = Path(path)
    with path.open("rb") as file:
        content = file.read(MAX_SIZE + 1)
    if len(content) > MAX_SIZE:
        raise ScenarioError(f"{path} is no scenario: it is longer than {MAX_SIZE // 2**20} MiB")
    try:
        fields: dict[str, Any] = tomllib.loads(content.decode("utf-8-sig"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        if path.suffix != ".toml":
            raise ScenarioError(
                f"{path} is no scenario, which is a .toml file; a recorded run is fed through the machine with: fsm-agent replay {path}"
            ) from None
        if isinstance(error, UnicodeDecodeError):
            raise ScenarioError(f"{path}: not UTF-8 text (byte {error.start})") from None
        raise ScenarioError(f"{path}: not TOML: {error}") from None
    return _made(fields, path.stem, str(path))


def parse(text: str, name: str) -> Scenario:
    """The scenario in this TOML text. Raises ``ScenarioError`` naming the scenario and the field."""
    try:
        fields: dict[str, Any] = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ScenarioError(f"{name}: not TOML: {error}") from None
    return _made(fields, name, name)


def _made(fields: dict[str, Any], name: str, where: str) -> Scenario:
    """Raises ``ScenarioError`` naming ``where`` and the field."""
    try:
        scenario = msgspec.convert({"name": name, **fields}, Scenario)
        for field in (scenario.title, scenario.teaches):
            _in(field, "en")
        scenario.guards  # noqa: B018  # raises for a limit below 1
    except (msgspec.ValidationError, ValueError, RecursionError) as error:
        raise ScenarioError(f"{where}: {error}") from None
    if problem := _problem(scenario):
        raise ScenarioError(f"{where}: {problem}")
    return scenario


def _problem(scenario: Scenario) -> str:
    """What the types do not say; empty: nothing."""
    expect = scenario.expect
    if unknown := [tool for tool in scenario.tools if tool not in BUILT_IN]:
        return f"tools: no built-in tool {unknown[0]!r}; there are {', '.join(BUILT_IN)}"
    if twice := [tool for tool in scenario.tools if scenario.tools.count(tool) > 1]:
        return f"tools: {twice[0]!r} is given twice"
    if not scenario.script and scenario.then is None:
        return "there is nothing to play; give script (a list of replies), then (a template), or both"
    if expect.reason is not None and expect.reason not in REASONS:
        return f"expect.reason is {expect.reason!r}; it must be one of {', '.join(REASONS)}"
    if expect.model_calls is not None and expect.model_calls < 0:
        return f"expect.model_calls is {expect.model_calls}; it must be at least 0"
    return ""


def _in(text: Text, lang: str) -> str:
    if isinstance(text, str):
        return text
    if not text:
        raise ScenarioError("a table of texts is empty; give en, zh, or plain text")
    return text.get(lang) or text.get("en") or next(iter(text.values()))
