"""Making the tool calls of one reply from sync code: in threads, each of which can be abandoned."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator
from contextlib import suppress

from fsm_agent.drivers import outcomes
from fsm_agent.drivers.batch import Batch, Came
from fsm_agent.drivers.interrupts import Interrupts
from fsm_agent.drivers.session import Session
from fsm_agent.drivers.threads import in_thread
from fsm_agent.events import CallTools, Event, ToolCall, ToolsReturned
from fsm_agent.tools import observe
from fsm_agent.tools.errors import ToolServerDead

POLL_S = 0.5
"""How long Ctrl-C may have to wait where a blocked thread cannot be woken (Windows)."""


def make_calls(session: Session, effect: CallTools, interrupts: Interrupts) -> tuple[Event, KeyboardInterrupt | None]:
    """Make the calls that are not settled, and wait for them; what came of it, and Ctrl-C (or a tool that raised it), where it was that.

    A single call that nothing can end before it does is made in this thread.
    """
    if not session.hooked and len(effect.calls) == 1 and not effect.settled:
        tool = session.tools.get(effect.calls[0].name)
        if (tool is None or tool.timeout_s is None) and session.until() is None:
            return _inline(session, effect, interrupts)
    batch = _Threads(session, effect)
    try:
        with session.stop.waking(batch.wake):
            while batch.goes_on():
                with interrupts.allowed():
                    batch.wait()
    except KeyboardInterrupt as error:
        interrupts.open = False
        return batch.cancelled(), error
    return batch.event(), None


def _inline(session: Session, effect: CallTools, interrupts: Interrupts) -> tuple[Event, KeyboardInterrupt | None]:
    call = session.machine.keyed(0, effect.calls[0])
    lang = session.machine.protocol.lang
    dead: ToolServerDead | None = None
    if session.watchers:
        session.calls(0, call)
    try:
        with interrupts.allowed():
            seen = observe(session.tools, call, lang)
    except KeyboardInterrupt as error:
        interrupts.open = False
        return session.cancelled(effect, {}, {0}), error
    except ToolServerDead as error:
        seen, dead = outcomes.server_dead(call, error), error
    if session.watchers:
        session.called(0, seen)
    return ToolsReturned((seen,), time.time()) if dead is None else session.returned((seen,), dead), None


class _Threads(Batch):
    """Calls that run in threads of their own."""

    def __init__(self, session: Session, effect: CallTools) -> None:
        super().__init__(session, effect)
        self._results: queue.SimpleQueue[tuple[int, Came] | None] = queue.SimpleQueue()
        self._next: tuple[int, Came] | None = None

    def start(self, index: int, call: ToolCall) -> None:
        tools, lang = self.session.tools, self.lang
        in_thread(lambda: observe(tools, call, lang), lambda came: self._results.put((index, came)), f"tool {call.name}")

    def abandon(self, index: int) -> None:
        """A thread cannot be stopped: what it gives comes too late."""

    def ended(self) -> Iterator[tuple[int, Came]]:
        if self._next is not None:
            yield self._next
        self._next = None
        while not self._results.empty():
            if (result := self._results.get()) is not None:
                yield result

    def wait(self) -> None:
        """Wait until a call ends, one's time is up, or the run is cancelled."""
        left_s = self.left_s()
        with suppress(queue.Empty):
            self._next = self._results.get(timeout=POLL_S if left_s is None else min(left_s, POLL_S))

    def wake(self) -> None:
        """Let ``wait`` look whether the run was cancelled."""
        self._results.put(None)
