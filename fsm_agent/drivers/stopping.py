"""``Run.cancel``: a run that somebody wants stopped, from a hook, from a tool, or from another thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Stopped(Exception):
    """The run was cancelled while something was waited for."""


class Stop:
    """Whether the run shall be stopped, and who has to be woken to see it."""

    def __init__(self) -> None:
        self.asked = False
        self._lock = threading.RLock()  # a signal's handler may ask while its thread is in here
        self._wakers: list[Callable[[], object]] = []

    def ask(self) -> None:
        """Stop the run as soon as it can be."""
        with self._lock:
            self.asked = True
            wakers = list(self._wakers)
        for wake in wakers:
            wake()

    @contextmanager
    def waking(self, wake: Callable[[], object]) -> Iterator[None]:
        """As a context: ``wake`` is called when the run shall be stopped; at once where that has been asked."""
        with self._lock:
            self._wakers.append(wake)
            asked = self.asked
        if asked:
            wake()
        try:
            yield
        finally:
            with self._lock:
                self._wakers.remove(wake)
