"""The async driver: ``arun``, the same machine and the same events for asyncio."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

from fsm_agent.drivers.calls import cancelled_observation, timed_out, too_late, up_at
from fsm_agent.drivers.setup import Hook, Result, deadline_of, prepare
from fsm_agent.events import (
    AskModel,
    CallTools,
    Cancelled,
    Event,
    Message,
    ModelFailed,
    ModelReplied,
    Observation,
    ToolCall,
    ToolSpec,
    ToolsReturned,
)
from fsm_agent.guards import Guard
from fsm_agent.language import Language
from fsm_agent.machine import Run
from fsm_agent.models.base import AnyModel, ChatModel, aask, is_async
from fsm_agent.protocols import Protocol
from fsm_agent.tools import Tool, observe
from fsm_agent.tools.base import described
from fsm_agent.traces.writer import TraceWriter


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
    hook: Hook | None = None,
    max_parallel: int = 8,
) -> Result:
    """As ``run``, for asyncio: an async model and async tools are awaited, sync ones run in threads.

    Raises ``asyncio.CancelledError`` when its task is cancelled, after the halt has been recorded; else as ``run``.
    """
    setup = prepare(task, model, tools, guards, protocol, lang, title)
    try:
        with TraceWriter(setup.record, trace) as writer:
            await _drive(setup.machine, setup.model, setup.tools, (writer.write, *((hook,) if hook else ())), max_parallel)
    finally:
        if setup.owned and isinstance(setup.model, ChatModel):
            await setup.model.aclose()
    return setup.result()


async def _drive(machine: Run, model: AnyModel, tools: Mapping[str, Tool], hooks: Sequence[Hook], max_parallel: int) -> None:
    until = deadline_of(machine)
    for hook in hooks:
        hook(machine)
    while (effect := machine.effect) is not None:
        event: Event
        cancelled: asyncio.CancelledError | None = None
        match effect:
            case AskModel(messages=messages, tools=told):
                try:
                    event = await _ask(model, messages, told if machine.protocol.sends_tools else ())
                except asyncio.CancelledError as error:
                    cancelled, event = error, Cancelled(at=time.time())
            case CallTools(calls=calls):
                batch = _Batch(tools, machine.protocol.lang, max_parallel, until)
                try:
                    event = ToolsReturned(await batch.make(calls), time.time())
                except asyncio.CancelledError as error:
                    cancelled, event = error, Cancelled(batch.as_cancelled(calls), time.time())
        machine.feed(event)
        for hook in hooks:
            hook(machine)
        if cancelled is not None:
            raise cancelled


async def _ask(model: AnyModel, messages: Sequence[Message], tools: tuple[ToolSpec, ...]) -> ModelReplied | ModelFailed:
    try:
        reply = await aask(model if isinstance(model, ChatModel) or is_async(model) else _carrying(model), messages, tools)
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise
    except _Carried as carried:
        return ModelFailed(type(carried.error).__name__, described(carried.error), time.time())
    except BaseException as error:  # noqa: BLE001  # whatever a model raises is an event of the run, SystemExit too
        return ModelFailed(type(error).__name__, described(error), time.time())
    return ModelReplied(reply, time.time())


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

    def __init__(self, tools: Mapping[str, Tool], lang: Language, max_parallel: int, until: float | None) -> None:
        self._tools = tools
        self._lang = lang
        self._slots = asyncio.Semaphore(max_parallel)
        self._until = until
        self._started: set[int] = set()
        self._seen: dict[int, Observation] = {}

    async def make(self, calls: Sequence[ToolCall]) -> tuple[Observation, ...]:
        """One observation a call, in call order. Raises ``CancelledError``; the calls that run are then cancelled or abandoned."""
        if len(calls) == 1:
            await self._one(0, calls[0])
        else:
            async with asyncio.TaskGroup() as group:
                for index, call in enumerate(calls):
                    group.create_task(self._one(index, call))
        return tuple(self._seen[index] for index in range(len(calls)))

    def as_cancelled(self, calls: Sequence[ToolCall]) -> tuple[Observation, ...]:
        """One observation a call, where nothing is waited for any more."""
        return tuple(
            self._seen.get(index) or cancelled_observation(call, self._lang, started=index in self._started)
            for index, call in enumerate(calls)
        )

    async def _one(self, index: int, call: ToolCall) -> None:
        async with self._slots:
            begun = time.monotonic()
            tool = self._tools.get(call.name)
            up = up_at(tool, begun, self._until)
            if self._until is not None and begun >= self._until:
                self._seen[index] = too_late(call, self._lang)
                return
            self._started.add(index)
            try:
                async with asyncio.timeout(None if up is None else up - begun):
                    if tool is not None and tool.is_async:
                        self._seen[index] = await tool.aobserve(call, self._lang)
                    else:
                        self._seen[index] = await _in_thread(lambda: observe(self._tools, call, self._lang))
            except TimeoutError:
                self._seen[index] = timed_out(call, self._lang, time.monotonic() - begun)


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
