from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsm_agent.audit.shadow import Halt, Seen, Shadow, first_halt, shadow, table_order
from fsm_agent.events import ToolSpec
from fsm_agent.guards import (
    ConsecutiveErrors,
    CostBudget,
    Deadline,
    EmptyReply,
    ErrorStreak,
    Evidence,
    Guard,
    MalformedStreak,
    MaxSteps,
    NoProgress,
    Reading,
    RepeatedCall,
    TokenBudget,
    ToolBudget,
    classic,
    predicate,
    production,
)
from fsm_agent.traces.recordings import Recording
from fsm_agent.traces.replay import replay
from tests.scripted_recordings import FILES, of_file, recorded

GUARDS: tuple[Guard, ...] = (
    *production(6, max_errors=4, max_malformed=2),
    *classic(4),
    *(RepeatedCall(1), ConsecutiveErrors(1), ConsecutiveErrors(3), ErrorStreak(2), EmptyReply(1), MalformedStreak(3)),
    *(NoProgress(min_steps=1), NoProgress(2, 3, 1), NoProgress(compare="call"), ToolBudget(2), ToolBudget(1, "b")),
    *(TokenBudget(30), TokenBudget(30, "halt"), CostBudget(1), Deadline(1)),
    predicate(lambda run: run.failed_calls > 1, reason="failing"),
    predicate(lambda run: run.calls > 3, reason="calling", watches="Parsing") & MaxSteps(3),
    ~MaxSteps(2),
)


def test_a_run_of_errors_is_followed_to_where_each_guard_halts_it() -> None:
    run = recorded("r", "a a! a! b =", tokens=10)
    errors, repeats, steps = ConsecutiveErrors(2), RepeatedCall(1), MaxSteps(9)

    seen = shadow(run, [errors, repeats, steps])

    failed = (Evidence(2, "tool_error", "it failed"), Evidence(3, "tool_error", "it failed"))
    halted_by_errors = Reading("consecutive_errors", 2, 2, trips=True, evidence=failed)
    halted_by_repeats = Reading("repeated_call", 1, 1, trips=True, evidence=(Evidence(1, "call", "a{}"), Evidence(2, "call", "a{}")))
    assert (seen.steps, seen.tool_calls, seen.tokens, seen.end) == (5, 4, (10, 20, 30, 40, 50), "final_answer")
    assert seen.seen[0] == (
        Halt(3, "Observing", halted_by_errors),
        Reading("consecutive_errors", 1, 2, trips=False, evidence=failed[:1]),
        2,
        halted_by_errors,
        3,
    )
    assert seen.seen[1].halt == Halt(2, "Parsing", halted_by_repeats)
    assert seen.seen[2] == (None, Reading("max_steps", 4, 9, trips=False), 4, Reading("max_steps", 4, 9, trips=False), 4)


def test_an_answer_overrules_a_guard_that_trips_beside_it() -> None:
    seen = shadow(recorded("r", "a =", tokens=10), [TokenBudget(20)])

    assert seen.seen[0].halt is None
    assert seen.seen[0].last is not None
    assert seen.seen[0].last.trips
    assert replay(recorded("r", "a =", tokens=10), [TokenBudget(20)]).reason == "final_answer"


def test_tokens_are_not_known_from_the_first_reply_that_does_not_tell_them() -> None:
    told, untold = recorded("r", "a b", tokens=7), recorded("r", "c d")
    both = Recording("r", "made", "a task", (*told.events[:-1], *untold.events))

    assert shadow(both, ()).tokens == (7, 14, None, None)


def test_a_recording_without_a_word_has_no_step() -> None:
    assert shadow(recorded("r", ""), [MaxSteps(1)]) == Shadow(0, 0, (), "recording_ended", (Seen(None, None, 0, None, 0),))


def test_the_first_guard_in_the_tables_order_halts_a_run_that_several_would() -> None:
    guards = [MaxSteps(2), ConsecutiveErrors(2), ErrorStreak(2), RepeatedCall(1)]
    seen = shadow(recorded("r", "a! a! a!"), guards)

    assert table_order(guards) == (3, 2, 1, 0)
    first = first_halt(table_order(guards), seen.seen)
    assert first is not None
    assert (guards[first[0]].reason, first[1].step) == ("repeated_call", 2)
    first = first_halt(table_order(guards)[1:], seen.seen)
    assert first is not None
    assert guards[first[0]].reason == "error_streak"
    assert first_halt((), seen.seen) is None


def check(run: Recording, guards: tuple[Guard, ...]) -> None:
    """Each guard alone, replayed by the machine, halts the run where the shadow says, with the same reading."""
    seen = shadow(run, guards)
    for guard, alone in zip(guards, seen.seen, strict=True):
        replayed = replay(run, [guard])
        if alone.halt is None:
            assert (replayed.reason, replayed.step) == (seen.end, seen.steps), (run.id, guard)
        else:
            assert (replayed.reason, replayed.step) == (guard.reason, alone.halt.step), (run.id, guard)
            assert (alone.halt.reading, alone.halt.watches) == (replayed.readings[0], guard.watches)


step = st.sampled_from(["a", "a:new", "b", "a!", "b!", "a+b", "a+b!", "a!+b!", "?", '"'])
scripts = st.builds(lambda steps, end: " ".join((*steps, *end)), st.lists(step, max_size=9), st.sampled_from([(), ("=",), ("b...",)]))


@given(scripts, st.sampled_from([None, 10]), st.booleans())
def test_the_shadow_of_any_run_agrees_with_the_machine(script: str, tokens: int | None, polls: bool) -> None:
    run = recorded("r", script, tokens=tokens)
    tools = (ToolSpec("a", polls=polls), ToolSpec("b", volatile=("x",)))
    check(Recording(run.id, run.source, run.task, run.events, tools), GUARDS)


@given(scripts)
def test_guards_together_halt_where_the_machine_halts_with_all_of_them(script: str) -> None:
    run = recorded("r", script)
    for guards in (production(5, max_errors=3, max_malformed=2), classic(4), (MaxSteps(3), ToolBudget(2), RepeatedCall(1))):
        seen, replayed = shadow(run, guards), replay(run, guards)
        first = first_halt(table_order(guards), seen.seen)
        expected = (seen.end, seen.steps) if first is None else (guards[first[0]].reason, first[1].step)
        assert (replayed.reason, replayed.step) == expected


@pytest.mark.parametrize("name", FILES)
def test_the_shadows_of_published_runs_agree_with_the_machine(name: str) -> None:
    for run in of_file(name):
        check(run, GUARDS[: len(production(1)) + len(classic())])
