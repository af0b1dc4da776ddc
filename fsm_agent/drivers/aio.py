"""The async driver: ``arun``, the same machine and the same events for asyncio."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Coroutine, Iterable, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from fsm_agent.drivers.approvals import ApprovalRequest, Approver, Policy, as_approval, requests
from fsm_agent.drivers.session import Session, jittered
from fsm_agent.drivers.setup import Choices, Result, Setup, prepare
from fsm_agent.drivers.tasks import Calls, Waits, thread
from fsm_agent.drivers.threads import Raised
from fsm_agent.drivers.watching import Hook, Watcher
from fsm_agent.events import (
    ApprovalGiven,
    AskApproval,
    AskModel,
    CallTools,
    Cancelled,
    ContextCompacted,
    Effect,
    Event,
    Message,
    Reply,
    ToolSpec,
)
from fsm_agent.guards import Guard
from fsm_agent.models.base import AnyModel, ChatModel, OnText, is_async
from fsm_agent.models.reply import as_reply
from fsm_agent.protocols import Protocol
from fsm_agent.tools import Tool
from fsm_agent.traces.record import Trace

if TYPE_CHECKING:
    from fsm_agent.context import Context


async def arun(
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
    """As ``run``, for asyncio: a model, tools and ``approve`` that are async are awaited, others run in threads, and hold up no task.

    An async tool whose time is up, or whose run is cancelled, has a second to tidy up, and is then left alone.

    Raises ``asyncio.CancelledError`` when its task is cancelled, after the halt has been recorded; else as ``run``.
    """
    chosen = Choices(max_parallel, max_retries, last_chance, max_observation_chars, context, policy, approve, on_text, tuple(hooks))
    return await adriven(prepare(task, model, tools, guards, protocol, lang, title, chosen), trace)


async def adriven(setup: Setup, trace: str | PathLike[str] | None, read: Trace | None = None) -> Result:
    """Drive what was set up, and write its record. Raises as ``arun`` does."""
    try:
        with setup.recording(trace, read):
            await _Driver(setup.session).drive()
    finally:
        if setup.owned and isinstance(setup.session.model, ChatModel):
            await setup.session.model.aclose()
    return setup.result()


class _Driver:
    """One run as its task drives it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._waits = Waits()
        self._is_async = is_async(session.model)
        self._awaited = frozenset(name for name, each in session.tools.items() if each.is_awaited)
        self._asked = False
        """The model was asked in this step."""
        self._calls: Calls | None = None
        """Those that are being made."""

    async def drive(self) -> None:
        """Perform the machine's effects until it has halted or waits for a person. Raises ``CancelledError`` after recording it."""
        session = self._session
        machine, stop = session.machine, session.stop
        feed = session.feed if session.watchers else machine.feed
        try:
            session.begin()
            with stop.waking(self._waits.wake):
                while (effect := machine.effect) is not None:
                    event: Event | None = None
                    ended: BaseException | None = None
                    if not stop.asked:
                        try:
                            with self._waits:
                                event = await self._performing(effect)
                        except (asyncio.CancelledError, KeyboardInterrupt) as error:
                            event, ended = self._cancelled(effect), error
                    if event is None:
                        if not stop.asked:
                            return
                        event = session.stopped()
                    feed(event)
                    if ended is not None and (self._waits.cancelled or not stop.asked or isinstance(ended, KeyboardInterrupt)):
                        raise ended
        finally:
            session.end()

    def _performing(self, effect: Effect) -> Coroutine[None, None, Event | None]:
        if isinstance(effect, AskModel):
            return self._ask(effect)
        return self._called(effect) if isinstance(effect, CallTools) else self._approved(effect)

    def _cancelled(self, effect: Effect) -> Cancelled:
        """The run was cancelled while the effect was performed."""
        if isinstance(effect, AskModel):
            return Cancelled(at=time.time(), asked=self._asked)
        if isinstance(effect, AskApproval) or self._calls is None:
            return self._session.stopped()
        return self._calls.cancelled()

    async def _ask(self, effect: AskModel) -> Event:
        session = self._session
        self._asked = effect.attempt > 1
        if effect.delay_s:
            await asyncio.sleep(jittered(effect.delay_s))
        if session.context is not None and (event := await self._compacted(effect)) is not None:
            return event
        shown, tools = session.question(effect)
        self._asked = True
        said = await self._said(shown, tools)
        return session.failed(said.error) if isinstance(said, Raised) else session.replied(shown, said)

    async def _said(self, shown: Sequence[Message], tools: tuple[ToolSpec, ...]) -> Reply | Raised:
        """The model's reply, or whatever it raised: that is an event of the run, SystemExit too."""
        model: Any = self._session.model
        said: Any
        try:
            if isinstance(model, ChatModel):
                said = await model.aask(shown, tools, on_text=self._session.shows)
            else:
                said = model(shown) if self._is_async else await thread(lambda: model(shown), "model")
                if inspect.isawaitable(said):
                    said = await said
            if not isinstance(said, Raised):
                return as_reply(said)
        except asyncio.CancelledError as error:
            if self._waits.cancelled:
                raise
            return Raised(error)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  # as said above
            return Raised(error)
        raised: Raised = said
        if isinstance(raised.error, KeyboardInterrupt):
            raise raised.error
        return raised

    async def _compacted(self, effect: AskModel) -> ContextCompacted | None:
        """A summary of the conversation's beginning, where one is due; where it cannot be made, the run goes on without."""
        session = self._session
        covers = session.due(effect)
        if covers is None or session.context is None:
            return None
        try:
            made = await session.context.asummarise(effect.messages[:covers], session.machine.protocol.lang, session.summary)
        except asyncio.CancelledError:
            if self._waits.cancelled:
                raise
            return None
        except Exception:  # noqa: BLE001  # the conversation is shown as it is, and the model may still take it
            return None
        return ContextCompacted(made.covers, made.text, made.usage, time.time())

    async def _called(self, effect: CallTools) -> Event:
        session = self._session
        if (question := session.approval_needed(effect)) is not None:
            return question
        self._calls = None
        for index in list(session.interrupted):
            answer = await self._answer(session.question_of(effect, index)) if session.approve else None
            session.resettle(effect, index, answer)
        self._calls = Calls(session, session.with_settled(effect), self._awaited)
        return await self._calls.made()

    async def _approved(self, effect: AskApproval) -> ApprovalGiven | None:
        session = self._session
        if session.approve is None:
            return None
        given = []
        for request in requests(session.machine, effect, session.tools):
            answer = as_approval(await self._answer(request))
            if answer is None:
                return None
            given.append(answer)
        return ApprovalGiven(tuple(given), time.time())

    async def _answer(self, request: ApprovalRequest) -> object:
        """What the person says. Who asks with a plain function does it in a thread, and holds up nobody."""
        approve: Any = self._session.approve
        said = approve(request) if is_async(approve) else await thread(lambda: approve(request), "approval")
        if isinstance(said, Raised):
            raise said.error
        return await said if inspect.isawaitable(said) else said
