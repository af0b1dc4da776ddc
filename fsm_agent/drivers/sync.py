"""The sync driver: ``run`` asks the model, runs the tools, and feeds the machine until it has halted."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar

from fsm_agent.drivers.approvals import ApprovalRequest, Approver, Policy, as_approval, requests
from fsm_agent.drivers.calls import POLL_S, make_calls
from fsm_agent.drivers.interrupts import Interrupts
from fsm_agent.drivers.session import Session, jittered
from fsm_agent.drivers.setup import Choices, Result, Setup, prepare
from fsm_agent.drivers.stopping import Stopped
from fsm_agent.drivers.threads import Raised, in_thread
from fsm_agent.drivers.watching import Hook, Watcher
from fsm_agent.events import (
    ApprovalGiven,
    AskApproval,
    AskModel,
    CallTools,
    Cancelled,
    ContextCompacted,
    Event,
    Message,
    ModelReplied,
    Reply,
    ToolSpec,
)
from fsm_agent.guards import Guard
from fsm_agent.models.base import AnyModel, ChatModel, OnText, ask, is_async
from fsm_agent.models.reply import as_reply
from fsm_agent.protocols import Protocol
from fsm_agent.tools import Tool
from fsm_agent.traces.record import Trace

if TYPE_CHECKING:
    from fsm_agent.context import Context, Summary

T = TypeVar("T")


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
    max_parallel: int = 8,
    max_retries: int | None = None,
    last_chance: bool = False,
    max_observation_chars: int | None = None,
    context: Context | None = None,
    policy: Policy = "side_effects",
    approve: Approver | None = None,
    on_text: OnText | None = None,
    hooks: Iterable[Hook | Watcher] = (),
) -> Result:
    """Run an agent on ``task`` until it halts, or waits for a person.

    ``model``: a callable from the messages to a reply, an adapter, or a name such as ``openai:gpt-5``. ``guards`` are ``classic()`` by
    default; ``protocol`` is ``line``, or ``function_calling`` for a model by name; ``lang`` (``en`` or ``zh``) is the locale's; ``trace``
    names a file to which the record is written as the run goes. The calls of one reply are made at the same time, at most
    ``max_parallel`` of them. A model that raises halts the run as ``model_error``; a tool that raises is an observation.

    ``max_retries``: how often in a row a model is asked again that could not be asked just now (``ModelUnavailable``); 3 for adapters,
    0 for other callables. ``last_chance``: at a cap, a budget or a loop the model is asked once more, without tools; the reason stays, and
    the result has an answer, too. ``max_observation_chars``: so many characters of an observation are shown to the model; 20,000 to
    adapters, all of them to other callables. ``context``: what the model is shown of a long conversation (``KeepLast``,
    ``DropOldObservations``, ``Summarise``).
    ``policy`` says which calls a person has to agree to (``side_effects``: those of tools that declare them; ``always``; ``never``; names
    of tools; a function of a call), and ``approve`` asks the person. Without it, the run ends as ``awaiting_approval``; ``resume`` goes on.
    ``on_text`` is called with the model's text as it is streamed, ``hooks`` on every edge, with the run and the edge.

    Raises ``KeyboardInterrupt`` after Ctrl-C, when the halt has been recorded; ``OSError`` where the trace cannot be written;
    ``ValueError`` for two tools of one name, an unknown protocol, language, policy or model, a trace that another run is writing, and a
    cost budget with a model whose price is not known; ``TypeError`` for an async tool (``arun`` takes it), and for what is no task, tool,
    guard or hook; ``GuardError`` for a user's guard that raises or gives no reading. What a hook or ``approve`` raises breaks the run off.
    """
    chosen = Choices(max_parallel, max_retries, last_chance, max_observation_chars, context, policy, approve, on_text, tuple(hooks))
    return driven(prepare(task, model, tools, guards, protocol, lang, title, chosen), trace)


def driven(setup: Setup, trace: str | PathLike[str] | None, read: Trace | None = None) -> Result:
    """Drive what was set up, and write its record. Raises as ``run`` does."""
    session = setup.session
    if waits := [each.name for each in session.tools.values() if each.is_async]:
        raise TypeError(f"the tool {waits[0]} is async; run it with arun")
    if is_async(session.approve):
        raise TypeError("approve is async; run it with arun")
    try:
        with setup.recording(trace, read), Interrupts() as interrupts:
            drive(session, interrupts)
    finally:
        if setup.owned and isinstance(session.model, ChatModel):
            session.model.close()
    return setup.result()


def drive(session: Session, interrupts: Interrupts) -> None:
    """Perform the machine's effects until it has halted or waits for a person. Raises ``KeyboardInterrupt`` after recording it."""
    machine = session.machine
    cancelled: KeyboardInterrupt | None = None
    feed = session.feed if session.watchers else machine.feed
    try:
        session.begin()
        while (effect := machine.effect) is not None:
            event: Event | None
            if interrupts.pending and interrupts.take():
                event, cancelled = session.stopped(), KeyboardInterrupt()
            elif session.stop.asked:
                event = session.stopped()
            elif type(effect) is AskModel:
                event, cancelled = _ask(session, effect, interrupts)
            elif type(effect) is CallTools:
                event, cancelled = _called(session, effect, interrupts)
            else:
                event, cancelled = _approved(session, effect, interrupts)  # type: ignore[arg-type]  # there are three effects
            if event is None:
                if not session.stop.asked:
                    return
                event = session.stopped()
            feed(event)
    finally:
        session.end()
    if cancelled is not None:
        raise cancelled


