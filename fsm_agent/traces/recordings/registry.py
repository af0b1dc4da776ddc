"""The formats that are known, which of them a file is in, and reading it. Other packages add formats by an entry point."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from os import PathLike
from pathlib import Path

import attrs

from fsm_agent.traces.recordings.base import Damaged, Reader, Recording, RecordingError
from fsm_agent.traces.recordings.documents import head_of

GROUP = "fsm_agent.recordings"
"""The entry point group."""


@attrs.frozen
class Registry:
    """The readers by format name, in the order in which they are asked, and what could not be loaded."""

    readers: dict[str, Reader]
    built_in: frozenset[str]
    """The names of those that are this package's own."""
    broken: tuple[str, ...] = ()
    """A line for each entry point that did not load."""


@cache
def registry() -> Registry:
    """The package's own readers, then those of other packages. One that does not load is told, and the others go on."""
    from fsm_agent.traces.recordings.anthropic_messages import AnthropicMessages
    from fsm_agent.traces.recordings.intercode import InterCode
    from fsm_agent.traces.recordings.notebook import Notebook
    from fsm_agent.traces.recordings.openai_chat import OpenAIChat
    from fsm_agent.traces.recordings.otel_genai import GenAISpans
    from fsm_agent.traces.recordings.own_traces import OwnTraces
    from fsm_agent.traces.recordings.react_log import ReActLog
    from fsm_agent.traces.recordings.reflexion import Reflexion
    from fsm_agent.traces.recordings.tau_bench import TauBench

    json: tuple[Reader, ...] = (Notebook(), OwnTraces(), TauBench(), InterCode(), GenAISpans(), AnthropicMessages(), OpenAIChat())
    text: tuple[Reader, ...] = (Reflexion(), ReActLog())
    readers = {reader.name: reader for reader in (*json, *text)}
    built_in = frozenset(readers)
    broken: list[str] = []
    for point in entry_points(group=GROUP):
        try:
            readers[point.name] = _loaded(point, readers)
        except Exception as error:  # noqa: BLE001  # another package may raise anything, and the other formats must still work
            broken.append(f"the format {point.name!r} ({point.value}) does not load: {type(error).__name__}: {error}")
    return Registry(readers, built_in, tuple(broken))


def _loaded(point: EntryPoint, readers: Mapping[str, Reader]) -> Reader:
    loaded = point.load()
    reader: Reader = loaded if not isinstance(loaded, type) and hasattr(loaded, "read") else loaded()
    if point.name in readers:
        raise ValueError(f"the format {point.name!r} is there already; give it another name")
    if not callable(getattr(reader, "read", None)) or not callable(getattr(reader, "recognises", None)):
        raise TypeError("it has no methods read and recognises")
    return reader


def detect(path: str | PathLike[str]) -> str:
    """The name of the file's format. Raises ``RecordingError``, listing what is known, where it is none of them or cannot be read."""
    path = Path(path)
    known = registry()
    failed: list[str] = []
    try:
        head = head_of(path)
    except OSError as error:
        raise _unreadable(path, error) from None
    for name, reader in known.readers.items():
        try:
            if reader.recognises(head, path):
                return name
        except Exception as error:  # noqa: BLE001  # another package's reader may raise anything, and the other formats must still work
            failed.append(_failure(name, error))
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # a character may be cut off at the end
    except UnicodeDecodeError as error:
        raise RecordingError(f"{path} is not UTF-8 text (byte {error.start})") from None
    raise RecordingError(f"{path} is of no format that is known; name one: {'; '.join((_listed(known), *failed))}")


def read(path: str | PathLike[str], format: str | None = None, error_pattern: str | None = None) -> Iterator[Recording | Damaged]:  # noqa: A002  # --format
    """The runs of a file of recordings, one at a time; ids are unique. ``format`` None: it is detected.

    ``error_pattern``: a regular expression; a tool result that it is found in is an error, as is what the format itself marks as one.
    None: the format's own rule. Raises ``RecordingError``, one line, for what cannot be read at all.
    """
    path = Path(path)
    name, reader = _reader(path, format)
    try:
        is_error = None if error_pattern is None else re.compile(error_pattern)
    except re.error as error:
        raise RecordingError(f"the error pattern {error_pattern!r} is no regular expression: {error}") from None
    seen: dict[str, int] = {}
    try:
        head_of(path)
        for run in reader.read(path, is_error):
            yield _unique(run, seen) if isinstance(run, Recording) else run
    except OSError as error:
        raise _unreadable(path, error) from None
    except RecordingError:
        raise
    except Exception as error:
        if name in registry().built_in:
            raise
        raise RecordingError(f"{path}: {_failure(name, error)}") from error


def remarks(path: str | PathLike[str], format: str | None = None) -> tuple[str, ...]:  # noqa: A002  # --format
    """What the file says of itself and does not bear out, a sentence each, for formats that say such things. Raises as ``read`` does."""
    path = Path(path)
    _, reader = _reader(path, format)
    remarks_of = getattr(reader, "remarks", None)
    try:
        return tuple(remarks_of(path)) if remarks_of else ()
    except OSError as error:
        raise _unreadable(path, error) from None


def _reader(path: Path, name: str | None) -> tuple[str, Reader]:
    name = detect(path) if name is None else name
    reader = registry().readers.get(name)
    if reader is None:
        raise RecordingError(f"the format {name!r} is not known; known are {_listed(registry())}")
    return name, reader


def _unique(run: Recording, seen: dict[str, int]) -> Recording:
    """The run; the second of an id gets the id with ``#2``."""
    times = seen[run.id] = seen.get(run.id, 0) + 1
    return run if times == 1 else _unique(attrs.evolve(run, id=f"{run.id}#{times}"), seen)


def _unreadable(path: Path, error: OSError) -> RecordingError:
    return RecordingError(f"{path} cannot be read: {error.strerror or error}")


def _failure(name: str, error: Exception) -> str:
    return f"the reader of the format {name} failed: {type(error).__name__}: {error}"


def _listed(known: Registry) -> str:
    return "; ".join((", ".join(known.readers), *known.broken))
