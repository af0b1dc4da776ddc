"""The sync driver: ``run`` asks the model, runs the tools, and feeds the machine until it has halted."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike

from fsm_agent.drivers.calls import make_calls
from fsm_agent.drivers.interrupts import Interrupts
from fsm_agent.drivers.setup import Hook, Result, deadline_of, prepare
from fsm_agent.events import AskModel, CallTools, Cancelled, Event, Message, ModelFailed, ModelReplied, ToolSpec, ToolsReturned
from fsm_agent.guards import Guard
from fsm_agent.machine import Run
from fsm_agent.models.base import AnyModel, ChatModel, ask
from fsm_agent.protocols import Protocol
from fsm_agent.tools import Tool
from fsm_agent.tools.base import described
from fsm_agent.traces.writer import TraceWriter


def run(
    task: str,
    *,
    model: AnyModel | str,
    tools: Iterable[Tool] = (),
    guards: Sequence[Guard] | None = None,
    protocol: str | Protocol | None = None,
    lang: str | None = None,
    trace: str | PathLike[str] | None = None,
    title: str = "",
    hook: Hook | None = None,
    max_parallel: int = 8,
) -> Result:
    """Run an agent on ``task`` until it halts.

    ``model``: a callable from the messages to a reply, an adapter, or a name such as ``openai:gpt-5``. ``guards`` are ``classic()`` by
    default; ``protocol`` is ``line``, or ``function_calling`` for a model by name; ``lang`` (``en`` or ``zh``) is the locale's; ``trace``
    names a file to which the record is written as the run goes. The calls of one reply are made at the same time, at most
    ``max_parallel`` of them. A model that raises halts the run as ``model_error``; a tool that raises is an observation.
    Raises ``KeyboardInterrupt`` after Ctrl-C, when the halt has been recorded; ``OSError`` where the trace cannot be written;
    ``ValueError`` for two tools of one name, an unknown protocol, language or model, and a trace that another run is writing;
    ``TypeError`` for an async tool (``arun`` takes it), and for what is no task, tool or guard; ``GuardError`` for a user's guard that
    raises or gives no reading.
    """
    setup = prepare(task, model, tools, guards, protocol, lang, title)
    if waits := [each.name for each in setup.tools.values() if each.is_async]:
        raise TypeError(f"the tool {waits[0]} is async; run it with arun")
    try:
        with TraceWriter(setup.record, trace) as writer, Interrupts() as interrupts:
            hooks = (writer.write, *((hook,) if hook else ()))
            drive(setup.machine, setup.model, setup.tools, interrupts, hooks, max_parallel=max_parallel)
    finally:
        if setup.owned and isinstance(setup.model, ChatModel):
            setup.model.close()
    return setup.result()


def drive(
    machine: Run,
    model: AnyModel,
    tools: Mapping[str, Tool],
    interrupts: Interrupts,
    hooks: Sequence[Hook],
    *,
    max_parallel: int = 8,
) -> None:
    """Perform the machine's effects until it has halted. Raises ``KeyboardInterrupt`` after recording it."""
    cancelled: KeyboardInterrupt | None = None
    until = deadline_of(machine)
    for hook in hooks:
        hook(machine)
    while (effect := machine.effect) is not None:
        event: Event
        match effect:
            case AskModel(messages=messages, tools=told):
                asked = False
                try:
                    with interrupts.allowed():
                        asked = True
                        event = _ask(model, messages, told if machine.protocol.sends_tools else ())
                except KeyboardInterrupt as error:
                    interrupts.open = False
                    cancelled, event = error, Cancelled(at=time.time(), asked=asked)
            case CallTools(calls=calls):
                outcome = make_calls(tools, calls, machine.protocol.lang, interrupts, max_parallel=max_parallel, until=until)
                cancelled = outcome.cancelled
                event = (Cancelled if cancelled else ToolsReturned)(outcome.observations, time.time())
        machine.feed(event)
        for hook in hooks:
            hook(machine)
    if cancelled is not None:
        raise cancelled


def _ask(model: AnyModel, messages: Sequence[Message], tools: tuple[ToolSpec, ...]) -> ModelReplied | ModelFailed:
    try:
        reply = ask(model, messages, tools)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  # whatever a model raises is an event of the run, SystemExit too
        return ModelFailed(type(error).__name__, described(error), time.time())
    return ModelReplied(reply, time.time())
