"""Ctrl-C between the machine's steps, never inside one: a run is interrupted in the world, and its record stays whole."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupts:
    """As a context: holds Ctrl-C back, except within ``allowed()``; what was held back is raised at the next ``allowed()``.

    It does so only in the main thread and where Python's own handler is set; elsewhere it changes nothing.
    """

    def __init__(self) -> None:
        self._open = False
        self._pending = False
        self._installed = False

    def __enter__(self) -> Interrupts:
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._on_interrupt)
            self._installed = True
        return self

    def __exit__(self, *error: object) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """Within, Ctrl-C raises ``KeyboardInterrupt``."""
        self._open = True
        try:
            if self._pending:
                self._pending = False
                raise KeyboardInterrupt
            yield
        finally:
            self._open = False

    def _on_interrupt(self, signum: int, frame: FrameType | None) -> None:
        if self._open:
            raise KeyboardInterrupt
        self._pending = True
