"""A guide for the search: how far it is at least to what is looked for, read from a smaller space."""

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
                (ahead.append if edge.calls else ahead.appendleft)((edge.source, calls + edge.calls))

    def least(self, run: Run) -> int | None:
        """Of model calls from ``run`` on; None: it cannot come to it."""
        if run.state == HALTED:
            return 0
        node = self._known.get(key_of(run, self._guards)[0])
        return 0 if node is None else self._least.get(id(node))
