"""What both drivers begin with: the arguments of ``run`` and ``arun`` made into a run, its tools and its record; and its result."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from typing import TYPE_CHECKING, Any

import attrs

from fsm_agent.drivers.approvals import Approver, Policy, check_names, checked_policy, may_ask
from fsm_agent.drivers.session import Session
from fsm_agent.drivers.watching import Hook, Recorder, Watcher, watchers_of
from fsm_agent.events import AskApproval, ToolCall
from fsm_agent.guards import CostBudget, Guard, classic
from fsm_agent.guards.combined import Combined
from fsm_agent.language import Language, language, locale_language
from fsm_agent.machine import Run
from fsm_agent.models.base import AnyModel, ChatModel, OnText, is_async
from fsm_agent.options import Options
from fsm_agent.outcome import answer_of, message_of
from fsm_agent.protocols import PROTOCOLS, Protocol
from fsm_agent.text import well_formed
from fsm_agent.tools import Tool
from fsm_agent.traces.record import Trace, header_of
from fsm_agent.traces.writer import TraceWriter

if TYPE_CHECKING:
    from fsm_agent.context import Context


@attrs.frozen
class Result:
    """How a run ended."""

    reason: str
    """The halt reason, such as ``final_answer``; ``awaiting_approval`` where the run has not halted, but waits for a person."""
    answer: str | None
    """The model's answer; None where it gave none. A last chance may give one with another reason than ``final_answer``."""
    message: str
    """Why the run halted, in one sentence; the answer itself where it gave one."""
    model_calls: int
    steps: int
    """Steps begun: a step is one model call and all that follows it."""
    trace: Trace = attrs.field(repr=False)
    """Everything that happened, and every edge taken with its readings."""
    awaiting: tuple[ToolCall, ...] = ()
    """With the reason ``awaiting_approval``: the calls that a person has to agree to, each with its ``key``."""

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        """How a notebook shows it: the path, why it halted, and a table of its steps."""
        from fsm_agent.diagrams.notebook import display

        return display(self)


AWAITING = "awaiting_approval"
"""The reason of a result whose run has not halted, but waits for a person."""

RETRIES = 3
"""How often in a row an adapter is asked again, by default."""

OBSERVATION = 20_000
"""So many characters of an observation an adapter is shown, by default."""


@attrs.frozen
class Choices:
    """What is chosen for a run besides its guards; see ``run``."""

    max_parallel: int = 8
    max_retries: int | None = None
    last_chance: bool = False
    max_observation_chars: int | None = None
    context: Context | None = None
    policy: Policy = attrs.field(default="side_effects", converter=checked_policy)
    approve: Approver | None = None
    on_text: OnText | None = None
    hooks: tuple[Hook | Watcher, ...] = ()

    def __attrs_post_init__(self) -> None:
        for field, least in (("max_parallel", 1), ("max_retries", 0), ("max_observation_chars", 1)):
            value = getattr(self, field)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
                raise TypeError(f"{field} is {value!r}; it must be a whole number")
            if value is not None and value < least:
                raise ValueError(f"{field} is {value}; it must be at least {least}")
        if self.approve is not None and not callable(self.approve):
            raise TypeError(f"approve is {self.approve!r}; it must be a function of an ApprovalRequest")
        if self.on_text is not None and (not callable(self.on_text) or is_async(self.on_text)):
            raise TypeError(f"on_text is {self.on_text!r}; it must be a plain function of text")
        if self.context is not None:
            from fsm_agent.context import Context

            if not isinstance(self.context, Context):
                raise TypeError(f"context is {self.context!r}; it must be a Context, such as KeepLast(10)")

    def options(self, model: AnyModel, tools: Mapping[str, Tool]) -> Options:
        """The options of the machine."""
        behind_server = isinstance(model, ChatModel)
        retries = (RETRIES if behind_server else 0) if self.max_retries is None else self.max_retries
        return Options(
            max_retries=retries,
            approvals=may_ask(self.policy, tools.values()),
            compaction=self.context is not None and self.context.summarises,
            last_chance=self.last_chance,
            tool_servers=any(getattr(tool, "server", None) is not None for tool in tools.values()),
            max_observation_chars=OBSERVATION if self.max_observation_chars is None and behind_server else self.max_observation_chars,
        )

    def session(self, machine: Run, model: AnyModel, tools: Mapping[str, Tool]) -> Session:
        """The run with its world. Raises ``ValueError`` for a policy that names a tool which is not there, and would ask about nothing."""
        check_names(self.policy, tools)
        return Session(
            machine,
            model,
            tools,
            watchers=watchers_of(self.hooks),
            hooked=bool(self.hooks),
            policy=self.policy,
            approve=self.approve,
            context=self.context,
            on_text=self.on_text,
            max_parallel=self.max_parallel,
        )


