"""``Ledger``: many recorded runs in one SQLite file. Written in whole batches, read one run at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, Self

import attrs

from fsm_agent.traces.ledger import connect
from fsm_agent.traces.ledger.body import unpack
from fsm_agent.traces.ledger.entry import Entry, GuardRow, Verdict
from fsm_agent.traces.ledger.errors import LedgerError, told
from fsm_agent.traces.ledger.stored import Added, EdgeCount, StoredRun
from fsm_agent.traces.ledger.where import EVERYTHING, Where
from fsm_agent.traces.recordings import Recording

_LISTED = 8
"""Candidates that an error names, at most."""

_COLUMNS = ", ".join("run_id" if field.name == "id" else field.name for field in attrs.fields(StoredRun))
_INSERT = f"INSERT INTO runs ({_COLUMNS}) VALUES ({', '.join('?' * len(attrs.fields(StoredRun)))}) ON CONFLICT (key) DO NOTHING"  # noqa: S608  # of this module's names alone
_VERDICT = "UPDATE runs SET outcome = ?1, score = ?2, ending = ?3 WHERE key = ?4 AND (outcome, score, ending) IS NOT (?1, ?2, ?3)"


class Ledger:
    """A ledger that is open. A context manager: it closes the file."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._guards: dict[GuardRow, int] = {}

    @classmethod
    def open(cls, path: str | PathLike[str]) -> Ledger:
        """For reading. Raises ``LedgerError`` for what is no ledger of a version that is known."""
        path = Path(path)
        return cls(path, connect.for_reading(path))

    @classmethod
    def create_or_open(cls, path: str | PathLike[str]) -> Ledger:
        """For writing; a new ledger where there is no file. Raises ``LedgerError``, and leaves what is no ledger as it was."""
        path = Path(path)
        return cls(path, connect.for_writing(path))

    def close(self) -> None:
        """Raises nothing: what was added is in the file already."""
        connect.close(self._connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # --- reading -------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """The number of runs."""
        ((number,),) = self._rows("SELECT count(*) FROM runs")
        return int(number)

    def __bool__(self) -> bool:
        """A ledger without runs is still one."""
        return True

    def sources(self) -> dict[str, int]:
        """The formats, and how many runs are of each."""
        return dict(self._rows("SELECT source, count(*) FROM runs GROUP BY source ORDER BY source"))

    def runs(self, where: Where = EVERYTHING) -> list[StoredRun]:
        """The runs' rows, in the order of import."""
        return [StoredRun(*row) for row in self._chosen(_COLUMNS, "runs", where, "ORDER BY id")]

    def recordings(self, where: Where = EVERYTHING) -> Iterator[Recording]:
        """The recordings, equal to those that were imported, one at a time and in the order of import."""
        for _, recording in self.entries(where):
            yield recording

    def entries(self, where: Where = EVERYTHING) -> Iterator[tuple[StoredRun, Recording]]:
        """The recordings, each with its row."""
        for *columns, body in self._chosen(f"{_COLUMNS}, body", "runs JOIN recordings ON run = id", where, "ORDER BY id"):
            run = StoredRun(*columns)
            events, tools, extra = unpack(body, run.key)
            yield run, Recording(run.id, run.source, run.task, events, tools, run.outcome, run.score, run.ending, run.model, extra)

    def recording(self, run: StoredRun) -> Recording:
        """The recording of a run. Raises ``LedgerError`` where it is not in this ledger."""
        for found in self.recordings(Where.equal(key=run.key)):
            return found
        raise LedgerError(f"{self.path} holds no run {run}")

    def edge_counts(self, where: Where = EVERYTHING) -> list[EdgeCount]:
        """The edges that these runs took in a machine without guards, those taken most first."""
        counts = "edge, count(*) AS times, count(DISTINCT run)"
        return [
            EdgeCount(*row) for row in self._chosen(counts, "runs JOIN edges ON run = id", where, "GROUP BY edge ORDER BY times DESC, edge")
        ]

    def find(self, name: str) -> StoredRun:
        """The run of this id, ``source:id`` or key; or the only one whose id or key begins so.

        Raises ``LedgerError`` where there is none, or several: then it lists them.
        """
        source, _, rest = name.partition(":")
        whole = "run_id = :name OR key = :name OR (source = :source AND run_id = :rest)"
        begun = (
            " OR ".join(
                f"({column} >= :{start} AND {column} < :{start} || :last)" for column, start in (("run_id", "name"), ("key", "name"))
            )
            + " OR (source = :source AND run_id >= :rest AND run_id < :rest || :last)"
        )
        names = {"name": name, "source": source, "rest": rest, "last": "\U0010ffff"}
        found: list[StoredRun] = []
        for condition in (whole, begun) if name else ():
            query = _select(_COLUMNS, "runs", f" WHERE {condition}", f"ORDER BY id LIMIT {_LISTED + 1}")
            found = found or [StoredRun(*row) for row in self._rows(query, names)]
        if len(found) == 1:
            return found[0]
        if not found:
            raise LedgerError(f"{self.path} holds no run {name!r}; a run is named by its id, by source:id or by the beginning of its key")
        listed = "; ".join(map(str, found[:_LISTED])) + ("; ..." if len(found) > _LISTED else "")
        raise LedgerError(f"{name!r} may be any of these runs, name one by its key: {listed}")

    def _chosen(self, columns: str, tables: str, where: Where, rest: str) -> Iterator[Any]:
        """One row after the other, as the reader comes to it."""
        clause, values = where.sql()
        with told(self.path):
            yield from self._connection.execute(_select(columns, tables, clause, rest), values)

    def _rows(self, query: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[Any]:
        with told(self.path):
            return self._connection.execute(query, values).fetchall()

    # --- writing -------------------------------------------------------------------------------------------------

    def holds(self, key: str) -> bool:
        """Whether the run with this whole key is there."""
        return bool(self._rows("SELECT 1 FROM runs WHERE key = ?", (key,)))

    def others(self, recording: Recording, file: str, key: str) -> bool:
        """Whether another run of the same format, id and file is there: the same run with other content."""
        query = "SELECT 1 FROM runs WHERE run_id = ? AND source = ? AND file = ? AND key <> ? LIMIT 1"
        return bool(self._rows(query, (recording.id, recording.source, file, key)))

    def add(self, entries: Sequence[Entry], verdicts: Iterable[tuple[str, Verdict]] = ()) -> Added:
        """Write these runs, all of them or, where it fails, none. Those that are there already are left as they are, but for their verdict.

        ``verdicts``: of runs that are known to be there, by key. Raises ``LedgerError``.
        """
        new: list[tuple[int, Entry]] = []
        again = [(*verdict, key) for key, verdict in verdicts]
        with told(self.path), self._writing() as connection:
            for entry in entries:
                inserted = connection.execute(_INSERT, (entry.key, *entry.run))
                if inserted.rowcount:
                    new.append((int(inserted.lastrowid or 0), entry))
                else:
                    again.append((*entry.verdict, entry.key))
            readings = [(run, step, self._guard(guard), *rest) for run, entry in new for guard, step, *rest in entry.readings]
            for table, rows in (
                ("recordings (run, body) VALUES (?, ?)", [(run, entry.body) for run, entry in new]),
                ("steps VALUES (?, ?, ?, ?, ?, ?)", [(run, *step) for run, entry in new for step in entry.steps]),
                ("edges VALUES (?, ?, ?, ?)", [(run, *edge) for run, entry in new for edge in entry.edges]),
                ("readings VALUES (?, ?, ?, ?, ?, ?)", readings),
            ):
                connection.executemany(f"INSERT INTO {table}", rows)
            updated = connection.executemany(_VERDICT, again).rowcount if again else 0
        return Added(len(new), len(again), updated)

    def _guard(self, guard: GuardRow) -> int:
        number = self._guards.get(guard)
        if number is None:
            self._connection.execute("INSERT INTO guards (reason, class, limits) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", guard)
            (number,) = self._connection.execute("SELECT id FROM guards WHERE (reason, class, limits) = (?, ?, ?)", guard).fetchone()
            self._guards[guard] = int(number)
        return int(number)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: what is written within is there altogether, or not at all."""
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            self._guards.clear()  # their rows may be gone again
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _select(columns: str, tables: str, clause: str, rest: str) -> str:
    """A query, of this module's own words and of ``Where.sql``, which knows columns alone: values come by question marks."""
    return f"SELECT {columns} FROM {tables}{clause} {rest}"  # noqa: S608  # as just said
