"""Runs for tests of the machine's edges: each event is fed to the machine, to its twin that is built the library's own way, and to copies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from fsm_agent.events import Event, ModelReplied, Observation, ObservationKind, Reply, ToolRequest, ToolsReturned, Usage
from fsm_agent.guards import Guard, classic
from fsm_agent.machine import Run, Taken, UnexpectedEvent
from fsm_agent.options import Options
from fsm_agent.protocols import FunctionCallingProtocol
from fsm_agent.traces import Trace, verify
from fsm_agent.traces.record import decode_entry, decode_header, encode, header_of

UNLIKE = frozenset({"wiring", "edge"})
"""Of a run: what is not the same in its twin."""


def snapshot(run: Run) -> dict[str, object]:
    """All that a run is, its lists and mappings copied."""
    values = {name: getattr(run, name) for name in Run.__slots__ if name not in UNLIKE}
    copied = {name: value.copy() if isinstance(value, list | dict) else value for name, value in values.items()}
    return copied | {"edge": run.edge and run.edge.row, "accepts": run.accepts}


def started(options: Options, guards: Sequence[Guard] = classic(), *, stock: bool = False, **setup: Any) -> Run:
    """A run to which nothing has happened, of the function calling protocol."""
    return Run("task", guards=guards, protocol=FunctionCallingProtocol(), options=options, stock=stock, **setup)


def fed(options: Options, *events: Event, guards: Sequence[Guard] = classic(), **setup: Any) -> Run:
    """The run after these events.

    On the way, its twin and a copy of it must do the same on every event, and what is fed to a copy must leave the original as it
    was. In the end its record must be read back as it was written, replay to the same run, and hold.
    """
    run, twin = (started(options, guards, stock=stock, **setup) for stock in (False, True))
    assert snapshot(run) == snapshot(twin)
    for event in events:
        before = snapshot(run)
        copy = run.copy()
        assert snapshot(copy) == before
        copy.feed(event)
        assert snapshot(run) == before
        after = snapshot(copy)
        for each in (run, twin):
            each.feed(event)
            assert snapshot(each) == after
        assert snapshot(copy) == after
    recorded(run)
    return run


def recorded(run: Run) -> None:
    """The record of ``run`` holds, whatever has become of the run so far."""
    lines = [encode(entry) for entry in (header_of(run), *run.log)]
    log: list[Any] = [decode_entry(line) for line in lines[1:]]
    trace = Trace(decode_header(lines[0]), log)
    assert trace.header.options == run.options
    assert trace.log == run.log
    again = trace.replay()
    assert {**snapshot(again), "effect": None, "memories": None} == {**snapshot(run), "effect": None, "memories": None}
    assert again.effect == run.effect
    assert again.wiring.rows == run.wiring.rows
    assert verify(trace).line is None


def refused(run: Run, event: Any, message: str) -> None:
    """The event is refused with these words, in both machines, and the run is as it was."""
    twin = started(run.options, run.wiring.guards, stock=True, tools=run.tools)
    for past in run.log:
        if not isinstance(past, Taken):
            twin.feed(past)
    for each in (run, twin):
        before = snapshot(each)
        with pytest.raises(UnexpectedEvent, match=f"^{re.escape(message)}$"):
            each.feed(event)
        assert snapshot(each) == before


def path(run: Run) -> list[str]:
    """The edges taken."""
    return [entry.edge for entry in run.log if isinstance(entry, Taken)]


def steps(run: Run) -> list[int]:
    """The step of each edge."""
    return [entry.step for entry in run.log if isinstance(entry, Taken)]


# --- events in a few words -----------------------------------------------------------------------------------------


def says(text: str, usage: Usage | None = None, finish: str | None = None) -> ModelReplied:
    """The model answers."""
    return ModelReplied(Reply(text, usage=usage, finish_reason=finish))


def calls(*arguments: dict[str, Any], tool: str = "add", usage: Usage | None = None, finish: str | None = None) -> ModelReplied:
    """The model calls the tool once with each of these arguments; the ids are x1, x2 and so on."""
    requests = [ToolRequest(f"x{n}", tool, msgspec.json.encode(each).decode()) for n, each in enumerate(arguments, 1)]
    return ModelReplied(Reply("", tuple(requests), usage=usage, finish_reason=finish))


def seen(*texts: str, kind: ObservationKind = "ok", tool: str = "add") -> tuple[Observation, ...]:
    """One observation of each text."""
    return tuple(Observation(tool, text, kind) for text in texts)


def returned(*texts: str, kind: ObservationKind = "ok", tool: str = "add", at: float | None = None) -> ToolsReturned:
    """The tools return."""
    return ToolsReturned(seen(*texts, kind=kind, tool=tool), at)
