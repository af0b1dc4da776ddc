"""The ledger: many recorded runs in one SQLite file, to be audited, replayed under other limits and drawn."""

from fsm_agent.traces.ledger.entry import Entry, Judge, Judged, entry_of
from fsm_agent.traces.ledger.errors import LedgerError
from fsm_agent.traces.ledger.importing import Importer, Tally
from fsm_agent.traces.ledger.ledger import Ledger
from fsm_agent.traces.ledger.stored import Added, EdgeCount, StoredRun
from fsm_agent.traces.ledger.where import EVERYTHING, FIELDS, Condition, Where

__all__ = [
    "EVERYTHING",
    "FIELDS",
    "Added",
    "Condition",
    "EdgeCount",
    "Entry",
    "Importer",
    "Judge",
    "Judged",
    "Ledger",
    "LedgerError",
    "StoredRun",
    "Tally",
    "Where",
    "entry_of",
]
