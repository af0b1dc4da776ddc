"""The tool calls of one reply, made at the same time: in threads, each with its own observation whatever happens to it."""

from __future__ import annotations

import contextvars
import queue
import threading
import time
from collections.abc import Mapping, Sequence

import attrs

from fsm_agent.drivers.interrupts import Interrupts
from fsm_agent.events import ERROR_PREFIX, Observation, ToolCall
from fsm_agent.language import Language
from fsm_agent.tools import Tool, observe

POLL_S = 0.5
"""How long Ctrl-C may have to wait where a blocked thread cannot be woken (Windows)."""


@attrs.frozen
class Outcome:
    """What the calls came to."""

    observations: tuple[Observation, ...]
    """One a call, in call order."""
    cancelled: KeyboardInterrupt | None = None
    """Ctrl-C, or a tool that raised it, while they ran."""


def make_calls(
    tools: Mapping[str, Tool],
    calls: Sequence[ToolCall],
    lang: Language,
    interrupts: Interrupts,
    *,
    max_parallel: int = 8,
    until: float | None = None,
) -> Outcome:
    """Make the calls, at most ``max_parallel`` at a time, and wait for them.

    ``until``: the ``time.monotonic()`` after which nothing is waited for. A call whose time is up is abandoned (a thread cannot be
    stopped): its observation says that its outcome is not known. A single call without a time limit is made in this thread.
    """
    single = tools.get(calls[0].name) if len(calls) == 1 else None
    if len(calls) == 1 and until is None and (single is None or single.timeout_s is None):
        try:
            with interrupts.allowed():
                return Outcome((observe(tools, calls[0], lang),))
        except KeyboardInterrupt as error:
            interrupts.open = False
            return Outcome((cancelled_observation(calls[0], lang, started=True),), error)
    batch = _Batch(tools, calls, lang, max_parallel, until)
    try:
        while batch.goes_on():
            with interrupts.allowed():
                batch.wait()
    except KeyboardInterrupt as error:
        interrupts.open = False
        return Outcome(batch.as_cancelled(), error)
    return Outcome(tuple(batch.seen[i] for i in range(len(calls))))


class _Batch:
    """Calls that run in threads of their own."""

    def __init__(
        self, tools: Mapping[str, Tool], calls: Sequence[ToolCall], lang: Language, max_parallel: int, until: float | None
    ) -> None:
        self._tools = tools
        self._calls = calls
        self._lang = lang
        self._max_parallel = max_parallel
        self._until = until
        self._waiting = list(range(len(calls)))
        self._running: dict[int, tuple[float, float | None]] = {}
        """By call: when it was started, and when its time is up."""
        self._results: queue.SimpleQueue[tuple[int, Observation | KeyboardInterrupt]] = queue.SimpleQueue()
        self.seen: dict[int, Observation] = {}
        """By call, what it came to."""

    def goes_on(self) -> bool:
        """Whether there is something to wait for. Starts what may start, and gives up on what has had its time."""
        now = time.monotonic()
        for index, (begun, up) in list(self._running.items()):
            if up is not None and now >= up:
                del self._running[index]
                self.seen[index] = timed_out(self._calls[index], self._lang, now - begun)
        while self._waiting and len(self._running) < self._max_parallel:
            index = self._waiting.pop(0)
            if self._until is not None and now >= self._until:
                self.seen[index] = too_late(self._calls[index], self._lang)
                continue
            self._running[index] = now, up_at(self._tools.get(self._calls[index].name), now, self._until)
            context = contextvars.copy_context()
            threading.Thread(target=context.run, args=(self._make, index), name=f"tool {self._calls[index].name}", daemon=True).start()
        return bool(self._running)

    def wait(self) -> None:
        """Wait until a call ends or one's time is up. Raises ``KeyboardInterrupt`` where a tool raised it."""
        ups = [up - time.monotonic() for _, up in self._running.values() if up is not None]
        try:
            index, result = self._results.get(timeout=max(min([POLL_S, *ups]), 0))
        except queue.Empty:
            return
        if isinstance(result, KeyboardInterrupt):
            raise result
        if self._running.pop(index, None):  # else it was given up on, and it is too late
            self.seen[index] = result

    def as_cancelled(self) -> tuple[Observation, ...]:
        """One observation a call, where nothing is waited for any more."""
        return tuple(
            self.seen.get(index) or cancelled_observation(call, self._lang, started=index not in self._waiting)
            for index, call in enumerate(self._calls)
        )

    def _make(self, index: int) -> None:
        try:
            self._results.put((index, observe(self._tools, self._calls[index], self._lang)))
        except KeyboardInterrupt as error:
            self._results.put((index, error))


def up_at(tool: Tool | None, begun: float, until: float | None) -> float | None:
    """When a call that began at ``begun`` is not waited for any more: by its tool's timeout or the run's; None: it is waited for."""
    limits = [begun + tool.timeout_s] if tool is not None and tool.timeout_s is not None else []
    limits += [until] if until is not None else []
    return min(limits, default=None)


def timed_out(call: ToolCall, lang: Language, after_s: float) -> Observation:
    """Of a call that is not waited for any more."""
    text = lang.say("no result of {tool} after {seconds} s; whether it took effect is not known", tool=call.name, seconds=f"{after_s:.1f}")
    return Observation(call.name, f"{ERROR_PREFIX} {text}", "timeout")


def too_late(call: ToolCall, lang: Language) -> Observation:
    """Of a call that was not made, since the time of the run was up."""
    return Observation(call.name, f"{ERROR_PREFIX} {lang.say('not started, the time of the run was up')}", "refused")


def cancelled_observation(call: ToolCall, lang: Language, *, started: bool) -> Observation:
    """Of a call that was running, or waiting for its turn, when the run was cancelled."""
    say = lang.say
    text = say("cancelled by the user; its outcome is unknown") if started else say("cancelled by the user; it was not started")
    return Observation(call.name, text, "cancelled")
