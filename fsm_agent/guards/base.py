"""What a guard is: a frozen value whose fields are its limits, and whose memory is folded from the run's facts.

A guard keeps no state of its own. For each run the machine holds a memory for it: ``start()`` makes the first one, ``fold`` the
next one from a fact, and ``judge`` reads it. All three are pure, so a run can be copied, saved, replayed under other limits
and searched exhaustively. A user's own guard is a subclass of ``Guard`` and an equal citizen everywhere:

    @attrs.frozen
    class TooManySearches(Guard):
        reason = "too_many_searches"
        limit: int = attrs.field(default=5, validator=at_least(1))

        def start(self) -> int:
            return 0

        def fold(self, memory: int, fact: Fact, step: int) -> int:
            return memory + sum(call.name == "search" for call in fact.calls) if isinstance(fact, ToolCalls) else memory

        def judge(self, memory: int) -> Reading:
            return Reading(self.reason, memory, self.limit, memory >= self.limit)

Guards are values that can be combined: ``a & b`` halts when both trip, ``a | b`` when one of them does, ``~a`` when it does not.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs

from fsm_agent.events import Fact, Value
from fsm_agent.language import Language
from fsm_agent.table import OBSERVING, GuardEdge, State

if TYPE_CHECKING:
    from fsm_agent.guards.combined import AllOf, AnyOf, Not


class Evidence(Value, frozen=True):
    """One thing that a reading rests on."""

    step: int
    kind: str
    """What it was: ``call``, ``unparseable`` or another kind of malformed reply, or an observation's kind."""
    text: str
    """One line: the call, or the first line of the error."""


class Reading(Value, frozen=True):
    """What a guard saw when it was judged."""

    guard: str
    """The guard's reason."""
    value: int | float  # a whole number stays one when it is read back
    limit: int | float
    trips: bool
    evidence: tuple[Evidence, ...] = ()
    """What the value rests on, oldest first. Where there is much of it, guards of this package show the first and the last few."""
    warns: bool = False
    """The guard has a word for the model before it comes to a halt: the run takes the edge ``nudge``, if nothing halts it."""
    period: int | None = None
    """Of a cycle: how many steps make one round of it."""
    unknown: int = 0
    """How many of the things that the value adds up were not known; the value is then the least that it can be."""
    parts: tuple[Reading, ...] = ()
    """Of a combined guard: what its parts saw."""
    omitted: tuple[tuple[str, int], ...] = ()
    """By kind, how much evidence of a streak is not shown."""


class Guard(ABC):
    """The base of every guard. Subclasses are ``@attrs.frozen``: equal limits make equal guards.

    The properties are plain class attributes in most guards (``reason = "too_many_searches"``); they are properties here
    so that a guard may also have them from its fields.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def reason(self) -> str:
        """The halt reason that it gives, and its name in records."""

    @property
    def watches(self) -> State:
        """Where it is judged: ``Parsing``, before anything is executed, or ``Observing``, after the observation was written."""
        return OBSERVING

    @property
    def label(self) -> str:
        """What its value counts, in diagrams (``errors 1/2``); without one, the reason."""
        return ""

    @property
    def chance(self) -> bool:
        """Before it halts a run that has a last chance, the model is asked once more: so at a cap, a budget and a loop."""
        return False

    @property
    def folds(self) -> tuple[type, ...]:
        """The types of facts that ``fold`` wants to see; empty: all of them."""
        return ()

    @abstractmethod
    def start(self) -> Any:
        """The memory of a run in which nothing has happened."""

    @abstractmethod
    def fold(self, memory: Any, fact: Fact, step: int) -> Any:
        """The memory after ``fact``, which happened in step number ``step`` (from 1; 0 before the first). It must not change ``memory``."""

    @abstractmethod
    def judge(self, memory: Any) -> Reading:
        """Read the memory. Every reading goes into the record, also those that do not trip."""

    def explain(self, reading: Reading, lang: Language) -> str:
        """The halt in one sentence, for people."""
        return lang.say("stopped: {guard} reached {value} of {limit}", guard=self.reason, value=reading.value, limit=reading.limit)

    def nudge(self, reading: Reading, lang: Language) -> str:
        """One sentence to the model, when a reading warns."""
        value, limit = reading.value, reading.limit
        return lang.say("Warning: {guard} is at {value}, and the run is stopped at {limit}.", guard=self.reason, value=value, limit=limit)

    def edge(self) -> GuardEdge:
        """The guard as the table needs it."""
        warns = getattr(self, "warn_at", None) is not None
        return GuardEdge(type(self).__name__, self.reason, self.watches, self.label or self.reason, self.chance, warns)

    def as_limits(self) -> dict[str, Any]:
        """Its limits by name, as JSON values: what a record keeps of it."""
        return {field.name: getattr(self, field.name) for field in attrs.fields(type(self))}  # type: ignore[arg-type]  # every guard is an attrs class

    def __and__(self, other: Guard) -> AllOf:
        from fsm_agent.guards.combined import AllOf

        return AllOf.of(self, other)

    def __or__(self, other: Guard) -> AnyOf:
        from fsm_agent.guards.combined import AnyOf

        return AnyOf.of(self, other)

    def __invert__(self) -> Not:
        from fsm_agent.guards.combined import Not

        return Not((self,))


def shown(number: float) -> str:
    """A value or a limit, for people: a whole number in full, another with six digits."""
    return str(number) if isinstance(number, int) else f"{number:.6g}"


Validator = Callable[[Any, "attrs.Attribute[Any]", Any], None]


def at_least(least: int) -> Validator:
    """An attrs validator for a limit: a whole number, and not below ``least``. The message names the field."""

    def check(_guard: Any, field: attrs.Attribute[Any], value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{field.name} is {value!r}; it must be a whole number")
        if value < least:
            raise ValueError(f"{field.name} is {value}; it must be at least {least}")

    return check


def below(other: str) -> Validator:
    """An attrs validator: None, or a whole number from 1 that is below the limit ``other``, since at that one the run halts."""

    def check(guard: Any, field: attrs.Attribute[Any], value: Any) -> None:
        if value is None:
            return
        at_least(1)(guard, field, value)
        if value >= getattr(guard, other):
            raise ValueError(f"{field.name} is {value}; it must be below {other}, which is {getattr(guard, other)}")

    return check


def above_zero(_guard: Any, field: attrs.Attribute[Any], value: Any) -> None:
    """An attrs validator: a number above zero, and a finite one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{field.name} is {value!r}; it must be a number")
    if not (value > 0 and math.isfinite(value)):
        raise ValueError(f"{field.name} is {value}; it must be a number above 0")


def true_or_false(_guard: Any, field: attrs.Attribute[Any], value: Any) -> None:
    """An attrs validator: a truth value."""
    if not isinstance(value, bool):
        raise TypeError(f"{field.name} is {value!r}; it must be true or false")


def one_of(*words: str) -> Validator:
    """An attrs validator: one of these words."""

    def check(_guard: Any, field: attrs.Attribute[Any], value: Any) -> None:
        if value not in words:
            raise ValueError(f"{field.name} is {value!r}; it must be one of {', '.join(words)}")

    return check
