"""The tables of a plan: what its guards make of many runs, for each group of runs and for all of them.

Two words are used throughout. A guard *stops* a failed run when it halts it before its last step; what it *saves* are the model calls after
the halt. It *kills* a successful run when it halts it before its last step: a false kill. A halt at the last step does neither.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import median
from typing import NamedTuple

import attrs

from fsm_agent.audit.figures import ALL_GUARDS, ANY_GUARD, POOLED, Share, groups_of, middle
from fsm_agent.audit.plan import Plan
from fsm_agent.audit.runs import STOPPED, AuditedRun, Bench, Near
from fsm_agent.guards import MaxSteps


@attrs.frozen
class GroupRow:
    """A group of runs, as they were recorded."""

    group: str
    runs: int
    successes: int
    failures: int
    unknown: int
    """Runs of which nobody said how they ended."""
    model_calls: int
    beyond: Share
    """Of all runs: those that would have gone on beyond their recording, since nothing halts them where their own system stopped them."""


@attrs.frozen
class HaltRow:
    """Runs that end for the same reason under the plan."""

    group: str
    reason: str
    """The halt reason; ``did not end`` for a run without one."""
    ending: str
    """Of ``recording_ended``: how the recording ended; else empty."""
    halts: Share
    """Of the group's runs."""
    successes: int
    failures: int
    unknown: int
    median_steps: float
    median_tokens: float | None
    """Of the runs whose tokens are known; None: none are."""
    tokens_unknown: int
    """Runs of which the tokens are not known."""


@attrs.frozen
class GuardRow:
    """What a guard alone would have done, or all guards of the plan together: the good and the bad."""

    group: str
    guard: str
    """Its halt reason, or ``all guards``."""
    failures_stopped: Share
    """Of the failed runs."""
    calls_saved: Share
    """Of the failed runs' model calls: those after the halts."""
    false_kills: Share
    """Of the successful runs."""
    median_kill_step: float | None
    """Of the successful runs killed: the step at which they were; None: there are none."""
    kills: tuple[tuple[str, int], ...]
    """These runs, each with the step."""
    capped_stopped_early: Share
    """Of the runs that were recorded to end at a cap: those halted before it."""
    unknown_stopped: Share
    """Of the runs of unknown outcome: those halted before their last step."""
    let_beyond: Share
    """Of all runs: those that it does not halt where their own system stopped them, so that they would have gone on."""


class NearRun(NamedTuple):
    """A run that came near a guard's limit, with the reading that came closest."""

    run: str
    guard: str
    """Its halt reason."""
    value: float
    limit: float
    step: int


@attrs.frozen
class NearRow:
    """Runs that a guard let pass though they came within one of its limit."""

    group: str
    guard: str
    """Its halt reason, or ``any guard``."""
    near_misses: Share
    """Of the group's runs."""
    successes: int
    failures: int
    unknown: int
    runs: tuple[NearRun, ...]
    """These runs; of any guard, each with the first guard whose limit it came near."""


@attrs.frozen
class CappedRow:
    """Runs that were recorded to end at a cap of the system that ran them."""

    group: str
    capped: Share
    """Of the group's runs."""
    no_guard_helped: Share
    """Of the capped runs: those that no guard of the plan (but for its own cap) halts before their last step."""
    runs: tuple[str, ...]
    """These runs."""


@attrs.frozen
class Tables:
    """All tables of a plan."""

    plan: Plan
    groups: tuple[GroupRow, ...]
    halts: tuple[HaltRow, ...]
    guards: tuple[GuardRow, ...]
    near_misses: tuple[NearRow, ...]
    capped: tuple[CappedRow, ...]

    def together(self, group: str = POOLED) -> GuardRow:
        """The row of all guards together."""
        return next(row for row in self.guards if (row.group, row.guard) == (group, ALL_GUARDS))


@attrs.frozen
class _View:
    """A plan's part of what the bench found."""

    at: int
    """The plan's index."""
    bench: Bench

    @property
    def plan(self) -> Plan:
        return self.bench.plans[self.at]


def tables(bench: Bench, plan: int, runs: Sequence[AuditedRun]) -> Tables:
    """The tables of the plan of this index."""
    view = _View(plan, bench)
    by_group: dict[str, list[AuditedRun]] = {group: [] for group in groups_of(run.group for run in runs)}
    for run in runs:
        by_group[run.group].append(run)
        by_group[POOLED].append(run)
    items = by_group.items()
    return Tables(
        plan=view.plan,
        groups=tuple(_group(view, group, runs) for group, runs in items),
        halts=tuple(row for group, runs in items for row in _halts(view, group, runs)),
        guards=tuple(row for group, runs in items for row in _guards(view, group, runs)),
        near_misses=tuple(row for group, runs in items for row in _near_misses(view, group, runs)),
        capped=tuple(_capped(view, group, runs) for group, runs in items),
    )


