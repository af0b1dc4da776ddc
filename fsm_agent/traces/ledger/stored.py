"""What a ledger tells of its runs, and of what was written into it."""

from __future__ import annotations

import attrs

from fsm_agent.traces.recordings.base import Ending, Outcome

KEY_SHOWN = 10
"""Digits of a key by which people tell runs apart."""


@attrs.frozen
class StoredRun:
    """A run's row: what it came to, without its events."""

    key: str
    """Unique in the ledger: a digest of the content."""
    source: str
    """The format it was recorded in."""
    file: str
    """The file it came from first."""
    id: str
    """Unique in its file."""
    task: str
    model: str | None
    outcome: Outcome
    score: float | None
    ending: Ending
    steps: int
    model_calls: int
    tool_calls: int
    errors: int
    """Steps that failed altogether: every call in them, or the reply could not be used."""
    prompt_tokens: int | None
    """Of the replies that tell; None: none does. So with the completion's, and the cost in US dollars."""
    completion_tokens: int | None
    tokens_unknown: int
    """Replies that do not tell all of their tokens."""
    cost: float | None
    cost_unknown: int
    reason: str | None
    """How the machine ended without guards: ``final_answer``, ``recording_ended``, ...; None: it did not."""

    def __str__(self) -> str:
        return f"{self.source} {self.id} ({self.key[:KEY_SHOWN]}, {self.file})"


@attrs.frozen
class Added:
    """What became of a batch of runs."""

    new: int = 0
    already_there: int = 0
    updated: int = 0
    """Of those that were there: how many had another outcome, score or ending, which is the new one now."""


@attrs.frozen
class EdgeCount:
    """How often an edge was taken, over many runs."""

    edge: str
    times: int
    runs: int
    """Runs that took it at least once."""
