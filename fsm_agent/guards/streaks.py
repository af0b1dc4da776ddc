"""Things of one kind in a row: the memory that several guards share."""

from __future__ import annotations

from typing import Any

from fsm_agent.events import Value
from fsm_agent.guards.base import Evidence, Reading


class Streak(Value, frozen=True):
    """So many in a row, and the latest of them."""

    length: int = 0
    evidence: tuple[Evidence, ...] = ()
    """The latest ones, oldest first; as many as the guard's limit, at most."""
    grew: bool = False
    """The last step added to it: only then is there something to warn of."""

    def grown(self, evidence: Evidence, limit: int) -> Streak:
        """One more. ``limit`` bounds what is kept."""
        return Streak(self.length + 1, (*self.evidence[1 - limit :], evidence) if limit > 1 else (evidence,), grew=True)

    def passed_over(self) -> Streak:
        """As it was: the last step neither counts nor resets."""
        return Streak(self.length, self.evidence) if self.grew else self

    def reading(self, guard: Any, limit: int, warn_at: int | None = None) -> Reading:
        """It trips at ``limit``, and warns on the step on which it comes to ``warn_at``."""
        return Reading(guard.reason, self.length, limit, self.length >= limit, self.evidence, self.grew and self.length == warn_at)


NONE = Streak()
"""Nothing yet, or nothing any more."""
