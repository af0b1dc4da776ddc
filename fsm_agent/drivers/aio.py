"""The async driver: ``arun``, the same machine and the same events for asyncio."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from fsm_agent.drivers.approvals import Approver, Policy, as_approval, requests
from fsm_agent.drivers.calls import cancelled_observation, dead_observation, too_late, up_at
from fsm_agent.drivers.session import Session, jittered
from fsm_agent.drivers.setup import Choices, Result, Setup, prepare
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
    Observation,
    ToolCall,
)
from fsm_agent.guards import Guard
from fsm_agent.models.base import AnyModel, ChatModel, OnText, aask, is_async
from fsm_agent.protocols import Protocol
from fsm_agent.tools import Tool, observe
from fsm_agent.tools.base import timed_out
from fsm_agent.tools.errors import ToolServerDead

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
    """As ``run``, for asyncio: an async model, async tools and an async ``approve`` are awaited, sync models and tools run in threads.

    Raises ``asyncio.CancelledError`` when its task is cancelled, after the halt has been recorded; else as ``run``.
    """
    chosen = Choices(max_parallel, max_retries, last_chance, max_observation_chars, context, policy, approve, on_text, tuple(hooks))
    return await adriven(prepare(task, model, tools, guards, protocol, lang, title, chosen), trace)


async def adriven(setup: Setup, trace: str | PathLike[str] | None, written: int | None = None) -> Result:
    """Drive what was set up, and write its record. Raises as ``arun`` does."""
    try:
        with setup.recording(trace, written):
            await _drive(setup.session)
    finally:
        if setup.owned and isinstance(setup.session.model, ChatModel):
            await setup.session.model.aclose()
    return setup.result()


async def _drive(session: Session) -> None:
    machine, stop = session.machine, session.stop
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    session.begin()
    try:
        with stop.waking(lambda: loop.call_soon_threadsafe(_interrupt, task)):
            while (effect := machine.effect) is not None:
                event: Event | None
                cancelled: asyncio.CancelledError | None = None
                batch = _Batch(session, effect) if isinstance(effect, CallTools) else None
                try:
                    if stop.asked:
                        event = session.stopped()
                    elif isinstance(effect, AskModel):
                        event = await _ask(session, effect)
                    elif isinstance(effect, AskApproval):
                        event = await _approved(session, effect)
                    else:
                        event = session.approval_needed(effect) or await batch.made()  # type: ignore[union-attr]  # made above
                except asyncio.CancelledError as error:
                    if task is not None and stop.asked and task.cancelling() == 1:
                        task.uncancel()  # by ``Run.cancel``, not by whoever awaits this
                    else:
                        cancelled = error
                    event = (
                        batch.as_cancelled()
                        if batch
                        else session.stopped()
                        if isinstance(effect, AskApproval)
                        else Cancelled(at=time.time())
                    )
                if event is None:
                    return
                session.feed(event)
                if cancelled is not None:
                    raise cancelled
    finally:
        session.end()


def _interrupt(task: asyncio.Task[Any] | None) -> None:
    """End what the driver waits for."""
    if task is not None and not task.done():
        task.cancel()


async def _ask(session: Session, effect: AskModel) -> Event:
    model = session.model
    try:
        if effect.delay_s:
            await asyncio.sleep(jittered(effect.delay_s))
        if session.context is not None and (event := await _compacted(session, effect)) is not None:
            return event
        shown, tools = session.question(effect)
        reply = await aask(model if isinstance(model, ChatModel) or is_async(model) else _carrying(model), shown, tools, session.on_text)
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise
    except _Carried as carried:
        return session.failed(carried.error)
    except BaseException as error:  # noqa: BLE001  # whatever a model raises is an event of the run, SystemExit too
        return session.failed(error)
    return session.replied(shown, reply)


async def _compacted(session: Session, effect: AskModel) -> ContextCompacted | None:
    """A summary of the conversation's beginning, where one is due; where it cannot be made, the run goes on without."""
    covers = session.due(effect)
    if covers is None or session.context is None:
        return None
    try:
        made = await session.context.asummarise(effect.messages[:covers], session.machine.protocol.lang, session.summary)
    except Exception:  # noqa: BLE001  # the conversation is shown as it is, and the model may still take it
        return None
    return ContextCompacted(made.covers, made.text, made.usage, time.time())


