"""Things of one kind in a row: the memory that several guards share."""

from __future__ import annotations

from typing import Any

from fsm_agent.events import Value
from fsm_agent.guards.base import Evidence, Reading

SHOWN = 12
"""Pieces of evidence that a reading shows at most: every reading goes into the record, which must not grow with the square of a run."""

FIRST = 4
"""Of these, how many are the first ones, where there were more; the others are the last ones."""

Counts = tuple[tuple[str, int], ...]
"""By kind, how many."""


def kept(evidence: tuple[Evidence, ...], new: Evidence, limit: int) -> tuple[Evidence, ...]:
    """The evidence with one piece more: the latest, as many as ``limit``; where that is too much to show, the first and the last few."""
    if evidence and evidence[-1].text == new.text:
        new = Evidence(new.step, new.kind, evidence[-1].text)  # one text, however often the same happens
    if limit <= SHOWN:
        return (*evidence[1 - limit :], new) if limit > 1 else (new,)
    return (*evidence, new) if len(evidence) < SHOWN else (*evidence[:FIRST], *evidence[FIRST + 1 :], new)


def _one_more(counts: Counts, kind: str) -> Counts:
    """The counts with one more of this kind. Most often it is the only kind, and nothing else is kept of the way there."""
    if len(counts) == 1 and counts[0][0] == kind:
        return ((kind, counts[0][1] + 1),)
    others = {**dict(counts), kind: dict(counts).get(kind, 0) + 1}
    return tuple(sorted(others.items()))


class Streak(Value, frozen=True):
    """So many in a row, and the latest of them."""

    length: int = 0
    evidence: tuple[Evidence, ...] = ()
    """The latest ones, oldest first, as many as the guard's limit; of more than twelve the first and the last few."""
    grew: bool = False
    """The last step added to it: only then is there something to warn of."""
    omitted: Counts = ()
    """By kind, the evidence between the first and the last few."""

    def grown(self, evidence: Evidence, limit: int) -> Streak:
        """One more. ``limit`` bounds what is kept."""
        omitted = self.omitted
        if limit > SHOWN and len(self.evidence) == SHOWN:
            omitted = _one_more(omitted, self.evidence[FIRST].kind)
        return Streak(self.length + 1, kept(self.evidence, evidence, limit), grew=True, omitted=omitted)

    def passed_over(self) -> Streak:
        """As it was: the last step neither counts nor resets."""
        return Streak(self.length, self.evidence, omitted=self.omitted) if self.grew else self

    def reading(self, guard: Any, limit: int, warn_at: int | None = None) -> Reading:
        """It trips at ``limit``, and warns on the step on which it comes to ``warn_at``."""
        warns = self.grew and self.length == warn_at
        return Reading(guard.reason, self.length, limit, self.length >= limit, self.evidence, warns, omitted=self.omitted)


NONE = Streak()
"""Nothing yet, or nothing any more."""
