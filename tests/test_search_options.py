"""Exhaustive search with everything on: retries, a person, summaries, lost tools and the last chance, in every state under small limits.

As in ``test_search``, each edge that is explored is taken by the machine, by the machine built the library's own way, and by an
interpreter that knows the rows, written down here once more, and the rules of the options in a few numbers. All must agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations, product
from typing import Any, get_args

import attrs
import pytest

from fsm_agent.events import (
    Approval,
    ApprovalAsked,
    ApprovalGiven,
    AskApproval,
    AskModel,
    AttemptFailed,
    CallTools,
    Cancelled,
    ContextCompacted,
    Effect,
    Event,
    ModelFailed,
    Observation,
    ObservationKind,
    RecordingEnded,
    Reply,
    ToolRequest,
    ToolsFailed,
    ToolsReturned,
    UserSpoke,
)
from fsm_agent.guards import Guard, classic
from fsm_agent.machine import TRIGGERS, Run, Taken, UnexpectedEvent
from fsm_agent.options import Options
from fsm_agent.protocols import RecordedProtocol
from fsm_agent.table import DECIDING, EXECUTING, HALTED, ROWS, Row
from tests.test_search import AGAIN, A, B, Happening, replied, snapshot, without_evidence

LONGEST_S = 10.0
KINDS: tuple[ObservationKind, ...] = ("ok", "tool_error", "denied")

ON = Options(max_retries=1, first_wait_s=1.0, max_wait_s=LONGEST_S, approvals=True, compaction=True, last_chance=True, tool_servers=True)
MACHINES: list[tuple[tuple[int, int, int], Options]] = [
    ((3, 1, 2), ON),
    ((2, 2, 1), ON),
    ((1, 1, 1), ON),
    ((3, 1, 2), Options(max_retries=2, max_wait_s=LONGEST_S, compaction=True)),
    ((2, 1, 2), Options(approvals=True, last_chance=True)),
]

# --- what can happen ---------------------------------------------------------------------------------------------


def failed(asked_s: float | None) -> Happening:
    return Happening(AttemptFailed("RateLimitError", "busy", asked_s), "attempt_failed")


def happens(event: Event) -> Happening:
    return Happening(event, TRIGGERS[type(event)])


REPLIES = (
    replied(Reply("done", taken_as="answer"), "final"),
    replied(Reply("", (A,)), "calls", "a"),
    replied(Reply("again", (AGAIN,)), "calls", "a"),
    replied(Reply("", (A, B)), "calls", "a", "b"),
    replied(Reply("", (A,), finish_reason="length"), "malformed"),
    replied(Reply("", (ToolRequest("4", "look", "{"),)), "malformed"),
    replied(Reply(), "malformed"),
    replied(Reply("how are you?"), "said"),
)


def possible(run: Run) -> Iterator[Happening]:
    """What the world can answer to the effect, by the rules of the options."""
    options, effect = run.options, run.effect
    if isinstance(effect, AskModel):
        yield from REPLIES
        yield from _instead(run)
    elif effect is not None:
        n = len(effect.calls)
        stopped: tuple[Event, ...] = (Cancelled((Observation("look", "stopped", "cancelled"),) * n), RecordingEnded())
        yield from map(happens, stopped)
        if isinstance(effect, AskApproval):
            verdicts = (Approval("yes"), Approval("no", "no!"), Approval("edit", arguments={"at": "c"}))
            yield from (happens(ApprovalGiven(given)) for given in product(verdicts, repeat=len(effect.asked)))
            return
        yield from (happens(ToolsReturned(each)) for each in product([Observation("look", kind, kind) for kind in KINDS], repeat=n))
        if options.tool_servers:
            yield happens(ToolsFailed((Observation("look", "?", "interrupted"),) * n, "ToolServerDead", "gone"))
        if options.approvals and effect.may_ask:
            yield from (happens(ApprovalAsked(asked)) for size in range(1, n + 1) for asked in combinations(range(n), size))


def _instead(run: Run) -> Iterator[Happening]:
    """What can happen instead of a reply."""
    ends: tuple[Event, ...] = (
        ModelFailed("Timeout", "no answer"),
        UserSpoke("go on"),
        Cancelled(),
        Cancelled(asked=False),
        RecordingEnded(),
    )
    yield from map(happens, ends)
    if run.options.max_retries:
        yield from map(failed, (None, 0.0, LONGEST_S, LONGEST_S + 1))
    if run.options.compaction and not run.summed_up:
        yield happens(ContextCompacted((run.summary.covers if run.summary else 0) + 1, "what was"))


def impossible(run: Run) -> Iterator[Event]:
    """One event of each type that the state does not take, and of those that it takes one that does not fit."""
    one = Observation("look", "one too many")
    n = len(run.effect.calls) if isinstance(run.effect, CallTools | AskApproval) else 0
    samples: tuple[Event, ...] = (
        *(happening.event for happening in REPLIES[:1]),
        *(ModelFailed("Late", "late"), AttemptFailed("Late", "late"), UserSpoke("late"), RecordingEnded(), Cancelled((one,) * n)),
        *(ToolsReturned((one,) * n), ToolsFailed((one,) * n, "Late", "late"), ContextCompacted(1, "late")),
        *(ApprovalAsked((0,)), ApprovalGiven((Approval("yes"),))),
    )
    assert {type(event) for event in samples} == set(get_args(Event))
    taken = set(run.accepts)
    yield from (event for event in samples if type(event) not in taken)
    misfits: tuple[Event, ...] = (
        *(ToolsReturned((one,) * (n + 1)), ToolsFailed((one,) * (n + 1), "E", "m"), Cancelled((one,) * (n + 1))),
        *(ContextCompacted(0, "s"), ContextCompacted(99, "s"), ApprovalAsked(()), ApprovalAsked((n,)), ApprovalGiven(())),
    )
    yield from (event for event in misfits if type(event) in taken)


# --- the interpreter ---------------------------------------------------------------------------------------------


@attrs.frozen
class Tally:
    """The numbers that the rules speak of."""

    last: frozenset[str] = frozenset()
    repeats: int = 0
    errors: int = 0
    replies: int = 0
    retries: int = 0
    chance: str = ""
    """The state from which the last chance came."""

    def after(self, happening: Happening) -> Tally:
        """The rules of the guards, which see nothing of the last word, and of the count of retries, which a reply ends."""
        now = attrs.evolve(self, retries=0) if happening.trigger == "model_replied" else self
        if self.chance:
            return now
        now = attrs.evolve(now, replies=self.replies + (happening.trigger in {"model_replied", "model_failed"}))
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


ALL = (
    Row("model_replied", "Deciding", "model_replied", None, "Parsing", "", None, True),
    Row("no_last_word", "Deciding", "model_failed", "is_last", "Parsing", "", None, True, needs="last_chance"),
    Row("model_error", "Deciding", "model_failed", None, "Halted", "", "model_error", True),
    Row("retry", "Deciding", "attempt_failed", "can_retry", "Deciding", "", needs="retries"),
    Row("no_last_word_either", "Deciding", "attempt_failed", "is_last", "Parsing", "", None, True, needs="last_chance"),
    Row("retries_exhausted", "Deciding", "attempt_failed", None, "Halted", "", "model_error", True, needs="retries"),
    Row("compacted", "Deciding", "context_compacted", None, "Deciding", "", needs="compaction"),
    Row("user_spoke", "Deciding", "user_spoke", None, "Deciding", ""),
    Row("cancelled", "Deciding", "cancelled", None, "Halted", "", "cancelled", True),
    Row("recording_ended", "Deciding", "recording_ended", None, "Halted", "", "recording_ended"),
    Row("last_word", "Parsing", "parsed", "is_last_word", "Observing", "", needs="last_chance"),
    Row("final_answer", "Parsing", "parsed", "is_final_answer", "Halted", "", "final_answer"),
    Row("last_chance_parsing", "Parsing", "parsed", "has_last_chance", "Deciding", "", needs="last_chance"),
    Row("repeated_call", "Parsing", "parsed", "RepeatedCall", "Halted", "", "repeated_call"),
    Row("malformed", "Parsing", "parsed", "is_malformed", "Observing", ""),
    Row("said", "Parsing", "parsed", "is_said", "Observing", ""),
    Row("call_tools", "Parsing", "parsed", None, "Executing", ""),
    Row("tools_returned", "Executing", "tools_returned", None, "Observing", ""),
    Row("ask_approval", "Executing", "approval_asked", None, "Executing", "", needs="approvals"),
    Row("approval_given", "Executing", "approval_given", None, "Executing", "", needs="approvals"),
    Row("tools_failed", "Executing", "tools_failed", None, "Halted", "", "tools_failed", needs="tool_servers"),
    Row("cancelled_executing", "Executing", "cancelled", None, "Halted", "", "cancelled"),
    Row("recording_ended_executing", "Executing", "recording_ended", None, "Halted", "", "recording_ended"),
    Row("last_chance", "Observing", "observed", "has_last_chance", "Deciding", "", needs="last_chance"),
    Row("consecutive_errors", "Observing", "observed", "ConsecutiveErrors", "Halted", "", "consecutive_errors"),
    Row("max_steps", "Observing", "observed", "MaxSteps", "Halted", "", "max_steps"),
    Row("go_on", "Observing", "observed", None, "Deciding", ""),
)
"""The machine with the classic guards and every option, written down once more."""

LEAVES_A_CHANCE = {"RepeatedCall", "MaxSteps"}
JUDGED = {"Parsing": ["RepeatedCall"], "Observing": ["ConsecutiveErrors", "MaxSteps"]}


def interpret(run: Run, tally: Tally, happening: Happening, numbers: dict[str, tuple[int, int]]) -> list[Row]:
    """The edges that the rows give."""
    rows = [row for row in ALL if row.needs is None or row.needs in run.options.features]
    trips = {guard: value >= limit for guard, (value, limit) in numbers.items()}
    asked_s = happening.event.retry_after_s if isinstance(happening.event, AttemptFailed) else None
    holds = trips | {
        "is_final_answer": happening.decision == "final" and not tally.chance,
        "is_malformed": happening.decision == "malformed",
        "is_said": happening.decision == "said",
        "can_retry": tally.retries < run.options.max_retries and (asked_s is None or asked_s <= LONGEST_S),
        "is_last": tally.chance != "",
        "is_last_word": tally.chance == "Observing",
    }
    path: list[Row] = []
    state: str = run.state
    trigger: str | None = happening.trigger
    while trigger is not None:
        first = next((guard for guard in JUDGED.get(state, []) if trips[guard]), None)
        holds["has_last_chance"] = first in LEAVES_A_CHANCE and not tally.chance
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
        run, effect = self.run, self.run.effect
        calls = [str(call) for call in effect.calls] if isinstance(effect, CallTools | AskApproval) else []
        waits = (
            (effect.asked,)
            if isinstance(effect, AskApproval)
            else (effect.settled, effect.may_ask)
            if isinstance(effect, CallTools)
            else ()
        )
        last = [reading.trips for reading in run.readings] if run.chance else []
        memories = [] if run.chance else [without_evidence(memory) for memory in run.memories]
        counts = (run.step, run.retries, run.summed_up, run.chance, last)
        return repr((run.state, run.reason, type(effect).__name__, calls, waits, counts, memories))


@attrs.frozen(eq=False)
class Found:
    """Every state that was come to, and the edges between them."""

    guards: tuple[Guard, ...]
    options: Options
    nodes: dict[str, Node]
    edges: list[tuple[str, Happening, list[str], str]]
    differences: list[str] = attrs.field(factory=list)


@cache
def search(limits: tuple[int, int, int], options: Options) -> Found:
    max_steps, max_repeats, max_errors = limits
    guards = classic(max_steps, max_repeats, max_errors)
    lean, stock = (Run("task", guards=guards, protocol=RecordedProtocol(), options=options, stock=stock) for stock in (False, True))
    root = Node(lean, stock)
    found = Found(guards, options, {root.key: root}, [])
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


def follow(found: Found, node: Node, happening: Happening) -> tuple[Node, list[str]]:
    """One event, three times; the edges that it took."""
    tally = node.tally.after(happening)
    repeated, errors, cap = (next(iter(guard.as_limits().values())) for guard in found.guards)
    numbers = {"RepeatedCall": (tally.repeats, repeated), "ConsecutiveErrors": (tally.errors, errors), "MaxSteps": (tally.replies, cap)}
    path = interpret(node.run, tally, happening, numbers)
    ids = [row.id for row in path]
    chance = next((row.source for row in path if row.spends or row.id.startswith("last_chance")), tally.chance)
    after = Node(node.run.copy(), node.stock.copy(), attrs.evolve(tally, retries=tally.retries + ("retry" in ids), chance=chance))
    for run in (after.run, after.stock):
        run.feed(happening.event)
    taken = [entry for entry in after.run.log[len(node.run.log) :] if isinstance(entry, Taken)]
    asked = not isinstance(happening.event, Cancelled) or happening.event.asked
    compared = {
        "edges": ([each.edge for each in taken], ids),
        "state": (after.run.state, path[-1].dest),
        "reason": (after.run.reason, path[-1].reason),
        "step": (after.run.step, node.run.step + (asked and any(row.begins_step for row in path))),
        "retries": (after.run.retries, after.tally.retries),
        "chance": (after.run.chance or "", after.tally.chance),
        "readings": (
            [[(reading.value, reading.limit, reading.trips) for reading in each.readings] for each in taken],
            [
                [
                    (*numbers[name], numbers[name][0] >= numbers[name][1])
                    for name in ([] if row.id == "last_word" else JUDGED.get(row.source, []))
                ]
                for row in path
            ],
        ),
        "stock": (snapshot(after.run), snapshot(after.stock)),
    }
    found.differences.extend(
        f"{happening} in {node.key}: {what} {ours!r}, not {theirs!r}" for what, (ours, theirs) in compared.items() if ours != theirs
    )
    return after, [each.edge for each in taken]


each_machine = pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: f"{machine[0]} {sorted(machine[1].features)}")
Machine = tuple[tuple[int, int, int], Options]


@each_machine
def test_machine_stock_machine_and_interpreter_agree_on_every_edge(machine: Machine) -> None:
    assert search(*machine).differences == []


@each_machine
def test_no_run_makes_more_model_calls_than_the_cap_and_its_last_word(machine: Machine) -> None:
    found = search(*machine)
    steps = {node.run.step for node in found.nodes.values()}
    assert max(steps) == machine[0][0] + 1 if machine[1].last_chance else max(steps) <= machine[0][0] + 1
    replies = [sum(type(entry).__name__ == "ModelReplied" for entry in node.run.log) for node in found.nodes.values()]
    assert max(replies) == machine[0][0] + machine[1].last_chance


@each_machine
def test_every_run_ends_but_for_a_person_who_talks_for_ever(machine: Machine) -> None:
    found = search(*machine)
    ahead: dict[str, set[str]] = {key: set() for key in found.nodes}
    for source, happening, _, dest in found.edges:
        if happening.trigger != "user_spoke":
            ahead[source].add(dest)
    left = set(found.nodes)
    while ending := {key for key in left if not ahead[key] & left}:
        left -= ending
    assert left == set()
    assert {node.run.state for key, node in found.nodes.items() if not ahead[key]} == {HALTED}


@each_machine
def test_nothing_follows_itself_more_often_than_its_option_says(machine: Machine) -> None:
    _, options = machine
    most = {"retry": options.max_retries, "compacted": 1, "ask_approval": 1, "approval_given": 1}
    for node in search(*machine).nodes.values():
        counts: dict[str, int] = {}
        chances = 0
        for entry in node.run.log:
            if isinstance(entry, Taken):
                counts = {} if entry.edge == "model_replied" else counts | {entry.edge: counts.get(entry.edge, 0) + 1}
                chances += entry.edge in {"last_chance", "last_chance_parsing"}
                assert counts.get(entry.edge, 0) <= most.get(entry.edge, 99)
        assert chances <= options.last_chance


@each_machine
def test_an_event_that_cannot_happen_is_refused_everywhere_and_changes_nothing(machine: Machine) -> None:
    refused = set()
    for node in search(*machine).nodes.values():
        for run in (node.run, node.stock):
            before = snapshot(run)
            for event in impossible(run):
                with pytest.raises(UnexpectedEvent):
                    run.feed(event)
                refused.add(type(event))
            assert snapshot(run) == before
    assert refused == set(get_args(Event))


@each_machine
def test_what_can_happen_is_what_the_run_says_that_it_accepts(machine: Machine) -> None:
    for node in search(*machine).nodes.values():
        assert {type(happening.event) for happening in possible(node.run)} == set(node.run.accepts)


@each_machine
def test_every_call_that_was_asked_for_has_its_observation_in_the_history(machine: Machine) -> None:
    """Also in the last word; but for a recording that ends before its tools returned."""
    for node in search(*machine).nodes.values():
        asked: list[str] = []
        for message in node.run.history:
            asked += [call.id for call in message.tool_calls]
            if message.role == "tool":
                asked.remove(message.tool_call_id)
        effect: Effect | None = node.run.effect
        if isinstance(node.run.log[-1] if node.run.log else None, Taken) and node.run.log[-1].edge == "recording_ended_executing":  # type: ignore[union-attr]  # it is one
            continue
        assert len(asked) == (len(effect.calls) if isinstance(effect, CallTools | AskApproval) else 0)


@each_machine
def test_a_run_waits_for_what_its_state_waits_for(machine: Machine) -> None:
    waits: set[tuple[str, Any]] = {(node.run.state, type(node.run.effect)) for node in search(*machine).nodes.values()}
    asks = {(EXECUTING, AskApproval)} if machine[1].approvals else set()
    assert waits == {(DECIDING, AskModel), (EXECUTING, CallTools), (HALTED, type(None))} | asks


def test_every_edge_is_taken_and_they_are_the_rows_of_the_table() -> None:
    found = search(*MACHINES[0])
    rows: Sequence[Row] = next(iter(found.nodes.values())).run.wiring.rows
    assert [row.id for row in rows] == [row.id for row in ALL]
    assert {row.id for row in ROWS if row.needs} <= {row.id for row in ALL}
    assert {edge for _, _, path, _ in found.edges for edge in path} == {row.id for row in rows}
    assert {node.run.reason for node in found.nodes.values()} - {None} == {row.reason for row in rows} - {None}


@each_machine
def test_guards_alone_decide_why_a_run_halts(machine: Machine) -> None:
    """A run with everything on, and the same run without what is not the model's or the tools', halt for the same reason."""
    limits, options = machine
    for node in search(*machine).nodes.values():
        run = node.run
        if run.reason not in {"repeated_call", "consecutive_errors", "max_steps", "final_answer"}:
            continue
        plain = Run("task", guards=classic(*limits), protocol=RecordedProtocol())
        for entry in run.log:
            if type(entry).__name__ in {"ModelReplied", "ToolsReturned", "UserSpoke"} and plain.effect is not None:
                plain.feed(entry)  # type: ignore[arg-type]  # these are events
        assert plain.reason == run.reason
        assert plain.step == run.step - (run.chance is not None)
        assert options.last_chance or run.chance is None
