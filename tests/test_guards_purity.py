"""What holds for every guard, whatever happens: folding changes no memory, a copy goes its own way, a replay reads the same."""

from __future__ import annotations

import copy

from hypothesis import given, settings
from hypothesis import strategies as st

from fsm_agent.events import (
    Event,
    Fact,
    ModelReplied,
    Observation,
    ObservationKind,
    Reply,
    Started,
    ToolCalls,
    ToolRequest,
    ToolSpec,
    ToolsReturned,
    Usage,
    UserSpoke,
)
from fsm_agent.guards import (
    AnyOf,
    ConsecutiveErrors,
    CostBudget,
    Deadline,
    Guard,
    MalformedStreak,
    MaxSteps,
    NoProgress,
    RepeatedCall,
    TokenBudget,
    ToolBudget,
    predicate,
    production,
)
from fsm_agent.machine import Run
from fsm_agent.protocols import RecordedProtocol
from fsm_agent.table import DECIDING, EXECUTING
from fsm_agent.traces.notes import Note
from fsm_agent.traces.record import Trace, decode_entry, decode_header, encode, header_of
from fsm_agent.traces.verify import verify

TOOLS = (ToolSpec("wait", polls=True), ToolSpec("look", volatile=("pid",)), ToolSpec("add"))

GUARDS: tuple[Guard, ...] = (
    *production(60, max_malformed=6, max_errors=6, max_same_errors=4),
    RepeatedCall(4),
    TokenBudget(200),
    CostBudget(2),
    ToolBudget(30),
    ToolBudget(12, "look"),
    Deadline(500),
    NoProgress(compare="call") & ~MaxSteps(20),
    AnyOf((ToolBudget(20, "wait"), MalformedStreak(5), ConsecutiveErrors(5)), "any"),
)

KINDS: tuple[ObservationKind, ...] = (*("ok",) * 6, "tool_error", "tool_error", "unknown_tool", "bad_arguments", "timeout", "denied")

calls = st.tuples(
    st.sampled_from(["wait", "look", "add", "nothing"]), st.sampled_from(["{}", '{"a":1}', '{"pid":1}', '{"pid":2}', '{"a":"1"}'])
)
observations = st.tuples(st.sampled_from(["1", "2", '{"pid":1}', '{"pid":2}']), st.sampled_from(KINDS))
usages = st.none() | st.builds(Usage, st.none() | st.integers(0, 9), st.none() | st.integers(0, 9), st.none() | st.floats(0, 0.1))
clocks = st.none() | st.floats(0, 100)


@st.composite
def steps(draw: st.DrawFn) -> list[Event]:
    """The events of one step: calls with their observations, something unusable, or talk."""
    usage, at = draw(usages), draw(clocks)
    match draw(st.integers(0, 9)):
        case 0:
            return [ModelReplied(Reply(draw(st.sampled_from(["", "hm", "hm?", "hm!", "so"])), usage=usage, taken_as="unparseable"), at)]
        case 1:
            return [ModelReplied(Reply(draw(st.sampled_from(["", "well", "and?"])), usage=usage), at)]
        case 2:
            return [UserSpoke("go on", at)]
        case _:
            made = draw(st.lists(st.tuples(calls, observations), min_size=1, max_size=3))
            requests = tuple(ToolRequest("", name, arguments) for (name, arguments), _ in made)
            results = tuple(Observation(name, text, kind) for (name, _), (text, kind) in made)
            finish = draw(st.sampled_from([None] * 9 + ["length"]))
            return [ModelReplied(Reply("", requests, finish, usage), at), ToolsReturned(results, draw(clocks))]


repeated = st.builds(lambda step, times: step * times, steps(), st.sampled_from([1, 1, 1, 2, 3, 5]))
cycles = st.builds(lambda made, times: sum(made, []) * times, st.lists(steps(), min_size=2, max_size=3), st.integers(1, 3))  # noqa: RUF017  # short lists
histories = st.lists(repeated | cycles, max_size=20).map(lambda made: [event for part in made for event in part])


