"""What an audit tries out: lists of guards with a name, and sweeps of one limit.

A cap on steps says nothing of what is right or wrong with a run, and no preset can know it: a plan has one only where it is given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import attrs

from fsm_agent.guards import Guard, LimitsError, MaxSteps, guards_from, parse_limits

MOST_VALUES = 100
"""Values that a sweep tries, at most."""

_RANGE = re.compile(r"(?P<first>-?\d{1,15})\.\.(?P<last>-?\d{1,15})(?:\.\.(?P<by>\d{1,15}))?")


@attrs.frozen
class Plan:
    """Guards that are tried out on every run."""

    name: str
    """What people call it: the preset, or the limits as they were written."""
    guards: tuple[Guard, ...]

    @property
    def capped(self) -> bool:
        """It has a cap on steps."""
        return any(type(guard) is MaxSteps for guard in self.guards)

    def limits(self) -> dict[str, dict[str, Any]]:
        """By halt reason, the limits of each guard."""
        return {guard.reason: guard.as_limits() for guard in self.guards}


@attrs.frozen
class Sweep:
    """One limit, at several values, all others being equal."""

    limit: str
    """Its name, as ``parse_limits`` takes it."""
    values: tuple[Any, ...]

    def plans(self, preset: str, limits: Mapping[str, Any]) -> tuple[Plan, ...]:
        """A plan for each value. Raises ``LimitsError`` for a value that the limit cannot have."""
        return tuple(plan_of(preset, {**limits, self.limit: value}, f"{self.limit}={value}") for value in self.values)


def plan_of(preset: str, limits: Mapping[str, Any], name: str = "") -> Plan:
    """The guards of a preset under these limits, without a cap on steps unless they give one. Raises ``LimitsError``."""
    if limits.get("max_steps") is not None:
        return Plan(name or preset, guards_from(preset, **limits))
    guards = guards_from(preset, **{**limits, "max_steps": 1})
    return Plan(name or preset, tuple(guard for guard in guards if type(guard) is not MaxSteps))


def parse_sweep(text: str) -> Sweep:
    """A sweep as people write it: ``max_errors=1..6``, ``max_steps=10..50..10`` (by tens), ``max_errors=2,3``. Raises ``LimitsError``."""
    name, equals, values = (part.strip() for part in text.partition("="))
    if not (name and equals and values):
        raise LimitsError(f"{text!r} is not of the form name=first..last")
    found = _RANGE.fullmatch(values)
    if found is None:
        return Sweep(name, tuple(parse_limits(f"{name}={value}")[name] for value in _listed(text, values)))
    parse_limits(f"{name}=1")
    first, last, by = int(found["first"]), int(found["last"]), int(found["by"] or 1)
    if by == 0 or first > last:
        raise LimitsError(f"{text!r} has no values: the first must not be above the last, and the step not 0")
    if (last - first) // by >= MOST_VALUES:
        raise LimitsError(
            f"{text!r} has more than {MOST_VALUES} values; give a larger step, as in {name}={first}..{last}..{(last - first) // 10}"
        )
    return Sweep(name, tuple(range(first, last + 1, by)))


def _listed(text: str, values: str) -> list[str]:
    listed = [value.strip() for value in values.split(",") if value.strip()]
    if not listed or len(listed) > MOST_VALUES or len(set(listed)) < len(listed):
        raise LimitsError(f"{text!r}: give from 1 to {MOST_VALUES} values, each once")
    return listed


def swept_guard(plan: Plan, limit: str) -> Guard | None:
    """The guard of the plan that the limit belongs to; None where it was taken away."""
    name, _, tool = limit.partition(":")
    reason, _, field = name.rpartition(".")
    for guard in plan.guards:
        if getattr(guard, "tool", None) == (tool or None) and field in guard.as_limits() and reason in {"", guard.reason}:
            return guard
    return None
