"""Steps in a few words, for tests of guards: each is the events that one step brings to a run of the recorded protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from fsm_agent.events import (
    Event,
    ModelReplied,
    Observation,
    ObservationKind,
    Reply,
    ToolRequest,
    ToolSpec,
    ToolsReturned,
    Usage,
    UserSpoke,
)
from fsm_agent.guards import Guard, Reading
from fsm_agent.machine import Run, Taken
from fsm_agent.protocols import RecordedProtocol

Events = tuple[Event, ...]

FINAL: Events = (ModelReplied(Reply("42", taken_as="answer")),)
EMPTY: Events = (ModelReplied(Reply(" \n")),)
CUT: Events = (ModelReplied(Reply("so I", finish_reason="length")),)


def batch(*calls: tuple[str, dict[str, Any], str, ObservationKind]) -> Events:
    """Calls with what they came to: name, arguments, text, kind."""
    requests = tuple(ToolRequest("", name, msgspec.json.encode(arguments).decode()) for name, arguments, _, _ in calls)
    return ModelReplied(Reply("", requests)), ToolsReturned(tuple(Observation(name, text, kind) for name, _, text, kind in calls))


def did(name: str = "look", text: str = "nothing", **arguments: Any) -> Events:
    """One call that succeeds."""
    return batch((name, arguments, text, "ok"))


def failed(name: str = "look", text: str = "TOOL_ERROR: no", kind: ObservationKind = "tool_error", **arguments: Any) -> Events:
    """One call that does not."""
    return batch((name, arguments, text, kind))


def malformed(text: str = "I think") -> Events:
    return (ModelReplied(Reply(text, taken_as="unparseable")),)


def said(text: str = "how are you?") -> Events:
    return (ModelReplied(Reply(text)),)


def spoke(text: str = "go on") -> Events:
    return (UserSpoke(text),)


def charged(usage: Usage | None, name: str = "look", **arguments: Any) -> Events:
    """One call that succeeds, of a reply that told its usage."""
    replied, returned = did(name, **arguments)
    assert isinstance(replied, ModelReplied)
    return ModelReplied(msgspec.structs.replace(replied.reply, usage=usage)), returned


def play(guards: Guard | Sequence[Guard], *steps: Events, tools: Sequence[ToolSpec] = ()) -> Run:
    """The run after these steps, or at the halt before."""
    run = Run("task", guards=(guards,) if isinstance(guards, Guard) else guards, protocol=RecordedProtocol(), tools=tuple(tools))
    for step in steps:
        for event in step:
            if run.effect is not None:
                run.feed(event)
    return run


def end(run: Run) -> tuple[str | None, int]:
    """The halt reason and the step."""
    return run.reason, run.step


def readings(run: Run, reason: str) -> list[Reading]:
    """Every reading of the guard, in order."""
    return [reading for entry in run.log if isinstance(entry, Taken) for reading in entry.readings if reading.guard == reason]


def values(run: Run, reason: str) -> list[float]:
    """The value of each of them."""
    return [reading.value for reading in readings(run, reason)]
