"""Exhaustive search: every event that can happen, in every state that a run under small limits can come to.

Each edge that is explored is taken three times: by the machine, by the same machine built the library's own way, and by an
interpreter of twenty lines that knows the classic rows, written down here, and, in a few numbers, the rules of the classic guards.
All must agree.

Events are abstracted to what guards can see of them, and so are states: two runs with equal memories (but for the evidence)
have the same future, and only the first of them is followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from typing import Any, get_args

import attrs
import msgspec
import pytest

from fsm_agent.events import (
    AskModel,
    CallTools,
    Cancelled,
    Event,
    ModelFailed,
    ModelReplied,
    Observation,
    ObservationKind,
    RecordingEnded,
    Reply,
    ToolRequest,
    ToolsReturned,
    UserSpoke,
)
from fsm_agent.guards import Guard, classic
from fsm_agent.machine import Run, Taken, UnexpectedEvent
from fsm_agent.protocols import RecordedProtocol
from fsm_agent.table import DECIDING, EXECUTING, HALTED, Row

KINDS: tuple[ObservationKind, ...] = get_args(ObservationKind)

# --- what can happen ---------------------------------------------------------------------------------------------


@attrs.frozen
class Happening:
    """An event, and what a reader of the issue would say of it."""

    event: Event
    trigger: str
    decision: str = ""
    """Of a reply: ``final``, ``calls``, ``said`` or ``malformed``."""
    calls: frozenset[str] = frozenset()
    """Of a reply: the calls that it asks for, and that may be made."""


A, B = ToolRequest("1", "look", '{"at": "a", "with": [1, 2]}'), ToolRequest("2", "look", '{"at": "b"}')
AGAIN = ToolRequest("3", "look", '{ "with": [1, 2],  "at": "a" }')
"""The same call as A: ids and the order of keys are no part of it."""


def replied(reply: Reply, decision: str, *calls: str) -> Happening:
    return Happening(ModelReplied(reply), "model_replied", decision, frozenset(calls))


DECIDING_EVENTS = (
    replied(Reply("done", taken_as="answer"), "final"),
    replied(Reply("", (A,)), "calls", "a"),
    replied(Reply("again", (AGAIN,)), "calls", "a"),
    replied(Reply("", (B,)), "calls", "b"),
    replied(Reply("", (A, B)), "calls", "a", "b"),
    replied(Reply("", (B, AGAIN)), "calls", "a", "b"),
    replied(Reply("", (A,), finish_reason="length"), "malformed"),
    replied(Reply("", (ToolRequest("4", "look", "{"),)), "malformed"),
    replied(Reply("prose", taken_as="unparseable"), "malformed"),
    replied(Reply(), "malformed"),
    replied(Reply("how are you?"), "said"),
    replied(Reply("cut off in the mid", finish_reason="length"), "said"),
    Happening(ModelFailed("Timeout", "no answer"), "model_failed"),
    Happening(UserSpoke("go on"), "user_spoke"),
    Happening(Cancelled(), "cancelled"),
    Happening(Cancelled(asked=False), "cancelled"),
    Happening(RecordingEnded(), "recording_ended"),
)


@cache
def executing_events(calls: int) -> tuple[Happening, ...]:
    outcomes = [tuple(Observation("look", kind, kind) for kind in kinds) for kinds in product(KINDS, repeat=calls)]
    stopped = tuple(Observation("look", "stopped", "cancelled") for _ in range(calls))
    return (
        *(Happening(ToolsReturned(observations), "tools_returned") for observations in outcomes),
        Happening(Cancelled(stopped), "cancelled"),
        Happening(RecordingEnded(), "recording_ended"),
    )


def possible(run: Run) -> tuple[Happening, ...]:
    if isinstance(run.effect, CallTools):
        return executing_events(len(run.effect.calls))
    return DECIDING_EVENTS if run.state == DECIDING else ()


def impossible(run: Run) -> Iterator[Event]:
    calls = len(run.effect.calls) if isinstance(run.effect, CallTools) else 0
    one = Observation("look", "one too many")
    yield ToolsReturned((one,) * (calls + 1))
    yield Cancelled((one,) * (calls + 1))
    if run.state != DECIDING:
        yield from (ModelReplied(Reply("late")), ModelFailed("Late", "late"), UserSpoke("late"))
    if run.state != EXECUTING:
        yield ToolsReturned(())
    if run.state == EXECUTING:
        yield ToolsReturned((one,) * (calls - 1))
        yield Cancelled((one,) * (calls - 1))
    if run.state == HALTED:
        yield from (Cancelled(), RecordingEnded())


# --- the interpreter ---------------------------------------------------------------------------------------------


@attrs.frozen
class Tally:
    """The numbers that the classic rules speak of."""

    last: frozenset[str] = frozenset()
    repeats: int = 0
    errors: int = 0
    replies: int = 0

    def after(self, happening: Happening) -> Tally:
        """The rules, as the issue words them."""
        now = attrs.evolve(self, replies=self.replies + (happening.trigger in {"model_replied", "model_failed"}))
        if happening.calls:
            return attrs.evolve(now, last=happening.calls, repeats=self.repeats + 1 if happening.calls == self.last else 0)
        if happening.decision == "malformed":
            return attrs.evolve(now, errors=self.errors + 1)
        if happening.decision == "said" or happening.trigger == "user_spoke":
            return attrs.evolve(now, last=frozenset(), repeats=0)
        if isinstance(happening.event, ToolsReturned):
            kinds = {observation.kind for observation in happening.event.observations}
            return attrs.evolve(now, errors=0 if "ok" in kinds else self.errors + (kinds != {"denied"}))
        return now


CLASSIC = (
    Row("model_replied", "Deciding", "model_replied", None, "Parsing", "", None, True),
    Row("model_error", "Deciding", "model_failed", None, "Halted", "", "model_error", True),
    Row("user_spoke", "Deciding", "user_spoke", None, "Deciding", ""),
    Row("cancelled", "Deciding", "cancelled", None, "Halted", "", "cancelled", True),
    Row("recording_ended", "Deciding", "recording_ended", None, "Halted", "", "recording_ended"),
    Row("final_answer", "Parsing", "parsed", "is_final_answer", "Halted", "", "final_answer"),
    Row("repeated_call", "Parsing", "parsed", "RepeatedCall", "Halted", "", "repeated_call"),
    Row("malformed", "Parsing", "parsed", "is_malformed", "Observing", ""),
    Row("said", "Parsing", "parsed", "is_said", "Observing", ""),
    Row("call_tools", "Parsing", "parsed", None, "Executing", ""),
    Row("tools_returned", "Executing", "tools_returned", None, "Observing", ""),
    Row("cancelled_executing", "Executing", "cancelled", None, "Halted", "", "cancelled"),
    Row("recording_ended_executing", "Executing", "recording_ended", None, "Halted", "", "recording_ended"),
    Row("consecutive_errors", "Observing", "observed", "ConsecutiveErrors", "Halted", "", "consecutive_errors"),
    Row("max_steps", "Observing", "observed", "MaxSteps", "Halted", "", "max_steps"),
    Row("go_on", "Observing", "observed", None, "Deciding", ""),
)
"""The machine with the classic guards, written down once more: what the package makes of its table must be these rows."""


def interpret(rows: Sequence[Row], state: str, happening: Happening, numbers: dict[str, tuple[int, int]]) -> list[Row]:
    """The edges that the table gives: of each group the first row whose guard holds, until the world is waited for."""
    holds = {guard: value >= limit for guard, (value, limit) in numbers.items()} | {
        "is_final_answer": happening.decision == "final",
        "is_malformed": happening.decision == "malformed",
        "is_said": happening.decision == "said",
        "is_warned": False,
    }
    path: list[Row] = []
    trigger: str | None = happening.trigger
    while trigger is not None:
        group = [row for row in rows if (row.source, row.trigger) == (state, trigger)]
        path.append(next(row for row in group if row.guard is None or holds[row.guard]))
        state = path[-1].dest
        trigger = {"Parsing": "parsed", "Observing": "observed"}.get(state)
    return path


# --- the search --------------------------------------------------------------------------------------------------


@attrs.frozen(eq=False)
class Node:
    """A run, its twin that is built the library's own way, and what the interpreter knows of it."""

    run: Run
    stock: Run
    tally: Tally = Tally()

    @property
    def key(self) -> str:
        """Equal keys, equal futures."""
        run = self.run
        calls = [call.signature for call in run.effect.calls] if isinstance(run.effect, CallTools) else []
        return repr((run.state, run.reason, run.step, calls, [without_evidence(memory) for memory in run.memories]))


