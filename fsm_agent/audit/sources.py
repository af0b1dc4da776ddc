"""Where an audit's runs come from: ledgers, and files of recordings."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fsm_agent.audit.audit import Found, by_model, by_source
from fsm_agent.machine import UnexpectedEvent
from fsm_agent.traces.ledger import EVERYTHING, Condition, Ledger, StoredRun, Where, entry_of
from fsm_agent.traces.ledger.body import key_of
from fsm_agent.traces.recordings import Damaged, Recording, read

_SQLITE = b"SQLite format 3\0"
_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip

GROUPS: Mapping[str, Callable[[Recording], str]] = {"source": by_source, "model": by_model}
"""What runs can be grouped by, besides their file."""
BY_FILE = "file"


def is_ledger(path: Path) -> bool:
    """By the file's first bytes. Raises ``OSError`` where it cannot be read."""
    if path.is_dir():
        return False
    with path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def runs_of(
    paths: Sequence[Path],
    where: Where = EVERYTHING,
    *,
    form: str | None = None,
    error_pattern: str | None = None,
    by_file: bool = False,
    unreadable: list[str] | None = None,
) -> Iterator[tuple[str, Found]]:
    """The runs of ledgers and files that ``where`` chooses, each with its file, and the damaged ones.

    ``form`` and ``error_pattern`` are for files, as ``recordings.read`` has them. ``by_file``: with a ledger's run comes the file that it
    was in, and not the ledger. ``unreadable`` takes the files in which something is damaged and no run can be read. Raises
    ``RecordingError``, ``LedgerError`` or ``OSError``.
    """
    for path in paths:
        if is_ledger(path):
            with Ledger.open(path) as ledger:
                yield from ((run.file if by_file else str(path), recording) for run, recording in ledger.entries(where))
            continue
        runs = damaged = 0
        for found in read(path, form, error_pattern):
            runs, damaged = runs + (not isinstance(found, Damaged)), damaged + isinstance(found, Damaged)
            if isinstance(found, Damaged):
                yield str(path), Damaged(f"{path}, {found.place}", found.problem)
            else:
                yield from ((str(path), chosen) for chosen in _chosen(where, found, path))
        if damaged and not runs and unreadable is not None:
            unreadable.append(str(path))


def _chosen(where: Where, recording: Recording, path: Path) -> Iterator[Found]:
    try:
        if not where.conditions or holds(where, recording, path):
            yield recording
    except (ValueError, UnexpectedEvent) as error:
        yield Damaged(f"{path}, {recording.id}", str(error))


def holds(where: Where, recording: Recording, path: Path) -> bool:
    """Whether the conditions hold of a run that is in no ledger: of the row that it would have there. Raises as ``entry_of`` does."""
    entry = entry_of(recording, str(path), key_of(recording), lambda _: ())
    run = StoredRun(entry.key, *entry.run)
    return all(_holds(condition, getattr(run, condition.field)) for condition in where.conditions)


def _holds(condition: Condition, value: Any) -> bool:
    """As SQL compares: what is not known is equal to the unknown alone, and neither above nor below anything."""
    if condition.operator in {"=", "!="}:
        return _COMPARED[condition.operator](value, condition.value)
    return value is not None and condition.value is not None and _COMPARED[condition.operator](value, condition.value)
