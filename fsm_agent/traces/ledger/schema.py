"""The ledger's tables, and how a file is known to be a ledger.

``runs`` has a row for each recorded run, which answers most questions by itself. ``recordings`` holds what the machine is fed, so that a
run can be replayed under other limits: MessagePack of its events, its tools and whatever else its format told, compressed with zlib.
``steps``, ``edges`` and ``readings`` are what became of it in a machine without guards; they are there for people's own queries.

``readings`` are those of the guards in ``guards``, at each step where one is judged, though none of them halted the run. Kept are
only those that trip, and those in which there is something to see (a value above zero that rests on evidence): where a step has none
of a guard, that guard saw nothing.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from fsm_agent.traces.ledger.errors import LedgerError

APPLICATION_ID = 0x66736D31
"""``fsm1``: by it the program ``file`` and this package know a ledger from any other SQLite file."""
VERSION = 1
"""The version of the tables below (``PRAGMA user_version``); a newer one is refused."""

MAGIC = b"SQLite format 3\0"

TABLES = {
    "runs": """
        id INTEGER PRIMARY KEY,  -- in the order of import
        key TEXT NOT NULL UNIQUE,  -- a digest of the content: the same run has the same key, whatever file it came from
        source TEXT NOT NULL,  -- the format it was recorded in
        file TEXT NOT NULL,  -- the file it came from first, as it was named then
        run_id TEXT NOT NULL,  -- unique in its file
        task TEXT NOT NULL,
        model TEXT,
        outcome TEXT NOT NULL,  -- success, failure, unknown
        score REAL,
        ending TEXT NOT NULL,  -- how the recording ended, such as answer or cap
        steps INTEGER NOT NULL,
        model_calls INTEGER NOT NULL,
        tool_calls INTEGER NOT NULL,
        errors INTEGER NOT NULL,  -- steps that failed altogether
        prompt_tokens INTEGER,  -- of the replies that tell; NULL: none does
        completion_tokens INTEGER,
        tokens_unknown INTEGER NOT NULL,  -- replies that do not tell all of their tokens
        cost REAL,  -- US dollars
        cost_unknown INTEGER NOT NULL,
        reason TEXT  -- how the machine ended without guards; NULL: it did not
        """,
    "recordings": """
        run INTEGER PRIMARY KEY REFERENCES runs (id),
        body BLOB NOT NULL  -- zlib(MessagePack {events, tools, extra})
        """,
    "steps": """
        run INTEGER NOT NULL REFERENCES runs (id),
        step INTEGER NOT NULL,  -- from 1
        decision TEXT NOT NULL,  -- calls, final, said, model_failed, or the kind of a malformed reply
        text TEXT NOT NULL,  -- the calls or what was said: one line, shortened
        is_error INTEGER NOT NULL,  -- every call failed, or the reply could not be used
        tokens INTEGER,  -- prompt and completion; NULL: not known
        PRIMARY KEY (run, step)
        """,
    "edges": """
        run INTEGER NOT NULL REFERENCES runs (id),
        position INTEGER NOT NULL,  -- from 1
        step INTEGER NOT NULL,
        edge TEXT NOT NULL,  -- the row's id in the transition table
        PRIMARY KEY (run, position)
        """,
    "guards": """
        id INTEGER PRIMARY KEY,
        reason TEXT NOT NULL,
        class TEXT NOT NULL,
        limits TEXT NOT NULL,  -- JSON
        UNIQUE (reason, class, limits)
        """,
    "readings": """
        run INTEGER NOT NULL REFERENCES runs (id),
        step INTEGER NOT NULL,
        guard INTEGER NOT NULL REFERENCES guards (id),
        value NUMERIC NOT NULL,
        "limit" NUMERIC NOT NULL,
        trips INTEGER NOT NULL,  -- it would have halted the run here, which it never does beside an answer
        PRIMARY KEY (run, step, guard)
        """,
}

_CLUSTERED = frozenset({"steps", "edges", "readings"})
"""Stored in the order of their keys, so that a run's rows lie together and need no index beside them."""
_INDEX = "CREATE INDEX runs_by_id ON runs (run_id, source, file)"


def check(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether the file is a ledger of this version; False: it holds nothing at all. Raises ``LedgerError`` for anything else."""
    application, version = _pragma(connection, "application_id"), _pragma(connection, "user_version")
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not application and not version and not tables:
        return False
    if application != APPLICATION_ID:
        raise LedgerError(f"{path} is an SQLite file of another kind, no ledger; give another one")
    if version > VERSION:
        raise LedgerError(
            f"{path} was made by a newer fsm_agent (its ledger has version {version}, this one knows {VERSION}); update fsm_agent"
        )
    if version != VERSION or not TABLES.keys() <= tables:
        raise LedgerError(f"{path} is no whole ledger (version {version}, {len(tables)} tables); restore a copy, or give another one")
    return True


def create(connection: sqlite3.Connection) -> None:
    """Make the tables, in the transaction that is open: they are all there or none is."""
    for name, columns in TABLES.items():
        connection.execute(f"CREATE TABLE {name} ({columns}){' WITHOUT ROWID' if name in _CLUSTERED else ''}")
    connection.execute(_INDEX)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])
