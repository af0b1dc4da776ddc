"""A guard from a plain function over the run so far.

    @predicate
    def long_winded(run: Summary) -> bool:
        return run.steps >= 5 and run.tokens / run.steps > 2_000

    guards = (*classic(), long_winded, predicate(lambda run: run.calls > 40, reason="too_many_calls") & NoProgress())

The function is shown a small immutable summary and has to be pure: the same summary, the same word. A record names it but cannot
hold it, so a replay of such a run is given its guards again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

import attrs
import msgspec

from fsm_agent.events import (
    Fact,
    Malformed,
    ModelFailed,
    ModelReplied,
    Observation,
    Said,
    ToolCall,
    ToolCalls,
    ToolsReturned,
    Usage,
    UserSpoke,
    Value,
)
from fsm_agent.guards.base import Evidence, Guard, Reading, one_of
from fsm_agent.language import Language
from fsm_agent.table import OBSERVING, PARSING, State

RECENT = 10
"""Steps that a summary shows."""


class Step(Value, frozen=True):
    """What one step did."""

    number: int
    calls: tuple[ToolCall, ...] = ()
    observations: tuple[Observation, ...] = ()
    """In call order; empty before the tools have returned."""
    malformed: str = ""
    """The kind of a reply that could not be used; empty: it could."""

    @property
    def failed(self) -> bool:
        """Every call of it failed, or the reply could not be used."""
        return bool(self.malformed) or (bool(self.observations) and all(observation.is_error for observation in self.observations))


class Summary(Value, frozen=True):
    """A run so far, in a few numbers, and its latest steps."""

    steps: int = 0
    """Steps begun: model calls."""
    calls: int = 0
    """Tool calls asked for."""
    failed_calls: int = 0
    malformed: int = 0
    """Replies that could not be used."""
    tokens: int = 0
    """Those that replies told of: at least so many."""
    cost: float = 0
    """In US dollars, of the replies whose price is known: at least so much."""
    heard: int = 0
    """Messages of a person after the task."""
    began: float | None = None
    """When the first event with a time happened, in seconds since 1970 UTC."""
    now: float | None = None
    """When the last one happened."""
    recent: tuple[Step, ...] = ()
    """The last ten steps, oldest first."""

    @property
    def elapsed_s(self) -> float:
        """Seconds from the first event with a time to the last one, waiting for people included."""
        return self.now - self.began if self.now is not None and self.began is not None else 0


@attrs.frozen
class Predicate(Guard):
    """Halts when ``test`` says so. Make one with ``predicate``."""

    reason: str = attrs.field(validator=attrs.validators.min_len(1))
    test: Callable[[Summary], bool] = attrs.field(validator=attrs.validators.is_callable())
    watches: State = attrs.field(default=OBSERVING, validator=one_of(PARSING, OBSERVING))

    def start(self) -> Summary:
        return Summary()

    def fold(self, memory: Summary, fact: Fact, step: int) -> Summary:
        now: float | None = getattr(fact, "at", None)
        changes: dict[str, Any] = {} if now is None else {"now": now, "began": now if memory.began is None else memory.began}
        match fact:
            case ModelReplied(reply=reply):
                usage = reply.usage or Usage()
                tokens = memory.tokens + (usage.prompt_tokens or 0) + (usage.completion_tokens or 0)
                changes.update(steps=step, tokens=tokens, cost=memory.cost + (usage.cost or 0))
            case ModelFailed():
                changes.update(steps=step)
            case ToolCalls(calls=calls):
                changes.update(calls=memory.calls + len(calls), recent=_plus(memory, Step(step, calls)))
            case ToolsReturned(observations=observations):
                done = Step(step, memory.recent[-1].calls if memory.recent else (), observations)
                failed = sum(observation.is_error for observation in observations)
                changes.update(failed_calls=memory.failed_calls + failed, recent=(*memory.recent[:-1], done))
            case Malformed(kind=kind):
                changes.update(malformed=memory.malformed + 1, recent=_plus(memory, Step(step, malformed=kind)))
            case Said():
                changes.update(recent=_plus(memory, Step(step)))
            case UserSpoke():
                changes.update(heard=memory.heard + 1)
            case _:
                pass
        return msgspec.structs.replace(memory, **changes)

    def judge(self, memory: Summary) -> Reading:
        trips = bool(self.test(memory))
        last = memory.recent[-1] if trips and memory.recent else None
        evidence = tuple([Evidence(last.number, "call", str(call)) for call in last.calls]) if last else ()
        return Reading(self.reason, int(trips), 1, trips, evidence)

    def explain(self, reading: Reading, lang: Language) -> str:
        return lang.say("stopped: {guard} holds", guard=reading.guard)

    def as_limits(self) -> dict[str, Any]:
        return {"test": f"{self.test.__module__}.{getattr(self.test, '__qualname__', repr(self.test))}"}


@overload
def predicate(test: Callable[[Summary], bool], *, reason: str = ..., watches: State = ...) -> Predicate: ...
@overload
def predicate(*, reason: str = ..., watches: State = ...) -> Callable[[Callable[[Summary], bool]], Predicate]: ...
def predicate(test: Callable[[Summary], bool] | None = None, *, reason: str = "", watches: State = OBSERVING) -> Any:
    """A guard that halts a run when ``test`` says so of its summary; usable as a decorator.

    ``reason`` is the halt reason, by default the function's name; ``watches`` says where it is judged: ``Parsing``, before anything is
    executed, or ``Observing``. Raises ``ValueError`` for a lambda without a reason.
    """

    def make(test: Callable[[Summary], bool]) -> Predicate:
        name = reason or getattr(test, "__name__", "")
        if not name.isidentifier() and not reason:
            raise ValueError("a predicate without a name of its own needs reason=..., which is its halt reason")
        return Predicate(name, test, watches)

    return make if test is None else make(test)


def _plus(memory: Summary, step: Step) -> tuple[Step, ...]:
    return (*memory.recent[1 - RECENT :], step)
