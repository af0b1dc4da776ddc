"""An audit for people: its tables as titles, columns and rows of text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from fsm_agent.audit.audit import Audit, SweptLimit
from fsm_agent.audit.figures import ALL_GUARDS, ANY_GUARD, POOLED, shown
from fsm_agent.audit.tables import GuardRow, HaltRow, NearRun, Tables
from fsm_agent.language import Language
from fsm_agent.text import first_line

RUNS_SHOWN = 3
"""Runs that a row of a table names; the JSON and the CSV files name them all."""
_RUN_SHOWN = 60
"""Characters of a run's name that a table has room for."""


class Page(NamedTuple):
    """A table for people."""

    title: str
    columns: list[str]
    rows: list[tuple[str, ...]]


def pages(audit: Audit, lang: Language, group: str) -> Iterator[Page]:
    """The tables that have something to say. ``group``: what the groups are, such as ``source``."""
    if not audit.pooled.runs:
        return
    base = audit.base
    groups = _shown_groups(audit)
    yield _groups(base, groups, lang, group)
    yield _halts(base, groups, lang, group)
    if base.plan.guards:
        yield _guards(base, groups, lang, group)
    near = [row for row in base.near_misses if row.group in groups and row.near_misses.count]
    if near:
        columns = [group, lang.say("guard"), lang.say("runs within one of the limit"), *_outcomes(lang), lang.say("which runs")]
        rows = [
            (
                row.group,
                _guard(row.guard, lang),
                str(row.near_misses),
                *map(str, (row.successes, row.failures, row.unknown)),
                _which([_near(run, lang) for run in row.runs]),
            )
            for row in near
        ]
        yield Page(lang.say("Near misses"), columns, rows)
    capped = [row for row in base.capped if row.group in groups and row.capped.count]
    if capped:
        columns = [
            group,
            lang.say("ended at a cap"),
            lang.say("halted before it"),
            lang.say("no guard would have helped"),
            lang.say("which runs"),
        ]
        early = {row.group: row.capped_stopped_early for row in base.guards if row.guard == ALL_GUARDS}
        yield Page(
            lang.say("Runs that ended at a cap"),
            columns,
            [
                (
                    row.group,
                    str(row.capped),
                    str(early[row.group]),
                    str(row.no_guard_helped),
                    _which([first_line(run, _RUN_SHOWN) for run in row.runs]),
                )
                for row in capped
            ],
        )
    if audit.what_ifs:
        yield _what_ifs(audit, groups, lang, group)
    for sweep in audit.sweeps:
        yield from _sweep(sweep, groups, lang, group)


def _shown_groups(audit: Audit) -> tuple[str, ...]:
    """Where there is one group, all runs together are that group."""
    return audit.group_names if len(audit.group_names) == 1 else (*audit.group_names, POOLED)


def _outcomes(lang: Language) -> list[str]:
    return [lang.say("succeeded"), lang.say("failed"), lang.say("unknown")]


def _guard(guard: str, lang: Language) -> str:
    """A guard's reason as it is, and the words for several of them."""
    return {ALL_GUARDS: lang.say("all guards"), ANY_GUARD: lang.say("any guard")}.get(guard, guard)


def _near(near: NearRun, lang: Language) -> str:
    run = first_line(near.run, _RUN_SHOWN)
    return lang.say("{run} ({value} of {limit} at step {step})", run=run, value=shown(near.value), limit=shown(near.limit), step=near.step)


def _which(runs: Sequence[str]) -> str:
    """The first of them."""
    return ", ".join([*runs[:RUNS_SHOWN], *(["..."] if runs[RUNS_SHOWN:] else [])])


def _reason(row: HaltRow) -> str:
    return f"{row.reason} ({row.ending})" if row.ending else row.reason


def _groups(found: Tables, groups: Sequence[str], lang: Language, group: str) -> Page:
    columns = [group, lang.say("runs"), *_outcomes(lang), lang.say("model calls"), lang.say("beyond the recording")]
    rows = [
        (row.group, *map(str, (row.runs, row.successes, row.failures, row.unknown, row.model_calls)), str(row.beyond))
        for row in found.groups
        if row.group in groups
    ]
    return Page(lang.say("Runs"), columns, rows)


