"""The sync driver: ``run`` asks the model, runs the tools, and feeds the machine until it has halted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike

import attrs

from fsm_agent.drivers.calls import make_calls
from fsm_agent.drivers.interrupts import Interrupts
from fsm_agent.events import AskModel, CallTools, Cancelled, Event, Message, ModelFailed, ModelReplied, ToolSpec, ToolsReturned
from fsm_agent.guards import Deadline, Guard, classic
from fsm_agent.language import Language, language, locale_language
from fsm_agent.machine import Run
from fsm_agent.models.base import AnyModel, ask
from fsm_agent.outcome import answer_of, message_of
from fsm_agent.protocols import PROTOCOLS, Protocol
from fsm_agent.text import well_formed
from fsm_agent.tools import Tool
from fsm_agent.tools.base import described
from fsm_agent.traces.record import Trace, header_of
from fsm_agent.traces.writer import TraceWriter

Hook = Callable[[Run], None]
"""Called after every event that the run took."""


@attrs.frozen
class Result:
    """How a run ended."""

    reason: str
    """The halt reason; it compares equal to its name, such as ``final_answer``."""
    answer: str | None
    """The model's answer; None where it gave none."""
    message: str
    """Why the run halted, in one sentence; the answer itself where it gave one."""
    model_calls: int
    steps: int
    """Steps begun: a step is one model call and all that follows it."""
    trace: Trace
    """Everything that happened, and every edge taken with its readings."""


def run(
    task: str,
    *,
    model: AnyModel,
    tools: Iterable[Tool] = (),
    guards: Sequence[Guard] | None = None,
    protocol: str | Protocol = "line",
    lang: str | None = None,
    trace: str | PathLike[str] | None = None,
    title: str = "",
    hook: Hook | None = None,
    max_parallel: int = 8,
) -> Result:
    """Run an agent on ``task`` until it halts.

    ``guards`` are ``classic()`` by default; ``lang`` (``en`` or ``zh``) is the locale's; ``trace`` names a file to which the record is
    written as the run goes. The calls of one reply are made at the same time, at most ``max_parallel`` of them. A model that raises
    halts the run as ``model_error``; a tool that raises is an observation.
    Raises ``KeyboardInterrupt`` after Ctrl-C, when the halt has been recorded; ``OSError`` where the trace cannot be written;
    ``ValueError`` for two tools of one name, an unknown protocol or language.
    """
    tongue = language(lang or locale_language())
    named = by_name(tools)
    form = _protocol(protocol, tongue)
    specs = tuple(each.spec for each in named.values())
    machine = Run(well_formed(task), guards=classic() if guards is None else guards, protocol=form, tools=specs, at=time.time())
    record = Trace(header_of(machine, title), machine.log)
    with TraceWriter(record, trace) as writer, Interrupts() as interrupts:
        drive(machine, model, named, interrupts, (writer.write, *((hook,) if hook else ())), max_parallel=max_parallel)
    return Result(str(machine.reason), answer_of(machine), message_of(machine, tongue), machine.step, machine.step, record)


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
                try:
                    with interrupts.allowed():
                        event = _ask(model, messages, told if machine.protocol.sends_tools else ())
                except KeyboardInterrupt as error:
                    interrupts.open = False
                    cancelled, event = error, Cancelled(at=time.time())
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
    except Exception as error:  # noqa: BLE001  # whatever a model raises is an event of the run
        return ModelFailed(type(error).__name__, described(error), time.time())
    return ModelReplied(reply, time.time())


def deadline_of(machine: Run) -> float | None:
    """When the run's time is up, by ``time.monotonic()``; None: it has no deadline."""
    limits = [guard.deadline_s for guard in machine.wiring.guards if isinstance(guard, Deadline)]
    passed = time.time() - machine.at if machine.at is not None else 0
    return time.monotonic() + limits[0] - passed if limits else None


def by_name(tools: Iterable[Tool]) -> dict[str, Tool]:
    """The tools by name. Raises ``ValueError`` for two of one name, ``TypeError`` for what is not a tool."""
    named: dict[str, Tool] = {}
    for each in tools:
        if not isinstance(each, Tool):
            raise TypeError(f"{each!r} is not a tool; decorate the function with @tool")
        if each.name in named:
            raise ValueError(f"two tools have the name {each.name!r}; give one of them another with @tool(name=...)")
        named[each.name] = each
    return named


def _protocol(protocol: str | Protocol, lang: Language) -> Protocol:
    if isinstance(protocol, Protocol):
        return protocol
    if protocol not in PROTOCOLS:
        raise ValueError(f"protocol is {protocol!r}; known are {', '.join(PROTOCOLS)}")
    return PROTOCOLS[protocol](lang)
