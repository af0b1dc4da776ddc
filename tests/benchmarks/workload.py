"""The same work for both sides: n steps, each one structured call of ``add`` with new arguments, until the cap ends the run.

Replies are made beforehand: what a model's answer costs is no part of either side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from fsm_agent import run
from fsm_agent.events import AskModel, ModelReplied, Observation, Reply, ToolRequest, ToolsReturned
from fsm_agent.guards import Guard, classic
from fsm_agent.machine import Run
from fsm_agent.protocols import RecordedProtocol
from fsm_agent.tools import add as add_tool

from .bare_loop import bare_loop

PROTOCOL = RecordedProtocol()


def add(a: int, b: int) -> int:
    return a + b


@attrs.frozen
class Workload:
    """A run of ``steps`` steps, ready for each side."""

    steps: int
    guards: tuple[Guard, ...]
    replies: list[Reply]
    messages: list[dict[str, Any]]

    def bare(self) -> object:
        """The bare loop."""
        replies = iter(self.messages)
        ended = bare_loop("task", lambda messages: next(replies), {"add": add}, max_steps=self.steps)
        assert ended[:2] == ("max_steps", self.steps)
        return ended

    def machine(self) -> Run:
        """The machine and its record, fed by a driver that is as bare as the bare loop."""
        run = Run("task", guards=self.guards, protocol=PROTOCOL)
        replies = iter(self.replies)
        tools: dict[str, Callable[..., object]] = {"add": add}
        while (effect := run.effect) is not None:
            if type(effect) is AskModel:
                run.feed(ModelReplied(next(replies)))
            else:
                observations = []
                for call in effect.calls:  # type: ignore[union-attr]  # the other effect
                    try:
                        observations.append(Observation(call.name, str(tools[call.name](**call.arguments))))
                    except Exception as error:
                        observations.append(Observation(call.name, f"TOOL_ERROR: {type(error).__name__}: {error}", "tool_error"))
                run.feed(ToolsReturned(tuple(observations)))
        assert (run.reason, run.step) == ("max_steps", self.steps)
        return run

    def whole(self) -> object:
        """``fsm_agent.run`` as people call it: checked arguments, the time of each event, Ctrl-C held back between them."""
        replies = iter(self.replies)
        result = run("task", model=lambda messages: next(replies), tools=[add_tool], guards=self.guards, protocol=PROTOCOL, lang="en")
        assert (result.reason, result.steps) == ("max_steps", self.steps)
        return result


def workload(steps: int) -> Workload:
    arguments = [f'{{"a": 1, "b": {n}}}' for n in range(steps)]
    return Workload(
        steps,
        classic(max_steps=steps),
        [Reply("", (ToolRequest(f"call_{n}", "add", text),)) for n, text in enumerate(arguments)],
        [
            {"role": "assistant", "content": "", "tool_calls": [{"id": f"call_{n}", "function": {"name": "add", "arguments": text}}]}
            for n, text in enumerate(arguments)
        ],
    )
