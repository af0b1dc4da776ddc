"""Making the tool calls of one reply from asyncio: async tools in tasks, the others in threads; and what ends a wait of the driver."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from typing import TypeVar

from fsm_agent.drivers import outcomes
from fsm_agent.drivers.batch import Batch, Came
from fsm_agent.drivers.session import Session
from fsm_agent.drivers.threads import Raised, in_thread
from fsm_agent.events import CallTools, Cancelled, Event, Observation, ToolCall
from fsm_agent.tools import Tool, observe
from fsm_agent.tools.errors import ToolServerDead

T = TypeVar("T")

GRACE_S = 1.0
"""So many seconds an async tool that is called off may take to tidy up, before it is abandoned."""


class Waits:
    """Whatever the driver's task awaits: ``Run.cancel`` ends it from any thread, as a cancelled task's wait ends.

    Nothing is cancelled that the driver does not wait for just then, above all not whoever called the driver.
    """

    def __init__(self) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # a coroutine is run by one
        self._task = task
        self._loop = asyncio.get_running_loop()
        self._before = task.cancelling()
        self._open = False
        self._woken = False

    def __enter__(self) -> None:
        self._open = True

    def __exit__(self, *error: object) -> None:
        self._open = False
        if self._woken:
            self._woken = False
            self._task.uncancel()

    def wake(self) -> None:
        """End the wait, if there is one."""
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        if self._open and not self._woken:
            self._woken = True
            self._task.cancel()

    @property
    def cancelled(self) -> bool:
        """Somebody cancelled the task: within a wait perhaps ``Run.cancel``, else whoever awaits the driver."""
        return self._task.cancelling() > self._before


async def thread(work: Callable[[], T], name: str) -> T | Raised:
    """What ``work`` gives or raises in a thread, which is abandoned where this is cancelled: it holds up no other task, and no exit."""
    done: asyncio.Future[T | Raised] = asyncio.get_running_loop().create_future()
    in_thread(work, _putting(done), name)
    return await done


def _putting(done: asyncio.Future[T | Raised]) -> Callable[[T | Raised], None]:
    """What a thread calls with what came of its work."""
    loop = done.get_loop()

    def settle(came: T | Raised) -> None:
        if not done.done():
            done.set_result(came)

    def put(came: T | Raised) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, came)

    return put


class Calls:
    """The calls of one reply."""

    def __init__(self, session: Session, effect: CallTools, awaited: Collection[str]) -> None:
        """``awaited``: the tools that are awaited; the others run in threads."""
        self._session = session
        self._effect = effect
        self._awaited = awaited
        self._batch: _Tasks | None = None
        self._begun = False

    async def made(self) -> Event:
        """Make them. Raises ``CancelledError`` and ``KeyboardInterrupt``; ``cancelled`` then says what they came to."""
        session, effect = self._session, self._effect
        if len(effect.calls) == 1 and not effect.settled:
            tool = session.tools.get(effect.calls[0].name)
            if (tool is None or tool.timeout_s is None) and session.until() is None:
                return await self._single(tool)
        self._batch = batch = _Tasks(session, effect, self._awaited)
        try:
            while batch.goes_on():
                await batch.wait()
        except BaseException:
            with suppress(asyncio.CancelledError):  # by somebody who does not want to wait so long; what was raised first stands
                await batch.tidied()
            raise
        await batch.tidied()
        return batch.event()

    def cancelled(self) -> Cancelled:
        """What they came to, where the run was cancelled."""
        if self._batch is not None:
            return self._batch.cancelled()
        return self._session.cancelled(self._effect, {}, {0} if self._begun else ())

    async def _single(self, tool: Tool | None) -> Event:
        """A single call that nothing can end before it does, but a cancelled run."""
        session = self._session
        call, lang = session.machine.keyed(0, self._effect.calls[0]), session.machine.protocol.lang
        dead: ToolServerDead | None = None
        if session.watchers:
            session.calls(0, call)
        self._begun = True
        try:
            if tool is not None and call.name in self._awaited:
                seen = await tool.aobserve(call, lang)
            else:
                came = await thread(lambda: observe(session.tools, call, lang), f"tool {call.name}")
                if isinstance(came, Raised):
                    raise came.error
                seen = came
        except ToolServerDead as error:
            seen, dead = outcomes.server_dead(call, error), error
        if session.watchers:
            session.called(0, seen)
        return session.returned((seen,), dead)


class _Tasks(Batch):
    """Calls that run in tasks, or in threads."""

    def __init__(self, session: Session, effect: CallTools, awaited: Collection[str]) -> None:
        super().__init__(session, effect)
        self._awaited = awaited
        self._results: deque[tuple[int, Came]] = deque()
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._some = asyncio.Event()

    def start(self, index: int, call: ToolCall) -> None:
        if call.name in self._awaited:
            self._tasks[index] = asyncio.create_task(self._observed(index, call))
        else:
            tools, lang = self.session.tools, self.lang
            done: asyncio.Future[Observation | Raised] = asyncio.get_running_loop().create_future()
            done.add_done_callback(lambda done: self._put(index, done.result()))
            in_thread(lambda: observe(tools, call, lang), _putting(done), f"tool {call.name}")

    def abandon(self, index: int) -> None:
        if index in self._tasks and not self._tasks[index].cancelling():
            self._tasks[index].cancel()

    def ended(self) -> Iterator[tuple[int, Came]]:
        while self._results:
            yield self._results.popleft()

    async def wait(self) -> None:
        """Wait until a call ends, or one's time is up."""
        self._some.clear()
        if not self._results:
            with suppress(TimeoutError):
                async with asyncio.timeout(self.left_s()):
                    await self._some.wait()

    async def tidied(self) -> None:
        """Call off what still runs, and let it tidy up, but not for ever."""
        for index in self._tasks:
            self.abandon(index)
        if left := [task for task in self._tasks.values() if not task.done()]:
            await asyncio.wait(left, timeout=GRACE_S)

    async def _observed(self, index: int, call: ToolCall) -> None:
        came: Came
        try:
            came = await self.session.tools[call.name].aobserve(call, self.lang)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001  # it is handed on; a task that raises Ctrl-C would end the loop
            came = Raised(error)
        self._put(index, came)

    def _put(self, index: int, came: Came) -> None:
        self._results.append((index, came))
        self._some.set()
