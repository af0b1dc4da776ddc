"""Twenty additions. So small a model adds small numbers well and large ones badly; with the tool it could do them all.

Half of them are asked in a way that helps: the words name the tool, and the server lets nothing pass but JSON. The others are plain
questions, which it likes to answer in prose: those show how a run ends whose model does not keep to the form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

import attrs

Way = Literal["sync", "streamed", "async"]

PAIRS = ((2, 3), (17, 25), (4, 9), (100, 250), (12, 30), (7, 8), (33, 44), (56, 12), (123, 456), (250, 750))

HELD: Mapping[str, Any] = {"response_format": {"type": "json_object"}}
"""What a request says besides, so that its reply is JSON."""


@attrs.frozen
class Task:
    """One addition."""

    text: str
    total: int
    """What is right."""
    options: Mapping[str, Any]
    """Further fields of each request."""
    way: Way = "sync"
    """How it is run."""

    def is_right(self, answer: str) -> bool:
        """Whether the answer tells the sum, and no number besides it and those of the task."""
        told = _numbers(answer)
        return self.total in told and told <= {self.total, *_numbers(self.text)}


def _numbers(text: str) -> set[int]:
    return set(map(int, re.findall(r"\d+", text.replace(",", ""))))


def _way(number: int) -> Way:
    """The first of each half is streamed, the second is run by asyncio."""
    ways: dict[int, Way] = {0: "streamed", 1: "async"}
    return ways.get(number, "sync")


TASKS = (
    *(Task(f"Use the add tool to add {a} and {b}.", a + b, HELD, _way(n)) for n, (a, b) in enumerate(PAIRS)),
    *(Task(f"What is {b} + {a}?", a + b, {}, _way(n)) for n, (a, b) in enumerate(PAIRS)),
)
