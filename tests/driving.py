"""Both drivers, and an adapter that plays a script: whatever is true of ``run`` and ``resume`` must be of ``arun`` and ``aresume``."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from fsm_agent import Message, Reply, Result, Trace, aresume, arun, load, resume, run, verify
from fsm_agent.events import Cancelled, ToolRequest, ToolSpec, ToolsReturned
from fsm_agent.machine import Run
from fsm_agent.models.base import ChatModel, OnText
from fsm_agent.models.reply import as_reply


@attrs.frozen
class Driver:
    """One of the two."""

    awaits: bool

    def __str__(self) -> str:
        return "async" if self.awaits else "sync"

    def run(self, *, task: str = "task", **options: Any) -> Result:
        options = {"lang": "en", "protocol": "function_calling", **options}
        return asyncio.run(arun(task, **options)) if self.awaits else run(task, **options)

    def resume(self, trace: Trace | Path, approvals: Any = None, **options: Any) -> Result:
        return asyncio.run(aresume(trace, approvals, **options)) if self.awaits else resume(trace, approvals, **options)


SYNC, ASYNC = Driver(awaits=False), Driver(awaits=True)

both = pytest.mark.parametrize("driver", [SYNC, ASYNC], ids=str)


class Script(ChatModel):
    """Plays what it is given: text or a ``Reply`` is the reply (text is streamed word by word), an exception is raised."""

    name = "test:script"

    def __init__(self, *says: str | Reply | BaseException) -> None:
        self._says = list(says)
        self.asked: list[list[Message]] = []
        """What it was shown, each time."""
        self.tools: list[tuple[str, ...]] = []
        """Which tools it was offered, each time."""

    def ask(self, messages: Sequence[Message], tools: tuple[ToolSpec, ...] = (), *, on_text: OnText | None = None) -> Reply:
        self.asked.append(list(messages))
        self.tools.append(tuple(each.name for each in tools))
        said = self._says.pop(0)
        if isinstance(said, BaseException):
            raise said
        reply = as_reply(said)
        for piece in reply.text.split():
            if on_text is not None:
                on_text(piece)
        return reply

    async def aask(self, messages: Sequence[Message], tools: tuple[ToolSpec, ...] = (), *, on_text: OnText | None = None) -> Reply:
        return self.ask(messages, tools, on_text=on_text)


class Held(ChatModel):
    """Is asked, and does not answer before ``go`` is set."""

    name = "test:held"

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.go = threading.Event()

    def ask(self, messages: Sequence[Message], tools: tuple[ToolSpec, ...] = (), *, on_text: OnText | None = None) -> Reply:
        self.asked.set()
        self.go.wait(30)
        return Reply("too late")

    async def aask(self, messages: Sequence[Message], tools: tuple[ToolSpec, ...] = (), *, on_text: OnText | None = None) -> Reply:
        self.asked.set()
        await asyncio.sleep(30)
        return Reply("too late")


def call(name: str, arguments: str = "{}", id: str = "call_1") -> ToolRequest:  # noqa: A002  # it is the field's name
    return ToolRequest(id, name, arguments)


def calls(*requests: ToolRequest, text: str = "") -> Reply:
    """A reply that asks for these calls."""
    return Reply(text, requests)


def edges(of: Result | Trace) -> list[str]:
    """The edges, without their steps."""
    trace = of.trace if isinstance(of, Result) else of
    return [taken.edge for taken in trace.edges]


def observed(of: Result | Trace) -> list[list[tuple[str, str, str]]]:
    """What the calls of each batch came to: tool, text, kind."""
    trace = of.trace if isinstance(of, Result) else of
    return [
        [(each.tool, each.text, each.kind) for each in event.observations]
        for event in trace.events
        if isinstance(event, ToolsReturned) or (isinstance(event, Cancelled) and event.observations)
    ]


def whole(path: Path) -> Run:
    """The run in the file, whose record holds to the last line."""
    trace = load(path)
    verdict = verify(trace)
    assert (verdict.line, verdict.recorded, verdict.replayed, trace.cut_off) == (None, "", "", False)
    assert verdict.run.log == trace.log
    return verdict.run


def soon(condition: Callable[[], bool]) -> None:
    """Wait until it holds, which must not take long."""
    waited = threading.Event()
    for _ in range(3000):
        if condition():
            return
        waited.wait(0.01)
    raise AssertionError("it never came to be")