def _group(view: _View, group: str, runs: Sequence[AuditedRun]) -> GroupRow:
    beyond = Share(sum(run.ends[view.at].beyond for run in runs), len(runs))
    return GroupRow(group, len(runs), *_outcomes(runs), sum(run.steps for run in runs), beyond)


def _outcomes(runs: Iterable[AuditedRun]) -> tuple[int, int, int]:
    """Successes, failures, unknown."""
    found = [run.outcome for run in runs]
    return found.count("success"), found.count("failure"), found.count("unknown")


def _halts(view: _View, group: str, runs: Sequence[AuditedRun]) -> list[HaltRow]:
    by_reason: dict[tuple[str, str], list[AuditedRun]] = defaultdict(list)
    for run in runs:
        reason = run.ends[view.at].reason or "did not end"
        by_reason[reason, run.ending if reason == "recording_ended" else ""].append(run)
    rows = []
    for (reason, ending), found in sorted(by_reason.items(), key=lambda item: (-len(item[1]), item[0])):
        tokens = [run.ends[view.at].tokens for run in found]
        known = [each for each in tokens if each is not None]
        steps = median(run.ends[view.at].step for run in found)
        halts = Share(len(found), len(runs))
        rows.append(HaltRow(group, reason, ending, halts, *_outcomes(found), steps, middle(known), len(tokens) - len(known)))
    return rows


def _guards(view: _View, group: str, runs: Sequence[AuditedRun]) -> list[GuardRow]:
    rows = [_guard_row(group, view.bench.guards[i].reason, runs, [run.halts[i] for run in runs]) for i in view.bench.orders[view.at]]
    ends = [run.ends[view.at] for run in runs]
    return [*rows, _guard_row(group, ALL_GUARDS, runs, [end.step if end.by_guard else 0 for end in ends])]


def _guard_row(group: str, guard: str, runs: Sequence[AuditedRun], halts: Sequence[int]) -> GuardRow:
    """``halts``: for each run, the step at which it is halted, or 0."""
    early = [(run, halt) for run, halt in zip(runs, halts, strict=True) if 0 < halt < run.steps]
    successes, failures, unknown = _outcomes(runs)
    kills = tuple((run.name, halt) for run, halt in early if run.outcome == "success")
    return GuardRow(
        group=group,
        guard=guard,
        failures_stopped=Share(sum(run.outcome == "failure" for run, _ in early), failures),
        calls_saved=Share(
            sum(run.steps - halt for run, halt in early if run.outcome == "failure"),
            sum(run.steps for run in runs if run.outcome == "failure"),
        ),
        false_kills=Share(len(kills), successes),
        median_kill_step=middle(halt for _, halt in kills),
        kills=kills,
        capped_stopped_early=Share(sum(run.ending == "cap" for run, _ in early), sum(run.ending == "cap" for run in runs)),
        unknown_stopped=Share(sum(run.outcome == "unknown" for run, _ in early), unknown),
        let_beyond=Share(sum(run.ending in STOPPED and not halt for run, halt in zip(runs, halts, strict=True)), len(runs)),
    )


def _near_misses(view: _View, group: str, runs: Sequence[AuditedRun]) -> list[NearRow]:
    indices = view.bench.orders[view.at]
    rows = [_near_row(view, group, view.bench.guards[i].reason, runs, [i]) for i in indices]
    return [*rows, _near_row(view, group, ANY_GUARD, runs, indices)]


def _near_row(view: _View, group: str, name: str, runs: Sequence[AuditedRun], guards: Sequence[int]) -> NearRow:
    near = [(run, found) for run in runs if (found := _first_near(run, guards)) is not None]
    named = tuple(NearRun(run.name, view.bench.guards[i].reason, *reading) for run, (i, reading) in near)
    return NearRow(group, name, Share(len(near), len(runs)), *_outcomes(run for run, _ in near), named)


def _first_near(run: AuditedRun, guards: Sequence[int]) -> tuple[int, Near] | None:
    return next(((i, near) for i in guards if (near := run.near[i]) is not None), None)


def _capped(view: _View, group: str, runs: Sequence[AuditedRun]) -> CappedRow:
    guards = [i for i in view.bench.orders[view.at] if not isinstance(view.bench.guards[i], MaxSteps)]
    capped = [run for run in runs if run.ending == "cap"]
    helpless = tuple(run.name for run in capped if not any(run.halted_early(i) for i in guards))
    return CappedRow(group, Share(len(capped), len(runs)), Share(len(helpless), len(capped)), helpless)