def _halts(found: Tables, groups: Sequence[str], lang: Language, group: str) -> Page:
    columns = [group, lang.say("halt reason"), lang.say("runs"), *_outcomes(lang), lang.say("median steps"), lang.say("median tokens")]
    rows = [
        (
            row.group,
            _reason(row),
            str(row.halts),
            *map(str, (row.successes, row.failures, row.unknown)),
            shown(row.median_steps),
            _tokens(row, lang),
        )
        for row in found.halts
        if row.group in groups
    ]
    return Page(lang.say("Halt reasons under {plan}", plan=found.plan.name), columns, rows)


def _tokens(row: HaltRow, lang: Language) -> str:
    """The median, and of how many runs it is where not all tell their tokens."""
    if row.median_tokens is None or not row.tokens_unknown:
        return shown(row.median_tokens)
    return lang.say("{tokens} (of {n})", tokens=shown(row.median_tokens), n=row.halts.count - row.tokens_unknown)


def _guards(found: Tables, groups: Sequence[str], lang: Language, group: str) -> Page:
    """A guard that never halts a run of a group is left out of the group's rows; among all runs each guard is named."""
    columns = [group, lang.say("guard"), *(title for title, _ in _effects(lang))]
    rows = [
        (row.group, _guard(row.guard, lang), *(cell(row) for _, cell in _effects(lang)))
        for row in found.guards
        if row.group in groups and (row.group == groups[-1] or row.guard == ALL_GUARDS or _acts(row))
    ]
    return Page(lang.say("Each guard alone, and all together: what they stop and what they kill"), columns, rows)


def _acts(row: GuardRow) -> bool:
    return bool(row.failures_stopped.count or row.false_kills.count or row.unknown_stopped.count)


def _effects(lang: Language) -> tuple[tuple[str, Callable[[GuardRow], str]], ...]:
    """The good and the bad of a guard, which stand side by side wherever one of them is shown."""
    return (
        (lang.say("failed runs stopped"), lambda row: str(row.failures_stopped)),
        (lang.say("their calls saved"), lambda row: str(row.calls_saved)),
        (lang.say("successful runs killed"), lambda row: str(row.false_kills)),
        (lang.say("at step (median)"), lambda row: "" if row.median_kill_step is None else shown(row.median_kill_step)),
        (lang.say("capped runs stopped early"), lambda row: str(row.capped_stopped_early)),
    )


def _what_ifs(audit: Audit, groups: Sequence[str], lang: Language, group: str) -> Page:
    """Plans side by side, a column each."""
    plans = [audit.base, *audit.what_ifs]
    rows: list[tuple[str, ...]] = []
    for name in groups:
        rows += [(name, title, *(cell(found.together(name)) for found in plans)) for title, cell in _effects(lang)]
        beyond = (next(row.beyond for row in found.groups if row.group == name) for found in plans)
        rows.append((name, lang.say("beyond the recording"), *map(str, beyond)))
        halts = [{_reason(row): row.halts for row in found.halts if row.group == name} for found in plans]
        reasons = dict.fromkeys(reason for each in halts for reason in each)
        rows += [(name, reason, *(str(each.get(reason, "-")) for each in halts)) for reason in reasons]
    return Page(lang.say("What if"), [group, "", *(found.plan.name for found in plans)], rows)


def _sweep(sweep: SweptLimit, groups: Sequence[str], lang: Language, group: str) -> Iterator[Page]:
    columns = [sweep.limit, group, *(title for title, _ in _effects(lang)), lang.say("beyond the recording")]
    alone, together = [], []
    for point in sweep.points:
        value = "off" if point.value is None else str(point.value)
        for name in groups:
            if (row := point.alone(name)) is not None:
                alone.append((value, name, *(cell(row) for _, cell in _effects(lang)), str(row.let_beyond)))
            row = point.tables.together(name)
            together.append((value, name, *(cell(row) for _, cell in _effects(lang)), str(row.let_beyond)))
    yield Page(lang.say("{limit}: its guard alone", limit=sweep.limit), columns, alone)
    if any(len(point.tables.plan.guards) > 1 for point in sweep.points):
        yield Page(lang.say("{limit}: all guards together", limit=sweep.limit), columns, together)