def without_evidence(memory: Any) -> Any:
    if isinstance(memory, msgspec.Struct):
        return {name: without_evidence(getattr(memory, name)) for name in memory.__struct_fields__ if name != "evidence"}
    return memory


@attrs.frozen(eq=False)
class Found:
    """Every state that was come to, and the edges between them."""

    guards: tuple[Guard, ...]
    nodes: dict[str, Node]
    edges: list[tuple[str, Happening, list[Taken], str]]
    differences: list[str] = attrs.field(factory=list)
    """Where the three do not agree."""


LIMITS = [(4, 2, 2), (3, 1, 1), (1, 1, 1), (3, 3, 2), (4, 1, 3)]


@cache
def search(max_steps: int, max_repeats: int, max_errors: int) -> Found:
    """Explores all, and compares the three on every edge; it raises for none of the differences, which are found."""
    guards = classic(max_steps, max_repeats, max_errors)
    lean, stock = (Run("task", guards=guards, protocol=RecordedProtocol(), stock=stock) for stock in (False, True))
    root = Node(lean, stock)
    found = Found(guards, {root.key: root}, [])
    ahead = [root]
    while ahead:
        node = ahead.pop()
        source = node.key
        for happening in possible(node.run):
            after, taken = follow(found, node, happening)
            dest = after.key
            found.edges.append((source, happening, taken, dest))
            if dest not in found.nodes:
                found.nodes[dest] = after
                ahead.append(after)
    return found


