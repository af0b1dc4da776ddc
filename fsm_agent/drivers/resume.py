"""Going on with a run: one that waits for a person, or one whose process ended in the middle of it.

Resuming is replaying the record, then going on: no model call that was recorded is made again, and no tool either. A call that had
begun and of which nothing was recorded is not made again by itself, unless its tool is idempotent: the person is asked, or the model is
told that nobody knows what came of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING

import attrs

from fsm_agent.drivers.approvals import Approvals, Policy, approver_of, may_ask
from fsm_agent.drivers.session import Session
from fsm_agent.drivers.setup import Choices, Result, Setup, asked_model, by_name, check_price
from fsm_agent.drivers.watching import Hook, Watcher
from fsm_agent.events import AskApproval, CallTools
from fsm_agent.guards import Guard
from fsm_agent.machine import Run
from fsm_agent.models.base import AnyModel, OnText
from fsm_agent.protocols import Protocol
from fsm_agent.tools import Tool
from fsm_agent.traces.load import load
from fsm_agent.traces.notes import CallEnded
from fsm_agent.traces.record import Trace, TraceError

if TYPE_CHECKING:
    from fsm_agent.context import Context


def resume(
    trace: str | PathLike[str] | Trace,
    approvals: Approvals | None = None,
    *,
    model: AnyModel | str,
    tools: Iterable[Tool] = (),
    guards: Sequence[Guard] | None = None,
    protocol: Protocol | None = None,
    max_parallel: int = 8,
    context: Context | None = None,
    policy: Policy | None = None,
    on_text: OnText | None = None,
    hooks: Iterable[Hook | Watcher] = (),
) -> Result:
    """Go on with a recorded run, in this process or another.

    ``trace``: a file, whose record is gone on with, or the ``trace`` of a result, and then nothing is written. ``approvals`` answers
    what the run waits for, and what it may ask later: a function of an ``ApprovalRequest``; a dict from the calls' keys to answers; or
    one answer (True, False, an ``Approval``) to all. A call that had begun when the process ended is asked about, too, but one answer to
    all is none to that: it may have happened. ``model``, ``tools`` and ``context`` as they were; so ``policy``, unless it was that
    of side effects, or nobody was to be asked. Limits, protocol and language the record knows (``guards`` and ``protocol`` are needed for
    a user's own only). A run that has halted is given back as it is.

    Raises ``TraceError`` for a record that cannot be replayed, ``ValueError`` where a tool of the record is missing and for a key that no
    call has; else as ``run`` does.
    """
    from fsm_agent.drivers.sync import driven

    chosen = Choices(
        max_parallel,
        None,
        context=context,
        policy=policy or "side_effects",
        approve=approver_of(approvals),
        on_text=on_text,
        hooks=tuple(hooks),
    )
    taken = _taken_up(trace, approvals, model, tools, guards, protocol, chosen, asks=policy is not None)
    return taken.setup.result() if taken.is_over else driven(taken.setup, taken.path, taken.read)


async def aresume(
    trace: str | PathLike[str] | Trace,
    approvals: Approvals | None = None,
    *,
    model: AnyModel | str,
    tools: Iterable[Tool] = (),
    guards: Sequence[Guard] | None = None,
    protocol: Protocol | None = None,
    max_parallel: int = 8,
    context: Context | None = None,
    policy: Policy | None = None,
    on_text: OnText | None = None,
    hooks: Iterable[Hook | Watcher] = (),
) -> Result:
    """As ``resume``, for asyncio."""
    from fsm_agent.drivers.aio import adriven

    chosen = Choices(
        max_parallel,
        None,
        context=context,
        policy=policy or "side_effects",
        approve=approver_of(approvals),
        on_text=on_text,
        hooks=tuple(hooks),
    )
    taken = _taken_up(trace, approvals, model, tools, guards, protocol, chosen, asks=policy is not None)
    return taken.setup.result() if taken.is_over else await adriven(taken.setup, taken.path, taken.read)


@attrs.frozen
class _TakenUp:
    """A run as its record left it."""

    setup: Setup
    path: str | PathLike[str] | None
    """The file, which is gone on with; None: nothing is written."""
    read: Trace

    @property
    def is_over(self) -> bool:
        """It has halted, and its record is whole: there is nothing to do."""
        whole = len(self.setup.record.log) == len(self.read.log) and not self.read.cut_off
        return self.setup.session.machine.reason is not None and (whole or self.path is None)


def _taken_up(
    trace: str | PathLike[str] | Trace,
    approvals: Approvals | None,
    model: AnyModel | str,
    tools: Iterable[Tool],
    guards: Sequence[Guard] | None,
    protocol: Protocol | None,
    chosen: Choices,
    *,
    asks: bool,
) -> _TakenUp:
    path = None if isinstance(trace, Trace) else trace
    read = trace if isinstance(trace, Trace) else load(trace)
    machine = read.replay(guards, protocol=protocol)
    if list(machine.log[: len(read.log)]) != list(read.log):
        raise TraceError("the record does not hold: its events give other edges than those recorded; see fsm-agent verify")
    named = by_name(tools)
    if missing := [spec.name for spec in read.header.tools if spec.name not in named]:
        raise ValueError(f"the run was begun with the tool {missing[0]!r}; give it, too")
    _check_asked(machine, named)
    if asks:
        _check_policy(machine, chosen.policy, named)
    asked = asked_model(model)
    check_price(asked, machine.wiring.guards, chosen.context)
    session = chosen.session(machine, asked, named)
    if isinstance(machine.effect, CallTools):
        _take_notes(session, read, machine.effect)
    _check_keys(session, approvals)
    record = attrs.evolve(read, log=machine.log, notes=(), cut_off=False, own_guards=machine.wiring.guards, own_protocol=machine.protocol)
    return _TakenUp(Setup(session, record, owned=isinstance(model, str)), path, read)


def _check_asked(machine: Run, tools: Collection[str]) -> None:
    """Raises ``ValueError`` where a tool is missing about whose call a person is asked."""
    if not isinstance(effect := machine.effect, AskApproval):
        return
    if unknown := [name for at in effect.asked if (name := effect.calls[at].name) not in tools]:
        raise ValueError(f"a call of the tool {unknown[0]!r} waits for an approval; give the tool, too")


def _check_policy(machine: Run, policy: Policy, tools: Mapping[str, Tool]) -> None:
    """Raises ``ValueError`` where a person would have to be asked, and the record has no place for it: rather than that nobody is."""
    if machine.reason is None and not machine.options.approvals and may_ask(policy, tools.values()):
        raise ValueError(
            "the run was begun with nobody to be asked about its calls, so nobody can be asked now; "
            "go on without a policy (or with --approve yes), or begin it anew"
        )


def _check_keys(session: Session, approvals: Approvals | None) -> None:
    """Raises ``ValueError`` for an answer to a question that nobody asks."""
    if not isinstance(approvals, Mapping):
        return
    machine = session.machine
    calls = machine.effect.calls if isinstance(machine.effect, AskApproval | CallTools) else ()
    asked = machine.effect.asked if isinstance(machine.effect, AskApproval) else session.interrupted
    waits = [machine.keyed(index, calls[index]).key for index in asked]
    if unknown := [key for key in approvals if key not in waits]:
        raise ValueError(f"no call with the key {unknown[0]!r} waits for an approval; {', '.join(waits) or 'none'} does")


def _take_notes(session: Session, recorded: Trace, effect: CallTools) -> None:
    """What the notes tell of the step that was broken off: what its calls came to, and of which nobody knows that."""
    begun: set[int] = set()
    for _, note in recorded.notes:
        if note.step == session.machine.step and 0 <= note.index < len(effect.calls):
            if isinstance(note, CallEnded):
                session.settled[note.index] = note.observation
            else:
                begun.add(note.index)
    for index in sorted(begun - session.settled.keys()):
        tool = session.tools.get(effect.calls[index].name)
        if tool is not None and not tool.idempotent:
            session.interrupted.append(index)
