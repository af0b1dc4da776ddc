"""An audit for other programs: one JSON object, or a folder of CSV files, one a table."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs

from fsm_agent.audit.audit import Audit, SweptLimit
from fsm_agent.audit.figures import ANY_GUARD, POOLED, Share
from fsm_agent.audit.plan import Plan
from fsm_agent.audit.tables import GuardRow, NearRun, Tables
from fsm_agent.text import printable

TABLES = ("groups", "halts", "guards", "near_misses", "capped")
"""The tables of a plan, by their fields in ``Tables``."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What makes a spreadsheet run a cell that begins with it."""


def as_json(audit: Audit, notes: Sequence[str]) -> dict[str, Any]:
    """The audit as JSON values; ``notes`` are what has to be said beside the figures."""
    return {
        "runs": audit.pooled.runs,
        "damaged": [{"place": damaged.place, "problem": damaged.problem} for damaged in audit.damaged],
        "notes": list(notes),
        "base": _plain(audit.base),
        "what_if": [_plain(found) for found in audit.what_ifs],
        "sweeps": [{"limit": sweep.limit, "rows": [_plain_row(row) for row in _sweep_rows(sweep)]} for sweep in audit.sweeps],
    }


def _plain(value: Any) -> Any:
    """Objects in place of attrs classes; a share also tells its part."""
    match value:
        case Share():
            return {"count": value.count, "of": value.of, "share": value.share}
        case Plan():
            return {"name": value.name, "limits": value.limits()}
        case GuardRow():
            kills = [{"run": run, "step": step} for run, step in value.kills]
            return {name: kills if name == "kills" else _plain(getattr(value, name)) for name in _names(value)}
        case NearRun():
            return value._asdict()
        case tuple() | list():
            return [_plain(item) for item in value]
    return {name: _plain(getattr(value, name)) for name in _names(value)} if attrs.has(type(value)) else value


def _plain_row(row: dict[str, Any]) -> dict[str, Any]:
    return {name: _plain(value) for name, value in row.items()}


def _names(value: Any) -> list[str]:
    return [field.name for field in attrs.fields(type(value))]


def _sweep_rows(sweep: SweptLimit) -> Iterator[dict[str, Any]]:
    """A row for each value and group: of the limit's guard alone, and of all guards together."""
    for point in sweep.points:
        for group in point.tables.groups:
            rows = (("alone", point.alone(group.group)), ("together", point.tables.together(group.group)))
            for scope, row in rows:
                if row is not None:
                    yield {"value": point.value, "scope": scope, **{name: getattr(row, name) for name in _names(row)}}


def write_csv(audit: Audit, folder: Path, notes: Sequence[str]) -> list[Path]:
    """Write each table, and the notes, into the folder, which is made where it is not there. Gives the files. Raises ``OSError``."""
    folder.mkdir(parents=True, exist_ok=True)
    plans = [audit.base, *audit.what_ifs]
    files = {name: [{"plan": found.plan.name, **_flat(row)} for found in plans for row in getattr(found, name)] for name in TABLES}
    files["notes"] = [{"note": note} for note in notes]
    files["kills"] = [kill for found in plans for kill in _kills(found)]
    files["near_runs"] = [near for found in plans for near in _near_runs(found)]
    files["capped_runs"] = [
        {"plan": found.plan.name, "group": row.group, "run": run}
        for found in plans
        for row in found.capped
        if row.group != POOLED
        for run in row.runs
    ]
    files["sweeps"] = [{"limit": sweep.limit, **_flat_row(row)} for sweep in audit.sweeps for row in _sweep_rows(sweep)]
    written = []
    for name, rows in files.items():
        if rows:
            path = folder / f"{name}.csv"
            with path.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, list(rows[0]))
                writer.writeheader()
                writer.writerows({column: _cell(value) for column, value in row.items()} for row in rows)
            written.append(path)
    return written


def _kills(found: Tables) -> Iterable[dict[str, Any]]:
    for row in found.guards:
        if row.group != POOLED:
            yield from (
                {"plan": found.plan.name, "group": row.group, "guard": row.guard, "run": run, "step": step} for run, step in row.kills
            )


def _near_runs(found: Tables) -> Iterable[dict[str, Any]]:
    for row in found.near_misses:
        if row.group != POOLED and row.guard != ANY_GUARD:
            yield from ({"plan": found.plan.name, "group": row.group, **near._asdict()} for near in row.runs)


def _flat(row: Any) -> dict[str, Any]:
    return _flat_row({name: getattr(row, name) for name in _names(row)})


def _flat_row(row: dict[str, Any]) -> dict[str, Any]:
    """A share takes three columns; lists have files of their own, or stand in the JSON."""
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, Share):
            flat |= {name: value.count, f"{name}_of": value.of, f"{name}_share": value.share}
        elif not isinstance(value, tuple):
            flat[name] = value
    return flat


def _cell(value: Any) -> Any:
    """A cell; text that a spreadsheet would take for a formula gets an apostrophe before it."""
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.startswith(_FORMULA) else text
