"""What can go wrong with a ledger's file, in one line: what, where, and how to mend it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class LedgerError(ValueError):
    """A ledger that cannot be used, or a request that it cannot meet, in one line."""


class EmptyLedgerError(LedgerError):
    """There is nothing in the file yet: an import was killed as it made it, or the file is new."""


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Within, SQLite's errors become a ``LedgerError`` that names the file."""
    try:
        yield
    except sqlite3.Error as error:
        if not code_of(error):  # this package has called it wrongly
            raise
        meaning = _MEANINGS.get(code_of(error), "is no ledger that can be used ({error})")
        raise LedgerError(f"{path} {meaning.format(error=error)}") from error


def code_of(error: BaseException | None) -> int:
    """SQLite's primary result code; 0: the error is none of SQLite's."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF  # the higher bytes tell its finer kind


_MEANINGS = {
    sqlite3.SQLITE_BUSY: "is locked by another process; try again when that is done",
    sqlite3.SQLITE_LOCKED: "is locked by another process; try again when that is done",
    sqlite3.SQLITE_NOTADB: "is no SQLite file, so it is no ledger; give another one",
    sqlite3.SQLITE_READONLY: "cannot be written ({error}); make it writable, or give another ledger",
    sqlite3.SQLITE_PERM: "cannot be written ({error}); make it writable, or give another ledger",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened; look whether the file and its folder may be read and written",
    sqlite3.SQLITE_CORRUPT: "is damaged ({error}); make it again from the recordings, or restore a copy",
    sqlite3.SQLITE_FULL: "cannot grow, the disk is full; what was imported before is in it, and the import can be run again",
    sqlite3.SQLITE_IOERR: "cannot be read or written ({error}); what was imported before is in it, and the import can be run again",
}
"""SQLite's own words help those who know SQLite: what they mean for a ledger."""
