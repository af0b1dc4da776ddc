"""What is claimed of a configuration, and whether it holds: the halting proof."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import attrs

from fsm_agent.guards import Guard
from fsm_agent.machine import Run
from fsm_agent.options import OFF, Options
from fsm_agent.proof.findings import Bound, Core, Endless, Found, Never, Undecided
from fsm_agent.proof.frame import frame
from fsm_agent.proof.options import SEARCHED
from fsm_agent.proof.prover import Prover
from fsm_agent.proof.states import Halt
from fsm_agent.proof.structure import Structure, only_stops, structure_of
from fsm_agent.proof.trail import Fault, Refuted
from fsm_agent.proof.watched import GuardFailed, Restart, Uncheckable
from fsm_agent.table import Row, rows_for

MAX_STATES = 10_000
"""States of one space, by default."""
BATCH = 2
"""Tool calls that a reply may hold, by default: one, and several."""
JUDGED_STATES = 600
"""States of a guard's own space in which it is tried at least."""
ALONE_STATES = 1_000
"""States of a guard's own space, in which runs need not halt, before it is searched together with those that make them."""

Verdict = Literal["proved", "refuted", "undecided"]
Status = Literal["reached", "never", "shadowed", "undecided"]


@attrs.frozen
class Ending:
    """A halt reason, and whether runs end so."""

    reason: str
    status: Status
    """``never``: the guard never trips. ``shadowed``: where it trips, another reason comes first. ``undecided``: the space is too big."""
    run: Run | None = None
    """The shortest run that ends so; of a shadowed guard, the shortest in which it trips."""
    because: tuple[str, ...] = ()
    """Of a guard that never trips: the guards that end every run before. Of a shadowed one: the reason that came first."""
    depth: int = 0
    """Of what is undecided: no run of fewer model calls ends so."""


@attrs.frozen
class Proof:
    """The claims and what came of them."""

    guards: tuple[Guard, ...]
    verdict: Verdict
    structure: Structure
    options: Options = OFF
    """What was on in the runs that were searched."""
    retries: int = 0
    """How often, one after the other, a model is asked again at most."""
    core: tuple[str, ...] = ()
    """The guards that the halting of every run rests on."""
    model_calls: Bound | None = None
    """How many model calls a run makes at most, its last word among them; None: not known."""
    tool_rounds: Bound | None = None
    """How often tools are run at most: one round for each reply that calls any."""
    tool_calls: Bound | None = None
    """How many tool calls are executed at most, where a reply holds ``batch`` of them at most."""
    batch: int = BATCH
    endings: tuple[Ending, ...] = ()
    """Each halt reason, in the order of the table."""
    further: tuple[Ending, ...] = ()
    """Edges into Halted that are not named like their reason, such as ``retries_exhausted``, each with the shortest run that takes it."""
    counterexample: Endless | Fault | None = None
    undecided: Undecided | None = None
    """How far halting was searched, where that was not far enough."""
    judged_in_part: tuple[str, ...] = ()
    """Guards that were not tried in every memory that they can have."""
    states: int = 0
    """States that were explored."""


def prove(guards: Sequence[Guard], options: Options = SEARCHED, *, max_states: int = MAX_STATES, batch: int = BATCH) -> Proof:
    """Search the machine with these guards and options.

    Raises ``ValueError`` as ``rows_for`` does, and ``Uncheckable`` for what cannot be searched.
    """
    rows = rows_for((guard.edge() for guard in guards), options.features)
    proof = Proof(tuple(guards), "refuted", structure_of(rows), options, batch=batch)
    if proof.structure.faults:
        return proof
    prover = Prover(guards, options, max_states=max_states, batch=batch, apart=only_stops(rows))
    states = 0
    while True:
        try:
            if options.features:
                found = frame(options, batch=batch)
                states = found.states
                if found.endless is not None:
                    return attrs.evolve(proof, counterexample=found.endless, states=states)
                proof = attrs.evolve(proof, retries=found.retries)
            return attrs.evolve(_searched(proof, prover, rows), states=prover.states + states)
        except Refuted as refuted:
            return attrs.evolve(proof, counterexample=refuted.fault, states=prover.states + states)
        except GuardFailed as failed:
            raise Uncheckable(f"{failed}, before anything had happened") from None
        except Restart:
            continue  # a guard was found out while a run was tried: what was found before does not count


