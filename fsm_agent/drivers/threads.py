"""Work in threads that can be abandoned: nobody can stop a thread, but nobody has to wait for one either, not even at the end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import TypeVar

import attrs

T = TypeVar("T")


@attrs.frozen
class Raised:
    """What some work raised, to be handed on where it cannot be raised."""

    error: BaseException


def in_thread(work: Callable[[], T], put: Callable[[T | Raised], object], name: str) -> None:
    """Do ``work`` in a thread of its own, and there give ``put`` what came of it."""

    def target() -> None:
        came: T | Raised
        try:
            came = work()
        except BaseException as error:  # noqa: BLE001  # it is handed on
            came = Raised(error)
        put(came)

    threading.Thread(target=copy_context().run, args=(target,), name=name, daemon=True).start()
