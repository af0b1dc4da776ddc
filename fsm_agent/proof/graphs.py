"""What the shape of a space tells: a loop in which a run can go on for ever, or the longest run that there is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from itertools import count

import attrs

from fsm_agent.proof.states import Edge, Node

MOST_TRIED = 50
"""States of which the shortest loop through them is looked for, the nearest first."""

Follow = Callable[[Node], Iterable[Edge]]
Weight = Callable[[Edge], int]
"""How often what is counted happens on an edge."""


def of_the_machine(node: Node) -> Iterator[Edge]:
    """The edges that take no person's doing."""
    return (edge for edge in node.edges if not edge.letter.person)


def all_edges(node: Node) -> Iterable[Edge]:
    """Every edge."""
    return node.edges


@attrs.frozen
class Lasso:
    """A run that goes on for ever: the way to a state, and the way from it to itself."""

    stem: tuple[Edge, ...]
    loop: tuple[Edge, ...]


def components(nodes: Iterable[Node], follow: Follow) -> list[list[Node]]:
    """The strongly connected components, each after those that can be come to from it (Tarjan's algorithm, without recursion)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[Node] = []
    on_stack: set[int] = set()
    found: list[list[Node]] = []
    for root in nodes:
        if id(root) in index:
            continue
        work: list[tuple[Node, Iterator[Edge]]] = []

        def visit(node: Node) -> None:
            index[id(node)] = low[id(node)] = len(index)
            stack.append(node)
            on_stack.add(id(node))
            work.append((node, iter(follow(node))))  # noqa: B023  # called within the turn of the loop

        visit(root)
        while work:
            node, edges = work[-1]
            for edge in edges:
                if id(edge.dest) not in index:
                    visit(edge.dest)
                    break
                if id(edge.dest) in on_stack:
                    low[id(node)] = min(low[id(node)], index[id(edge.dest)])
            else:
                work.pop()
                if work:
                    parent = work[-1][0]
                    low[id(parent)] = min(low[id(parent)], low[id(node)])
                if low[id(node)] == index[id(node)]:
                    at = next(i for i in range(len(stack) - 1, -1, -1) if stack[i] is node)
                    found.append(stack[at:])
                    on_stack.difference_update(id(each) for each in stack[at:])
                    del stack[at:]
    return found


def lasso(nodes: Iterable[Node], *, weight: Weight | None = None) -> Lasso | None:
    """The shortest run that goes on for ever without any person's doing, in model calls; None: there is none among these states.

    With a weight: the shortest on which something happens again and again, if need be by a person's doing.
    """
    follow = of_the_machine if weight is None else all_edges
    best: tuple[tuple[int, int], Lasso] | None = None
    for part in components(nodes, follow):
        inside = {id(node) for node in part}
        for node in sorted(part, key=lambda node: node.cost)[:MOST_TRIED]:
            if best is not None and node.cost >= best[0]:
                break
            for edge in follow(node):
                if id(edge.dest) in inside and (weight is None or weight(edge)):
                    loop = (edge, *(() if edge.dest is node else _way(edge.dest, node, part, follow)))
                    cost = node.cost[0] + sum(each.calls for each in loop), node.cost[1] + sum(each.rank for each in loop)
                    if best is None or cost < best[0]:
                        best = cost, Lasso(tuple(node.path()), loop)
    return None if best is None else best[1]


@attrs.frozen
class Longest:
    """The run on which something happens most often."""

    most: int
    before: tuple[Edge, ...]
    """The way to where the count begins."""
    counted: tuple[Edge, ...]


def longest(root: Node, nodes: Iterable[Node], weight: Weight, *, each_message: bool) -> Longest | None:
    """The greatest sum of weights on a run; None: there is none, it can be as great as one likes.

    ``each_message``: between two messages of a person, wherever a run may be. Where runs are equal, the first letters win, which are the
    most harmless.
    """
    follow = of_the_machine if each_message else all_edges
    parts = components(nodes, follow)
    home = {id(node): i for i, part in enumerate(parts) for node in part}
    value = [0] * len(parts)
    leave: list[Edge | None] = [None] * len(parts)
    for i, part in enumerate(parts):
        for node in part:
            for edge in follow(node):
                j = home[id(edge.dest)]
                if j == i:
                    if weight(edge):
                        return None
                elif leave[i] is None or weight(edge) + value[j] > value[i]:
                    leave[i], value[i] = edge, weight(edge) + value[j]
    start = min((node for part in parts for node in part), key=lambda node: (-value[home[id(node)]], node.cost)) if each_message else root
    counted: list[Edge] = []
    node = start
    while (exit_ := leave[home[id(node)]]) is not None:
        counted += _way(node, exit_.source, parts[home[id(node)]], follow) if node is not exit_.source else ()
        counted.append(exit_)
        node = exit_.dest
    return Longest(value[home[id(start)]], tuple(start.path()), tuple(counted))


def _way(start: Node, goal: Node, within: Iterable[Node], follow: Follow) -> tuple[Edge, ...]:
    """The way from ``start`` to ``goal``, of one edge at least, with the fewest model calls that stays within these states."""
    inside = {id(node) for node in within}
    came: dict[int, Edge] = {}
    costs: dict[int, tuple[int, int]] = {}
    order = count()
    ahead: list[tuple[tuple[int, int], int, Node]] = [((0, 0), next(order), start)]
    while ahead:
        (calls, rank), _, node = heappop(ahead)
        if node is goal and came:
            break
        for edge in follow(node):
            cost = calls + edge.calls, rank + edge.rank
            if id(edge.dest) in inside and (id(edge.dest) not in costs or cost < costs[id(edge.dest)]):
                came[id(edge.dest)], costs[id(edge.dest)] = edge, cost
                heappush(ahead, (cost, next(order), edge.dest))
    way: list[Edge] = []
    node = goal
    while not way or node is not start:
        way.append(came[id(node)])
        node = way[-1].source
    return tuple(reversed(way))
