"""The search, made small: what is true of runs under a few guards is carried over to runs under all of them.

Guards do nothing but stop a run: they halt it, at once or, where it has a last chance, after the model's last word. So the runs under
all guards, up to where they are stopped, are beginnings of runs under any few of them, and

- what no run under the few does, no run under all does;
- a run under the few that goes on unharmed under all is a run under all.

So each claim is first searched under the guards that it speaks of. A run that is found is tried under all guards: either it stands, or
another guard stops it before, and the search goes on with that guard as well. In the end there is a run under all guards, and
none under fewer was shorter (or longer); or there is none, and the guards that were needed to tell are known. This is
counterexample-guided refinement, with sets of guards for abstractions.

A last word is one model call more than a run under fewer guards may make. It is the same whichever guard is behind it, since no guard is
shown anything of it: so it is counted on top, wherever a guard that leaves it might stop a run (``most``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from fsm_agent.guards import Guard
from fsm_agent.options import OFF, Options
from fsm_agent.proof.alphabet import tools_for
from fsm_agent.proof.findings import Bound, Core, Endless, Found, Never, Undecided
from fsm_agent.proof.gists import has_gist
from fsm_agent.proof.graphs import Lasso, Weight, lasso, longest
from fsm_agent.proof.guide import Guide
from fsm_agent.proof.sight import is_blind, sight_of
from fsm_agent.proof.space import Space
from fsm_agent.proof.states import Broken, Edge, Halt, halt_of, stopped_by
from fsm_agent.proof.trail import Refuted, Trail
from fsm_agent.proof.watched import Uncheckable, Watched

ROUNDS = 100
"""How often a loop is gone round, at most, to see what becomes of it under all guards."""
GUIDE_STATES = 1_000
"""States of the small space that is explored to guide the search in a bigger one."""


class Prover:
    """Searches for one list of guards and options. Its methods raise ``Refuted`` for a run that breaks, and ``Uncheckable``.

    Each space holds ``max_states`` states at most, and a reply ``batch`` tool calls. ``apart``: guards do nothing but stop a run, so that
    they may be searched a few at a time.
    """

    def __init__(self, guards: Sequence[Guard], options: Options = OFF, *, max_states: int, batch: int, apart: bool = True) -> None:
        self.guards = tuple(guards)
        self.options = options
        self._lenient = frozenset(guard.reason for guard in guards if options.last_chance and guard.edge().chance)
        """The guards that leave a last chance."""
        self.tools = tools_for(sight_of(guards))
        self.max_states = max_states
        self.batch = batch
        self._least: Core = frozenset() if apart else frozenset(guard.reason for guard in guards)
        self._watched = {guard.reason: Watched(guard) for guard in guards}
        self._spaces: dict[tuple[Core, bool], Space] = {}
        self._left = 0
        """States of spaces that were left."""

    @property
    def states(self) -> int:
        """States found so far, in all spaces."""
        return self._left + sum(len(space.nodes) for space in self._spaces.values())

    def space(self, core: Core, *, gists: bool = False) -> Space:
        """The space of these guards; with ``gists``, in short where that can be."""
        key = core, gists and self._by_gist(core)
        if key not in self._spaces:
            self._spaces[key] = self._space(core, gists=key[1])
        self._spaces[key].refresh()
        return self._spaces[key]

    def _space(self, core: Core, *, gists: bool = False, guide: Guide | None = None) -> Space:
        guards = [self._watched[guard.reason] for guard in self.guards if guard.reason in core]
        return Space(guards, self.tools, batch=self.batch, limit=self.max_states, options=self.options, gists=gists, guide=guide)

    def _by_gist(self, core: Core) -> bool:
        """Its space is small, because only the gist of its memories counts."""
        sighted = [guard for guard in self.guards if guard.reason in core and not is_blind(guard)]
        return len(sighted) == 1 and has_gist(sighted[0])

    # --- every run halts ---

    def halting(self) -> Core | Endless | Undecided:
        """A few guards under which every run halts; or why there are none."""
        core = self._least
        tried = {core}
        while True:
            space = self.space(core)
            try:
                circle = _first_lasso(space)
            except Broken as broken:
                more = self._halted_before(space, broken)
            else:
                if circle is None:
                    return core if space.complete else Undecided(core, space.depth)
                endless = self._gone_round(space, circle)
                if isinstance(endless, Endless):
                    return endless
                more = endless
            core = more if more | self._least not in tried else core | more  # it may do alone
            core |= self._least
            tried.add(core)

    def _gone_round(self, space: Space, circle: Lasso) -> Endless | Core:
        """Go round the loop under all guards. Gives a guard to search with: the one that ends it, or else one that changes with it."""
        trail = self._trail(space)
        if not trail.take(circle.stem):
            return self._stopping_guard(trail)
        seen: dict[str, int] = {}
        before: dict[str, str] = {}
        for _ in range(ROUNDS):
            state = trail.state()
            if state in seen:
                return Endless(trail.run, len(circle.stem) + seen[state] * len(circle.loop))
            seen[state] = len(seen)
            before = trail.memories()
            if not trail.take(circle.loop):
                return self._stopping_guard(trail)
        changing = [reason for reason, shape in trail.memories().items() if shape != before[reason]]
        return frozenset(changing[-1:])

    # --- how much at most ---

    def most(self, core: Core, weight: Weight) -> Bound | None:
        """The greatest sum of weights on any run, where every run halts under ``core``; None: it could not be found."""
        best: Bound | None = None
        while True:
            space = self.space(core)
            try:
                for _ in space.explore():
                    pass
            except Broken as broken:
                core |= self._halted_before(space, broken)
                continue
            if not space.complete:
                return best
            found = longest(space.root, space.explored(), weight, each_message=False)
            circle = lasso(space.explored(), weight=weight) if found is None else None
            endless = self._gone_round(space, circle) if circle is not None else None
            if isinstance(endless, frozenset):
                core |= endless
                continue
            found = found or longest(space.root, space.explored(), weight, each_message=True)
            if found is None:
                return best
            trail = self._trail(space)
            exact = trail.take((*found.before, *found.counted))
            most = max(found.most, self._with_a_last_word(space, core, weight, each_message=endless is not None))
            best = Bound(most, exact and most == found.most, core, trail.run, endless is not None)
            if best.exact:
                return best
            core |= self._stopping_guard(trail) if not exact else frozenset(sorted(self._lenient - core)[:1])

    def _with_a_last_word(self, space: Space, core: Core, weight: Weight, *, each_message: bool) -> int:
        """The greatest sum where a guard that is not in this space could stop a run, and have the model asked once more."""
        if not self._lenient - core:
            return 0

        def before(edge: Edge) -> int:
            return 0 if edge.source.run.chance is not None else weight(edge)

        found = longest(space.root, space.explored(), before, each_message=each_message)
        asked_once_more = Edge(space.root, space.root.edges[0].letter, space.root, 1, 0, 0)
        return 0 if found is None else found.most + weight(asked_once_more)

    # --- whether, and how soon ---

    def shortest(self, core: Core, wanted: Callable[[Halt], bool], limit: int | None = None) -> Found | Never | Undecided:
        """The run to a halt that is ``wanted`` with the fewest model calls.

        ``core``: the guards to begin with; a space is given up at ``limit`` states.
        """
        first = core = core | self._least
        while True:
            space = self.space(core, gists=True) if core == first or self._by_gist(core) else self._guided(core, first, wanted)
            try:
                ends = space.ends(limit)
                node = next((node for node in ends if node.halt is not None and wanted(node.halt)), None)
            except Broken as broken:
                core |= self._halted_before(space, broken)
                continue
            if node is None:
                return Never(core) if space.complete else Undecided(core, space.depth)
            trail = self._trail(space)
            trail.take(node.path())
            halt = halt_of(trail.run)
            if halt is not None and wanted(halt):
                return Found(trail.run)
            core |= self._stopping_guard(trail)

    def impossible(self, core: Core, wanted: Callable[[Halt], bool], limit: int) -> bool:
        """Whether these guards alone keep every run from a halt that is ``wanted``, as far as ``limit`` states tell."""
        space = self.space(core | self._least, gists=True)
        try:
            return not any(node.halt is not None and wanted(node.halt) for node in space.ends(limit)) and space.complete
        except Broken:
            return False

    def _guided(self, core: Core, first: Core, wanted: Callable[[Halt], bool]) -> Space:
        """The space of ``core``, explored towards the halt that is wanted as the space of ``first`` tells."""
        small = self.space(first)
        with suppress(Broken):
            for _ in small.explore(GUIDE_STATES):
                pass
        guide = Guide(small, wanted)
        return self._space(core, guide=guide)

    def judged_everywhere(self, guard: Guard, at_least: int) -> bool:
        """Whether the guard was judged in every memory that it can have; if not, in ``at_least`` states of its own space."""
        core = self._least | {guard.reason}
        space = self.space(core, gists=True)
        try:
            for _ in space.explore(at_least):
                pass
        except Broken as broken:
            self._halted_before(space, broken)
            return False
        return space.complete and not self._by_gist(core)

    # --- from few guards to all ---

    def _trail(self, space: Space) -> Trail:
        return Trail(space, self.guards, list(self._watched.values()))

    def _stopping_guard(self, trail: Trail) -> Core:
        """The guard that stopped the run where it would have gone on."""
        reason = stopped_by(trail.run)
        if reason not in self._watched:
            raise Uncheckable(f"a run ends as {reason} under more guards, where it goes on under fewer: guards do more than halt")
        return frozenset({reason})

    def _halted_before(self, space: Space, broken: Broken) -> Core:
        """The guard that stops the run before it breaks. Raises ``Refuted`` where none does."""
        trail = self._trail(space)
        if trail.take(broken.node.path()) and not trail.stopped:
            raise Refuted(trail.breaks(broken.letter, str(broken)))
        self._left += len(space.nodes)
        self._spaces = {key: each for key, each in self._spaces.items() if each is not space}
        return self._stopping_guard(trail)


def _first_lasso(space: Space) -> Lasso | None:
    """Explore until there is a lasso, or to the end."""
    looked = depth = 0
    for node in space.explore():
        if node.cost[0] > depth and len(space.nodes) > 1.5 * looked:
            depth, looked = node.cost[0], len(space.nodes)
            found = lasso(space.explored())
            if found is not None:
                return found
    return lasso(space.explored())
