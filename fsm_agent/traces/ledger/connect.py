"""Opening a ledger's file, for reading or for writing. Whatever is no ledger is refused, and left as it was.

While it is written, a ledger keeps a write-ahead log beside it (WAL), so that others can read it meanwhile. When the last writer closes it,
it is one plain file again, which can be copied, and read also where nothing can be written.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from fsm_agent.traces.ledger import schema
from fsm_agent.traces.ledger.errors import EmptyLedgerError, LedgerError, told

BUSY_S = 3.0
"""How long another process is waited for. Imports lock the file for a batch's moment only, so two of them get along."""


def for_reading(path: Path) -> sqlite3.Connection:
    """Raises ``LedgerError``."""
    if not path.exists():
        raise LedgerError(f"there is no ledger {path}; make it with: fsm-agent import FILES --ledger {path}")
    _look(path)
    return _opened(path, _check_for_reading)


def for_writing(path: Path) -> sqlite3.Connection:
    """A new ledger where there is no file, or one in which there is nothing at all. Raises ``LedgerError``."""
    if not path.parent.is_dir():
        raise LedgerError(f"{path}: there is no folder {path.parent}; make it, or give another one")
    if path.exists():
        _look(path)
    return _opened(path, _prepare_for_writing)


def _look(path: Path) -> None:
    """Refuses what is no SQLite file before SQLite touches it."""
    if path.is_dir():
        raise LedgerError(f"{path} is a directory; give a file as the ledger")
    try:
        with path.open("rb") as file:
            head = file.read(len(schema.MAGIC))
    except OSError as error:
        raise LedgerError(f"{path} cannot be read: {error.strerror or error}") from None
    if head and head != schema.MAGIC:
        raise LedgerError(f"{path} is no SQLite file, so it is no ledger; give another one")


def _opened(path: Path, prepare: Callable[[sqlite3.Connection, Path], None]) -> sqlite3.Connection:
    with told(path):
        connection = sqlite3.connect(path.absolute(), timeout=BUSY_S, isolation_level=None)
    try:
        with told(path):
            prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _check_for_reading(connection: sqlite3.Connection, path: Path) -> None:
    if not schema.check(connection, path):
        raise EmptyLedgerError(f"{path} is empty; fill it with: fsm-agent import FILES --ledger {path}")
    connection.execute("PRAGMA query_only = ON")  # not mode=ro, which cannot clear up after an import that was killed


def _prepare_for_writing(connection: sqlite3.Connection, path: Path) -> None:
    filled = schema.check(connection, path)
    with suppress(sqlite3.OperationalError):  # somebody reads it just now: the other kind of journal will do
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")  # a kill loses nothing, a power cut at most the last batches
    connection.execute("BEGIN IMMEDIATE")
    if not filled and not schema.check(connection, path):  # another import may have been quicker
        schema.create(connection)
    connection.execute("DELETE FROM runs WHERE 0")  # that it can be written is known now, not after minutes of reading
    connection.execute("COMMIT")


def close(connection: sqlite3.Connection) -> None:
    """Leaves one plain file, unless somebody else has it open."""
    with suppress(sqlite3.Error):
        if not connection.in_transaction and not connection.execute("PRAGMA query_only").fetchone()[0]:
            connection.execute("PRAGMA busy_timeout = 0")
            connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