Came = tuple[Event | None, KeyboardInterrupt | None]
"""What an effect came to, and Ctrl-C, where it was that."""


def _ask(session: Session, effect: AskModel, interrupts: Interrupts) -> Came:
    asked = effect.attempt > 1
    try:
        if effect.delay_s:
            with interrupts.allowed():
                _wait(session, jittered(effect.delay_s))
        if session.context is not None and (event := _compacted(session, effect, interrupts)) is not None:
            return event, None
        shown, tools = session.question(effect)
        try:
            with interrupts.allowed():
                asked = True
                reply = _reply(session, shown, tools)
        except (KeyboardInterrupt, Stopped):
            raise
        except BaseException as error:  # noqa: BLE001  # whatever a model raises is an event of the run, SystemExit too
            return session.failed(error), None
    except KeyboardInterrupt as error:
        interrupts.open = False
        return Cancelled(at=time.time(), asked=asked), error
    except Stopped:
        return Cancelled(at=time.time(), asked=asked), None
    if session.tokens is not None:
        return session.replied(shown, reply), None
    return ModelReplied(reply, time.time()), None


def _reply(session: Session, shown: Sequence[Message], tools: tuple[ToolSpec, ...]) -> Reply:
    """Ask the model: an adapter in a thread that can be abandoned, where somebody may cancel the run. Raises ``Stopped``, too."""
    model = session.model
    if not isinstance(model, ChatModel):
        return ask(model, shown, tools)
    shows = session.shows
    if not session.hooked:
        return as_reply(model.ask(shown, tools, on_text=shows))
    waits = True

    def show(text: str) -> None:
        if not waits:
            raise Stopped  # which ends the stream
        shows(text)  # type: ignore[misc]  # it is called where something is shown

    try:
        return as_reply(_abandonable(session, lambda: model.ask(shown, tools, on_text=show if shows else None), "model"))
    finally:
        waits = False


def _compacted(session: Session, effect: AskModel, interrupts: Interrupts) -> ContextCompacted | None:
    """A summary of the conversation's beginning, where one is due; where it cannot be made, the run goes on without."""
    covers = session.due(effect)
    if covers is None or (context := session.context) is None:
        return None

    def summed_up() -> Summary:
        return context.summarise(effect.messages[:covers], session.machine.protocol.lang, session.summary)

    try:
        with interrupts.allowed():
            made = _abandonable(session, summed_up, "summary") if session.hooked else summed_up()
    except Stopped:
        raise
    except Exception:  # noqa: BLE001  # the conversation is shown as it is, and the model may still take it
        return None
    return ContextCompacted(made.covers, made.text, made.usage, time.time())


def _approved(session: Session, effect: AskApproval, interrupts: Interrupts) -> Came:
    if session.approve is None:
        return None, None
    given = []
    try:
        for request in requests(session.machine, effect, session.tools):
            answer = as_approval(_answer(session, request, interrupts))
            if answer is None:
                return None, None
            given.append(answer)
    except KeyboardInterrupt as error:
        interrupts.open = False
        return session.stopped(), error
    except Stopped:
        return session.stopped(), None
    return ApprovalGiven(tuple(given), time.time()), None


def _answer(session: Session, request: ApprovalRequest, interrupts: Interrupts) -> object:
    """What the person says. Raises ``Stopped`` where the run is cancelled first; in the main thread, where a person may be typing and has
    Ctrl-C, that is seen when the person has answered.
    """
    approve: Any = session.approve
    with interrupts.allowed():
        if session.hooked and threading.current_thread() is not threading.main_thread():
            return _abandonable(session, lambda: approve(request), "approval")
        return approve(request)


def _called(session: Session, effect: CallTools, interrupts: Interrupts) -> Came:
    if session.machine.options.approvals and (question := session.approval_needed(effect)) is not None:
        return question, None
    if session.interrupted or session.settled:
        try:
            for index in list(session.interrupted):
                answer = _answer(session, session.question_of(effect, index), interrupts) if session.approve else None
                session.resettle(effect, index, answer)
        except KeyboardInterrupt as error:
            interrupts.open = False
            return session.stopped(), error
        except Stopped:
            return session.stopped(), None
        effect = session.with_settled(effect)
    return make_calls(session, effect, interrupts)


def _wait(session: Session, seconds: float) -> None:
    """Raises ``Stopped`` where the run is cancelled meanwhile."""
    woken: queue.SimpleQueue[None] = queue.SimpleQueue()
    until = time.monotonic() + seconds
    with session.stop.waking(lambda: woken.put(None)):
        while (left := until - time.monotonic()) > 0:
            with suppress(queue.Empty):
                woken.get(timeout=min(left, POLL_S))
                raise Stopped


def _abandonable(session: Session, work: Callable[[], T], name: str) -> T:
    """What ``work`` gives in a thread that can be abandoned. Raises what it raises, and ``Stopped`` where the run is cancelled first."""
    results: queue.SimpleQueue[T | Raised] = queue.SimpleQueue()
    with session.stop.waking(lambda: results.put(Raised(Stopped()))):
        in_thread(work, results.put, name)
        while True:
            with suppress(queue.Empty):
                came = results.get(timeout=POLL_S)
                if isinstance(came, Raised):
                    raise came.error
                return came
