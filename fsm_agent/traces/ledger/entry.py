"""A recorded run as rows of the ledger's tables."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple, assert_never, get_args

import attrs

from fsm_agent.events import Cancelled, Decision, Final, Malformed, ModelFailed, ModelReplied, Reply, Said, ToolCalls, ToolsReturned, Usage
from fsm_agent.guards import Guard, Reading
from fsm_agent.machine import Run, Taken
from fsm_agent.text import first_line, well_formed
from fsm_agent.traces.ledger.body import pack
from fsm_agent.traces.recordings import Recording
from fsm_agent.traces.recordings.base import Ending, Outcome
from fsm_agent.traces.replay import replay

_MOST = 10**15
"""Tokens or dollars beyond which a recording is not believed: no run spends as much, and the sum must fit a column."""

GuardRow = tuple[str, str, str]
"""A guard's reason, class and limits (JSON)."""


class Judged(NamedTuple):
    """A reading that no run was halted by, and where it was made."""

    guard: Guard
    step: int
    reading: Reading
    final: bool = False
    """It was made beside an answer, which no guard overrules."""


Judge = Callable[[Run], Iterable[Judged]]
"""Judges many guards over a run that was made without guards, as if each were there and halted nothing."""

Verdict = tuple[Outcome, float | None, Ending]
"""How a recorded run was judged: its outcome, score and ending."""


class StepRow(NamedTuple):
    """A row of ``steps``, without its run."""

    step: int
    decision: str
    text: str
    is_error: bool
    tokens: int | None


@attrs.frozen
class Entry:
    """A run that is ready to be written."""

    key: str
    run: tuple[Any, ...]
    """The columns of ``runs`` after the key, in order."""
    verdict: Verdict
    body: bytes
    steps: tuple[StepRow, ...]
    edges: tuple[tuple[int, int, str], ...]
    """Position, step, edge."""
    readings: tuple[tuple[GuardRow, int, float, float, bool], ...]
    """Guard, step, value, limit, and whether it would have halted the run there."""


def entry_of(recording: Recording, file: str, key: str, judge: Judge) -> Entry:
    """The recording, fed through a machine without guards and judged by those of ``judge``, which can be hashed. ``key`` is its ``key_of``.

    Raises ``ValueError`` for what cannot be kept, ``UnexpectedEvent`` for events that no run can have.
    """
    run = replay(recording, ())
    steps = tuple(_steps(run))
    outcome, score, ending = verdict = verdict_of(recording)
    replies = [entry.reply.usage or Usage() for entry in run.log if isinstance(entry, ModelReplied)]
    calls = [len(decision.calls) for decision in run.decisions if isinstance(decision, ToolCalls)]
    columns = (
        recording.source, file, recording.id, recording.task, recording.model, outcome, score, ending, run.step,
        len(replies) + sum(isinstance(entry, ModelFailed) for entry in run.log), sum(calls), sum(step.is_error for step in steps),
        _sum(usage.prompt_tokens for usage in replies), _sum(usage.completion_tokens for usage in replies),
        sum(_tokens(usage) is None for usage in replies),
        _sum(usage.cost for usage in replies), sum(_known(usage.cost) is None for usage in replies), run.reason,
    )  # fmt: skip
    edges = [(entry.step, entry.edge) for entry in run.log if isinstance(entry, Taken)]
    readings = tuple(
        (_guard_row(guard), step, reading.value, reading.limit, reading.trips and not final)
        for guard, step, reading, final in judge(run)
        if reading.trips or (reading.value > 0 and reading.evidence)
    )
    return Entry(key, columns, verdict, pack(recording), steps, tuple((i, *edge) for i, edge in enumerate(edges, 1)), readings)


def verdict_of(recording: Recording) -> Verdict:
    """How it was judged. A score that is no number is none. Raises ``ValueError`` for a word that there is not."""
    for word, words in ((recording.outcome, get_args(Outcome)), (recording.ending, get_args(Ending))):
        if word not in words:
            raise ValueError(f"{word!r} is none of {', '.join(words)}")
    score = None if recording.score is None or math.isnan(recording.score) else float(recording.score)
    return recording.outcome, score, recording.ending


@lru_cache(maxsize=256)
def _guard_row(guard: Guard) -> GuardRow:
    return guard.reason, type(guard).__name__, json.dumps(guard.as_limits())


def _known(number: float | None) -> float | None:
    """The number; None where it cannot be what it says."""
    return number if number is not None and 0 <= number <= _MOST else None


def _tokens(usage: Usage) -> int | None:
    """Prompt and completion; None where either is not known."""
    prompt, completion = _known(usage.prompt_tokens), _known(usage.completion_tokens)
    return None if prompt is None or completion is None else int(prompt + completion)


def _sum(numbers: Iterable[float | None]) -> float | None:
    """Of those that are known; None: none is."""
    known = [number for number in map(_known, numbers) if number is not None]
    return sum(known) if known else None


def _steps(run: Run) -> Iterator[StepRow]:
    decisions = iter(run.decisions)
    step = StepRow(0, "", "", is_error=False, tokens=None)
    for event in run.log:
        begun = step
        match event:
            case ModelReplied(reply=reply):
                begun = _begun(step.step + 1, next(decisions), reply)
            case ModelFailed(error=error, message=message):
                begun = StepRow(step.step + 1, "model_failed", _line(f"{error}: {message}"), is_error=True, tokens=None)
            case Cancelled(observations=()):
                begun = StepRow(step.step + 1, "cancelled", "", is_error=False, tokens=None)
            case ToolsReturned(observations=observations) | Cancelled(observations=observations):
                step = begun = step._replace(is_error=all(observation.is_error for observation in observations))
            case _:
                continue
        if begun is not step and step.step:
            yield step
        step = begun
    if step.step:
        yield step


def _begun(number: int, decision: Decision, reply: Reply) -> StepRow:
    tokens = _tokens(reply.usage or Usage())
    match decision:
        case ToolCalls(calls=calls):
            return StepRow(number, "calls", _line(", ".join(map(str, calls))), is_error=False, tokens=tokens)
        case Final(answer=answer):
            return StepRow(number, "final", _line(answer), is_error=False, tokens=tokens)
        case Said(text=text):
            return StepRow(number, "said", _line(text), is_error=False, tokens=tokens)
        case Malformed(kind=kind):
            return StepRow(number, kind, _line(reply.text), is_error=True, tokens=tokens)
        case _:
            assert_never(decision)


def _line(text: str) -> str:
    return well_formed(first_line(text))
