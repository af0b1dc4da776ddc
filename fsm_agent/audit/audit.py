"""The audit of many runs: one pass over them, for all plans together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs

from fsm_agent.audit.figures import POOLED
from fsm_agent.audit.plan import Plan, Sweep, swept_guard
from fsm_agent.audit.runs import AuditedRun, Bench
from fsm_agent.audit.tables import GroupRow, GuardRow, Tables, tables
from fsm_agent.machine import UnexpectedEvent
from fsm_agent.traces.recordings import Damaged, Recording

Found = Recording | Damaged


def by_source(recording: Recording) -> str:
    """The group of a run: the format it was recorded in."""
    return recording.source


def by_model(recording: Recording) -> str:
    """The group of a run: its model."""
    return recording.model or "(unknown model)"


@attrs.frozen
class Point:
    """One value of a sweep."""

    value: Any
    tables: Tables
    guard: str | None
    """The halt reason of the guard that the limit is of; None: at this value it is taken away."""

    def alone(self, group: str) -> GuardRow | None:
        """What that guard alone does in this group."""
        return next((row for row in self.tables.guards if (row.group, row.guard) == (group, self.guard)), None)


@attrs.frozen
class SweptLimit:
    """A sweep and what it found."""

    limit: str
    points: tuple[Point, ...]


@attrs.frozen
class Audit:
    """What was found."""

    base: Tables
    what_ifs: tuple[Tables, ...]
    sweeps: tuple[SweptLimit, ...]
    damaged: tuple[Damaged, ...]
    """Runs that could not be read."""
    unreadable: tuple[str, ...] = ()
    """Files in which something is damaged and no run can be read."""

    @property
    def group_names(self) -> tuple[str, ...]:
        """The groups, without the one that holds every run."""
        return tuple(row.group for row in self.base.groups if row.group != POOLED)

    @property
    def pooled(self) -> GroupRow:
        """All runs together."""
        return self.base.groups[-1]


def audit_runs(
    found: Iterable[Found],
    base: Plan,
    *,
    what_ifs: Sequence[Plan] = (),
    sweeps: Sequence[tuple[Sweep, Sequence[Plan]]] = (),
    group: Callable[[Recording], str] = by_source,
) -> Audit:
    """Try out the plans on every run; one that the machine cannot take is damaged. Raises ``ValueError`` as ``rows_for`` does.

    ``sweeps``: each with the plans that it makes; ``group``: the group that a run belongs to.
    """
    bench = Bench.of([base, *what_ifs, *(plan for _, plans in sweeps for plan in plans)])
    runs: list[AuditedRun] = []
    damaged: list[Damaged] = []
    for each in found:
        if isinstance(each, Damaged):
            damaged.append(each)
            continue
        try:
            name = group(each)
            runs.append(bench.try_out(each, f"({name})" if name == POOLED else name))  # that name is taken
        except UnexpectedEvent as error:
            damaged.append(Damaged(f"{each.source}:{each.id}", str(error)))
    made = [tables(bench, i, runs) for i in range(len(bench.plans))]
    swept, at = [], 1 + len(what_ifs)
    for sweep, plans in sweeps:
        points = [_point(sweep, value, found) for value, found in zip(sweep.values, made[at : at + len(plans)], strict=True)]
        swept.append(SweptLimit(sweep.limit, tuple(points)))
        at += len(plans)
    return Audit(made[0], tuple(made[1 : 1 + len(what_ifs)]), tuple(swept), tuple(damaged))


def _point(sweep: Sweep, value: Any, found: Tables) -> Point:
    guard = swept_guard(found.plan, sweep.limit)
    return Point(value, found, guard.reason if guard else None)
