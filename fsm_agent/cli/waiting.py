"""Recorded runs that can be gone on with: whether a file holds one, and the calls about which a person has to say something first."""

from __future__ import annotations

from pathlib import Path

import attrs

from fsm_agent.cli.common import Fault, faults
from fsm_agent.cli.traced import replayed
from fsm_agent.events import AskApproval, CallTools, ToolCall
from fsm_agent.machine import Run
from fsm_agent.traces.load import load
from fsm_agent.traces.notes import CallEnded
from fsm_agent.traces.record import Trace, TraceError


@attrs.frozen
class Waiting:
    """A call that waits for a word."""

    call: ToolCall
    interrupted: bool = False
    """It had begun when the process ended, and what came of it is not known."""


def waiting_calls(trace: Trace, run: Run) -> tuple[Waiting, ...]:
    """The calls that wait, where ``run`` is the trace replayed: for a yes or no, or since nobody knows what came of them."""
    effect = run.effect
    if isinstance(effect, AskApproval):
        return tuple(Waiting(run.keyed(index, effect.calls[index])) for index in effect.asked)
    if not isinstance(effect, CallTools):
        return ()
    again = {spec.name for spec in trace.header.tools if spec.idempotent}
    notes = [note for _, note in trace.notes if note.step == run.step and 0 <= note.index < len(effect.calls)]
    ended = {note.index for note in notes if isinstance(note, CallEnded)}
    open_ = sorted({note.index for note in notes} - ended)
    known = {spec.name for spec in trace.header.tools} - again
    return tuple(Waiting(run.keyed(index, effect.calls[index]), interrupted=True) for index in open_ if effect.calls[index].name in known)


def check_free(path: Path, go_on: str) -> None:
    """Raises ``Fault`` where a new record in this file would destroy something: a run that has not halted, or what is no record.

    ``go_on``: the command that takes up the run in it.
    """
    with faults():
        if not path.is_file() or not path.stat().st_size:
            return
        try:
            halted = replayed(path, load(path)).reason is not None
        except (TraceError, UnicodeDecodeError):
            raise Fault(f"--trace {path}: there is something in it that is no record of a run; name another file, or remove it") from None
    if not halted:
        raise Fault(f"--trace {path}: the run in it has not halted ({go_on} goes on with it); name another file, or remove it")
