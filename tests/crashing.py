"""A run that kills its own process: ``python -m tests.crashing FOLDER WAY PLACE NUMBER``, where ``FOLDER`` keeps its trace and its effects.

The tools write the key of each call to a file, and the model each step in which it is asked, so that whoever looks later sees what
happened, and how often.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fsm_agent.drivers import setup
from fsm_agent.drivers.aio import arun
from fsm_agent.drivers.resume import aresume, resume
from fsm_agent.drivers.sync import run
from fsm_agent.events import Message, Reply, ToolCall, ToolRequest
from fsm_agent.tools import Tool, tool
from fsm_agent.traces.writer import TraceWriter

STEPS = 10

TRACE, EFFECTS, ASKED = "run.jsonl", "effects.txt", "asked.txt"


def die() -> None:
    """As ``kill -9`` does: nothing is flushed, nobody is told. Windows ends a process so with any signal that is none of its own."""
    os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
    time.sleep(60)


def append(path: Path, line: str) -> None:
    """Write a line, which is there for good."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{line}\n".encode())
    os.fsync(file)
    os.close(file)


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def model_in(folder: Path) -> Callable[[Sequence[Message]], Reply]:
    """Ten steps: calls alone, and in the third and the sixth three side by side. A reply depends on nothing but its step."""

    def model(messages: Sequence[Message]) -> Reply:
        step = 1 + sum(message.role == "assistant" for message in messages)
        append(folder / ASKED, str(step))
        time.sleep(0.001)
        if step == STEPS:
            return Reply("done")
        names = ("pay", "look", "pay") if step in {3, 6} else ("look",) if step in {4, 8} else ("pay",)
        return Reply("", tuple(ToolRequest(str(at), name, f'{{"n": {step * 10 + at}}}') for at, name in enumerate(names)))

    return model


def tools_in(folder: Path, on_effect: Callable[[str], None] = lambda when: None) -> list[Tool]:
    """``pay``, which must not happen twice, and ``look``, which may."""

    def pay(n: int, call: ToolCall) -> str:
        on_effect("before")
        append(folder / EFFECTS, f"pay {call.key}")
        on_effect("after")
        time.sleep(0.001)
        return f"paid {n}"

    def look(n: int, call: ToolCall) -> str:
        append(folder / EFFECTS, f"look {call.key}")
        return f"saw {n}"

    return [tool(pay), tool(idempotent=True)(look)]


def options(folder: Path) -> dict[str, Any]:
    return {"model": model_in(folder), "tools": tools_in(folder)}


def main(folder: Path, way: str, place: str, number: int) -> None:
    """Run, or go on, until the place is reached.

    ``write-before``, ``write-half`` and ``write-after``: the trace's writes are counted; ``effect-before`` and ``effect-after``: those of
    ``pay``. ``none``: somebody else kills it.
    """
    kind, _, moment = place.partition("-")
    count = {"write": 0, "before": 0, "after": 0}

    class Dying(TraceWriter):
        def _put(self, lines: bytes) -> None:
            count["write"] += 1
            here = kind == "write" and count["write"] == number
            if here and moment == "before":
                die()
            super()._put(lines[: len(lines) // 2] if here and moment == "half" else lines)
            if here:
                die()

    def on_effect(when: str) -> None:
        count[when] += 1
        if kind == "effect" and when == moment and count[when] == number:
            die()

    setattr(setup, "TraceWriter", Dying)  # noqa: B010  # this process is the test's own; nobody else may set it
    given: dict[str, Any] = {"model": model_in(folder), "tools": tools_in(folder, on_effect)}
    new: dict[str, Any] = {"trace": folder / TRACE, "protocol": "function_calling", "lang": "en"}
    match way:
        case "run":
            run("task", **given, **new)
        case "arun":
            asyncio.run(arun("task", **given, **new))
        case "resume":
            resume(folder / TRACE, **given)
        case "aresume":
            asyncio.run(aresume(folder / TRACE, **given))


if __name__ == "__main__":
    print("ready", flush=True)
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]))
    print("ended", flush=True)
