"""The search, against searches that take no short cuts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsm_agent.events import CallTools, Event, ModelReplied, Reply
from fsm_agent.guards import (
    ConsecutiveErrors,
    Deadline,
    Denied,
    EmptyReply,
    ErrorStreak,
    Guard,
    MalformedStreak,
    MaxSteps,
    NoProgress,
    RepeatedCall,
    TokenBudget,
    ToolBudget,
    TruncatedReply,
    classic,
    production,
)
from fsm_agent.machine import Run
from fsm_agent.proof import Proof, prove
from fsm_agent.proof.alphabet import Alphabet, Names, tools_for
from fsm_agent.proof.graphs import Longest, lasso, longest
from fsm_agent.proof.prover import Prover
from fsm_agent.proof.sight import sight_of
from fsm_agent.proof.states import new_run
from fsm_agent.table import rows_for
from tests.guard_steps import CUT, EMPTY, FINAL, Events, did, failed, malformed, said, spoke

# --- all guards at once, without gists and guides -----------------------------------------------------------------

Ends = dict[str, tuple[str, int | None]]
"""By reason: whether runs end so, and the model calls of the shortest."""

CONFIGURATIONS: list[tuple[tuple[Guard, ...], int]] = [
    (classic(4), 2),
    (classic(3, 1, 1), 2),
    (classic(2, 3, 2), 1),
    ((ErrorStreak(2), ConsecutiveErrors(1), MaxSteps(3)), 2),
    ((ErrorStreak(3), ConsecutiveErrors(2, count_malformed=False), MaxSteps(4)), 1),
    ((MalformedStreak(3), EmptyReply(2), TruncatedReply(1), MaxSteps(4)), 1),
    ((MalformedStreak(2), EmptyReply(3), MaxSteps(4)), 1),
    ((Denied(2), ToolBudget(2), MaxSteps(3)), 1),
    ((ToolBudget(3), MaxSteps(4)), 2),
    ((TokenBudget(50), MaxSteps(2)), 1),
    ((Deadline(9), MaxSteps(2)), 1),
    ((NoProgress(1, 2, 2), RepeatedCall(2), MaxSteps(3)), 1),
    ((NoProgress(2, 2, 3), MaxSteps(2)), 1),
    ((NoProgress(1, 2, 3), MaxSteps(3)), 1),
    ((ToolBudget(1, "search"), ConsecutiveErrors(3), MaxSteps(3)), 2),
]


def whole(guards: tuple[Guard, ...], batch: int) -> tuple[list[int], Ends]:
    """The bounds and the ends, read from the one space of all guards."""
    space = Prover(guards, max_states=10_000, batch=batch).space(frozenset(guard.reason for guard in guards))
    for _ in space.explore():
        pass
    assert space.complete
    assert lasso(space.explored()) is None
    bounds = []
    for weight in (lambda edge: edge.calls, lambda edge: bool(edge.started), lambda edge: edge.started):
        found = longest(space.root, space.explored(), weight, each_message=False)
        assert isinstance(found, Longest)
        bounds.append(found.most)
    ends: Ends = {}
    for reason in dict.fromkeys(row.reason for row in rows_for(guard.edge() for guard in guards) if row.reason):
        named = [node.cost[0] for node in space.halts if node.halt and node.halt.reason == reason]
        trips = [node.cost[0] for node in space.halts if node.halt and reason in node.halt.trips]
        ends[reason] = ("reached", min(named)) if named else ("shadowed", min(trips)) if trips else ("never", None)
    return bounds, ends


def told(proof: Proof) -> tuple[list[int], Ends]:
    bounds = [proof.model_calls, proof.tool_rounds, proof.tool_calls]
    assert proof.verdict == "proved"
    assert all(bound is not None and bound.exact and not bound.each_message for bound in bounds)
    ends: Ends = {ending.reason: (ending.status, ending.run.step if ending.run else None) for ending in proof.endings}
    return [bound.most for bound in bounds if bound], ends


@pytest.mark.parametrize(("guards", "batch"), CONFIGURATIONS, ids=str)
def test_a_few_guards_at_a_time_tell_the_same_as_all_at_once(guards: tuple[Guard, ...], batch: int) -> None:
    assert told(prove(guards, batch=batch)) == whole(guards, batch)


# --- every run of two model calls, none merged with another --------------------------------------------------------


KNOWN = {"work": 2, "poll": 2, "seen": 2, "text": 2}
"""Names that are taken for remembered, whether they are or not."""


def every_run(guards: tuple[Guard, ...], model_calls: int) -> Iterator[Run]:
    """Every run that halts within so many model calls, and in which no person speaks."""
    sight = sight_of(guards)
    alphabet = Alphabet(sight, tools_for(sight), 1)
    names = Names({kind: range(n) for kind, n in KNOWN.items()}, lambda kind, index: KNOWN[kind] + index)
    ahead = [new_run(guards, alphabet.tools)]
    while ahead:
        run = ahead.pop()
        if run.effect is None:
            yield run
        elif run.step < model_calls or isinstance(run.effect, CallTools):
            for letter in alphabet.letters(run.effect, KNOWN):
                if not letter.person:
                    after = run.copy()
                    after.feed(letter.event(names))
                    ahead.append(after)


@pytest.mark.parametrize(
    "guards",
    [classic(9, 1, 2), (EmptyReply(2), TruncatedReply(2)), (Denied(2), ErrorStreak(2)), (NoProgress(1, 2, 2), MalformedStreak(1))],
    ids=str,
)
def test_no_run_that_is_merged_with_another_ends_otherwise(guards: tuple[Guard, ...]) -> None:
    ends: dict[str, int] = {}
    for run in every_run(guards, 2):
        ends[str(run.reason)] = min(run.step, ends.get(str(run.reason), 99))
    proof = prove((*guards, MaxSteps(9)) if not any(isinstance(guard, MaxSteps) for guard in guards) else guards, batch=1)
    shortest = {ending.reason: ending.run.step for ending in proof.endings if ending.run and ending.run.step <= 2}
    assert shortest == ends


# --- random runs ---------------------------------------------------------------------------------------------------

LIMITS = production(12, max_errors=4, max_malformed=5, warn_at=2)
PROOF = prove(LIMITS, max_states=3_000)

STEPS = st.one_of(
    st.builds(did, n=st.integers(0, 2), text=st.sampled_from("ab")),
    st.builds(failed, n=st.integers(0, 1), kind=st.sampled_from(["tool_error", "denied", "timeout", "unknown_tool"])),
    st.builds(malformed, st.sampled_from(["hm", "ah", "oh"])),
    st.builds(said, st.sampled_from(["hi", "ho"])),
    st.just(spoke()),
    st.just(EMPTY),
    st.just(CUT),
    st.just(FINAL),
    st.just((ModelReplied(Reply("cut", finish_reason="length")),)),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(STEPS, max_size=40))
def test_no_run_is_longer_than_the_proof_says_or_ends_sooner(steps: list[Events]) -> None:
    run = Run("task", guards=LIMITS, protocol=PROOF.endings[0].run.protocol if PROOF.endings[0].run else None)
    for event in flat(steps):
        if run.effect is not None and type(event) in run.accepts:
            run.feed(event)
    assert PROOF.model_calls is not None
    assert run.step <= PROOF.model_calls.most
    if run.reason is not None:
        ending = next(ending for ending in PROOF.endings if ending.reason == run.reason)
        assert ending.run is not None
        assert ending.run.step <= run.step


def flat(steps: list[Events]) -> Iterator[Event]:
    for step in steps:
        yield from step


def test_that_proof_is_one() -> None:
    assert PROOF.verdict == "proved"
    assert {ending.reason: ending.run.step for ending in PROOF.endings if ending.run} == {
        "model_error": 1,
        "cancelled": 1,
        "recording_ended": 0,
        "final_answer": 1,
        "denied": 2,
        "truncated_reply": 2,
        "empty_reply": 3,
        "error_streak": 3,
        "no_progress": 4,
        "malformed_streak": 5,
        "consecutive_errors": 4,
        "max_steps": 12,
    }
