"""Guards that are known to work together: the presets by name, and the lists that a preset and a few limits make.

``classic`` is the well-known protection. ``production`` holds the rules that, measured on recorded runs whose outcome is known, stop
many of the bad ones and next to none of the good ones.

Limits are named by their fields (``max_errors``). A field that several guards have is named with its guard
(``consecutive_errors.warn_at``), and the budget of one tool with the tool (``max_calls:search``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import attrs

from fsm_agent.guards.base import Guard
from fsm_agent.guards.classic import ConsecutiveErrors, MaxSteps, classic
from fsm_agent.guards.errors import Denied, ErrorStreak
from fsm_agent.guards.progress import NoProgress
from fsm_agent.guards.registry import BUILT_IN
from fsm_agent.guards.replies import EmptyReply, MalformedStreak, TruncatedReply


class LimitsError(ValueError):
    """Limits that cannot be meant so: which one, why, and how to mend it, in one line."""


def production(
    max_steps: int,
    *,
    max_period: int = 6,
    max_cycles: int = 2,
    min_steps: int = 4,
    compare: Literal["call", "call+observation"] = "call+observation",
    max_same_errors: int = 3,
    max_errors: int = 8,
    max_malformed: int = 10,
    warn_at: int | None = 4,
    max_empty: int = 3,
    max_truncated: int = 2,
    max_denials: int = 2,
) -> tuple[Guard, ...]:
    """The protection that recorded runs speak for. How many steps a task may take no preset can know: ``max_steps`` must be given.

    ``warn_at`` is that of the errors in a row and of the malformed streak; a guard whose limit is not above it does not warn.
    Raises ``ValueError`` or ``TypeError`` naming the field for a limit that is no whole number from 1.
    """
    return (
        Denied(max_denials),
        TruncatedReply(max_truncated),
        EmptyReply(max_empty),
        ErrorStreak(max_same_errors),
        NoProgress(max_period, max_cycles, min_steps, compare),
        MalformedStreak(max_malformed, _below(warn_at, max_malformed)),
        ConsecutiveErrors(max_errors, count_malformed=False, warn_at=_below(warn_at, max_errors)),
        MaxSteps(max_steps),
    )


PRESETS: dict[str, Callable[[], tuple[Guard, ...]]] = {"classic": classic, "production": lambda: production(max_steps=1), "none": tuple}
"""By name, the guards; the step cap of ``production`` is to be replaced."""


def guards_from(preset: str = "classic", **limits: Any) -> tuple[Guard, ...]:
    """The guards of a preset (``classic``, ``production`` or ``none``), with other limits, and with the guards that further limits are of.

    So ``guards_from("production", max_steps=30, max_tokens=50_000)`` has a token budget too, and ``guards_from("none", max_errors=3)``
    is one guard. A guard's first limit set to None takes the guard away. Raises ``LimitsError`` for an unknown preset or limit, and
    for a value that the guard refuses.
    """
    if preset not in PRESETS:
        raise LimitsError(f"the preset {preset!r} is not known; known are {', '.join(PRESETS)}")
    if preset == "production" and limits.get("max_steps") is None:
        raise LimitsError("the production preset needs max_steps: how many steps a task may take, no preset can know")
    chosen = {guard.reason: (type(guard), guard.as_limits()) for guard in PRESETS[preset]()}
    given: dict[str, set[str]] = {}
    for name, value in limits.items():
        reason, field = _resolve(name)
        family, _, tool = reason.partition(":")
        kind = BUILT_IN[family]
        if value is None and field == _fields(kind)[0]:
            chosen.pop(reason, None)
            continue
        chosen.setdefault(reason, (kind, {"tool": tool} if tool else {}))[1][field] = value
        given.setdefault(reason, set()).add(field)
    return tuple(_made(reason, kind, fields, given.get(reason, set())) for reason, (kind, fields) in chosen.items())


def parse_limits(text: str) -> dict[str, Any]:
    """Limits as people write them, ``max_errors=3,max_steps=30``, by name, for ``guards_from``.

    ``off`` (or ``none``) takes a guard away, and is None here. Raises ``LimitsError`` for a pair that is none, and for an unknown name.
    """
    limits: dict[str, Any] = {}
    for pair in filter(None, map(str.strip, text.split(","))):
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not (name and equals and value):
            raise LimitsError(f"{pair!r} is not of the form name=value")
        _resolve(name)
        if name in limits:
            raise LimitsError(f"{name} is given twice")
        limits[name] = _value(value)
    return limits


def known_limits() -> tuple[str, ...]:
    """Every name that a limit can have, in the order of the table."""
    owners = _owners()
    names = [name if len(owners[name]) == 1 else f"{reason}.{name}" for reason, kind in BUILT_IN.items() for name in _fields(kind)]
    return (*names, "max_calls:TOOL")


def _resolve(name: str) -> tuple[str, str]:
    """The guard's reason and the field's name. Raises ``LimitsError`` for a name that no limit has, or that several have."""
    limit, _, tool = name.partition(":")
    reason, dot, field = limit.rpartition(".")
    owners = _owners().get(field, [])
    if (tool and limit != "max_calls") or not owners or (dot and reason not in owners):
        raise LimitsError(f"{name!r} is not the name of a limit; known are {', '.join(known_limits())}")
    if not dot and len(owners) > 1:
        raise LimitsError(f"{field} is a limit of several guards; write {' or '.join(f'{owner}.{field}' for owner in owners)}")
    reason = reason or owners[0]
    return (f"{reason}:{tool}" if tool else reason), field


def _owners() -> dict[str, list[str]]:
    """By field, the reasons of the guards that have it."""
    owners: dict[str, list[str]] = {}
    for reason, kind in BUILT_IN.items():
        for field in _fields(kind):
            owners.setdefault(field, []).append(reason)
    return owners


def _fields(kind: type[Guard]) -> list[str]:
    return [field.name for field in attrs.fields(kind) if field.name != "tool"]  # type: ignore[arg-type]  # every guard is an attrs class


def _made(reason: str, kind: type[Guard], fields: dict[str, Any], given: set[str]) -> Guard:
    """The guard. A warning that the preset set at or above a limit that was given is left out."""
    first = _fields(kind)[0]
    if "warn_at" in fields and "warn_at" not in given and isinstance(fields.get(first), int):
        fields = {**fields, "warn_at": _below(fields["warn_at"], fields[first])}
    needed = attrs.fields(kind)[0]  # type: ignore[arg-type]  # every guard is an attrs class
    if needed.default is attrs.NOTHING and first not in fields:
        raise LimitsError(f"{reason} needs {first}")
    try:
        return kind(**fields)
    except (TypeError, ValueError) as error:
        raise LimitsError(str(error)) from None


def _below(warn_at: int | None, limit: int) -> int | None:
    return warn_at if warn_at is not None and warn_at < limit else None


def _value(text: str) -> Any:
    """None, a truth value, a number, or else the text itself: what a limit may be is its guard's to say."""
    words = {"off": None, "none": None, "true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text
