"""What a reader of another system's recordings gives: runs as this package's events, and nothing dropped silently."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Protocol

import attrs

from fsm_agent.events import Event, ToolSpec

Outcome = Literal["success", "failure", "unknown"]

Ending = Literal["answer", "cap", "guard", "user_stop", "transfer", "model_error", "cancelled", "unknown"]
"""How a recording ended:

- ``answer``: the model answered, and the system took it.
- ``cap``: the system stopped at its cap of steps or turns, be it with an answer that it made up itself.
- ``guard``: the system stopped it for another reason, such as a loop.
- ``user_stop``: the person (or a simulated one) ended the conversation.
- ``transfer``: the model handed over to a person.
- ``model_error``: the model, or the way to it, failed.
- ``cancelled``: a person stopped the run.
- ``unknown``: the recording simply ends.
"""


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
    ending: Ending = "unknown"
    model: str | None = None
    extra: Mapping[str, Any] = attrs.field(factory=dict)
    """Whatever else the format tells that has no place above, lest it be lost. In every format: ``thoughts``, those beside an answer or
    talk; ``corrections``, what the system said to replies that it could not parse; ``unmatched``, results that belong to no call, each
    with its place; ``missing``, calls without a result though the run went on."""


@attrs.frozen
class Damaged:
    """A run that could not be read: it is reported and counted, and the others go on."""

    place: str
    """Where in the file: an index, a line, a key."""
    problem: str


class RecordingError(ValueError):
    """A file that cannot be read at all: what, where, and how to mend it, in one line."""


class UnreadableError(ValueError):
    """One run that cannot be read; a reader turns it into ``Damaged`` with the run's place, and goes on."""


class Reader(Protocol):
    """A format: recognises its files and reads them.

    It may also have ``remarks(path)``, which gives a sentence for each thing that a file says of itself and does not bear out.

    A package adds its own under the entry point group ``fsm_agent.recordings``: the entry point's name is the format's, and
    it loads to an object of this shape, or to a class or function without arguments that makes one.
    """

    @property
    def name(self) -> str:
        """What ``--format`` calls it."""
        ...

    def recognises(self, head: bytes, path: Path, /) -> bool:
        """Whether a file that starts with ``head`` (up to 256 KiB) is of this format."""
        ...

    def read(self, path: Path, is_error: re.Pattern[str] | None = None) -> Iterator[Recording | Damaged]:
        """The runs, one at a time. ``is_error``: a tool result that it is found in is an error; None: the format's own rule for texts.

        What a format marks as an error in a field of its own is one in any case.
        Raises ``RecordingError`` where the file is not of this format, ``OSError`` where it cannot be read.
        """
        ...
