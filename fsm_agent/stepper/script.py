"""What a stepped run is made from: how it begins, what its model says by itself, and the tools that are there for real."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs
import msgspec

from fsm_agent.events import Event, Final, ModelFailed, ModelReplied, Reply, ToolCalls, ToolRequest
from fsm_agent.language import Language
from fsm_agent.machine import Run
from fsm_agent.models import ScriptedModel
from fsm_agent.models.reply import as_reply
from fsm_agent.models.scripted import ScriptEnded
from fsm_agent.protocols import LineProtocol, Protocol
from fsm_agent.tools import BUILT_IN, Tool
from fsm_agent.traces.record import Trace

Heard = ModelReplied | ModelFailed
"""What comes of asking a model."""

AS_LINES = frozenset({"function_calling", "recorded"})
"""Protocols whose replies are no text that a person could type: for these a line in the line protocol's form is translated."""


@attrs.frozen
class Script:
    """A run that can be stepped through."""

    title: str
    pristine: Run
    """The run before anything happened. It is copied, never fed."""
    heard: Callable[[int], Heard | None]
    """By step, what the model says by itself; None: nothing is known for that step."""
    tools: Mapping[str, Tool]
    """Those that can be called."""
    recorded: tuple[Event, ...] | None = None
    """The events of a recording, which are fed as they stand; None: nothing is recorded, the events are made."""
    why_not: str = ""
    """Why nobody can type a reply here, in one sentence; empty: one can."""

    @property
    def takes_lines(self) -> bool:
        """A reply is typed in the line protocol's form."""
        return self.pristine.protocol.name in AS_LINES | {LineProtocol.name}


def of_scenario(title: str, pristine: Run, model: ScriptedModel, tools: Mapping[str, Tool]) -> Script:
    """The script of a run that is set up for a scenario."""

    def heard(step: int) -> Heard:
        played = ScriptedModel(model.replies, model.then)
        played.calls = step - 1
        try:
            return ModelReplied(as_reply(played(())))
        except ScriptEnded as ended:
            return ModelFailed(type(ended).__name__, str(ended))

    return Script(title, pristine, heard, tools)


def of_trace(trace: Trace, title: str, lang: Language) -> Script:
    """The script of a recorded run. Raises ``TraceError`` for a trace that cannot be replayed.

    A reply can be typed into it where each of its tools is one of the package's own: those of anybody else are not here to be called.
    """
    trace.replay()
    pristine = trace.new_run()
    spoken = [event for event in trace.events if isinstance(event, ModelReplied | ModelFailed)]

    def heard(step: int) -> Heard | None:
        return msgspec.structs.replace(spoken[step - 1], at=None) if step <= len(spoken) else None

    foreign = [spec.name for spec in pristine.tools if spec.name not in BUILT_IN or BUILT_IN[spec.name].spec != spec]
    why_not = (
        lang.say(
            "no reply can be typed here: the tool {name} is not one of the package's own, so what it would return is not known",
            name=foreign[0],
        )
        if foreign
        else ""
    )
    tools = {spec.name: BUILT_IN[spec.name] for spec in pristine.tools if spec.name not in foreign}
    return Script(title, pristine, heard, tools, tuple(trace.events), why_not)


def as_typed(text: str, step: int, protocol: Protocol) -> Reply:
    """What a person typed, as the reply of a model that speaks this protocol.

    Where such a model calls tools apart from its text, a ``TOOL`` or ``FINAL`` line stands for what it would have sent.
    """
    reply = as_reply(text)
    if protocol.name not in AS_LINES:
        return reply
    match LineProtocol().parse(reply):
        case ToolCalls(calls=calls):
            requests = [
                ToolRequest(f"typed-{step}-{i}", call.name, msgspec.json.encode(call.arguments).decode()) for i, call in enumerate(calls)
            ]
            return Reply(tool_calls=tuple(requests))
        case Final(answer=answer):
            return Reply(answer, taken_as="answer")
        case _:
            return reply
