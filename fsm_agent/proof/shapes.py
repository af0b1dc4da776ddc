"""Memories as the search compares them: a memory's shape is a text, and memories with equal shapes behave alike.

The shape of a value is its ``repr``, but for three things: evidence, which is there for people, has none of its content in it (in the
memories of this package's guards it is left out); a step number is a name, such as ``step#7``; and things of unknown type are refused.
Names of calls and texts (``work#3``, ``seen#1``) stand in a shape as they are; ``canonical`` numbers them by their first appearance, so
that runs that differ in names alone are the same.
"""

from __future__ import annotations

import dataclasses
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import cache
from types import FunctionType, NoneType
from typing import Any

import attrs
import msgspec

from fsm_agent import events
from fsm_agent.guards import Evidence

STEP = "step"
NOW = "step#now"
_OWN = "fsm_agent."
_GUARDS = "fsm_agent.guards."
_FOR_PEOPLE = frozenset({"evidence", "omitted"})
"""Fields of the memories of this package's guards that no verdict comes from (``tests/test_proof_watching.py`` tries that)."""

_ATOMS = frozenset({int, float, str, bytes, bool, NoneType, complex})
_ORDERED: dict[type, str] = {tuple: "()", list: "[]", deque: "<>"}
_CHANGEABLE = frozenset({list, deque, set})


class Unreadable(TypeError):
    """A memory that holds something of which the search cannot tell whether it is the same as another."""


class Blank:
    """A field of an evidence that was taken out of a memory. Whoever looks at it is found out."""

    __slots__ = ("_looked",)

    def __init__(self, looked: Callable[[], None]) -> None:
        self._looked = looked

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._looked()
        return getattr("", name)


