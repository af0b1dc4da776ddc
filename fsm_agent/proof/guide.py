"""A guide for the search: how far it is at least to what is looked for, read from a smaller space. As in all costs, a last word is free."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from fsm_agent.machine import Run
from fsm_agent.proof.space import Space
from fsm_agent.proof.states import Edge, Halt, key_of
from fsm_agent.table import HALTED


class Guide:
    """How many model calls it takes at least to come to a wanted halt, read from a space of fewer guards."""

    def __init__(self, space: Space, wanted: Callable[[Halt], bool]) -> None:
        self._guards = space.guards
        self._wanted = wanted
        self._known = {key: node for key, node in space.nodes.items() if node.halt is None}
        came_from: dict[int, list[Edge]] = {}
        for node in space.nodes.values():
            for edge in node.edges:
                came_from.setdefault(id(edge.dest), []).append(edge)
        self._least: dict[int, int] = {}
        goals = [node for node in space.nodes.values() if (wanted(node.halt) if node.halt is not None else not node.expanded)]
        ahead = deque((node, 0) for node in goals)
        while ahead:
            node, calls = ahead.popleft()
            if id(node) in self._least:
                continue
            self._least[id(node)] = calls
            for edge in came_from.get(id(node), ()):
                more, _ = edge.cost
                (ahead.append if more else ahead.appendleft)((edge.source, calls + more))

    def least(self, run: Run) -> int | None:
        """Of model calls from ``run`` on; None: it cannot come to it."""
        if run.state == HALTED:
            return 0
        if run.chance is not None:
            return 0 if self._is_wanted_after(run) else None
        node = self._known.get(key_of(run, self._guards, fresh=True)[0])
        return 0 if node is None else self._least.get(id(node))

    def _is_wanted_after(self, run: Run) -> bool:
        """Whether the last word may end as is wanted: whatever it is, the guard that stopped the run halts it, if nobody else does."""
        trips = [reading.guard for reading in run.readings if reading.trips]
        ends = (Halt(trips[0], trips[0], frozenset(trips)), Halt("cancelled", "cancelled"), Halt("recording_ended", "recording_ended"))
        return any(self._wanted(end) for end in ends)
