"""Does a record hold? Its events, replayed, must give the same edges with the same readings."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from fsm_agent.guards import Guard
from fsm_agent.machine import Run, Taken, UnexpectedEvent
from fsm_agent.protocols import Protocol
from fsm_agent.traces.record import Trace, encode


@attrs.frozen
class Verdict:
    """What verifying a trace found."""

    run: Run
    """The replayed run."""
    line: int | None = None
    """The first line of the file that differs (the header is line 1); None: none does."""
    recorded: str = ""
    """That line as it stands."""
    replayed: str = ""
    """What the replay gives in its place."""


def verify(trace: Trace, guards: Sequence[Guard] | None = None, *, protocol: Protocol | None = None) -> Verdict:
    """Replay the trace and compare it, line by line, under its own guards and protocol or these.

    Raises ``TraceError`` as ``Trace.new_run`` does.
    """
    run = trace.new_run(guards, protocol=protocol)
    for at, entry in enumerate(trace.log):
        line = trace.line_of(at)
        if not isinstance(entry, Taken) and at == len(run.log):
            try:
                run.feed(entry)
            except UnexpectedEvent as error:
                return Verdict(run, line, _text(entry), str(error))
        if at >= len(run.log):
            return Verdict(run, line, _text(entry), "nothing: no edge is taken here")
        if run.log[at] != entry:
            return Verdict(run, line, _text(entry), _text(run.log[at]))
    return Verdict(run)


def _text(entry: object) -> str:
    return encode(entry).decode().rstrip("\n")  # type: ignore[arg-type]  # an entry of a log
