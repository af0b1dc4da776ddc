"""The tool calls of one reply, made at the same time: which may start, whose time is up, and what each came to.

Both drivers go by this. How a call runs, in a thread or in a task, and how one waits for it, each says itself.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator

from fsm_agent.drivers import outcomes
from fsm_agent.drivers.session import Session
from fsm_agent.drivers.threads import Raised
from fsm_agent.events import CallTools, Cancelled, Observation, ToolCall, ToolsFailed, ToolsReturned
from fsm_agent.tools import Tool
from fsm_agent.tools.base import timed_out
from fsm_agent.tools.errors import ToolServerDead

Came = Observation | Raised
"""What a call came to."""


class Batch(ABC):
    """The calls that are not settled, at most ``max_parallel`` at a time, each with its own observation whatever happens to it.

    A call whose time is up, by its tool's timeout or the run's deadline, is given up: its observation says that its outcome is not known.
    """

    def __init__(self, session: Session, effect: CallTools) -> None:
        self.session = session
        self.lang = session.machine.protocol.lang
        self._effect = effect
        self._calls = effect.calls
        self._until = session.until()
        self._seen = {index: each for index, each in enumerate(effect.settled) if each is not None}
        self._waiting = [index for index in range(len(effect.calls)) if index not in self._seen]
        self._running: dict[int, tuple[float, float | None]] = {}
        """By call: when it was started, and when its time is up."""
        self._dead: ToolServerDead | None = None

    @abstractmethod
    def start(self, index: int, call: ToolCall) -> None:
        """Begin a call. What it comes to is among what has ``ended``."""

    @abstractmethod
    def abandon(self, index: int) -> None:
        """Nobody waits for the call any more."""

    @abstractmethod
    def ended(self) -> Iterator[tuple[int, Came]]:
        """The calls that have ended since it was asked last, by their places. Waits for nothing."""

    def goes_on(self) -> bool:
        """Whether there is something to wait for. Takes what came, gives up what has had its time, and starts what may start.

        Raises what a call raised that is not for a model.
        """
        for index, came in self.ended():
            self._came(index, came)
        if self.session.stop.asked:
            return False
        now = time.monotonic()
        for index, (begun, up) in list(self._running.items()):
            if up is not None and now >= up:
                del self._running[index]
                self.abandon(index)
                self._ended(index, timed_out(self._calls[index], self.lang, now - begun))
        while self._waiting and len(self._running) < self.session.max_parallel and not self.session.stop.asked:
            index = self._waiting.pop(0)
            call = self.session.machine.keyed(index, self._calls[index])
            if self._until is not None and now >= self._until:
                self._seen[index] = outcomes.too_late(call, self.lang)
                continue
            self.session.calls(index, call)
            self._running[index] = now, _up(self.session.tools.get(call.name), now, self._until)
            self.start(index, call)
        return bool(self._running)

    def left_s(self) -> float | None:
        """How long to wait at most, in seconds, until the next call's time is up; None: there is no such time."""
        ups = [up for _, up in self._running.values() if up is not None]
        return max(min(ups) - time.monotonic(), 0) if ups else None

    def event(self) -> ToolsReturned | ToolsFailed | Cancelled:
        """What the calls came to, when there is nothing to wait for any more."""
        if len(self._seen) < len(self._calls):
            return self.cancelled()
        return self.session.returned(tuple(self._seen[index] for index in range(len(self._calls))), self._dead)

    def cancelled(self) -> Cancelled:
        """What they came to, where the run was cancelled: nothing is waited for any more."""
        for index, came in self.ended():
            if not (isinstance(came, Raised) and isinstance(came.error, KeyboardInterrupt)):
                self._came(index, came)
        return self.session.cancelled(self._effect, self._seen, self._running)

    def _came(self, index: int, came: Came) -> None:
        if index not in self._running:  # it was given up, and this is too late
            return
        if isinstance(came, Raised):
            if not isinstance(came.error, ToolServerDead):
                raise came.error
            self._dead = came.error
            came = outcomes.server_dead(self._calls[index], came.error)
        del self._running[index]
        self._ended(index, came)

    def _ended(self, index: int, observation: Observation) -> None:
        self._seen[index] = observation
        self.session.called(index, observation)


def _up(tool: Tool | None, begun: float, until: float | None) -> float | None:
    """When a call that began at ``begun`` is not waited for any more: by its tool's timeout or the run's; None: it is waited for."""
    limits = [begun + tool.timeout_s] if tool is not None and tool.timeout_s is not None else []
    limits += [until] if until is not None else []
    return min(limits, default=None)
