"""The tool calls of one reply, made at the same time: in threads, each with its own observation whatever happens to it."""

from __future__ import annotations

import contextvars
import queue
import threading
import time

import attrs

from fsm_agent.drivers.interrupts import Interrupts
from fsm_agent.drivers.session import Session
from fsm_agent.events import ERROR_PREFIX, CallTools, Observation, ToolCall
from fsm_agent.language import Language
from fsm_agent.tools import Tool, observe
from fsm_agent.tools.base import timed_out
from fsm_agent.tools.errors import ToolServerDead

POLL_S = 0.5
"""How long Ctrl-C may have to wait where a blocked thread cannot be woken (Windows)."""


@attrs.frozen
class Outcome:
    """What the calls came to."""

    observations: tuple[Observation, ...]
    """One a call, in call order."""
    cancelled: KeyboardInterrupt | None = None
    """Ctrl-C, or a tool that raised it, while they ran."""
    stopped: bool = False
    """The run was cancelled by ``Run.cancel``."""
    dead: ToolServerDead | None = None
    """A server of tools that is gone for good."""


def make_calls(session: Session, effect: CallTools, interrupts: Interrupts) -> Outcome:
    """Make the calls that are not settled, at most ``max_parallel`` at a time, and wait for them.

    A call whose time is up, by its tool's timeout or the run's deadline, is abandoned (a thread cannot be stopped): its observation
    says that its outcome is not known. A single call that nothing can end before it does is made in this thread.
    """
    until = session.until()
    if not session.hooked and len(effect.calls) == 1 and until is None and not effect.settled:
        tool = session.tools.get(effect.calls[0].name)
        if tool is None or tool.timeout_s is None:
            return _inline(session, effect, interrupts)
    batch = _Batch(session, effect, until)
    try:
        with session.stop.waking(batch.wake):
            while batch.goes_on():
                with interrupts.allowed():
                    batch.wait()
    except KeyboardInterrupt as error:
        interrupts.open = False
        return Outcome(batch.as_cancelled(), error)
    if session.stop.asked and len(batch.seen) < len(effect.calls):
        return Outcome(batch.as_cancelled(), stopped=True)
    return Outcome(tuple(batch.seen[i] for i in range(len(effect.calls))), dead=batch.dead)


def _inline(session: Session, effect: CallTools, interrupts: Interrupts) -> Outcome:
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
        return Outcome((cancelled_observation(call, lang, started=True),), error)
    except ToolServerDead as error:
        seen, dead = dead_observation(call, error), error
    if session.watchers:
        session.called(0, seen)
    return Outcome((seen,), dead=dead)


class _Batch:
    """Calls that run in threads of their own."""

    def __init__(self, session: Session, effect: CallTools, until: float | None) -> None:
        self._session = session
        self._calls = effect.calls
        self._lang = session.machine.protocol.lang
        self._until = until
        self._running: dict[int, tuple[float, float | None]] = {}
        """By call: when it was started, and when its time is up."""
        self._results: queue.SimpleQueue[tuple[int, Observation | KeyboardInterrupt | ToolServerDead]] = queue.SimpleQueue()
        self.seen: dict[int, Observation] = {index: each for index, each in enumerate(effect.settled) if each is not None}
        """By call, what it came to."""
        self._waiting = [index for index in range(len(effect.calls)) if index not in self.seen]
        self.dead: ToolServerDead | None = None

    def goes_on(self) -> bool:
        """Whether there is something to wait for. Starts what may start, and gives up on what has had its time."""
        if self._session.stop.asked:
            return False
        now = time.monotonic()
        for index, (begun, up) in list(self._running.items()):
            if up is not None and now >= up:
                del self._running[index]
                self._came(index, timed_out(self._calls[index], self._lang, now - begun))
        while self._waiting and len(self._running) < self._session.max_parallel:
            index = self._waiting.pop(0)
            call = self._session.machine.keyed(index, self._calls[index])
            if self._until is not None and now >= self._until:
                self.seen[index] = too_late(call, self._lang)
                continue
            self._session.calls(index, call)
            self._running[index] = now, up_at(self._session.tools.get(call.name), now, self._until)
            context = contextvars.copy_context()
            threading.Thread(target=context.run, args=(self._make, index, call), name=f"tool {call.name}", daemon=True).start()
        return bool(self._running)

    def wait(self) -> None:
        """Wait until a call ends, one's time is up, or the run is cancelled. Raises ``KeyboardInterrupt`` where a tool raised it."""
        ups = [up - time.monotonic() for _, up in self._running.values() if up is not None]
        try:
            index, result = self._results.get(timeout=max(min([POLL_S, *ups]), 0))
        except queue.Empty:
            return
        if isinstance(result, KeyboardInterrupt):
            raise result
        if not self._running.pop(index, None):  # it was given up on, and it is too late; or this was to wake
            return
        if isinstance(result, ToolServerDead):
            self.dead = result
            result = dead_observation(self._calls[index], result)
        self._came(index, result)

    def wake(self) -> None:
        """Let ``wait`` look whether the run was cancelled."""
        self._results.put((-1, _NOTHING))

    def as_cancelled(self) -> tuple[Observation, ...]:
        """One observation a call, where nothing is waited for any more."""
        return tuple(
            self.seen.get(index) or cancelled_observation(call, self._lang, started=index not in self._waiting)
            for index, call in enumerate(self._calls)
        )

    def _came(self, index: int, observation: Observation) -> None:
        self.seen[index] = observation
        self._session.called(index, observation)

    def _make(self, index: int, call: ToolCall) -> None:
        try:
            self._results.put((index, observe(self._session.tools, call, self._lang)))
        except (KeyboardInterrupt, ToolServerDead) as error:
            self._results.put((index, error))


_NOTHING = Observation("", "")


def up_at(tool: Tool | None, begun: float, until: float | None) -> float | None:
    """When a call that began at ``begun`` is not waited for any more: by its tool's timeout or the run's; None: it is waited for."""
    limits = [begun + tool.timeout_s] if tool is not None and tool.timeout_s is not None else []
    limits += [until] if until is not None else []
    return min(limits, default=None)


def too_late(call: ToolCall, lang: Language) -> Observation:
    """Of a call that was not made, since the time of the run was up."""
    return Observation(call.name, f"{ERROR_PREFIX} {lang.say('not started, the time of the run was up')}", "refused")


def dead_observation(call: ToolCall, error: ToolServerDead) -> Observation:
    """Of a call whose server is gone for good."""
    return Observation(call.name, f"{ERROR_PREFIX} {error}", "interrupted" if error.under_way else "tool_error")


def cancelled_observation(call: ToolCall, lang: Language, *, started: bool) -> Observation:
    """Of a call that was running, or waiting for its turn, when the run was cancelled."""
    say = lang.say
    text = say("cancelled by the user; its outcome is unknown") if started else say("cancelled by the user; it was not started")
    return Observation(call.name, text, "cancelled")
