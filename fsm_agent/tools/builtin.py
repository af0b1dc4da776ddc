"""Three small tools to begin with."""

from __future__ import annotations

from datetime import datetime

from fsm_agent.tools.base import Tool, tool


@tool(idempotent=True)
def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


@tool(idempotent=True)
def mul(a: int, b: int) -> int:
    """Multiply two integers."""
    return a * b


@tool(idempotent=True)
def now() -> str:
    """The local date and time, in ISO 8601."""
    return datetime.now().astimezone().isoformat(timespec="seconds")


BUILT_IN: dict[str, Tool] = {each.name: each for each in (add, mul, now)}
"""The tools that a scenario can name."""
