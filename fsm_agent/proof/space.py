"""The space of a set of guards: every state that a run can come to under them, found in the order of the model calls that it takes."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any, Protocol

import attrs

from fsm_agent.events import AskApproval, CallTools, ToolSpec
from fsm_agent.machine import Run
from fsm_agent.options import OFF, Options
from fsm_agent.proof.alphabet import Alphabet
from fsm_agent.proof.gists import gist
from fsm_agent.proof.letters import Letter, Names
from fsm_agent.proof.sight import VERDICTS, is_blind, sight_of
from fsm_agent.proof.states import Broken, Edge, Node, halt_of, halting_edges, in_one_line, key_of, new_run, problem_of, used_up
from fsm_agent.proof.watched import Restart, Uncheckable, Watched
from fsm_agent.table import DECIDING


class Leads(Protocol):
    """A guide: what ``guide.Guide`` is."""

    def least(self, run: Run) -> int | None:
        """The model calls that it takes at least from ``run`` to what is looked for; None: it cannot come to it."""


class Space:
    """The states that runs under ``guards`` can come to, explored as far as is asked for, and at most ``limit`` of them.

    With a guide, those are left out that cannot lead to what it leads to, and the others are explored in the order of how soon they can.

    A state is left out, too, that differs from a known one in nothing but that its step has used up a retry, its summary or its question:
    whatever can happen to it can happen to that one. ``unabridged``: it is not, and everything is tried that a guard could see.
    """

    def __init__(
        self,
        guards: Sequence[Watched],
        tools: tuple[ToolSpec, ...],
        *,
        batch: int,
        limit: int,
        options: Options = OFF,
        gists: bool = False,
        guide: Leads | None = None,
        unabridged: bool = False,
    ) -> None:
        self.guards = tuple(guards)
        self.limit = limit
        self.unabridged = unabridged
        self._guide = guide
        sight = sight_of(guard.guard for guard in guards)
        self.alphabet = Alphabet(attrs.evolve(sight, sees=sight.sees | {VERDICTS}) if unabridged else sight, tools, batch, options)
        sighted = [guard for guard in guards if not is_blind(guard.guard)] if gists else []
        self._alone = sighted[0] if len(sighted) == 1 else None
        """The only guard that sees more than that the model was heard, if gists are taken."""
        self.restart()

    def restart(self) -> None:
        """Forget everything."""
        self.nodes: dict[str, Node] = {}
        self.halts: list[Node] = []
        """Ends that were come to, shortest first."""
        self.judgements = 0
        self._count = count()
        self._ahead: list[tuple[tuple[int, ...], int, tuple[int, int], Node]] = []
        self._letters: dict[Any, tuple[Letter, ...]] = {}
        self._known = [guard.known() for guard in self.guards]
        run = new_run(self.guards, self.alphabet.tools, self.alphabet.options)
        self._halting = halting_edges(run)
        self.root, _ = self._met(run, (0, 0), *self.key(run))

    def refresh(self) -> None:
        """Start again where a guard was found out in another space."""
        if self._known != [guard.known() for guard in self.guards]:
            self.restart()

    def explored(self) -> list[Node]:
        """The states whose edges are known."""
        return [node for node in self.nodes.values() if node.expanded]

    @property
    def complete(self) -> bool:
        """Every state was explored."""
        return not self._ahead

    @property
    def depth(self) -> int:
        """All runs of fewer model calls were explored; with a guide, all that could have come to what it leads to."""
        return self._ahead[0][0][0] if self._ahead else max(node.cost[0] for node in self.nodes.values())

    def ends(self, limit: int | None = None) -> Iterator[Node]:
        """Every end that runs can come to, the shortest first; explores on where need be, and raises as ``explore`` does."""
        yield from self.halts
        yield from (node for node in self.explore(limit) if node.halt is not None)

    def explore(self, limit: int | None = None) -> Iterator[Node]:
        """Explore on, state by state, until all is explored or there are ``limit`` of them. Gives each when its shortest run is certain.

        Raises ``Broken`` for a run that does what none may, and ``GuardFailed``.
        """
        most = self.limit if limit is None else min(limit, self.limit)
        while self._ahead and len(self.nodes) < most:
            order, _, cost, node = heapq.heappop(self._ahead)
            if node.expanded or cost != node.cost:
                continue
            if node.halt is not None:
                self.halts.append(node)
            else:
                try:
                    self._expand(node)
                    grown = self._known != [guard.known() for guard in self.guards]
                except Restart:
                    grown = True
                except Broken:
                    node.edges.clear()
                    heapq.heappush(self._ahead, (order, 0, cost, node))  # it is as if it had not been come to yet
                    raise
                if grown:
                    self.restart()
                    continue
            node.expanded = True
            yield node

    def _expand(self, node: Node) -> None:
        found: dict[tuple[int, int], Edge] = {}
        for rank, letter in enumerate(self._letters_of(node)):
            run = node.run.copy()
            event = letter.event(Names(node.remembered, _unused(node.remembered)))
            try:
                run.feed(event)
            except (Restart, Uncheckable):
                raise
            except Exception as error:  # whatever a guard or the machine raises
                raise Broken(in_one_line(error), node, letter) from error
            problem = problem_of(run, self._halting)
            if problem:
                raise Broken(problem, node, letter)
            calls = run.step - node.run.step
            cost = (node.cost[0] + (calls if node.run.chance is None else 0), node.cost[1] + rank)
            key, remembered = self.key(run)
            if self._is_outdone(run, key, cost):
                continue
            started = len(run.effect.calls) if isinstance(run.effect, CallTools) and node.run.state == DECIDING else 0
            dest, nearer = self._met(run, cost, key, remembered)
            if (id(dest), calls) not in found:
                edge = found[id(dest), calls] = Edge(node, letter, dest, calls, started, rank)
                node.edges.append(edge)
                if nearer:
                    dest.via = edge

    def _is_outdone(self, run: Run, key: str, cost: tuple[int, int]) -> bool:
        """Whether a known state, come to as soon, can do all that ``run`` can, which has used up something of its step."""
        if self.unabridged or isinstance(run.effect, AskApproval) or not used_up(run):
            return False
        fresh, _ = self.key(run, fresh=True)
        known = self.nodes.get(fresh) if fresh != key else None
        return known is not None and known.cost <= cost

    def _met(self, run: Run, cost: tuple[int, int], key: str, remembered: dict[str, list[int]]) -> tuple[Node, bool]:
        """The state of ``run``, and whether this is the shortest run to it so far."""
        node = self.nodes.get(key)
        if node is not None and node.cost <= cost:
            return node, False
        halt = halt_of(run)
        _forget(run)
        if node is None:
            node = self.nodes[key] = Node(run, halt, remembered, cost)
        else:
            node.run, node.remembered, node.cost = run, remembered, cost
        ahead = 0 if self._guide is None else self._guide.least(run)
        if ahead is not None:
            calls, rank = cost
            order = cost if self._guide is None else (calls + ahead, -calls, rank)
            heapq.heappush(self._ahead, (order, next(self._count), cost, node))
        return node, True

    def key(self, run: Run, *, fresh: bool = False) -> tuple[str, dict[str, list[int]]]:
        """``key_of``, with the gist of a guard that is alone in the place of its memory's shape."""
        key, remembered = key_of(run, fresh=fresh)
        if self._alone is None or run.state != DECIDING or run.chance is not None:
            return key, remembered
        memories = dict(zip(run.wiring.guards, run.memories, strict=True))
        short = gist(self._alone.guard, memories.pop(self._alone).memory)
        if short is None:
            return key, remembered
        used = "" if fresh else used_up(run)
        return f"{run.state} {short} {used}{'|'.join(held.shape for held in memories.values())}", remembered

    def _letters_of(self, node: Node) -> tuple[Letter, ...]:
        run = node.run
        effect = run.effect
        if effect is None:
            return ()
        counts = {kind: len(numbers) for kind, numbers in node.remembered.items()}
        tools = tuple(call.name for call in effect.calls) if isinstance(effect, CallTools | AskApproval) else ()
        key = (type(effect), tools, used_up(run), run.chance, *sorted(counts.items()))
        if key not in self._letters:
            self._letters[key] = self.alphabet.letters(effect, counts, summed_up=run.summed_up, last=run.chance is not None)
        return self._letters[key]


def _forget(run: Run) -> None:
    """Empty a run of its past; a summary, of what is left, is always possible."""
    run.log.clear()
    run.decisions.clear()
    del run.history[1:]
    run.summary = None


def _unused(remembered: dict[str, list[int]]) -> Callable[[str, int], int]:
    return lambda kind, index: max(remembered.get(kind, ()), default=-1) + 1 + index
