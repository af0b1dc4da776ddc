"""Reading a trace file back."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from fsm_agent.events import Event
from fsm_agent.machine import Taken
from fsm_agent.traces.notes import Note
from fsm_agent.traces.record import Header, Trace, TraceError, decode_entry, decode_header

MAX_LINE = 64 * 2**20
"""Bytes that a line may have. A trace is hostile until it is read: a file without line breaks must not fill the memory."""

_BOM = b"\xef\xbb\xbf"
_HEADER = b'{"trace":'
"""How a header begins that this package wrote."""


def load(path: str | PathLike[str]) -> Trace:
    """The trace in the file. A last line that was cut off is left out, and the trace says so; blank lines and a BOM are skipped.

    Raises ``TraceError`` with the line's number for a file that is no trace or has a line of more than 64 MiB (``MAX_LINE``), and for
    what is no file (a folder, a device, a pipe); ``OSError`` where it cannot be read.
    """
    header: Header | None = None
    log: list[Event | Taken] = []
    notes: list[tuple[int, Note]] = []
    cut_off = False
    for number, line in _lines(Path(path)):
        whole = line.endswith(b"\n")
        try:
            if header is None:
                header = decode_header(line)
            else:
                entry = decode_entry(line)
                if isinstance(entry, Note):
                    notes.append((len(log), entry))
                else:
                    log.append(entry)
        except TraceError as error:
            if not whole and header is not None:
                cut_off = True
            elif not whole and (line.startswith(_HEADER) or _HEADER.startswith(line)):
                raise TraceError(f"{path}, line {number}: the file was cut off in its header; no run was recorded") from None
            else:
                raise TraceError(f"{path}, line {number}: {error}") from None
    if header is None:
        raise TraceError(f"{path}: the file is empty")
    return Trace(header, log, cut_off, notes)


def line_of(path: str | PathLike[str], nth: int) -> int:
    """The number in the file of its ``nth`` line that is not blank, from 1. Raises as ``load`` does."""
    return next((number for count, (number, _) in enumerate(_lines(Path(path)), 1) if count == nth), nth)


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers and line breaks."""
    mode = path.stat().st_mode  # before it is opened: opening a pipe waits for its writer
    if not stat.S_ISREG(mode):
        what = "a folder" if stat.S_ISDIR(mode) else "a pipe" if stat.S_ISFIFO(mode) else "no regular file"
        raise TraceError(f"{path} is {what}; a trace is read from a file")
    with path.open("rb") as file:
        number = 0
        while line := file.readline(MAX_LINE + 1):
            number += 1
            if len(line) > MAX_LINE:
                raise TraceError(f"{path}, line {number}: the line is longer than {MAX_LINE // 2**20} MiB")
            line = line.removeprefix(_BOM) if number == 1 else line
            if line.strip():
                yield number, line
