"""Reading a trace file back."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from fsm_agent.events import Event
from fsm_agent.machine import Taken
from fsm_agent.traces.record import Header, Trace, TraceError, decode_entry, decode_header


def load(path: str | PathLike[str]) -> Trace:
    """The trace in the file. A last line that was cut off is left out, and the trace says so.

    Raises ``TraceError`` with the line's number for a file that is no trace, ``OSError`` where it cannot be read.
    """
    lines = Path(path).read_bytes().split(b"\n")
    tail = lines.pop()
    if tail and not lines:
        lines, tail = [tail], b""
    if not lines:
        raise TraceError(f"{path}: the file is empty")
    log: list[Event | Taken] = []
    header: Header | None = None
    try:
        header = decode_header(lines[0])
        for line in lines[1:]:
            log.append(decode_entry(line))  # noqa: PERF401  # the length says which line it was
    except TraceError as error:
        number = len(log) + 2 if header else 1
        raise TraceError(f"{path}, line {number}: {error}") from None
    if tail:
        try:
            log.append(decode_entry(tail))
            tail = b""
        except TraceError:
            pass
    return Trace(header, log, cut_off=bool(tail))
