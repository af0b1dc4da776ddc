"""What a run is set up with besides its guards: how often a model is asked again, who is asked before a tool runs, what is cut.

A record's header keeps it, so that a run can be replayed and taken up again. What is off has no edge in the machine.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

from fsm_agent.events import Value

Feature = Literal["retries", "approvals", "compaction", "last_chance", "tool_servers"]
"""What brings edges of its own into the machine."""

FEATURES: tuple[Feature, ...] = get_args(Feature)


class Options(Value, frozen=True):
    """The options of a run. Nothing is on by itself: the drivers choose."""

    max_retries: int = 0
    """How often, one after the other, the model is asked again when it could not be asked."""
    first_wait_s: float = 0.5
    """Seconds before the first of them; each further one waits twice as long as the one before, unless the server says how long."""
    max_wait_s: float = 60.0
    """Seconds that one of them may wait. A server that asks for more is not asked again."""
    approvals: bool = False
    """A person may be asked before tools run."""
    compaction: bool = False
    """A summary may take the place of the beginning of the conversation."""
    last_chance: bool = False
    """At a cap, a budget or a loop the model is asked once more, without tools, for its answer; the halt reason stays what it was."""
    tool_servers: bool = False
    """Tools live in other processes, which may be gone for good."""
    max_observation_chars: int | None = None
    """So many characters of an observation are shown to the model; None: all of them."""

    @property
    def features(self) -> frozenset[Feature]:
        """What is on."""
        on = {
            "retries": self.max_retries > 0,
            "approvals": self.approvals,
            "compaction": self.compaction,
            "last_chance": self.last_chance,
            "tool_servers": self.tool_servers,
        }
        return frozenset(feature for feature in FEATURES if on[feature])

    def wait_s(self, retries: int, asked_s: float | None) -> float | None:
        """Seconds to wait before the next time, after so many retries in a row; None: the model is not asked again.

        ``asked_s``: what the server asks for. It is obeyed, also where it is shorter. What is no finite number says nothing: a record
        cannot hold it, and a replay has to wait alike.
        """
        if retries >= self.max_retries:
            return None
        if asked_s is None or not math.isfinite(asked_s):
            return min(self.first_wait_s * 2.0 ** min(retries, 60), self.max_wait_s)
        return max(asked_s, 0.0) if asked_s <= self.max_wait_s else None


RETRIES = 3
"""How often in a row a model is asked again, where nothing else is said."""

OFF = Options()
"""The options of a run that has none on."""
