"""What a record tells of the single calls of a batch while they run: notes, which change nothing in the run.

A batch is one event, and comes when all of its calls have ended. A process that is killed before that leaves these, so that no call
is made a second time by whoever takes up the run.
"""

from __future__ import annotations

from fsm_agent.events import Observation, Value


class CallStarted(Value, frozen=True, tag_field="note", tag=True):
    """A call was about to be made."""

    step: int
    index: int
    """Its place in the reply, from 0."""
    at: float | None = None
    """In seconds since 1970 UTC."""


class CallEnded(Value, frozen=True, tag_field="note", tag=True):
    """A call came to something."""

    step: int
    index: int
    observation: Observation
    at: float | None = None


Note = CallStarted | CallEnded
