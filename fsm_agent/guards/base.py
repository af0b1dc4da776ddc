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
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import attrs

from fsm_agent.events import Fact
from fsm_agent.language import Language
from fsm_agent.table import OBSERVING, GuardEdge, State


@attrs.frozen
class Evidence:
    """One thing that a reading rests on."""

    step: int
    kind: str
    """What it was: ``call``, ``unparseable`` or another kind of malformed reply, or an observation's kind."""
    text: str
    """One line: the call, or the first line of the error."""


@attrs.frozen
class Reading:
    """What a guard saw when it was judged."""

    guard: str
    """The guard's reason."""
    value: float
    limit: float
    trips: bool
    evidence: tuple[Evidence, ...] = ()
    warns: bool = False
    """The guard has a word for the model before it comes to a halt: the run takes the edge ``nudge``, if nothing halts it."""


class Guard(ABC):
    """The base of every guard. Subclasses are ``@attrs.frozen``: equal limits make equal guards."""

    __slots__ = ()

    reason: ClassVar[str]
    """The halt reason that it gives, and its name in records."""
    watches: ClassVar[State] = OBSERVING
    """Where it is judged: ``Parsing``, before anything is executed, or ``Observing``, after the observation was written."""
    label: ClassVar[str] = ""
    """What its value counts, in diagrams (``errors 1/2``); without one, the reason."""
    folds: ClassVar[tuple[type, ...]] = ()
    """The types of facts that ``fold`` wants to see; empty: all of them."""

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
        return lang.say("Warning: {guard} is at {value}, and the run is stopped at {limit}.", guard=self.reason, value=reading.value, limit=reading.limit)

    def edge(self) -> GuardEdge:
        """The guard as the table needs it."""
        warns = getattr(self, "warn_at", None) is not None
        return GuardEdge(type(self).__name__, self.reason, self.watches, self.label or self.reason, warns)


def at_least(least: int) -> Callable[[Any, attrs.Attribute[Any], Any], None]:
    """An attrs validator for a limit: a whole number, and not below ``least``. The message names the field."""

    def check(guard: Any, field: attrs.Attribute[Any], value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{field.name} is {value!r}; it must be a whole number")
        if value < least:
            raise ValueError(f"{field.name} is {value}; it must be at least {least}")

    return check
