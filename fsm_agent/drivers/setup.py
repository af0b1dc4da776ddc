"""What both drivers begin with: the arguments of ``run`` and ``arun`` made into a run, its tools and its record; and its result."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs

from fsm_agent.guards import Deadline, Guard, classic
from fsm_agent.language import Language, language, locale_language
from fsm_agent.machine import Run
from fsm_agent.models.base import AnyModel
from fsm_agent.outcome import answer_of, message_of
from fsm_agent.protocols import PROTOCOLS, Protocol
from fsm_agent.text import well_formed
from fsm_agent.tools import Tool
from fsm_agent.traces.record import Trace, header_of

Hook = Callable[[Run], None]
"""Called when a run begins and after every event that it took."""


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
    trace: Trace = attrs.field(repr=False)
    """Everything that happened, and every edge taken with its readings."""

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        """How a notebook shows it: the path, why it halted, and a table of its steps."""
        from fsm_agent.diagrams.notebook import display

        return display(self)


@attrs.frozen
class Setup:
    """A run that can be driven."""

    machine: Run
    model: AnyModel
    tools: Mapping[str, Tool]
    record: Trace
    owned: bool = False
    """The model was made here from its name, so its connections are closed here."""

    def result(self) -> Result:
        """How the run ended."""
        machine = self.machine
        message = message_of(machine, machine.protocol.lang)
        return Result(str(machine.reason), answer_of(machine), message, machine.step, machine.step, self.record)


def prepare(
    task: str,
    model: AnyModel | str,
    tools: Iterable[Tool],
    guards: Sequence[Guard] | None,
    protocol: str | Protocol | None,
    lang: str | None,
    title: str,
) -> Setup:
    """A run with these arguments; see ``run``. Raises ``ValueError`` or ``TypeError`` for what cannot be meant so."""
    if not isinstance(task, str):
        raise TypeError(f"task is {task!r}; it must be text")
    limits = classic() if guards is None else _guards(guards)
    tongue = language(lang or locale_language())
    named = by_name(tools)
    form = _protocol(protocol or ("function_calling" if isinstance(model, str) else "line"), tongue)
    specs = tuple(each.spec for each in named.values())
    machine = Run(well_formed(task), guards=limits, protocol=form, tools=specs, at=time.time())
    asked: AnyModel
    if isinstance(model, str):
        from fsm_agent.models.named import model_from

        asked = model_from(model)
    else:
        asked = model
    record = Trace(header_of(machine, title), machine.log, own_guards=machine.wiring.guards, own_protocol=form)
    return Setup(machine, asked, named, record, owned=isinstance(model, str))


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


def _guards(guards: object) -> tuple[Guard, ...]:
    if isinstance(guards, Guard):
        raise TypeError(f"guards is one guard, {guards!r}; it must be a tuple of guards, such as (*classic(), guard)")
    if isinstance(guards, str | bytes) or not isinstance(guards, Iterable):
        raise TypeError(f"guards is {guards!r}; it must be a tuple of guards, such as classic()")
    given: tuple[Any, ...] = tuple(guards)
    for each in given:
        if not isinstance(each, Guard):
            made = "; it is a class, and a guard is made by calling it" if isinstance(each, type) else ""
            raise TypeError(f"{each!r} is not a guard{made or '; a guard is a subclass of Guard'}")
        if not attrs.has(type(each)):
            raise TypeError(f"the guard {type(each).__name__} is not an attrs class; decorate it with @attrs.frozen")
    return given


def _protocol(protocol: str | Protocol, lang: Language) -> Protocol:
    if isinstance(protocol, Protocol):
        return protocol
    if protocol not in PROTOCOLS:
        raise ValueError(f"protocol is {protocol!r}; known are {', '.join(PROTOCOLS)}")
    return PROTOCOLS[protocol](lang)
