"""Guards made of guards: ``a & b`` halts when both trip, ``a | b`` when one of them does, ``~a`` when it does not.

    stuck_late = NoProgress() & ~MaxSteps(20)        # a cycle, but only in the first twenty steps
    stuck_late = stuck_late.named("stuck_early")     # the halt reason; without a name it is made of the parts' reasons

A combined guard folds the facts for each of its parts and judges all of them, so it is as pure as they are. Its value counts the
parts that trip, its limit says how many have to. It shows the evidence of those that trip, and every part's own reading.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from itertools import chain
from typing import Any, ClassVar, Self

import attrs

from fsm_agent.events import Fact
from fsm_agent.guards.base import Guard, Reading, shown
from fsm_agent.language import Language
from fsm_agent.table import OBSERVING, State


def _guards(combined: Any, _field: attrs.Attribute[Any], parts: Any) -> None:
    """An attrs validator: guards, as many as the combination takes."""
    if not isinstance(parts, tuple):
        raise TypeError(f"{type(combined).__name__}: {parts!r} is not a tuple of guards")
    for part in parts:
        if not isinstance(part, Guard):
            raise TypeError(f"{type(combined).__name__}: {part!r} is not a guard")
    if len(parts) < combined.least or (combined.most and len(parts) > combined.most):
        raise ValueError(f"{type(combined).__name__} takes {'one guard' if combined.most else 'two guards or more'}, not {len(parts)}")


@attrs.frozen
class Combined(Guard):
    """What the three combinations have in common."""

    least: ClassVar[int] = 2
    most: ClassVar[int] = 0
    """Parts that it takes at most; 0: any number."""

    parts: tuple[Guard, ...] = attrs.field(validator=_guards)
    name: str = attrs.field(default="", validator=attrs.validators.instance_of(str))
    """The halt reason; empty: it is made of the parts' reasons."""

    @property
    def reason(self) -> str:
        return self.name or self._described()

    @property
    def watches(self) -> State:
        """The state that all parts watch. Parts that watch different states are judged together in Observing, when all is known."""
        states = {part.watches for part in self.parts}
        return states.pop() if len(states) == 1 else OBSERVING

    @property
    def chance(self) -> bool:
        return all(part.chance for part in self.parts)

    @property
    def folds(self) -> tuple[type, ...]:
        if not all(part.folds for part in self.parts):
            return ()
        return tuple(dict.fromkeys(chain.from_iterable(part.folds for part in self.parts)))

    def named(self, name: str) -> Self:
        """The same guard with this halt reason."""
        return attrs.evolve(self, name=name)

    def start(self) -> tuple[Any, ...]:
        return tuple([part.start() for part in self.parts])

    def fold(self, memory: tuple[Any, ...], fact: Fact, step: int) -> tuple[Any, ...]:
        pairs = zip(self.parts, memory, strict=True)
        return tuple([part.fold(past, fact, step) if not part.folds or type(fact) in part.folds else past for part, past in pairs])

    def judge(self, memory: tuple[Any, ...]) -> Reading:
        readings = tuple([part.judge(past) for part, past in zip(self.parts, memory, strict=True)])
        value, limit = self._counted(readings)
        evidence = tuple([evidence for reading in readings if reading.trips for evidence in reading.evidence])
        return Reading(self.reason, value, limit, value >= limit, evidence, parts=readings)

    def explain(self, reading: Reading, lang: Language) -> str:
        parts = lang.say("; ").join(f"{part.guard} {shown(part.value)}/{shown(part.limit)}" for part in reading.parts)
        return lang.say("stopped: {guard} ({parts})", guard=self.reason, parts=parts)

    def as_limits(self) -> dict[str, Any]:
        parts = [{"reason": part.reason, "guard": type(part).__name__, "limits": part.as_limits()} for part in self.parts]
        return {"parts": parts, **({"name": self.name} if self.name else {})}

    @abstractmethod
    def _described(self) -> str:
        """A halt reason made of the parts' reasons."""

    @abstractmethod
    def _counted(self, readings: Sequence[Reading]) -> tuple[int, int]:
        """How many parts speak for a halt, and how many have to."""

    @classmethod
    def of(cls, *guards: Guard) -> Self:
        """The combination; one of the same kind without a name of its own is taken apart, so ``a & b & c`` has three parts."""
        parts: list[Guard] = []
        for guard in guards:
            parts += guard.parts if type(guard) is cls and not guard.name else (guard,)
        return cls(tuple(parts))


@attrs.frozen
class AllOf(Combined):
    """Halts when every part trips."""

    def _described(self) -> str:
        return "_and_".join(part.reason for part in self.parts)

    def _counted(self, readings: Sequence[Reading]) -> tuple[int, int]:
        return sum(reading.trips for reading in readings), len(readings)


@attrs.frozen
class AnyOf(Combined):
    """Halts when one part trips."""

    def _described(self) -> str:
        return "_or_".join(part.reason for part in self.parts)

    def _counted(self, readings: Sequence[Reading]) -> tuple[int, int]:
        return sum(reading.trips for reading in readings), 1


@attrs.frozen
class Not(Combined):
    """Halts when its part does not trip."""

    least: ClassVar[int] = 1
    most: ClassVar[int] = 1

    def _described(self) -> str:
        return f"not_{self.parts[0].reason}"

    def _counted(self, readings: Sequence[Reading]) -> tuple[int, int]:
        return int(not readings[0].trips), 1