def follow(found: Found, node: Node, happening: Happening) -> tuple[Node, list[Taken]]:
    """One event, three times; the edges that it took."""
    tally = node.tally.after(happening)
    after = Node(node.run.copy(), node.stock.copy(), tally)
    for run in (after.run, after.stock):
        run.feed(happening.event)
    repeated, errors, cap = (next(iter(guard.as_limits().values())) for guard in found.guards)
    numbers = {
        "RepeatedCall": (tally.repeats, repeated),
        "ConsecutiveErrors": (tally.errors, errors),
        "MaxSteps": (tally.replies, cap),
    }
    path = interpret(CLASSIC, node.run.state, happening, numbers)
    taken = [entry for entry in after.run.log[len(node.run.log) :] if isinstance(entry, Taken)]
    asked = not isinstance(happening.event, Cancelled) or happening.event.asked
    judged = {"Parsing": ["RepeatedCall"], "Observing": ["ConsecutiveErrors", "MaxSteps"]}
    compared = {
        "edges": ([each.edge for each in taken], [row.id for row in path]),
        "state": (after.run.state, path[-1].dest),
        "reason": (after.run.reason, path[-1].reason),
        "step": (after.run.step, node.run.step + (asked and any(row.begins_step for row in path))),
        "readings": (
            [[(reading.value, reading.limit, reading.trips) for reading in each.readings] for each in taken],
            [
                [(numbers[name][0], numbers[name][1], numbers[name][0] >= numbers[name][1]) for name in judged.get(row.source, [])]
                for row in path
            ],
        ),
        "stock": (snapshot(after.run), snapshot(after.stock)),
    }
    found.differences.extend(
        f"{happening} in {node.key}: {what} {ours!r}, not {theirs!r}" for what, (ours, theirs) in compared.items() if ours != theirs
    )
    return after, taken


def snapshot(run: Run) -> dict[str, object]:
    """All that a run is."""
    same = {name: getattr(run, name) for name in Run.__slots__ if name not in {"wiring", "edge"}}
    return {name: list(value) if isinstance(value, list) else value for name, value in same.items()} | {"edge": run.edge and run.edge.row}


each_limits = pytest.mark.parametrize("limits", LIMITS, ids=str)


@each_limits
def test_machine_stock_machine_and_interpreter_agree_on_every_edge(limits: tuple[int, int, int]) -> None:
    found = search(*limits)
    assert found.differences == []
    assert len(found.edges) == sum(len(possible(node.run)) for node in found.nodes.values())


@each_limits
def test_no_run_makes_more_than_max_steps_model_calls(limits: tuple[int, int, int]) -> None:
    found = search(*limits)
    replies = [node.tally.replies for node in found.nodes.values()]
    assert max(replies) == limits[0]
    assert [key for key, node in found.nodes.items() if node.run.state == DECIDING and node.tally.replies >= limits[0]] == []