class StepNumber:
    """The number of a step from 1, as a guard is given it: a name, equal to itself alone. Whoever counts with it is found out."""

    __slots__ = ("_counted", "number")

    def __init__(self, number: int, counted: Callable[[], None]) -> None:
        self.number = number
        self._counted = counted

    @property  # type: ignore[misc]  # so that it passes for the whole number that it stands for
    def __class__(self) -> type:
        return int

    def __eq__(self, other: object) -> bool:
        if type(other) is StepNumber:
            return self.number == other.number
        if not isinstance(other, int | float):
            return NotImplemented  # it is the other that knows what it is equal to
        self._counted()
        return self.number == other

    def __hash__(self) -> int:
        return hash(self.number)

    def __bool__(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        self._counted()
        return getattr(self.number, name)


def _blank(name: str) -> Callable[..., Any]:
    def looked(self: Blank, *args: Any) -> Any:
        self._looked()
        return getattr("", name)(*(("" if type(arg) is Blank else arg) for arg in args))

    return looked


def _number(name: str) -> Callable[..., Any]:
    def counted(self: StepNumber, *args: Any) -> Any:
        self._counted()
        return getattr(self.number, name)(*((arg.number if type(arg) is StepNumber else arg) for arg in args))

    return counted


for _name in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__", "__len__", "__contains__", "__getitem__", "__iter__"):
    setattr(Blank, _name, _blank(_name))
for _name in ("__add__", "__mod__", "__mul__", "__str__", "__repr__", "__format__"):
    setattr(Blank, _name, _blank(_name))
for _operator in ("add", "sub", "mul", "floordiv", "truediv", "mod", "divmod", "pow", "and", "or", "xor", "lshift", "rshift"):
    for _name in (f"__{_operator}__", f"__r{_operator}__"):
        setattr(StepNumber, _name, _number(_name))
for _name in ("__lt__", "__le__", "__gt__", "__ge__", "__neg__", "__pos__", "__abs__", "__invert__"):
    setattr(StepNumber, _name, _number(_name))
for _name in ("__int__", "__index__", "__float__", "__round__", "__str__", "__repr__", "__format__"):
    setattr(StepNumber, _name, _number(_name))


class Settler:
    """Settles the memories of one guard: takes the content out of their evidence, and tells their shapes."""

    def __init__(self, blank: Evidence | None) -> None:
        """``blank`` stands for every evidence; None leaves them as they are."""
        self._blank = blank
        self._known: dict[int, tuple[Any, str]] = {}
        """Settled values that cannot change, by identity: the parts of a memory outlive it."""
        self.changeable = 0
        """Lists, sets and mappings met so far."""

    def settle(self, value: Any) -> tuple[Any, str]:
        """The memory without its evidence's content, and its shape. Raises ``Unreadable``."""
        kind = type(value)
        if kind in _ATOMS:
            return value, repr(value)
        known = self._known.get(id(value))
        if known is not None:
            return known
        changeable = self.changeable
        settled, shape = self._settle(value, kind)
        if kind.__module__.startswith(_OWN):
            self.changeable = changeable  # this package's values change nothing that they hold
        if self.changeable == changeable:
            if len(self._known) > 100_000:
                self._known.clear()
            self._known[id(settled)] = settled, shape  # this also keeps it alive, so that no other value can have its identity
        return settled, shape

    def _settle(self, value: Any, kind: type) -> tuple[Any, str]:  # noqa: PLR0911  # one return for each kind of value
        if kind is StepNumber:
            return value, f"step#{value.number}"
        if kind is Blank:
            return value, "?"  # the guard that looked at it is found out by now, and the search is about to start again
        if kind.__module__ == events.__name__:
            return value, repr(value)  # what the world said holds neither evidence nor step numbers
        if kind is Evidence and self._blank is not None:
            return self._blank, "Evidence"
        self.changeable += kind in _CHANGEABLE or isinstance(value, Mapping)
        if kind in _ORDERED:
            parts, shape = self._parts(value)
            changed = any(new is not old for new, old in zip(parts, value, strict=True))
            return (kind(parts) if changed else value), shape.join(_ORDERED[kind])
        if kind in (set, frozenset):
            settled = sorted((self.settle(each) for each in value), key=lambda part: part[1])
            return kind(part for part, _ in settled), f"{{{','.join(shape for _, shape in settled)}}}"
        if isinstance(value, Mapping):
            return self._mapping(value)
        fields = _fields(kind)
        if fields is not None:
            return self._record(value, kind, fields)
        if isinstance(value, type | FunctionType):
            return value, f"{value.__module__}.{value.__qualname__}"
        if isinstance(value, Enum):
            return value, repr(value)
        raise Unreadable(f"it holds a {kind.__name__}; make it of numbers, texts, tuples, and attrs, msgspec or dataclass values")

    def _parts(self, values: Iterable[Any]) -> tuple[list[Any], str]:
        settled = [self.settle(each) for each in values]
        return [part for part, _ in settled], ",".join(shape for _, shape in settled)

    def _mapping(self, value: Mapping[Any, Any]) -> tuple[Any, str]:
        names, names_shape = self._parts(value)
        values, values_shape = self._parts(value.values())
        unchanged = all(new is old for new, old in zip((*names, *values), (*value, *value.values()), strict=True))
        return (value if unchanged else dict(zip(names, values, strict=True))), f"{{{names_shape}:{values_shape}}}"

    def _record(self, value: Any, kind: type, fields: tuple[str, ...]) -> tuple[Any, str]:
        before = [getattr(value, name) for name in fields]
        if kind.__module__.startswith(_GUARDS):
            shown = {name: () for name in fields if name in _FOR_PEOPLE and getattr(value, name)}
            if shown:
                return self.settle(_replaced(value, kind, shown))
        parts, shape = self._parts(before)
        changes = {name: new for name, new, old in zip(fields, parts, before, strict=True) if new is not old}
        return (_replaced(value, kind, changes) if changes else value), f"{kind.__name__}({shape})"


@cache
def _fields(kind: type) -> tuple[str, ...] | None:
    """The names of the fields of a value class; None: it is none."""
    if issubclass(kind, msgspec.Struct):
        return kind.__struct_fields__
    if attrs.has(kind):
        return tuple(field.name for field in attrs.fields(kind))
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    return getattr(kind, "_fields", None) if issubclass(kind, tuple) else None


def _replaced(value: Any, kind: type, changes: dict[str, Any]) -> Any:
    if issubclass(kind, msgspec.Struct):
        return msgspec.structs.replace(value, **changes)
    if attrs.has(kind):
        return attrs.evolve(value, **{name.lstrip("_"): change for name, change in changes.items()})
    return value._replace(**changes) if issubclass(kind, tuple) else dataclasses.replace(value, **changes)


_NAME = re.compile(r"([A-Za-z_]\w*)#(\d+)")


def canonical(shape: str, step: int) -> tuple[str, dict[str, list[int]]]:
    """The shape with its names numbered by first appearance, and, by kind, the numbers that they had, in that order.

    The name of the step ``step``, which is the current one, is told from the others.
    """
    met: dict[str, list[int]] = {}

    def renamed(found: re.Match[str]) -> str:
        kind, number = found[1], int(found[2])
        if kind == STEP and number == step:
            return NOW
        numbers = met.setdefault(kind, [])
        if number not in numbers:
            numbers.append(number)
        return f"{kind}#{numbers.index(number)}"

    return _NAME.sub(renamed, shape), met
