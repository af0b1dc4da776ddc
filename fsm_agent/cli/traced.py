"""Trace files as commands replay them: what is wrong is told with the file and the line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs

import fsm_agent.guards
from fsm_agent.guards import Guard
from fsm_agent.machine import Run, Taken, UnexpectedEvent
from fsm_agent.traces.load import line_of
from fsm_agent.traces.record import GuardSpec, Trace, TraceError
from fsm_agent.traces.verify import verify


def replayed(path: str | Path, trace: Trace, guards: Sequence[Guard] | None = None) -> Run:
    """The trace's events, fed to a new run; under ``guards``, in place of its own, until one of them halts it.

    Raises ``TraceError`` with the file and the line for a header that makes no run, and for an event that no run can have there.
    """
    run = new_run_of(path, trace, guards)
    for index, entry in enumerate(trace.log):
        if isinstance(entry, Taken):
            continue
        try:
            effect = run.feed(entry)
        except UnexpectedEvent as error:
            raise TraceError(f"{path}, line {line_of(path, trace.line_of(index))}: these events belong to no run: {error}") from None
        if effect is None and guards is not None:
            break
    return run


def new_run_of(path: str | Path, trace: Trace, guards: Sequence[Guard] | None = None) -> Run:
    """As ``Trace.new_run``; the ``TraceError`` names the file and the line of the header."""
    try:
        for spec in trace.header.guards if guards is None else ():
            _check_limits(spec)
        return trace.new_run(guards)
    except TraceError as error:
        raise TraceError(f"{path}, line {line_of(path, 1)}: {error}") from None


def _check_limits(spec: GuardSpec) -> None:
    """Raises ``TraceError`` for limits that are not those of the guard: one is unknown, or one is missing."""
    kind = getattr(fsm_agent.guards, spec.guard, None)
    if not (isinstance(kind, type) and issubclass(kind, Guard) and attrs.has(kind)):
        return
    fields = attrs.fields_dict(kind)
    if unknown := [name for name in spec.limits if name not in fields]:
        known = ", ".join(fields) or "none"
        raise TraceError(f"the guard {spec.guard} ({spec.reason}) has no limit {unknown[0]!r}; it has {known}")
    if missing := [name for name, field in fields.items() if field.default is attrs.NOTHING and name not in spec.limits]:
        raise TraceError(f"the guard {spec.guard} ({spec.reason}) needs the limit {missing[0]!r}")


def warning_of(path: str | Path, trace: Trace) -> str:
    """What does not hold in the record, in a line; empty: nothing, or only what a cut took."""
    verdict = verify(trace)
    if verdict.line is not None:
        return f"{path}: line {line_of(path, verdict.line)} differs from what its events give; drawn as replayed"
    if missing := len(verdict.run.log) - len(trace.log):
        return f"{path}: the last {missing} of the edges that its events give are not there; drawn as replayed"
    return ""