async def _approved(session: Session, effect: AskApproval) -> ApprovalGiven | None:
    if session.approve is None:
        return None
    given = []
    for request in requests(session.machine, effect, session.tools):
        said: Any = session.approve(request)
        answer = as_approval(await said if inspect.isawaitable(said) else said)
        if answer is None:
            return None
        given.append(answer)
    return ApprovalGiven(tuple(given), time.time())


class _Carried(Exception):
    """What a sync model raised in its thread: some exceptions (``StopIteration``, ``GeneratorExit``) cannot pass from one as they are."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(type(error).__name__))
        self.error = error


def _carrying(model: Callable[[Sequence[Message]], Any]) -> Callable[[Sequence[Message]], Any]:
    def asked(messages: Sequence[Message]) -> Any:
        try:
            return model(messages)
        except (KeyboardInterrupt, asyncio.CancelledError):
            raise
        except BaseException as error:
            raise _Carried(error) from error

    return asked


class _Batch:
    """The calls of one reply, each a task."""

    def __init__(self, session: Session, effect: CallTools) -> None:
        self._session = session
        self._calls = effect.calls
        self._lang = session.machine.protocol.lang
        self._until: float | None = None
        self._slots = asyncio.Semaphore(session.max_parallel)
        self._started: set[int] = set()
        self._effect = effect
        self._seen: dict[int, Observation] = {}
        self._dead: ToolServerDead | None = None

    async def made(self) -> Event:
        """Make the calls that are not settled. Raises ``CancelledError``; those that run are then cancelled or abandoned."""
        session = self._session
        for index in list(session.interrupted):
            said: Any = session.approve(session.question_of(self._effect, index)) if session.approve else None
            session.resettle(self._effect, index, await said if inspect.isawaitable(said) else said)
        effect = session.with_settled(self._effect)
        self._seen = {index: each for index, each in enumerate(effect.settled) if each is not None}
        self._until = session.until()
        waiting = [index for index in range(len(self._calls)) if index not in self._seen]
        if len(waiting) == 1:
            await self._one(waiting[0], self._calls[waiting[0]])
        elif waiting:
            async with asyncio.TaskGroup() as group:
                for index in waiting:
                    group.create_task(self._one(index, self._calls[index]))
        return self._session.returned(tuple(self._seen[index] for index in range(len(self._calls))), self._dead)

    def as_cancelled(self) -> Cancelled:
        """One observation a call, where nothing is waited for any more."""
        observations = tuple(
            self._seen.get(index) or cancelled_observation(call, self._lang, started=index in self._started)
            for index, call in enumerate(self._calls)
        )
        return Cancelled(observations, time.time())

    async def _one(self, index: int, call: ToolCall) -> None:
        async with self._slots:
            begun = time.monotonic()
            if self._until is not None and begun >= self._until:
                self._seen[index] = too_late(call, self._lang)
                return
            call = self._session.machine.keyed(index, call)
            tool = self._session.tools.get(call.name)
            up = up_at(tool, begun, self._until)
            self._started.add(index)
            self._session.calls(index, call)
            try:
                async with asyncio.timeout(None if up is None else up - begun):
                    seen = await self._observed(tool, call)
            except TimeoutError:
                seen = timed_out(call, self._lang, time.monotonic() - begun)
            except ToolServerDead as error:
                self._dead, seen = error, dead_observation(call, error)
            self._seen[index] = seen
            self._session.called(index, seen)

    async def _observed(self, tool: Tool | None, call: ToolCall) -> Observation:
        if tool is not None and tool.is_awaited:
            return await tool.aobserve(call, self._lang)
        return await _in_thread(lambda: observe(self._session.tools, call, self._lang))


async def _in_thread(work: Callable[[], Observation]) -> Observation:
    """Do ``work`` in a thread of its own, which can be abandoned: it holds up neither other tasks nor the end of the process."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Observation] = loop.create_future()

    def settle(result: Observation | BaseException) -> None:
        if done.cancelled():
            return
        if isinstance(result, BaseException):
            done.set_exception(asyncio.CancelledError() if isinstance(result, KeyboardInterrupt) else result)
        else:
            done.set_result(result)

    def target() -> None:
        try:
            result: Observation | BaseException = work()
        except BaseException as error:  # noqa: BLE001  # it is raised where the work is awaited
            result = error
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, result)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(target,), name="tool", daemon=True).start()
    return await done
