"""A thousand runs at the same time, on each side: ``arun``, and asyncio with a bare loop. The model thinks for 10 ms, ten times a run.

As a program (``python -m tests.benchmarks.many_runs ours``), it prints its memory at the peak, before and after.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import attrs

from fsm_agent import Result, arun, classic
from fsm_agent.tools import Tool, tool

from .bare_loop import async_bare_loop
from .workload import PROTOCOL, add, arguments, structured

RUNS, STEPS, THINKS_S = 1000, 10, 0.01

REPLIES = structured(STEPS)
BARE_REPLIES: list[dict[str, Any]] = [
    {"role": "assistant", "content": "", "tool_calls": [{"id": f"call_{n}", "function": {"name": "add", "arguments": arguments(n)}}]}
    for n in range(STEPS)
]


async def add_soon(a: int, b: int) -> int:
    return a + b


async def add_in_thread(a: int, b: int) -> int:
    return await asyncio.to_thread(add, a, b)


def thinking(replies: Iterable[Any]) -> Callable[[object], Awaitable[Any]]:
    """A model that gives these replies, each after its time."""
    left = iter(replies)

    async def model(messages: object) -> Any:
        await asyncio.sleep(THINKS_S)
        return next(left)

    return model


async def bare_run(add: Callable[..., Awaitable[int]]) -> object:
    ended = await async_bare_loop("task", thinking(BARE_REPLIES), {"add": add}, max_steps=STEPS)
    assert ended[:2] == ("max_steps", STEPS)
    return ended


async def our_run(add: Tool) -> Result:
    """``arun`` as people call it, with its checked arguments and the time of each event."""
    result = await arun("task", model=thinking(REPLIES), tools=[add], guards=classic(max_steps=STEPS), protocol=PROTOCOL, lang="en")
    assert (result.reason, result.steps) == ("max_steps", STEPS)
    return result


@attrs.frozen
class Pair:
    """The same work for each side."""

    bare: Callable[[], Awaitable[object]]
    ours: Callable[[], Awaitable[object]]


def at_once(one: Callable[[], Awaitable[object]]) -> None:
    """All the runs, at the same time; what they came to is kept until the last has ended."""

    async def gathered() -> None:
        await asyncio.gather(*(one() for _ in range(RUNS)))

    asyncio.run(gathered())


ASYNC, SYNC = tool(name="add")(add_soon), tool(name="add")(add)
TOOLS = {
    "an async tool": Pair(lambda: bare_run(add_soon), lambda: our_run(ASYNC)),
    "a sync tool, in threads": Pair(lambda: bare_run(add_in_thread), lambda: our_run(SYNC)),
}


def peak_mb() -> float:
    """The most memory that this process had, in MB."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage begins with what the parent had
        return next(int(line.split()[1]) * 1024 / 1e6 for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6


if __name__ == "__main__":
    before = peak_mb()
    at_once(getattr(TOOLS["an async tool"], sys.argv[1]))
    print(before, peak_mb())
