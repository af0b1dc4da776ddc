"""Where the steps of a history begin."""

from __future__ import annotations

from collections.abc import Sequence

from fsm_agent.events import Message


def first_step(messages: Sequence[Message]) -> int:
    """Where the first step begins: at the first reply after the task, which is the first message of the user. Before it is what always
    stays.
    """
    asked = False
    for at, message in enumerate(messages):
        if message.role == "assistant" and asked:
            return at
        asked = asked or message.role == "user"
    return len(messages)


def last_steps(messages: Sequence[Message], count: int) -> int:
    """Where the last ``count`` steps begin; where there are fewer, the first."""
    first = first_step(messages)
    for at in range(len(messages) - 1, first, -1):
        if messages[at].role == "assistant":
            count -= 1
            if count == 0:
                return at
    return first


def step_of(messages: Sequence[Message], at: int) -> int:
    """Where the step begins that the message at ``at`` belongs to."""
    first = first_step(messages)
    return next((start for start in range(min(at, len(messages) - 1), first, -1) if messages[start].role == "assistant"), first)
