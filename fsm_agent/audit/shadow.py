"""One pass over a recorded run that says, for any number of guards at once, where each would have halted it.

The real machine is run over the recording once, without guards. Its record tells what a guard would have been shown and where it
would have been judged: the *timeline*. Every guard is then folded along it by itself, as the machine would fold it, but without
halting. So limits by the dozen cost one replay, and what is said of a guard is what a replay under that guard alone gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

import attrs

from fsm_agent.events import Decision, Event, Fact, Final, ModelReplied, Reply, Started, ToolCalls
from fsm_agent.guards import Guard, Reading
from fsm_agent.machine import Run, Taken, wire
from fsm_agent.table import OBSERVING, PARSING, PURE, ROWS, State
from fsm_agent.traces.recordings import Recording
from fsm_agent.traces.replay import replay

_JUDGED: dict[str, State] = {row.id: row.source for row in ROWS if row.source in PURE}
"""The edges on which guards are judged, with the state in which they are."""


class Moment(NamedTuple):
    """One thing on a timeline: a fact that guards are shown, or a state in which they are judged."""

    step: int
    fact: Fact | None
    """None: guards are judged here."""
    judged: State | None = None
    final: bool = False
    """They are judged beside an answer, which no guard overrules."""


class Judged(NamedTuple):
    """One reading of a guard on a timeline."""

    step: int
    reading: Reading
    final: bool
    """Taken beside an answer, which no guard overrules."""


class Halt(NamedTuple):
    """Where a guard halts the run, if it is the first to do so."""

    step: int
    watches: State
    """Parsing: nothing of the step was executed; Observing: all of it was."""
    reading: Reading


class Seen(NamedTuple):
    """What one guard made of the run."""

    halt: Halt | None
    """None: it lets the run pass."""
    closest: Reading | None
    """The reading before the halt that came closest to its limit, the first of them; None: there was none."""
    closest_step: int
    last: Reading | None
    """The reading that was taken last: the halt's, if there is one; None: it was never judged."""
    last_step: int


@attrs.frozen
class Shadow:
    """A recorded run, and what each guard made of it."""

    steps: int
    """Steps, which is model calls."""
    tool_calls: int
    """Calls that were asked for."""
    tokens: tuple[int | None, ...]
    """Tokens read and written up to the end of each step, from step 1; None from the first reply that does not tell them."""
    end: str | None
    """The halt reason of the run without guards; None: it does not end."""
    seen: tuple[Seen, ...]
    """One for each guard, in the order in which they were given."""


def shadow(recording: Recording, guards: Sequence[Guard]) -> Shadow:
    """The recording under each of these guards alone. Raises ``UnexpectedEvent`` for events that no run can have had."""
    return shadow_of(replay(recording, ()), guards)


def shadow_of(run: Run, guards: Sequence[Guard]) -> Shadow:
    """The same of a run that was made without guards."""
    timeline = timeline_of(run)
    parts: dict[tuple[tuple[type, ...], State], tuple[Moment, ...]] = {}
    seen = []
    for guard in guards:
        kinds, watches = guard.folds, guard.watches
        part = parts.get((kinds, watches))
        if part is None:  # guards that differ in their limits alone look at the same part of the timeline
            part = parts[kinds, watches] = tuple([moment for moment in timeline if _concerns(moment, kinds, watches)])
        seen.append(follow(guard, part))
    calls = sum(len(decision.calls) for decision in run.decisions if type(decision) is ToolCalls)
    return Shadow(run.step, calls, _tokens(run), run.reason, tuple(seen))


def timeline_of(run: Run) -> tuple[Moment, ...]:
    """The timeline of a run without guards, read off its record: what the machine shows guards, and where it judges them, in its order."""
    return tuple(_moments(run))


