"""A watcher that calls a function when a run begins and after every event that it took."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fsm_agent import Watcher
from fsm_agent.events import Event
from fsm_agent.machine import Run, Taken


class Told(Watcher):
    def __init__(self, tell: Callable[[Run], object]) -> None:
        self._tell = tell

    def began(self, run: Run) -> None:
        self._tell(run)

    def took(self, run: Run, _event: Event, _edges: Sequence[Taken], /) -> None:
        self._tell(run)
