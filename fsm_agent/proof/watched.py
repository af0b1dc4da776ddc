"""A guard as the search holds it: the guard itself does all the work, its memories are settled so that they can be compared.

Guards are watched while they work. Two things are thought to be there for people alone, and are taken out of the comparison: the
content of evidence, and how many steps ago something was. A guard that does look at one of them is found out at that moment; from
then on it is held with it, and the search starts again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import msgspec

from fsm_agent.events import Fact
from fsm_agent.guards import Evidence, Guard, Predicate, Reading, Summary
from fsm_agent.guards.combined import Combined
from fsm_agent.language import Language
from fsm_agent.proof.shapes import Blank, Settler, StepNumber, Unreadable
from fsm_agent.table import GuardEdge, State


class GuardFailed(Exception):
    """A guard raised."""


class Uncheckable(ValueError):
    """A guard does not do what a guard does, or its memories cannot be compared: nothing can be proved of it."""


@attrs.frozen(eq=False)
class Held:
    """A settled memory."""

    memory: Any
    shape: str
    changeable: bool
    """It holds a list, a set or a mapping, which a guard must not change."""


class Watched(Guard):
    """A guard, watched."""

    def __init__(self, guard: Guard) -> None:
        self.guard = guard
        self.counts_steps = False
        """It was seen counting with step numbers."""
        self.reads_evidence = False
        """It was seen looking at the content of evidence."""
        self.fields: frozenset[str] = frozenset()
        """Of the summary, what its predicates were seen to look at."""
        self._name = f"the guard {type(guard).__name__} ({guard.reason})"
        self._inner = self._watching(guard)
        blank: Any = Blank(self._looked)
        self._settler = Settler(Evidence(blank, blank, blank))

    def _looked(self) -> None:
        self.reads_evidence = True
        self._settler = Settler(None)

    def _counted(self) -> None:
        self.counts_steps = True

    def known(self) -> tuple[object, ...]:
        """What is known of how it works; when that has grown, what was found before does not count."""
        return self.counts_steps, self.reads_evidence, self.fields

    # --- what a guard is ---

    @property
    def reason(self) -> str:
        return self.guard.reason

    @property
    def watches(self) -> State:
        return self.guard.watches

    @property
    def folds(self) -> tuple[type, ...]:
        return self.guard.folds

    def edge(self) -> GuardEdge:
        return self.guard.edge()

    def nudge(self, reading: Reading, lang: Language) -> str:  # noqa: ARG002  # its evidence has no content here
        """Nothing: the search asks no model."""
        return ""

    def start(self) -> Held:
        return self._held(self._called("start", self._inner.start))

    def fold(self, memory: Held, fact: Fact, step: int) -> Held:
        number: Any = step if self.counts_steps or not step else StepNumber(step, self._counted)
        after = self._called("fold", self._inner.fold, memory.memory, fact, number)
        if memory.changeable and self._held(memory.memory).shape != memory.shape:
            raise Uncheckable(f"{self._name} changes its memory in fold; it must return a new one")
        return memory if after is memory.memory else self._held(after)

    def judge(self, memory: Held) -> Reading:
        reading = self._called("judge", self._inner.judge, memory.memory)
        if not isinstance(reading, Reading) or not isinstance(reading.trips, bool):
            raise Uncheckable(f"{self._name} gives {type(reading).__name__} where a Reading is due, whose trips is True or False")
        if reading.guard != self.reason:
            raise Uncheckable(f"{self._name} gives a reading of {reading.guard!r}; it must have the guard's own reason")
        return reading

    # --- how it is watched ---

    def _called(self, name: str, method: Callable[..., Any], *args: Any) -> Any:
        known = self.known()
        try:
            return method(*args)
        except Exception as error:
            if known != self.known():
                raise Restart from None
            text = str(error)
            raise GuardFailed(f"{self._name} raised {type(error).__name__} in {name}{f': {text}' if text else ''}") from error

    def _held(self, memory: Any) -> Held:
        before = self._settler.changeable
        try:
            settled, shape = self._settler.settle(self._projected(self.guard, memory))
        except Unreadable as error:
            raise Uncheckable(f"the memory of {self._name} cannot be compared: {error}") from None
        return Held(settled, shape, self._settler.changeable > before)

    def _watching(self, guard: Guard) -> Guard:
        """The guard, with glass between its predicates and the summary."""
        if isinstance(guard, Combined):
            return attrs.evolve(guard, parts=tuple(self._watching(part) for part in guard.parts), name=guard.reason)
        if isinstance(guard, Predicate):
            test = guard.test
            return attrs.evolve(guard, test=lambda summary: test(_Glass(summary, self._used)))  # type: ignore[arg-type]
        return guard

    def _used(self, field: str) -> None:
        self.fields |= {field}

    def _projected(self, guard: Guard, memory: Any) -> Any:
        """The memory, where it is a predicate's, without the fields that no predicate looks at: each is folded by itself."""
        if isinstance(guard, Combined):
            return tuple([self._projected(part, past) for part, past in zip(guard.parts, memory, strict=True)])
        if isinstance(guard, Predicate):
            return msgspec.structs.replace(Summary(), **{name: getattr(memory, name) for name in self.fields})
        return memory


class Restart(Exception):
    """A guard was found out: the search has to start again."""


class _Glass:
    """A summary of which it is seen what is looked at."""

    def __init__(self, summary: Summary, used: Callable[[str], None]) -> None:
        self._summary, self._used = summary, used

    def __getattr__(self, name: str) -> Any:
        summary = self._summary
        if name in Summary.__struct_fields__:
            self._used(name)
            return getattr(summary, name)
        computed = getattr(Summary, name, None)
        return computed.fget(self) if isinstance(computed, property) and computed.fget else getattr(summary, name)
