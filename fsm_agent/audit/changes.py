"""Which limits would have changed how a run ended: for each, the smallest change that does, found by playing the run again."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import attrs

from fsm_agent.audit.case import Case, Ended
from fsm_agent.audit.shadow import readings, timeline_of
from fsm_agent.guards import AllOf, AnyOf, Guard, Not, ToolBudget, known_limits

MOST = 1_000_000_000
"""The highest limit that is tried: far beyond what any run comes to."""
DIGITS = 4
"""Of a limit that is no whole number: the digits that people care for."""


@attrs.frozen
class Change:
    """A limit that, set to this value, changes where or why the run ends; nothing between the two values does."""

    limit: str
    """Its name, as ``--limits`` takes it."""
    value: Any
    was: Any
    ended: Ended
    """How the run ends then."""


@attrs.frozen
class Tried:
    """What was found of every limit."""

    changes: tuple[Change, ...]
    without: tuple[str, ...]
    """Limits that change nothing, whatever their value."""


class Knob(NamedTuple):
    """A limit that can be turned."""

    name: str
    value: Any
    turned: Callable[[Any], Guard]
    """The guard with another value. Raises ``ValueError`` or ``TypeError`` for one that it cannot have."""


def changes(case: Case) -> Tried:
    """Try every limit of the case's guards, towards lower values and towards higher ones."""
    ended = case.ended(case.play(case.guards))
    found: list[Change] = []
    without: list[str] = []
    for i, guard in enumerate(case.guards):
        for knob in knobs(guard):
            new = [
                change for candidates in _candidates(case, guard, knob) if (change := _first(case, i, knob, candidates, ended)) is not None
            ]
            found += new
            without += [] if new else [knob.name]
    return Tried(tuple(found), tuple(dict.fromkeys(without)))


def knobs(guard: Guard) -> Iterator[Knob]:
    """The limits of a guard, and of the parts of a combined one. A warning changes no end, so when it is given is no such limit."""
    if isinstance(guard, AllOf | AnyOf | Not):
        for i, part in enumerate(guard.parts):
            for knob in knobs(part):
                yield Knob(f"{guard.reason}.{knob.name}", knob.value, _with_part(guard, i, knob))
        return
    known = known_limits()
    for field in attrs.fields(type(guard)):  # type: ignore[arg-type]  # every guard is an attrs class
        value = getattr(guard, field.name)
        if isinstance(value, bool | int | float) and field.name != "warn_at":
            tool = f":{guard.tool}" if isinstance(guard, ToolBudget) and guard.tool else ""
            name = field.name if field.name in known else f"{guard.reason}.{field.name}"
            yield Knob(f"{name}{tool}", value, _with_limit(guard, field.name))


def _with_limit(guard: Guard, field: str) -> Callable[[Any], Guard]:
    unwarned = {"warn_at": None} if hasattr(guard, "warn_at") else {}  # a limit may fall below it
    return lambda value: attrs.evolve(guard, **unwarned, **{field: value})  # type: ignore[misc]  # every guard is an attrs class


def _with_part(guard: AllOf | AnyOf | Not, at: int, knob: Knob) -> Callable[[Any], Guard]:
    return lambda value: attrs.evolve(guard, parts=(*guard.parts[:at], knob.turned(value), *guard.parts[at + 1 :]))


def _candidates(case: Case, guard: Guard, knob: Knob) -> Iterator[Sequence[Any]]:
    """Values on either side, from the nearest to the farthest."""
    if isinstance(knob.value, bool):
        yield (not knob.value,)
    elif isinstance(knob.value, int):
        yield _valid(knob, range(knob.value - 1, -1, -1))
        yield range(knob.value + 1, MOST)
    else:
        seen = {judged.reading.value for judged in readings(guard, timeline_of(case.play(())))}
        yield sorted({low for value in seen if 0 < (low := _rounded(value, math.floor)) < knob.value}, reverse=True)
        yield sorted({high for value in seen if (high := _rounded(value, math.floor, above=1)) > knob.value})


def _valid(knob: Knob, values: range) -> range:
    """The values down to the lowest that the guard takes."""
    for lowest in range(min(len(values), 3)):
        try:
            knob.turned(lowest)
        except (ValueError, TypeError):
            continue
        return values[: len(values) - lowest]
    return values[:0]


def _rounded(value: float, towards: Callable[[float], int], *, above: int = 0) -> float:
    """To so many digits: not above the value, or with ``above`` the next number above it."""
    if value <= 0:
        return 0
    unit = 10.0 ** (math.floor(math.log10(value)) + 1 - DIGITS)
    return float(f"{(towards(value / unit) + above) * unit:.{DIGITS}g}")


def _first(case: Case, at: int, knob: Knob, values: Sequence[Any], ended: Ended) -> Change | None:
    """The first value with which the run ends otherwise. If one does, those farther away do so too, so the search can halve."""

    def then(value: Any) -> Ended:
        return case.ended(case.play([*case.guards[:at], knob.turned(value), *case.guards[at + 1 :]]))

    if not values or then(values[-1]) == ended:
        return None
    low, high = 0, len(values) - 1
    while low < high:
        middle = (low + high) // 2
        if then(values[middle]) == ended:
            low = middle + 1
        else:
            high = middle
    return Change(knob.name, values[high], knob.value, then(values[high]))