@each_limits
def test_every_run_ends_but_for_a_person_who_talks_for_ever(limits: tuple[int, int, int]) -> None:
    """Without a person's talk no state can be come to twice: every path is finite, and ends where nothing can happen, which is Halted."""
    found = search(*limits)
    ahead: dict[str, set[str]] = {key: set() for key in found.nodes}
    for source, happening, _, dest in found.edges:
        if happening.trigger != "user_spoke":
            ahead[source].add(dest)
    left = set(found.nodes)
    while ending := {key for key in left if not ahead[key] & left}:
        left -= ending
    assert left == set()
    assert {node.run.state for key, node in found.nodes.items() if not ahead[key]} == {HALTED}


@each_limits
def test_a_person_who_talks_changes_the_talk_and_not_the_numbers(limits: tuple[int, int, int]) -> None:
    found = search(*limits)
    talks = [(found.nodes[source], found.nodes[dest]) for source, happening, _, dest in found.edges if happening.trigger == "user_spoke"]
    assert talks
    assert [1 for before, after in talks if (before.tally.replies, before.tally.errors) != (after.tally.replies, after.tally.errors)] == []


@each_limits
def test_a_run_has_one_reason_and_only_once_it_has_halted(limits: tuple[int, int, int]) -> None:
    found = search(*limits)
    for node in found.nodes.values():
        rows = {row.id: row for row in node.run.wiring.rows}
        halts = [entry for entry in node.run.log if isinstance(entry, Taken) and rows[entry.edge].dest == HALTED]
        assert [rows[halt.edge].reason for halt in halts] == ([] if node.run.reason is None else [node.run.reason])
        assert (node.run.state == HALTED) == (node.run.reason is not None) == (node.run.effect is None)
        assert halts == node.run.log[-1:] or not halts


def test_every_reason_is_reached_and_every_edge_taken() -> None:
    found = search(*LIMITS[0])
    rows = next(iter(found.nodes.values())).run.wiring.rows
    assert {node.run.reason for node in found.nodes.values()} - {None} == {row.reason for row in rows} - {None}
    assert {taken.edge for _, _, path, _ in found.edges for taken in path} == {row.id for row in rows}


@each_limits
def test_every_state_has_a_way_to_halted(limits: tuple[int, int, int]) -> None:
    found = search(*limits)
    back: dict[str, set[str]] = {}
    for source, _, _, dest in found.edges:
        back.setdefault(dest, set()).add(source)
    seen: set[str] = set()
    ahead = {key for key, node in found.nodes.items() if node.run.state == HALTED}
    while ahead:
        seen |= ahead
        ahead = {source for key in ahead for source in back.get(key, ())} - seen
    assert seen == set(found.nodes)


@each_limits
def test_a_run_waits_in_waiting_states_only(limits: tuple[int, int, int]) -> None:
    found = search(*limits)
    waits = {(node.run.state, type(node.run.effect)) for node in found.nodes.values()}
    assert waits == {(DECIDING, AskModel), (EXECUTING, CallTools), (HALTED, type(None))}


@each_limits
def test_every_call_that_was_asked_for_has_its_observation_in_the_history(limits: tuple[int, int, int]) -> None:
    """Also when it was refused, cut off or cancelled; but for a recording that ends before its tools returned."""
    found = search(*limits)
    for node in found.nodes.values():
        asked: list[str] = []
        for message in node.run.history:
            asked += [call.id for call in message.tool_calls]
            if message.role == "tool":
                asked.remove(message.tool_call_id)
        open_calls = len(node.run.effect.calls) if isinstance(node.run.effect, CallTools) else 0
        if node.run.log and isinstance(node.run.log[-1], Taken) and node.run.log[-1].edge == "recording_ended_executing":
            continue
        assert len(asked) == open_calls


def test_an_event_that_cannot_happen_is_refused_everywhere_and_changes_nothing() -> None:
    refused = 0
    for node in search(*LIMITS[0]).nodes.values():
        for run in (node.run, node.stock):
            before = snapshot(run)
            for event in impossible(run):
                with pytest.raises(UnexpectedEvent):
                    run.feed(event)
                refused += 1
            assert snapshot(run) == before
    assert refused > 0
