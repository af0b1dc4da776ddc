"""Where an audit's runs come from: ledgers, and files of recordings."""

from __future__ import annotations

import codecs
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fsm_agent.audit.audit import Found, by_model, by_source
from fsm_agent.machine import UnexpectedEvent
from fsm_agent.traces.ledger import EVERYTHING, Condition, Ledger, StoredRun, Where, entry_of
from fsm_agent.traces.ledger.body import key_of
from fsm_agent.traces.recordings import Damaged, Recording, RecordingError, detect, read

_SQLITE = b"SQLite format 3\0"
_HEAD_BYTES = 4096
_ENDINGS = frozenset({".db", ".sqlite", ".sqlite3"})
"""What ledgers are called."""
_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip

GROUPS: Mapping[str, Callable[[Recording], str]] = {"source": by_source, "model": by_model}
"""What runs can be grouped by, besides their file."""
BY_FILE = "file"


def is_ledger(path: Path, form: str | None = None) -> bool:
    """By the file's first bytes. ``form`` is the format of a recording, where the user names it.

    Raises ``OSError`` where it cannot be read, and ``RecordingError`` where it was meant as a ledger, by its name or since it is no text,
    and is neither one nor of a format that is known.
    """
    if path.is_dir():
        return False
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if head.startswith(_SQLITE):
        return True
    if form is None and (path.suffix.lower() in _ENDINGS or _is_binary(head)):
        try:
            detect(path)
        except RecordingError as error:
            raise RecordingError(f"{error}, and it is no ledger (not an SQLite file)") from None
    return False


def _is_binary(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # a character may be cut off at the end
    except UnicodeDecodeError:
        return True
    return b"\0" in head


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
        if is_ledger(path, form):
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