def _moments(run: Run) -> Iterator[Moment]:
    yield Moment(0, Started(run.tools, run.at))
    decisions = iter(run.decisions)
    decision: Decision | None = None
    event: Event | None = None
    for entry in run.log:
        if not isinstance(entry, Taken):
            event = entry
            continue
        if event is not None:  # the edge that was taken on it tells its step
            yield Moment(entry.step, event)
            if type(event) is ModelReplied:
                decision = next(decisions)
                yield Moment(entry.step, decision)
            event = None
        elif (state := _JUDGED.get(entry.edge)) is not None:
            yield Moment(entry.step, None, state, final=state == PARSING and type(decision) is Final)


def readings(guard: Guard, timeline: Iterable[Moment]) -> Iterator[Judged]:
    """Every reading of the guard along the timeline, though it halts nothing."""
    fold, judge, watches = guard.fold, guard.judge, guard.watches
    kinds = frozenset(guard.folds)
    memory = guard.start()
    judged: object = _NOTHING
    reading: Reading | None = None
    for step, fact, state, final in timeline:
        if fact is not None:
            if not kinds or type(fact) in kinds:
                memory = fold(memory, fact, step)
        elif state == watches:
            if reading is None or memory is not judged:  # judging is pure: the same memory gives the same reading
                judged, reading = memory, judge(memory)
            yield Judged(step, reading, final)


_NOTHING = object()
"""No guard's memory."""


def follow(guard: Guard, timeline: Iterable[Moment]) -> Seen:
    """What the guard makes of the run, up to where it halts it."""
    closest: Reading | None = None
    last: Reading | None = None
    closest_step = step = 0
    for step, reading, final in readings(guard, timeline):
        last = reading
        if reading.trips and not final:
            return Seen(Halt(step, guard.watches, reading), closest, closest_step, reading, step)
        if closest is None or reading.limit - reading.value < closest.limit - closest.value:
            closest, closest_step = reading, step
    return Seen(None, closest, closest_step, last, step)


def first_halt(order: Iterable[int], seen: Sequence[Seen]) -> tuple[int, Halt] | None:
    """Which guard halts a run that all of them watch, and where: its index in ``seen``, and the halt; None: none does.

    ``order`` holds the guards' indices as ``table_order`` gives them: Parsing comes before Observing, and within both the order of
    the table decides.
    """
    first: tuple[int, Halt] | None = None
    for i in order:
        halt = seen[i].halt
        if halt is not None and (first is None or _when(halt) < _when(first[1])):
            first = i, halt
    return first


def table_order(guards: Sequence[Guard]) -> tuple[int, ...]:
    """The indices of the guards in the order of the table. Raises ``ValueError`` as ``rows_for`` does."""
    places = {guard.reason: i for i, guard in enumerate(guards)}
    return tuple([places[guard.reason] for guard in wire(guards).guards])


def _when(halt: Halt) -> tuple[int, bool]:
    return halt.step, halt.watches == OBSERVING


def _concerns(moment: Moment, kinds: tuple[type, ...], watches: State) -> bool:
    return moment.judged == watches if moment.fact is None else not kinds or type(moment.fact) in kinds


def _tokens(run: Run) -> tuple[int | None, ...]:
    """Up to the end of each step."""
    spent: list[int | None] = [0] * run.step
    for reply, step in _replies(run):
        spent[step - 1] = tokens_of(reply)
    return tuple(accumulate(spent, lambda total, more: None if total is None or more is None else total + more))


def _replies(run: Run) -> Iterator[tuple[Reply, int]]:
    for event, taken in zip(run.log, run.log[1:], strict=False):
        if type(event) is ModelReplied and isinstance(taken, Taken):
            yield event.reply, taken.step


def tokens_of(reply: Reply) -> int | None:
    """The tokens of one reply, read and written; None where it does not tell both."""
    usage = reply.usage
    read, written = (usage.prompt_tokens, usage.completion_tokens) if usage else (None, None)
    return None if read is None or written is None or read < 0 or written < 0 else read + written
