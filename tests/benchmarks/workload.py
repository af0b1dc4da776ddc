"""The same work for each side: n steps, each one structured call of ``add`` with new arguments, until the cap ends the run.

Replies are made beforehand: what a model's answer costs is no part of any side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fsm_agent import Result, classic, run
from fsm_agent.events import AskModel, ModelReplied, Observation, Reply, ToolRequest, ToolsReturned
from fsm_agent.machine import Run
from fsm_agent.protocols import RecordedProtocol
from fsm_agent.tools import add as add_tool

from .bare_loop import bare_loop

PROTOCOL = RecordedProtocol()

Play = Callable[[], object]
"""Plays the run once, and gives what it keeps of it."""


def add(a: int, b: int) -> int:
    return a + b


def bare(steps: int) -> Play:
    """The bare loop; it keeps its messages."""
    replies: list[dict[str, Any]] = [
        {"role": "assistant", "content": "", "tool_calls": [{"id": f"call_{n}", "function": {"name": "add", "arguments": arguments(n)}}]}
        for n in range(steps)
    ]

    def play() -> object:
        left = iter(replies)
        ended = bare_loop("task", lambda messages: next(left), {"add": add}, max_steps=steps)
        assert ended[:2] == ("max_steps", steps)
        return ended

    return play


def machine(steps: int) -> Play:
    """The machine and its record, fed by a driver that is as bare as the bare loop."""
    replies, guards = structured(steps), classic(max_steps=steps)

    def play() -> Run:
        left = iter(replies)
        run = Run("task", guards=guards, protocol=PROTOCOL)
        tools: dict[str, Callable[..., object]] = {"add": add}
        while (effect := run.effect) is not None:
            if isinstance(effect, AskModel):
                run.feed(ModelReplied(next(left)))
                continue
            observations = []
            for call in effect.calls:
                try:
                    observations.append(Observation(call.name, str(tools[call.name](**call.arguments))))
                except Exception as error:  # noqa: BLE001  # a tool's error is an observation
                    observations.append(Observation(call.name, f"TOOL_ERROR: {type(error).__name__}: {error}", "tool_error"))
            run.feed(ToolsReturned(tuple(observations)))
        assert (run.reason, run.step) == ("max_steps", steps)
        return run

    return play


def whole(steps: int) -> Play:
    """``fsm_agent.run`` as people call it: checked arguments, the time of each event, Ctrl-C held back between them."""
    replies, guards = structured(steps), classic(max_steps=steps)

    def play() -> Result:
        left = iter(replies)
        result = run("task", model=lambda messages: next(left), tools=[add_tool], guards=guards, protocol=PROTOCOL, lang="en")
        assert (result.reason, result.steps) == ("max_steps", steps)
        return result

    return play


SIDES = {"the bare loop": bare, "the machine": machine, "fsm_agent.run": whole}


def structured(steps: int) -> list[Reply]:
    return [Reply("", (ToolRequest(f"call_{n}", "add", arguments(n)),)) for n in range(steps)]


def arguments(n: int) -> str:
    return f'{{"a": 1, "b": {n}}}'