def fed(run: Run, events: list[Event]) -> Run:
    """The run after those of the events that can happen."""
    for event in events:
        waits_for = {DECIDING: (ModelReplied, UserSpoke), EXECUTING: (ToolsReturned,)}.get(run.state, ())
        if isinstance(event, waits_for):
            run.feed(event)
    return run


@given(histories)
@settings(max_examples=40)
def test_folding_and_judging_change_no_memory(events: list[Event]) -> None:
    run = fed(Run("", guards=(MaxSteps(999),), protocol=RecordedProtocol(), tools=TOOLS), events)
    replies = iter(run.decisions)
    facts: list[Fact] = [Started(TOOLS)]
    for event in (entry for entry in run.log if not hasattr(entry, "edge")):
        facts.append(event)
        if isinstance(event, ModelReplied):
            facts.append(next(replies))
    for guard in (*GUARDS, predicate(lambda run: run.calls > 3, reason="three")):
        memory, step = guard.start(), 0
        for fact in facts:
            step += isinstance(fact, ModelReplied)
            if guard.folds and type(fact) not in guard.folds:
                continue
            before = copy.deepcopy(memory)
            after = guard.fold(memory, fact, step)
            assert memory == before
            assert guard.fold(memory, fact, step) == after
            reading = guard.judge(after)
            assert guard.judge(after) == reading
            memory = after


@given(histories, histories)
@settings(max_examples=50)
def test_a_copy_goes_its_own_way(first: list[Event], second: list[Event]) -> None:
    run = fed(Run("", guards=GUARDS, protocol=RecordedProtocol(), tools=TOOLS), first)
    other = run.copy()
    fed(other, second)
    alone = fed(Run("", guards=GUARDS, protocol=RecordedProtocol(), tools=TOOLS), first)
    assert (run.log, run.memories, run.reason) == (alone.log, alone.memories, alone.reason)


@given(histories)
@settings(max_examples=60)
def test_a_replay_of_the_record_gives_the_same_readings(events: list[Event]) -> None:
    run = fed(Run("", guards=GUARDS, protocol=RecordedProtocol(), tools=TOOLS), events)
    header = decode_header(encode(header_of(run)))
    trace = Trace(header, [entry for entry in (decode_entry(encode(entry)) for entry in run.log) if not isinstance(entry, Note)])
    verdict = verify(trace)
    assert (verdict.line, verdict.recorded, verdict.replayed) == (None, "", "")


@given(histories)
@settings(max_examples=50)
def test_the_smallest_period_of_the_latest_steps_is_found(events: list[Event]) -> None:
    """``NoProgress`` against the definition, spelled out over the whole past."""
    guard = NoProgress(max_period=3, max_cycles=2, min_steps=3)
    run = Run("", guards=(MaxSteps(999),), protocol=RecordedProtocol(), tools=(ToolSpec("add"),))
    memory = guard.fold(guard.start(), Started(run.tools), 0)
    done: list[object] = []
    for event in events:
        if not isinstance(event, {DECIDING: (ModelReplied, UserSpoke), EXECUTING: (ToolsReturned,)}.get(run.state, ())):
            continue
        run.feed(event)
        memory = guard.fold(memory, event, run.step)
        decision = run.decision
        if isinstance(event, ModelReplied) and decision is not None:
            memory = guard.fold(memory, decision, run.step)
            if not isinstance(decision, ToolCalls):
                done.append((type(decision), event.reply.text, event.reply.tool_calls))
        elif isinstance(event, ToolsReturned) and isinstance(decision, ToolCalls):
            pairs = zip(decision.calls, event.observations, strict=True)
            done.append(frozenset((call.signature, None if seen.is_error else seen.text) for call, seen in pairs))
        elif isinstance(event, UserSpoke):
            done = []
        reading = guard.judge(memory)
        cycles = [p for p in (1, 2, 3) if is_periodic(done, p, max(2 * p, 3))]
        assert (reading.trips, reading.period if reading.trips else None) == (bool(cycles), cycles[0] if cycles else None)


def is_periodic(done: list[object], period: int, length: int) -> bool:
    """Whether the last ``length`` of them have this period."""
    last = done[-length:]
    return len(last) == length and all(last[i] == last[i - period] for i in range(period, length))
