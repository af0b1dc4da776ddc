"""What a step may have besides its model call: retries, a summary, a question to a person, and, once, a last word.

The machine counts these, whatever its guards, so they are searched apart, without any abridgement, in runs of two steps, which a cap
or a budget stops. Every other search may then leave out a state that differs from a known one in nothing but that more of this is used up.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from fsm_agent.guards import Guard, MaxSteps, ToolBudget
from fsm_agent.options import Options
from fsm_agent.proof.alphabet import tools_for
from fsm_agent.proof.findings import Endless
from fsm_agent.proof.graphs import lasso
from fsm_agent.proof.sight import sight_of
from fsm_agent.proof.space import Space
from fsm_agent.proof.states import Broken
from fsm_agent.proof.trail import Refuted, Trail
from fsm_agent.proof.watched import Uncheckable, Watched

LIMIT, FOR_A_RETRY = 600, 20
"""States at most, and how many more for each retry: some times as many as there are."""


@attrs.frozen
class Frame:
    """What was found."""

    retries: int
    """How often a model is asked again at most, one after the other."""
    states: int
    endless: Endless | None = None
    """A run that never halts."""


def frame(options: Options, *, batch: int) -> Frame:
    """Search the runs of two steps. Raises ``Refuted`` for one that breaks, and ``Uncheckable`` where they come to no end."""
    guards: Sequence[Guard] = (MaxSteps(2), ToolBudget(2))
    watched = [Watched(guard) for guard in guards]
    limit = LIMIT + FOR_A_RETRY * options.max_retries
    space = Space(watched, tools_for(sight_of(guards)), batch=min(batch, 2), limit=limit, options=options, unabridged=True)
    trail = Trail(space, guards, watched)
    try:
        for _ in space.explore():
            pass
    except Broken as broken:
        trail.take(broken.node.path())
        raise Refuted(trail.breaks(broken.letter, str(broken))) from None
    if not space.complete:
        raise Uncheckable(f"a step does not end: {limit} states were searched, and each has used up more of what a step may have")
    circle = lasso(space.explored())
    if circle is not None:
        trail.take((*circle.stem, *circle.loop))
        return Frame(0, len(space.nodes), Endless(trail.run, len(circle.stem)))
    return Frame(max(node.run.retries for node in space.nodes.values()), len(space.nodes))