def _searched(proof: Proof, prover: Prover, rows: Sequence[Row]) -> Proof:
    """The proof with everything that the search tells. Raises ``Refuted``."""
    core = prover.halting()
    if isinstance(core, Endless):
        return attrs.evolve(proof, counterexample=core)
    if isinstance(core, Undecided):
        return attrs.evolve(proof, verdict="undecided", undecided=core)
    endings = tuple(_ending(prover, reason, core) for reason in dict.fromkeys(row.reason for row in rows if row.reason))
    at_least = min(prover.max_states, JUDGED_STATES)
    in_part = [guard.reason for guard in prover.guards if not prover.judged_everywhere(guard, at_least)]
    model_calls = prover.most(core, lambda edge: edge.calls)
    tool_rounds = prover.most(core, lambda edge: bool(edge.started))
    tool_calls = prover.most(core, lambda edge: edge.started)
    exact = all(bound is not None and bound.exact for bound in (model_calls, tool_rounds, tool_calls))
    settled = exact and all(ending.status != "undecided" for ending in endings)
    further = tuple(_by_edge(prover, row.id, core) for row in rows if row.reason not in {None, row.id})
    return attrs.evolve(
        proof,
        verdict="refuted" if proof.structure.free_cycle else "proved" if settled else "undecided",
        core=_in_order(core if model_calls is None else model_calls.core, prover.guards),
        model_calls=model_calls,
        tool_rounds=tool_rounds,
        tool_calls=tool_calls,
        endings=endings,
        further=further,
        judged_in_part=tuple(in_part),
    )


def _ending(prover: Prover, reason: str, core: Core) -> Ending:
    """Whether runs end with ``reason``, and the shortest that does. ``core``: guards under which every run halts."""

    def shortest(wanted: Callable[[Halt], bool]) -> Found | Never | Undecided:
        found = prover.shortest(alone, wanted, ALONE_STATES)
        return prover.shortest(alone | core, wanted) if isinstance(found, Undecided) else found

    alone = frozenset({reason} if any(guard.reason == reason for guard in prover.guards) else ())
    found = shortest(lambda halt: halt.reason == reason)
    if isinstance(found, Never) and alone:
        tripped = shortest(lambda halt: reason in halt.trips)
        if isinstance(tripped, Found):
            return Ending(reason, "shadowed", tripped.run, (str(tripped.run.reason),))
        found = tripped
    match found:
        case Found(run=run):
            return Ending(reason, "reached", run)
        case Never(core=keeps):
            for each in keeps - alone:  # one guard may do
                if prover.impossible(alone | {each}, lambda halt: reason in halt.trips, ALONE_STATES):
                    keeps = alone | {each}
            return Ending(reason, "never", because=_in_order(keeps - alone, prover.guards))
        case Undecided(depth=depth):
            return Ending(reason, "undecided", depth=depth)


def _by_edge(prover: Prover, edge: str, core: Core) -> Ending:
    """The shortest run that halts by ``edge``."""

    def taken(halt: Halt) -> bool:
        return halt.edge == edge

    found = prover.shortest(frozenset(), taken, ALONE_STATES)
    if isinstance(found, Undecided):
        found = prover.shortest(core, taken)
    match found:
        case Found(run=run):
            return Ending(edge, "reached", run)
        case Never(core=keeps):
            return Ending(edge, "never", because=_in_order(keeps, prover.guards))
        case Undecided(depth=depth):
            return Ending(edge, "undecided", depth=depth)


def _in_order(core: Core, guards: Sequence[Guard]) -> tuple[str, ...]:
    return tuple(guard.reason for guard in guards if guard.reason in core)
