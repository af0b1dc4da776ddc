"""What a reader of another system's recordings gives: runs as this package's events, and nothing dropped silently."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Protocol

import attrs

from fsm_agent.events import Event, ToolSpec

Outcome = Literal["success", "failure", "unknown"]


@attrs.frozen
class Recording:
    """One recorded run."""

    id: str
    """Unique within its file, such as ``9/2``."""
    source: str
    """The reader's name."""
    task: str
    events: tuple[Event, ...]
    """For the ``recorded`` protocol. A run that gives no answer ends with ``RecordingEnded``."""
    tools: tuple[ToolSpec, ...] = ()
    outcome: Outcome = "unknown"
    score: float | None = None
    """The recorded reward, where there is one."""
    ending: str = "unknown"
    """How the recording ended, in a word: ``answer``, ``cap``, ``user_stop``, ``transfer``, ``unknown``."""
    model: str | None = None
    extra: Mapping[str, Any] = attrs.field(factory=dict)
    """Whatever else the format tells that has no place above."""


@attrs.frozen
class Damaged:
    """A run that could not be read: it is reported and counted, and the others go on."""

    place: str
    """Where in the file: an index, a line, a key."""
    problem: str


class RecordingError(ValueError):
    """A file that cannot be read at all: what, where, and how to mend it, in one line."""


class Reader(Protocol):
    """A format: recognises its files and reads them."""

    name: str
    """What ``--format`` calls it."""

    def recognises(self, head: bytes, path: Path) -> bool:
        """Whether a file that starts with ``head`` (up to 64 KiB) is of this format."""
        ...

    def read(self, path: Path, is_error: re.Pattern[str] | None = None) -> Iterator[Recording | Damaged]:
        """The runs, one at a time. ``is_error``: a tool result that it is found in is an error; None: the format's own rule.

        Raises ``RecordingError`` where the file is not of this format, ``OSError`` where it cannot be read.
        """
        ...
