"""The search, against searches that take no short cuts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsm_agent.events import (
    Approval,
    ApprovalAsked,
    ApprovalGiven,
    AskApproval,
    AskModel,
    AttemptFailed,
    CallTools,
    ContextCompacted,
    Event,
    ModelReplied,
    Observation,
    Reply,
    ToolsFailed,
)
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
from fsm_agent.options import OFF, Options
from fsm_agent.proof import Proof, prove
from fsm_agent.proof.alphabet import Alphabet, tools_for
from fsm_agent.proof.graphs import Longest, lasso, longest
from fsm_agent.proof.letters import Names
from fsm_agent.proof.options import options_from, words_of
from fsm_agent.proof.sight import sight_of
from fsm_agent.proof.space import Space
from fsm_agent.proof.states import new_run
from fsm_agent.proof.watched import Watched
from fsm_agent.table import rows_for
from tests.guard_steps import CUT, EMPTY, FINAL, did, failed, malformed, said, spoke
from tests.proof_guards import Busy, Cap, Shouted

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


ON = options_from(["retries=1", "approvals", "compaction", "tool_servers"])
ALL = options_from(["retries=1", "approvals", "compaction", "tool_servers", "last_chance"])
LAST = Options(last_chance=True)

WITH_OPTIONS: list[tuple[tuple[Guard, ...], Options]] = [
    (classic(2, 1, 1), ON),
    (classic(3, 1, 2), ALL),
    (classic(2, 2, 2), ALL),
    ((ErrorStreak(2), ConsecutiveErrors(1), MaxSteps(3)), ALL),
    ((ErrorStreak(2), ConsecutiveErrors(2), MaxSteps(3)), LAST),
    ((MalformedStreak(2), EmptyReply(2), TruncatedReply(1), MaxSteps(3)), ALL),
    ((Denied(2), ToolBudget(2), MaxSteps(3)), ALL),
    ((Denied(1), ToolBudget(1), RepeatedCall(1), MaxSteps(2)), ALL),
    ((TokenBudget(50), MaxSteps(2)), LAST),
    ((TokenBudget(50), MaxSteps(1)), ALL),
    ((Deadline(9), MaxSteps(1)), options_from(["retries=1"])),
    ((Deadline(9), MaxSteps(1)), options_from(["approvals", "compaction"])),
    ((Deadline(9), MaxSteps(2)), LAST),
    ((NoProgress(1, 2, 2), MaxSteps(2)), ALL),
    ((Shouted(2), MaxSteps(2)), ON),
    ((Busy(2), MaxSteps(2)), ALL),
    ((Cap(2), ErrorStreak(2), RepeatedCall(1)), ALL),
    ((Cap(3), ErrorStreak(2)), LAST),
    ((Cap(1), ErrorStreak(2)), LAST),
]


def whole(guards: tuple[Guard, ...], batch: int, options: Options = OFF) -> tuple[list[int], Ends]:
    """The bounds and the ends, read from the one space of all guards, in which nothing is left out."""
    watched = [Watched(guard) for guard in guards]
    tools = tools_for(sight_of(guards))
    space = Space(watched, tools, batch=batch, limit=20_000, options=options, unabridged=options != OFF)
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
    for reason in dict.fromkeys(row.reason for row in rows_for((guard.edge() for guard in guards), options.features) if row.reason):
        named = [node.run.step for node in space.halts if node.halt and node.halt.reason == reason]
        trips = [node.run.step for node in space.halts if node.halt and reason in node.halt.trips]
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
    assert told(prove(guards, OFF, batch=batch)) == whole(guards, batch)


@pytest.mark.parametrize(
    ("guards", "options"), WITH_OPTIONS, ids=lambda value: str(words_of(value)) if isinstance(value, Options) else str(value)
)
def test_with_everything_on_a_few_guards_at_a_time_tell_the_same_as_a_search_that_leaves_nothing_out(
    guards: tuple[Guard, ...], options: Options
) -> None:
    assert told(prove(guards, options, batch=1)) == whole(guards, 1, options)


# --- every run of two model calls, none merged with another --------------------------------------------------------


KNOWN = {"work": 2, "poll": 2, "seen": 2, "text": 2}
"""Names that are taken for remembered, whether they are or not."""


def every_run(guards: tuple[Guard, ...], model_calls: int, options: Options = OFF) -> Iterator[Run]:
    """Every run that halts within so many model calls, a last word not counted, and in which no person speaks."""
    sight = sight_of(guards)
    alphabet = Alphabet(sight, tools_for(sight), 1, options)
    ahead = [new_run(guards, alphabet.tools, options)]
    while ahead:
        run = ahead.pop()
        if run.effect is None:
            yield run
        elif run.step < model_calls or run.chance is not None or not isinstance(run.effect, AskModel):
            covered = run.summary.covers if run.summary else 0
            names = Names({kind: range(n) for kind, n in KNOWN.items()}, lambda kind, index: KNOWN.get(kind, 0) + index, covered)
            for letter in alphabet.letters(run.effect, KNOWN, summed_up=run.summed_up, last=run.chance is not None):
                if not letter.person:
                    after = run.copy()
                    after.feed(letter.event(names))
                    ahead.append(after)


def ends_of(runs: Iterator[Run]) -> dict[str, int]:
    """By reason, the steps of the shortest."""
    ends: dict[str, int] = {}
    for run in runs:
        ends[str(run.reason)] = min(run.step, ends.get(str(run.reason), 99))
    return ends


@pytest.mark.parametrize(
    "guards",
    [classic(9, 1, 2), (EmptyReply(2), TruncatedReply(2)), (Denied(2), ErrorStreak(2)), (NoProgress(1, 2, 2), MalformedStreak(1))],
    ids=str,
)
def test_no_run_that_is_merged_with_another_ends_otherwise(guards: tuple[Guard, ...]) -> None:
    proof = prove((*guards, MaxSteps(9)) if not any(isinstance(guard, MaxSteps) for guard in guards) else guards, OFF, batch=1)
    shortest = {ending.reason: ending.run.step for ending in proof.endings if ending.run and ending.run.step <= 2}
    assert shortest == ends_of(every_run(guards, 2))


@pytest.mark.parametrize(
    ("guards", "on"),
    [
        ((EmptyReply(1), ErrorStreak(1), MaxSteps(1)), "retries=1,compaction"),
        ((Denied(1), ToolBudget(1), MaxSteps(1)), "approvals,tool_servers"),
        ((Shouted(1), MaxSteps(1)), "approvals,compaction"),
        ((Busy(1), ErrorStreak(1), MaxSteps(1)), "retries=1"),
        ((Busy(1), MalformedStreak(1)), "retries=1,last_chance"),
    ],
    ids=str,
)
def test_no_run_that_is_left_out_because_another_can_do_as_much_ends_otherwise(guards: tuple[Guard, ...], on: str) -> None:
    options = options_from(on.split(","))
    proof = prove((*guards, *(() if any(isinstance(guard, MaxSteps) for guard in guards) else (MaxSteps(1),))), options, batch=1)
    ends = ends_of(every_run(proof.guards, 1, options))
    assert {ending.reason: ending.run.step for ending in proof.endings if ending.run} == ends
    assert proof.model_calls is not None
    assert proof.model_calls.most == 1 + options.last_chance


# --- random runs ---------------------------------------------------------------------------------------------------

LIMITS = production(12, max_errors=4, max_malformed=5, warn_at=2)
EVERYTHING = options_from(["all"])
PROOFS = {OFF: prove(LIMITS, OFF, max_states=3_000), EVERYTHING: prove(LIMITS, EVERYTHING, max_states=3_000)}

Doing = Callable[[Run], Event]
"""An event that depends on the run."""


def sum_up(run: Run) -> Event:
    return ContextCompacted((run.summary.covers if run.summary else 0) + 1, "a summary")


def ask(run: Run) -> Event:
    return ApprovalAsked(tuple(range(len(run.effect.calls) if isinstance(run.effect, CallTools) else 0)))


def lose(run: Run) -> Event:
    n = len(run.effect.calls) if isinstance(run.effect, CallTools) else 0
    return ToolsFailed((Observation("look", "?", "interrupted"),) * n, "ToolServerDead", "gone")


def answer(verdict: Literal["yes", "no"]) -> Doing:
    return lambda run: ApprovalGiven((Approval(verdict),) * (len(run.effect.asked) if isinstance(run.effect, AskApproval) else 0))


def attempt(asked_s: float | None) -> Doing:
    return lambda _run: AttemptFailed("RateLimitError", "busy", asked_s)


STEPS: st.SearchStrategy[tuple[Event | Doing, ...]] = st.one_of(
    st.builds(did, n=st.integers(0, 2), text=st.sampled_from("ab")),
    st.builds(failed, n=st.integers(0, 1), kind=st.sampled_from(["tool_error", "denied", "timeout", "unknown_tool"])),
    st.builds(malformed, st.sampled_from(["hm", "ah", "oh"])),
    st.builds(said, st.sampled_from(["hi", "ho"])),
    st.just(spoke()),
    st.just(EMPTY),
    st.just(CUT),
    st.just(FINAL),
    st.just((ModelReplied(Reply("cut", finish_reason="length")),)),
    st.sampled_from([(attempt(None),) * 2, (attempt(None), attempt(99.0)), (sum_up,), (attempt(5.0), sum_up, attempt(None))]),
    st.builds(
        lambda step, verdict: (step[0], ask, answer(verdict), step[1]),
        st.builds(failed, n=st.integers(0, 1)),
        st.sampled_from(["yes", "no"]),
    ),
    st.builds(lambda step: (step[0], ask, lose, answer("no"), lose), st.builds(did, n=st.integers(0, 2))),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(STEPS, max_size=40), st.sampled_from(list(PROOFS)))
def test_no_run_is_longer_than_the_proof_says_or_ends_sooner(steps: list[tuple[Event | Doing, ...]], options: Options) -> None:
    proof = PROOFS[options]
    run = new_run(LIMITS, (), options)
    for each in (each for step in steps for each in step):
        event = each(run) if callable(each) else each
        if run.effect is not None and type(event) in run.accepts:
            run.feed(event)
    assert proof.model_calls is not None
    assert run.step <= proof.model_calls.most
    assert run.retries <= proof.retries
    if run.reason is not None:
        ending = next(ending for ending in proof.endings if ending.reason == run.reason)
        assert ending.run is not None
        assert ending.run.step <= run.step


def test_these_proofs_are_some() -> None:
    assert {proof.verdict for proof in PROOFS.values()} == {"proved"}
    ends = [{ending.reason: ending.run.step for ending in proof.endings if ending.run} for proof in PROOFS.values()]
    assert ends[0] == {
        "model_error": 1,
        "cancelled": 0,
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
    assert ends[1] == ends[0] | {"tools_failed": 1, "error_streak": 4, "no_progress": 5, "max_steps": 13}
