"""What is to be proved: guards from a preset, limits, a TOML file, or a user's own code; and what is on besides."""

from __future__ import annotations

import importlib
import os
import sys
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import attrs
import msgspec

from fsm_agent.guards import Guard, guards_from, parse_limits
from fsm_agent.options import Options
from fsm_agent.proof.options import SEARCHED, options_from

MAX_STEPS = 30
"""The step cap of the production preset where none is given, since no preset can know it."""


class ConfigurationError(ValueError):
    """A configuration that cannot be read: what, where, and how to mend it, in one line."""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A configuration in TOML."""

    preset: str = "classic"
    limits: dict[str, Any] = {}
    """By name, as in ``--limits``."""
    guards: tuple[str, ...] = ()
    """A user's own guards, each as ``module:ATTRIBUTE``."""
    on: tuple[str, ...] | None = msgspec.field(default=None, name="with")
    """What is on, as in ``--with``, word by word; None: what is on by default."""


@attrs.frozen
class Configuration:
    """A list of guards with a name for people."""

    name: str
    guards: tuple[Guard, ...]
    assumed: tuple[str, ...] = ()
    """Limits that were not given, such as ``max_steps=30``."""
    options: Options = SEARCHED
    """What is on besides."""


def from_options(preset: str, limits: str, paths: Sequence[str], on: Sequence[str] | None = None) -> Configuration:
    """A preset with limits, a user's own guards, and what is on. Raises ``ValueError`` in one line."""
    return _made(preset, parse_limits(limits), paths, preset, on)


def from_file(path: str | os.PathLike[str], paths: Sequence[str] = (), on: Sequence[str] | None = None) -> Configuration:
    """A scenario's guards, or a file with ``preset``, ``limits``, ``guards`` and ``with``, and a user's own guards.

    ``on``: what is on, whatever the file says. Raises ``ValueError`` in one line, ``OSError`` where the file cannot be read.
    """
    from fsm_agent.scenarios import load

    try:
        fields = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"{path}: not TOML: {error}") from None
    if "task" in fields or "script" in fields:
        return Configuration(Path(path).stem, (*load(path).guards, *imported(paths)), options=_options(on))
    try:
        file = msgspec.convert(fields, _File)
        return _made(file.preset, file.limits, (*file.guards, *paths), Path(path).stem, file.on if on is None else on)
    except (msgspec.ValidationError, ValueError, RecursionError) as error:
        raise ConfigurationError(f"{path}: {error}") from None


def _made(preset: str, limits: dict[str, Any], paths: Sequence[str], name: str, on: Sequence[str] | None) -> Configuration:
    assumed = preset == "production" and "max_steps" not in limits
    guards = guards_from(preset, **({**limits, "max_steps": MAX_STEPS} if assumed else limits))
    return Configuration(name, (*guards, *imported(paths)), (f"max_steps={MAX_STEPS}",) if assumed else (), _options(on))


def _options(on: Sequence[str] | None) -> Options:
    return SEARCHED if on is None else options_from(on)


def imported(paths: Iterable[str]) -> tuple[Guard, ...]:
    """The guards at these import paths, each ``module:ATTRIBUTE``: a guard, a guard's class, several guards, or a function that makes them.

    The module is looked for in the current folder, too. Raises ``ConfigurationError`` in one line.
    """
    return tuple(guard for path in paths for guard in _imported(path))


def _imported(path: str) -> list[Guard]:
    name, colon, attribute = path.partition(":")
    if not (name and colon and attribute):
        raise ConfigurationError(f"{path!r} is not of the form module:ATTRIBUTE, as in my_guards:TooManySearches")
    if "" not in sys.path and (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        value = importlib.import_module(name)
        for part in attribute.split("."):
            value = getattr(value, part)
    except AttributeError as error:
        raise ConfigurationError(f"{path}: {error}") from None
    except Exception as error:  # noqa: BLE001  # whatever a user's module raises when it is imported
        raise ConfigurationError(f"{path} cannot be imported: {type(error).__name__}: {error}") from None
    try:
        made: Any = value() if callable(value) and not isinstance(value, Guard) else value
        found = [made] if isinstance(made, Guard) else list(made)
    except Exception as error:  # noqa: BLE001  # whatever a user's class or function raises
        raise ConfigurationError(f"{path} makes no guard: {type(error).__name__}: {error}") from None
    if not found or not all(isinstance(guard, Guard) for guard in found):
        raise ConfigurationError(f"{path} is no guard, no guard's class, no list of guards, and makes none")
    return found


def shown(guards: Iterable[Guard]) -> str:
    """These guards in one line: the first limit of each, or its reason."""
    words = []
    for guard in guards:
        limits = [f"{name}={value}" for name, value in guard.as_limits().items() if isinstance(value, int | float)]
        words.append(limits[0] if limits else guard.reason)
    return ", ".join(words)
