"""What a search finds: a run that never halts, a bound, the shortest run with a property, or that there is none."""

from __future__ import annotations

import attrs

from fsm_agent.machine import Run

Core = frozenset[str]
"""A few guards, by their reasons."""


@attrs.frozen
class Endless:
    """A run that never halts."""

    run: Run
    """After the first round of the loop that leads to where it began."""
    stem: int
    """Events before the loop."""


@attrs.frozen
class Bound:
    """How often something happens at most."""

    most: int
    exact: bool
    """There is a run in which it happens so often."""
    core: Core
    """The guards that it rests on."""
    run: Run
    """Such a run, or one that comes close."""
    each_message: bool
    """Between two messages of a person: with new ones a run can go on for ever."""


@attrs.frozen
class Found:
    """The shortest run with a property."""

    run: Run


@attrs.frozen
class Never:
    """No run has the property."""

    core: Core
    """The guards that keep it from happening."""


@attrs.frozen
class Undecided:
    """The space is too big."""

    core: Core
    depth: int
    """Of the runs with fewer model calls, all were searched."""
