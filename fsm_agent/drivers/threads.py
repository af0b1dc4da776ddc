"""Work in threads that can be abandoned: nobody can stop a thread, but nobody has to wait for one either, not even at the end."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextvars import copy_context
from queue import SimpleQueue
from typing import TypeVar

import attrs

T = TypeVar("T")

MOST_IDLE = 64
"""So many threads wait for the next piece of work at most."""


@attrs.frozen
class Raised:
    """What some work raised, to be handed on where it cannot be raised."""

    error: BaseException


def in_thread(work: Callable[[], T], put: Callable[[T | Raised], object], name: str) -> None:
    """Do ``work`` at once in a thread that does nothing else meanwhile, and there give ``put`` what came of it."""
    context = copy_context()

    def job() -> None:
        came: T | Raised
        try:
            came = context.run(work)
        except BaseException as error:  # noqa: BLE001  # it is handed on
            came = Raised(error)
        put(came)

    with _lock:
        worker = _idle.pop() if _idle else None
    if worker is None:
        worker = SimpleQueue()
        threading.Thread(target=_work, args=(worker,), daemon=True).start()
    worker.put((job, name))


_Jobs = SimpleQueue[tuple[Callable[[], object], str]]

_idle: list[_Jobs] = []
"""Threads that wait, by what they wait for. A new thread costs three times as much as one that waits."""

_lock = threading.Lock()


def _work(jobs: _Jobs) -> None:
    """What a thread does, until there are enough others that have nothing to do."""
    while True:
        job, threading.current_thread().name = jobs.get()
        job()
        del job  # and with it all that it holds on to
        with _lock:
            if len(_idle) >= MOST_IDLE:
                return
            _idle.append(jobs)


def _forget() -> None:
    """A fork has none of these threads, and perhaps a lock that nobody will open."""
    global _lock  # noqa: PLW0603  # there is one for the process
    _idle.clear()
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
