"""The second pass over the runs: what each comes to under the guards, what they do taken together, and which of them are worth a look.

Runs are read one at a time; kept of each is a row of a few words. Of the runs worth a look, a bounded number is kept whole.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from typing import Literal

import attrs

from fsm_agent.audit.plan import Plan
from fsm_agent.audit.runs import STOPPED, came_near
from fsm_agent.audit.shadow import Seen, first_halt, shadow_of, table_order
from fsm_agent.diagrams.heat import Heat
from fsm_agent.diagrams.text import one_line
from fsm_agent.guards import Guard, MaxSteps
from fsm_agent.language import ENGLISH, Language
from fsm_agent.machine import Run, UnexpectedEvent
from fsm_agent.traces.recordings import Damaged, Ending, Outcome, Recording
from fsm_agent.traces.replay import replay

MOST_KEPT = 6
"""Runs of each kind that are kept whole."""
_ID_WIDTH, _SOURCE_WIDTH, _TASK_WIDTH = 60, 40, 80

Kind = Literal["false_kill", "saved", "near_success", "near_miss"]
"""Why a run is worth a look: a successful run is killed; it saves many calls; it nearly was halted, though it succeeded or otherwise."""


@attrs.frozen
class Row:
    """A run in few words."""

    number: int
    """Its place among the runs, from 1."""
    id: str
    source: str
    task: str
    outcome: Outcome
    ending: Ending
    """How it ended when it was recorded."""
    steps: int
    """Model calls in the recording."""
    reason: str | None
    """The halt reason under the guards; None: it did not end."""
    step: int
    """Where it ends under the guards."""
    by_guard: bool
    beyond: bool
    helpless: bool
    """It was recorded to end at a cap, and no guard (but for a cap) halts it before its last step."""
    near: tuple[str, ...]
    """The guards that let it pass though it came within one of their limit."""

    @property
    def saved(self) -> int:
        """Model calls of the recording after the halt."""
        return self.steps - self.step if self.by_guard else 0

    @property
    def killed(self) -> bool:
        """It succeeded, and a guard halts it before its last step."""
        return self.saved > 0 and self.outcome == "success"

    @property
    def kind(self) -> Kind | None:
        """Why it is worth a look; None: it is not."""
        if self.killed:
            return "false_kill"
        if self.saved:
            return "saved"
        if self.near:
            return "near_success" if self.outcome == "success" else "near_miss"
        return None


@attrs.frozen
class Kept:
    """A run that is worth a look, as it goes under the guards."""

    row: Row
    run: Run


@attrs.define
class Collected:
    """What the report shows besides the audit's tables."""

    plan: Plan
    heat: Heat
    """All runs under the plan's guards."""
    successes: Heat = attrs.field(factory=Heat)
    """The runs that succeeded, as they were recorded; so the failures."""
    failures: Heat = attrs.field(factory=Heat)
    rows: list[Row] = attrs.field(factory=list)
    kept: dict[Kind, list[Kept]] = attrs.field(factory=dict)
    """By kind, those that save the most first; else in the order of the runs."""
    counts: dict[Kind, int] = attrs.field(factory=dict)
    """How many runs there are of each kind."""

    def add(self, recording: Recording, order: tuple[int, ...], lang: Language) -> None:
        """Take a run in. Raises ``UnexpectedEvent`` for events that no run can have had."""
        guards = self.plan.guards
        whole = replay(recording, (), lang)
        run = replay(recording, guards, lang) if guards else whole
        seen = shadow_of(whole, guards)
        halt = first_halt(order, seen.seen)
        watched = list(zip(guards, seen.seen, strict=True))
        row = Row(
            number=len(self.rows) + 1,
            id=one_line(recording.id, _ID_WIDTH),
            source=one_line(recording.source, _SOURCE_WIDTH),
            task=one_line(recording.task, _TASK_WIDTH),
            outcome=recording.outcome,
            ending=recording.ending,
            steps=whole.step,
            reason=run.reason,
            step=run.step,
            by_guard=halt is not None,
            beyond=halt is None and recording.ending in STOPPED,
            helpless=recording.ending == "cap" and not any(_helped(guard, alone, whole.step) for guard, alone in watched),
            near=tuple(guard.reason for guard, alone in watched if came_near(guard, alone)),
        )
        self.rows.append(row)
        self.heat.count(run, recording)
        if recording.outcome != "unknown":
            (self.successes if recording.outcome == "success" else self.failures).count(whole, recording)
        if (kind := row.kind) is not None:
            self.counts[kind] = self.counts.get(kind, 0) + 1
            insort(self.kept.setdefault(kind, []), Kept(row, run), key=lambda kept: (-kept.row.saved, kept.row.number))
            del self.kept[kind][MOST_KEPT:]


def _helped(guard: Guard, seen: Seen, steps: int) -> bool:
    return seen.halt is not None and seen.halt.step < steps and not isinstance(guard, MaxSteps)


def collect(found: Iterable[Recording | Damaged], plan: Plan, lang: Language = ENGLISH) -> Collected:
    """Read the runs. Damaged ones are passed over: the audit tells of them. Raises ``ValueError`` as ``rows_for`` does."""
    collected = Collected(plan, Heat(plan.guards))
    order = table_order(plan.guards)
    for each in found:
        if isinstance(each, Recording):
            try:
                collected.add(each, order, lang)
            except UnexpectedEvent:
                continue
    return collected
