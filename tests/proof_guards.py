"""Guards as users write them, good and bad, for the tests of the proof."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs

from fsm_agent.events import ApprovalGiven, AttemptFailed, ContextCompacted, Fact, ModelReplied, ToolCalls, ToolsReturned
from fsm_agent.guards import Evidence, Guard, MaxSteps, Reading, Summary, at_least, predicate
from fsm_agent.table import PARSING, State


@attrs.frozen
class TooManySearches(Guard):
    """A good one: it halts a run that searches too often."""

    reason: ClassVar[str] = "too_many_searches"
    watches: ClassVar[State] = PARSING

    max_searches: int = attrs.field(default=2, validator=at_least(1))

    def start(self) -> int:
        return 0

    def fold(self, memory: int, fact: Fact, step: int) -> int:
        return memory + sum(call.name == "search" for call in fact.calls) if isinstance(fact, ToolCalls) else memory

    def judge(self, memory: int) -> Reading:
        return Reading(self.reason, memory, self.max_searches, memory > self.max_searches)


@attrs.frozen
class Lenient(Guard):
    """It waits for a successful call that is an error: it can never trip."""

    reason: ClassVar[str] = "lenient"

    def start(self) -> bool:
        return False

    def fold(self, memory: bool, fact: Fact, step: int) -> bool:
        return isinstance(fact, ToolsReturned) and any(seen.kind == "ok" and seen.is_error for seen in fact.observations)

    def judge(self, memory: bool) -> Reading:
        return Reading(self.reason, int(memory), 1, memory)


@attrs.frozen
class LateErrors(Guard):
    """Errors in a row, judged after ``ConsecutiveErrors``, which trips wherever it does: always shadowed."""

    reason: ClassVar[str] = "late_errors"

    limit: int = 2

    def start(self) -> int:
        return 0

    def fold(self, memory: int, fact: Fact, step: int) -> int:
        if isinstance(fact, ToolsReturned):
            return memory + 1 if all(seen.kind == "tool_error" for seen in fact.observations) else 0
        return memory

    def judge(self, memory: int) -> Reading:
        return Reading(self.reason, memory, self.limit, memory >= self.limit)


@attrs.frozen
class Forgetful(Guard):
    """A cap that forgets: every success counts as a new beginning."""

    reason: ClassVar[str] = "forgetful"

    limit: int = 3

    def start(self) -> int:
        return 0

    def fold(self, memory: int, fact: Fact, step: int) -> int:
        if isinstance(fact, ToolsReturned):
            return 0 if any(not seen.is_error for seen in fact.observations) else memory + 1
        return memory

    def judge(self, memory: int) -> Reading:
        return Reading(self.reason, memory, self.limit, memory >= self.limit)


@attrs.frozen
class EachTurn(Guard):
    """So many steps after a message of a person, who may always go on."""

    reason: ClassVar[str] = "each_turn"

    limit: int = 3

    def start(self) -> int:
        return 0

    def fold(self, memory: int, fact: Fact, step: int) -> int:
        name = type(fact).__name__
        return 0 if name == "UserSpoke" else memory + (name == "ModelReplied")

    def judge(self, memory: int) -> Reading:
        return Reading(self.reason, memory, self.limit, memory >= self.limit)


@attrs.frozen
class Cap(Guard):
    """A cap that leaves no last chance."""

    reason: ClassVar[str] = "cap"
    folds: ClassVar[tuple[type, ...]] = (ModelReplied,)

    limit: int = 3

    def start(self) -> int:
        return 0

    def fold(self, memory: int, fact: Fact, step: int) -> int:
        return memory + 1

    def judge(self, memory: int) -> Reading:
        return Reading(self.reason, memory, self.limit, memory >= self.limit)


@attrs.frozen
class Busy(Guard):
    """So many failed attempts are enough, also where replies come in between."""

    reason: ClassVar[str] = "busy"
    chance: ClassVar[bool] = True

    limit: int = 3

    def start(self) -> int:
        return 0

    def fold(self, memory: int, fact: Fact, step: int) -> int:
        return memory + isinstance(fact, AttemptFailed)

    def judge(self, memory: int) -> Reading:
        return Reading(self.reason, memory, self.limit, memory >= self.limit)


@attrs.frozen
class Shouted(Guard):
    """It minds so many calls to which a person said no."""

    reason: ClassVar[str] = "shouted"

    limit: int = 2

    def start(self) -> int:
        return 0

    def fold(self, memory: int, fact: Fact, step: int) -> int:
        return memory + sum(each.verdict == "no" for each in fact.approvals) if isinstance(fact, ApprovalGiven) else memory

    def judge(self, memory: int) -> Reading:
        return Reading(self.reason, memory, self.limit, memory >= self.limit)


@attrs.frozen
class Unsummed(Guard):
    """It cannot bear a summary."""

    reason: ClassVar[str] = "unsummed"

    def start(self) -> int:
        return 0

    def fold(self, memory: int, fact: Fact, step: int) -> int:
        return memory + len(fact.summary[99]) if isinstance(fact, ContextCompacted) else memory

    def judge(self, memory: int) -> Reading:
        return Reading(self.reason, memory, 1, trips=False)


@attrs.frozen
class Divides(Guard):
    """It raises when its second error came in a row."""

    reason: ClassVar[str] = "divides"

    def start(self) -> int:
        return 0

    def fold(self, memory: int, fact: Fact, step: int) -> int:
        if isinstance(fact, ToolsReturned):
            return memory + 1 if all(seen.is_error for seen in fact.observations) else 0
        return memory

    def judge(self, memory: int) -> Reading:
        return Reading(self.reason, 10 / (2 - memory), 10, trips=False)


@attrs.frozen
class Tongue(Divides):
    """It trips at the second error in a row, and cannot say so."""

    reason: ClassVar[str] = "tongue"

    def judge(self, memory: int) -> Reading:
        return Reading(self.reason, memory, 2, memory >= 2)

    def explain(self, reading: Reading, lang: Any) -> str:
        raise KeyError("words")


@attrs.frozen
class Early(Guard):
    """It counts with the numbers of steps."""

    reason: ClassVar[str] = "early"

    def start(self) -> tuple[int, ...]:
        return ()

    def fold(self, memory: tuple[int, ...], fact: Fact, step: int) -> tuple[int, ...]:
        return (*memory, step)[-2:] if isinstance(fact, ToolsReturned) else memory

    def judge(self, memory: tuple[int, ...]) -> Reading:
        trips = len(memory) == 2 and memory[1] - memory[0] >= 3
        return Reading(self.reason, len(memory), 2, trips)


@attrs.frozen
class Reader(Guard):
    """It judges by the content of its evidence."""

    reason: ClassVar[str] = "reader"

    def start(self) -> tuple[Evidence, ...]:
        return ()

    def fold(self, memory: tuple[Evidence, ...], fact: Fact, step: int) -> tuple[Evidence, ...]:
        if isinstance(fact, ToolsReturned):
            return (*memory, Evidence(step, fact.observations[0].kind, fact.observations[0].text))[-2:]
        return memory

    def judge(self, memory: tuple[Evidence, ...]) -> Reading:
        kinds = [evidence.kind for evidence in memory]
        return Reading(self.reason, len(memory), 2, kinds == ["timeout", "ok"], memory)


@attrs.frozen
class Mutates(Guard):
    """It changes its memory in place."""

    reason: ClassVar[str] = "mutates"

    def start(self) -> list[str]:
        return []

    def fold(self, memory: list[str], fact: Fact, step: int) -> list[str]:
        memory.append(type(fact).__name__)
        return memory

    def judge(self, memory: list[str]) -> Reading:
        return Reading(self.reason, len(memory), 10, len(memory) >= 10)


class Box:
    """A value that cannot be told from another."""


@attrs.frozen
class Boxed(Lenient):
    """Its memory is of no use to a search."""

    reason: ClassVar[str] = "boxed"

    def start(self) -> Any:
        return Box()


@attrs.frozen
class Renamed(Lenient):
    """Its readings are another's."""

    reason: ClassVar[str] = "renamed"

    def judge(self, memory: bool) -> Reading:
        return Reading("lenient", 0, 1, trips=False)


@attrs.frozen
class Hoarder(Guard):
    """It keeps everything, so that no two runs are alike."""

    reason: ClassVar[str] = "hoarder"

    def start(self) -> tuple[str, ...]:
        return ()

    def fold(self, memory: tuple[str, ...], fact: Fact, step: int) -> tuple[str, ...]:
        return (*memory, str(fact))

    def judge(self, memory: tuple[str, ...]) -> Reading:
        return Reading(self.reason, len(memory), 1000, len(memory) > 1000)


@predicate
def long_winded(run: Summary) -> bool:
    """Halts when steps cost much."""
    return run.steps >= 5 and run.tokens / run.steps > 2_000


PAIR = (TooManySearches(1), MaxSteps(4))


def make() -> list[Guard]:
    """Guards from a function."""
    return [TooManySearches(3)]


NUMBER = 7
