"""An event loop in a thread of its own: the servers live there, and calls come to it from sync code and from other event loops."""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import sys
import threading
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any, TypeVar

if sys.platform == "win32":
    from asyncio import ProactorEventLoop as EventLoop
else:
    from asyncio import SelectorEventLoop as EventLoop

T = TypeVar("T")

POLL_S = 0.5
"""How long Ctrl-C may have to wait where a blocked thread cannot be woken (Windows)."""
GRACE_S = 15.0
"""How long the end of the process may have to wait for servers to end."""

ON_START: ContextVar[Callable[[asyncio.SubprocessTransport], None] | None] = ContextVar("ON_START", default=None)
"""Told of each process that is started in this context: who wants its exit code has no other way to it."""


class Closed(Exception):
    """The portal is closed, or the call was ended by that."""


class _Loop(EventLoop):
    async def subprocess_exec(self, protocol_factory: Any, *args: Any, **kwargs: Any) -> Any:
        transport, protocol = await super().subprocess_exec(protocol_factory, *args, **kwargs)
        if (told := ON_START.get()) is not None:
            told(transport)
        return transport, protocol


class Portal:
    """A running loop. It is to be closed; what is open at the end of the process is closed then."""

    def __init__(self) -> None:
        self._loop = _Loop()
        self._stop = asyncio.Event()
        self._closing = False
        self._lock = threading.RLock()  # closing may come from a finalizer, at any moment
        self._thread = threading.Thread(target=self._serve, name="mcp", daemon=True)
        _OPEN.add(self)
        self._thread.start()

    def run(self, work: Callable[..., Coroutine[Any, Any, T]], *args: Any) -> T:
        """What ``work`` comes to, from sync code. Raises what it raises, and ``Closed``; a ``KeyboardInterrupt`` here cancels it."""
        future = self._submit(work, args)
        try:
            while not future.done():
                concurrent.futures.wait([future], POLL_S)
        except BaseException:
            future.cancel()
            raise
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise Closed from None

    async def arun(self, work: Callable[..., Coroutine[Any, Any, T]], *args: Any) -> T:
        """As ``run``, from another event loop. Cancelling the task cancels it."""
        future = self._submit(work, args)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._closing and task is not None and not task.cancelling():
                raise Closed from None
            raise

    def close(self, *, wait: bool = True) -> None:
        """End all that runs here, and the loop."""
        with self._lock:
            if self._thread.is_alive() and not self._closing:  # in a process that was forked, it is not
                self._closing = True
                self._loop.call_soon_threadsafe(self._stop.set)
        if wait and threading.current_thread() is not self._thread:
            self._thread.join(GRACE_S)

    def _submit(self, work: Callable[..., Coroutine[Any, Any, T]], args: tuple[Any, ...]) -> concurrent.futures.Future[T]:
        with self._lock:
            if self._closing or not self._thread.is_alive():
                raise Closed
            return asyncio.run_coroutine_threadsafe(work(*args), self._loop)

    def _serve(self) -> None:
        try:
            self._loop.run_until_complete(self._until_stopped())
        finally:
            self._loop.close()
            _OPEN.discard(self)

    async def _until_stopped(self) -> None:
        await self._stop.wait()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=GRACE_S)
        await self._loop.shutdown_asyncgens()


_OPEN: set[Portal] = set()


@atexit.register
def _close_all() -> None:
    for portal in tuple(_OPEN):
        portal.close(wait=False)
    for portal in tuple(_OPEN):
        portal.close()
