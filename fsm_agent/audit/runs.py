"""Each run of an audit in a few numbers: where each guard alone would have halted it, how near it came, and what each plan makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import attrs

from fsm_agent.audit.plan import Plan
from fsm_agent.audit.shadow import Seen, Shadow, first_halt, shadow, table_order
from fsm_agent.guards import CostBudget, Deadline, Guard, Reading, TokenBudget, ToolBudget
from fsm_agent.traces.recordings import Ending, Outcome, Recording

STOPPED: frozenset[Ending] = frozenset({"cap", "guard"})
"""Endings by which the recording system stopped a run that would have gone on."""

BUDGETS = (TokenBudget, CostBudget, Deadline)
"""Guards whose limits are tokens, money or seconds."""
NEAR_SHARE = 0.9
"""Of such a budget: the part that is nearly all of it. Every other limit is near when it is within one."""


class End(NamedTuple):
    """What a run comes to under a plan."""

    reason: str | None
    """The halt reason; None: it does not end."""
    step: int
    tokens: int | None
    """Spent until then; None: not known."""
    by_guard: bool
    beyond: bool
    """Nothing halts it where the system that recorded it did: what would have come then is beyond the recording."""


class Near(NamedTuple):
    """A reading that came near a guard's limit, in a run that the guard let pass."""

    value: float
    limit: float
    step: int


@attrs.frozen
class AuditedRun:
    """One run, and what guards and plans make of it."""

    name: str
    """``source:id``."""
    group: str
    outcome: Outcome
    ending: Ending
    steps: int
    """Model calls."""
    halts: tuple[int, ...]
    """For each guard alone: the step at which it halts the run; 0: it does not."""
    near: tuple[Near | None, ...]
    """For each guard alone: how the run came within one of its limit, and was not halted; None: it did not."""
    ends: tuple[End, ...]
    """For each plan."""

    def halted_early(self, guard: int) -> bool:
        """The guard of this index alone halts it before its last step."""
        return 0 < self.halts[guard] < self.steps


@attrs.frozen
class Bench:
    """Plans to be tried out on many runs, whose guards are folded once each, in however many plans they are."""

    plans: tuple[Plan, ...]
    guards: tuple[Guard, ...]
    """Of all plans, each once."""
    orders: tuple[tuple[int, ...], ...]
    """For each plan: its guards' indices, in the order of the table."""

    @classmethod
    def of(cls, plans: Sequence[Plan]) -> Bench:
        """Raises ``ValueError`` where two guards of a plan have the same reason."""
        guards: list[Guard] = []
        orders = []
        for plan in plans:
            guards += [guard for guard in plan.guards if guard not in guards]
            orders.append(tuple(guards.index(plan.guards[i]) for i in table_order(plan.guards)))
        return cls(tuple(plans), tuple(guards), tuple(orders))

    def try_out(self, recording: Recording, group: str) -> AuditedRun:
        """Raises ``UnexpectedEvent`` for events that no run can have had."""
        seen = shadow(recording, self.guards)
        return AuditedRun(
            name=f"{recording.source}:{recording.id}",
            group=group,
            outcome=recording.outcome,
            ending=recording.ending,
            steps=seen.steps,
            halts=tuple([alone.halt.step if alone.halt else 0 for alone in seen.seen]),
            near=tuple([_near(guard, alone) for guard, alone in zip(self.guards, seen.seen, strict=True)]),
            ends=tuple([self._end(order, seen, recording.ending) for order in self.orders]),
        )

    def _end(self, order: tuple[int, ...], seen: Shadow, ending: Ending) -> End:
        first = first_halt(order, seen.seen)
        if first is None:
            tokens = seen.tokens[-1] if seen.tokens else 0
            return End(seen.end, seen.steps, tokens, by_guard=False, beyond=ending in STOPPED)
        guard, halt = first
        return End(self.guards[guard].reason, halt.step, seen.tokens[halt.step - 1], by_guard=True, beyond=False)


def _near(guard: Guard, seen: Seen) -> Near | None:
    if seen.closest is None or not came_near(guard, seen):
        return None
    return Near(seen.closest.value, seen.closest.limit, seen.closest_step)


def came_near(guard: Guard, seen: Seen) -> bool:
    """The guard let the run pass, and one more would have halted it; of tokens, money and seconds, nine tenths of the limit were used."""
    return seen.halt is None and seen.closest is not None and is_near(guard, seen.closest)


def is_near(guard: Guard, reading: Reading) -> bool:
    """Whether the reading is near the guard's limit. One that saw nothing (0 of 1) is near none."""
    if reading.value <= 0:
        return False
    if isinstance(guard, BUDGETS):
        return reading.value >= NEAR_SHARE * reading.limit
    beyond = isinstance(guard, ToolBudget)  # it halts above its limit, not at it
    return reading.limit + beyond - reading.value <= 1