@attrs.frozen
class Setup:
    """A run that can be driven."""

    session: Session
    record: Trace
    owned: bool = False
    """The model was made here from its name, so its connections are closed here."""

    @contextmanager
    def recording(self, path: str | PathLike[str] | None, read: Trace | None = None) -> Iterator[None]:
        """As a context: the record is written to ``path``; see ``TraceWriter``, which raises what this raises."""
        if path is None:
            yield
            return
        session = self.session
        with TraceWriter(self.record, path, read=read) as writer:
            idempotent = [name for name, tool in session.tools.items() if tool.idempotent]
            session.watchers = (Recorder(writer, idempotent), *session.watchers)
            yield

    def result(self) -> Result:
        """How the run ended, or for whom it waits."""
        machine = self.session.machine
        lang = machine.protocol.lang
        if isinstance(machine.effect, AskApproval):
            waits = tuple(machine.keyed(index, machine.effect.calls[index]) for index in machine.effect.asked)
            told = lang.say("waits for a person to agree to {calls}", calls=", ".join(map(str, waits)))
            return Result(AWAITING, None, told, machine.step, machine.step, self.record, waits)
        return Result(str(machine.reason), answer_of(machine), message_of(machine, lang), machine.step, machine.step, self.record)


def prepare(
    task: str,
    model: AnyModel | str,
    tools: Iterable[Tool],
    guards: Sequence[Guard] | None,
    protocol: str | Protocol | None,
    lang: str | None,
    title: str,
    chosen: Choices,
) -> Setup:
    """A run with these arguments; see ``run``. Raises ``ValueError`` or ``TypeError`` for what cannot be meant so."""
    if not isinstance(task, str):
        raise TypeError(f"task is {task!r}; it must be text")
    limits = classic() if guards is None else _guards(guards)
    tongue = language(lang or locale_language())
    named = by_name(tools)
    form = _protocol(protocol or ("function_calling" if isinstance(model, str) else "line"), tongue)
    asked = asked_model(model)
    check_price(asked, limits, chosen.context)
    machine = Run(
        well_formed(task),
        guards=limits,
        protocol=form,
        tools=tuple(each.spec for each in named.values()),
        options=chosen.options(asked, named),
        run_id=os.urandom(8).hex(),
        at=time.time(),
    )
    record = Trace(header_of(machine, title), machine.log, own_guards=machine.wiring.guards, own_protocol=form)
    return Setup(chosen.session(machine, asked, named), record, owned=isinstance(model, str))


def asked_model(model: AnyModel | str) -> AnyModel:
    """The model, made from its name where it is one. Raises ``ModelSetupError``."""
    if not isinstance(model, str):
        return model
    from fsm_agent.models.named import model_from

    return model_from(model)


def check_price(model: AnyModel, guards: Sequence[Guard], context: Context | None) -> None:
    """Raises ``ValueError`` where a cost budget is to be kept and the price of the model is not known."""
    if any(map(_keeps_costs, guards)):
        from fsm_agent.context import Summarise
        from fsm_agent.models.prices import has_price, no_price

        for asked in (model, *((context.model,) if isinstance(context, Summarise) else ())):
            named = asked_model(asked)
            if not has_price(named):
                raise ValueError(no_price(named))
            if isinstance(asked, str) and isinstance(named, ChatModel):
                named.close()


def _keeps_costs(guard: Guard) -> bool:
    """Whether it is a cost budget, or a combination with one in it."""
    return isinstance(guard, CostBudget) or (isinstance(guard, Combined) and any(map(_keeps_costs, guard.parts)))


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
