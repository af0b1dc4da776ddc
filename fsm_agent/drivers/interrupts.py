"""Ctrl-C between the machine's steps, never inside one: a run is interrupted in the world, and its record stays whole."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Self


class Interrupts:
    """As a context: holds Ctrl-C back, except within ``allowed()``; what was held back is raised at the next ``allowed()``, or at the end.

    It does so only in the main thread and where Python's own handler is set, or another run's (a tool may run an agent);
    elsewhere it changes nothing.
    """

    def __init__(self) -> None:
        self.open = False
        """Ctrl-C raises ``KeyboardInterrupt`` now. Whoever catches one sets this to False: it may have been raised on the way out."""
        self.pending = False
        """One is held back."""
        self._previous: Any = None
        self._allowed = _Allowed(self)

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            handler = signal.getsignal(signal.SIGINT)
            if handler is signal.default_int_handler or isinstance(getattr(handler, "__self__", None), Interrupts):
                self._previous = handler
                signal.signal(signal.SIGINT, self._on_interrupt)
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        """Raises ``KeyboardInterrupt`` where one is still held back: none is ever lost."""
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)
        if self.pending and kind is None:
            raise KeyboardInterrupt

    def allowed(self) -> _Allowed:
        """As a context: within, Ctrl-C raises ``KeyboardInterrupt``."""
        return self._allowed

    def take(self) -> bool:
        """Whether one was held back; it is so no longer."""
        pending, self.pending = self.pending, False
        return pending

    def _on_interrupt(self, _signal: int, _frame: FrameType | None) -> None:
        if self.open:
            raise KeyboardInterrupt
        self.pending = True


class _Allowed:
    """A class, as a generator's context costs a tenth of a step."""

    __slots__ = ("_interrupts",)

    def __init__(self, interrupts: Interrupts) -> None:
        self._interrupts = interrupts

    def __enter__(self) -> None:
        self._interrupts.open = True
        if self._interrupts.pending and self._interrupts.take():
            self._interrupts.open = False
            raise KeyboardInterrupt

    def __exit__(self, *error: object) -> None:
        self._interrupts.open = False
