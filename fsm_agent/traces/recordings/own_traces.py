"""The package's own traces as recordings: each reply is told with what its protocol took it for.

A trace of a run that did not end, or that a guard halted, ends as every recording does that simply ends. Of a run that had a last chance
it is what came before it. Retries, approvals and summaries are left out: a recording tells what was said and done.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import assert_never

import msgspec

from fsm_agent.events import (
    ApprovalAsked,
    ApprovalGiven,
    AttemptFailed,
    ContextCompacted,
    Event,
    Final,
    Malformed,
    ModelFailed,
    ModelReplied,
    Observation,
    RecordingEnded,
    Reply,
    Said,
    ToolCalls,
    ToolRequest,
    ToolsFailed,
    ToolsReturned,
)
from fsm_agent.machine import Taken, UnexpectedEvent
from fsm_agent.protocols import Protocol
from fsm_agent.table import HALTED, ROWS
from fsm_agent.traces.load import load
from fsm_agent.traces.record import Trace, TraceError
from fsm_agent.traces.recordings.base import Damaged, Ending, Recording, RecordingError
from fsm_agent.traces.recordings.peek import first_run

_ENDINGS: Mapping[str, Ending] = {
    "final_answer": "answer",
    "max_steps": "cap",
    "model_error": "model_error",
    "retries_exhausted": "model_error",
    "tools_failed": "unknown",
    "cancelled": "cancelled",
    "cancelled_executing": "cancelled",
    "recording_ended": "unknown",
    "recording_ended_executing": "unknown",
}
"""By the id of the edge into ``Halted``; every other one is a guard's."""
_LAST_CHANCES = frozenset(row.id for row in ROWS if row.guard == "has_last_chance")
_GOES_ON = frozenset(row.id for row in ROWS if row.dest != HALTED)


class OwnTraces:
    """The reader."""

    name = "trace"

    def recognises(self, head: bytes, _path: Path, /) -> bool:
        return isinstance(first_run(head).get("trace"), int)

    def read(self, path: Path, is_error: re.Pattern[str] | None = None) -> Iterator[Recording | Damaged]:
        try:
            yield _recording(load(path), path.stem, is_error)
        except TraceError as error:
            where = "" if str(error).startswith(str(path)) else f"{path}: "
            raise RecordingError(f"{where}{error}") from None
        except UnexpectedEvent as error:
            raise RecordingError(f"{path}: these events belong to no run: {error}") from None


def _recording(trace: Trace, name: str, is_error: re.Pattern[str] | None) -> Recording:
    run = trace.new_run(())
    events: list[Event] = []
    for event in _before_last_chance(trace):
        run.feed(event)
        match event:
            case AttemptFailed(error=error, message=message, at=at) if run.reason is not None:
                events.append(ModelFailed(error, message, at))
            case AttemptFailed() | ContextCompacted() | ApprovalAsked() | ApprovalGiven():
                continue
            case ToolsFailed(observations=observations, at=at):
                events.append(ToolsReturned(observations, at))
            case ModelReplied(reply=reply, at=at):
                events.append(ModelReplied(_as_recorded(reply, run.protocol), at))
            case ToolsReturned(observations=observations, at=at) if is_error is not None:
                events.append(ToolsReturned(tuple(_judged(each, is_error) for each in observations), at))
            case _:
                events.append(event)
    if run.reason in {None, "tools_failed"}:
        events.append(RecordingEnded())
    edge = trace.edges[-1].edge if trace.edges else ""
    halted = bool(edge) and edge not in _GOES_ON
    told = {"title": trace.header.title, "halted": edge if halted else "", "protocol": trace.header.protocol, "cut_off": trace.cut_off}
    return Recording(
        id=name,
        source=OwnTraces.name,
        task=trace.header.task,
        events=tuple(events),
        tools=trace.header.tools,
        ending=_ENDINGS.get(edge, "guard") if halted else "unknown",
        model=next((event.reply.model for event in events if isinstance(event, ModelReplied) and event.reply.model), None),
        extra={key: value for key, value in told.items() if value},
    )


def _before_last_chance(trace: Trace) -> Iterator[Event]:
    for entry in trace.log:
        if not isinstance(entry, Taken):
            yield entry
        elif entry.edge in _LAST_CHANCES:
            return


def _as_recorded(reply: Reply, protocol: Protocol) -> Reply:
    """The reply with its meaning in ``taken_as`` and in structured calls, so that the ``recorded`` protocol reads the same from it."""
    match protocol.parse(reply):
        case Final(answer=answer):
            return msgspec.structs.replace(reply, text=answer, tool_calls=(), taken_as="answer")
        case ToolCalls(calls=calls, thought=thought):
            requests = tuple(ToolRequest(call.id, call.name, msgspec.json.encode(call.arguments).decode()) for call in calls)
            return msgspec.structs.replace(reply, text=thought, tool_calls=requests, taken_as=None)
        case Said(text=text):
            return msgspec.structs.replace(reply, text=text, tool_calls=(), taken_as="talk")
        case Malformed(kind=kind):
            return msgspec.structs.replace(reply, taken_as=None if kind == "empty" else "unparseable")
        case decision:
            assert_never(decision)


def _judged(observation: Observation, is_error: re.Pattern[str]) -> Observation:
    failed = observation.kind == "ok" and is_error.search(observation.text)
    return Observation(observation.tool, observation.text, "tool_error") if failed else observation
