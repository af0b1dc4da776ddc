"""Importing: recordings go into a ledger in batches, each of which is there altogether or not at all.

A run that is there already costs a digest and a look-up; it is not put through the machine again. So an import that was killed is simply
run again, and goes on where it stood.
"""

from __future__ import annotations

import attrs

from fsm_agent.machine import UnexpectedEvent
from fsm_agent.traces.ledger.body import key_of
from fsm_agent.traces.ledger.entry import Entry, Judge, Verdict, entry_of, verdict_of
from fsm_agent.traces.ledger.errors import LedgerError
from fsm_agent.traces.ledger.ledger import Ledger
from fsm_agent.traces.recordings import Damaged, Recording

BATCH_RUNS = 250
BATCH_STEPS = 5_000
BATCH_BYTES = 8 << 20
"""A batch is written at one of them: they bound memory, and the time for which the file is locked."""


@attrs.define
class Tally:
    """What became of the runs of one file."""

    new: int = 0
    already_there: int = 0
    updated: int = 0
    """Of those that were there: how many had another outcome, score or ending."""
    changed: int = 0
    """Of the new ones: how many are in the ledger with other content, from the same file and with the same id."""
    damaged: list[Damaged] = attrs.field(factory=list)
    """Those that could not be read, or not be kept."""


class Importer:
    """Takes recordings, of one file after the other."""

    def __init__(self, ledger: Ledger, judge: Judge) -> None:
        self._ledger = ledger
        self._judge = judge
        self._entries: list[Entry] = []
        self._verdicts: list[tuple[str, Verdict]] = []
        self._steps = self._bytes = 0

    def take(self, recording: Recording, file: str, tally: Tally) -> None:
        """One run of ``file``. It is in the ledger, and counted, when ``flush`` has returned. Raises ``LedgerError``."""
        try:
            key, verdict = key_of(recording), verdict_of(recording)
            entry = None if self._ledger.holds(key) else entry_of(recording, file, key, self._judge)
        except LedgerError:
            raise
        except UnexpectedEvent as error:
            tally.damaged.append(Damaged(f"run {recording.id}", f"no run can have had these events: {error}"))
            return
        except ValueError as error:
            tally.damaged.append(Damaged(f"run {recording.id}", str(error)))
            return
        if entry is None:
            self._verdicts.append((key, verdict))
        else:
            tally.changed += self._ledger.others(recording, file, key)
            self._entries.append(entry)
            self._steps += len(entry.steps)
            self._bytes += len(entry.body)
        if len(self._entries) + len(self._verdicts) >= BATCH_RUNS or self._steps >= BATCH_STEPS or self._bytes >= BATCH_BYTES:
            self.flush(tally)

    def flush(self, tally: Tally) -> None:
        """Write what is waiting; to be called before the next file. Raises ``LedgerError``."""
        if not self._entries and not self._verdicts:
            return
        added = self._ledger.add(self._entries, self._verdicts)
        tally.new += added.new
        tally.already_there += added.already_there
        tally.updated += added.updated
        self._entries, self._verdicts, self._steps, self._bytes = [], [], 0, 0
