"""Writing a record while the run goes: a killed process leaves a readable trace, and another can go on with it."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import BinaryIO, Self

from fsm_agent.events import Event
from fsm_agent.machine import Run, Taken
from fsm_agent.traces.load import load
from fsm_agent.traces.lock import lock
from fsm_agent.traces.notes import Note
from fsm_agent.traces.record import Trace, encode

_in_writing: set[str] = set()
"""The files that runs of this process are writing: two of them in one file would make a record of neither."""

_lock = threading.Lock()


class TraceWriter:
    """As a context: writes the lines that are new each time it is told that the run went on."""

    def __init__(self, trace: Trace, path: str | PathLike[str] | None, *, read: Trace | None = None) -> None:
        """``path``: the file, made anew; None: write nothing.

        ``read``: what the file held when it was read. It is gone on with, after its last whole line.
        """
        self._trace = trace
        self._path = path
        self._read = read
        self._written = 0 if read is None else len(read.log)
        self._file: BinaryIO | None = None
        self._log: Sequence[Event | Taken] = trace.log
        self._key = ""
        self._failed = False
        """The file could not be written: nothing more is."""

    def __enter__(self) -> Self:
        """Raises ``OSError`` where the file cannot be made, ``ValueError`` where another run is writing it."""
        if self._path is not None:
            key = os.path.normcase(os.path.realpath(self._path))
            with _lock:
                if key in _in_writing:
                    raise self._taken()
                _in_writing.add(key)
            self._key = key
            try:
                self._file = Path(self._path).open("ab" if self._read is None else "r+b")  # __exit__ closes it
                self._claim(self._file)
            except BaseException:
                self._close()
                raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        """What was logged and not written is written, also when the run was broken off by an error, which then stands."""
        try:
            if self._file is not None and not self._failed:
                self._write(self._log)
        except Exception:
            if kind is None:
                raise
        finally:
            self._close()

    def write(self, run: Run) -> None:
        """Write what ``run`` has logged since the last time. Raises ``OSError`` where that cannot be done."""
        if self._file is not None:
            self._log = run.log
            self._write(run.log)

    def note(self, note: Note) -> None:
        """Write what is told of a single call. Raises ``OSError`` where that cannot be done."""
        self._put(encode(note))

    def _taken(self) -> ValueError:
        name = os.fspath(self._path or "")
        return ValueError(f"the trace {name} is being written by another run; give each run a file of its own")

    def _claim(self, file: BinaryIO) -> None:
        """Make the file this run's: no other process can, until it is closed."""
        regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)  # a pipe or a device is nobody's
        if regular and not lock(file):
            raise self._taken()
        if self._read is None:
            if regular:
                file.truncate(0)
            self._put(encode(self._trace.header))
        else:
            _end_with_a_whole_line(file, cut_off=self._unchanged(self._read).cut_off)

    def _unchanged(self, read: Trace) -> Trace:
        """What the file holds now. Raises ``ValueError`` where somebody went on with it since, if only with a note of a call."""
        now = load(self._path or "")
        if (now.header, len(now.log), len(now.notes)) != (read.header, len(read.log), len(read.notes)):
            raise ValueError(f"the trace {os.fspath(self._path or '')} has changed since it was read; take it up again")
        return now

    def _write(self, log: Sequence[Event | Taken]) -> None:
        self._put(b"".join(encode(entry) for entry in log[self._written :]))
        self._written = len(log)

    def _put(self, lines: bytes) -> None:
        if self._file is not None:
            self._failed = True
            self._file.write(lines)
            self._file.flush()
            self._failed = False

    def _close(self) -> None:
        try:
            if self._file is not None:
                self._file.close()
        finally:
            with _lock:
                _in_writing.discard(self._key)


def _end_with_a_whole_line(file: BinaryIO, *, cut_off: bool) -> None:
    """Go to the end. A last line that was cut off as it was written is removed, one that only lacks its line break gets it."""
    whole = end = file.seek(0, os.SEEK_END)
    while whole > 0:
        begin = max(whole - 2**16, 0)
        file.seek(begin)
        at = file.read(whole - begin).rfind(b"\n") + 1
        whole = begin + at
        if at:
            break
    if cut_off:
        file.truncate(whole)
    file.seek(0, os.SEEK_END)
    if whole < end and not cut_off:
        file.write(b"\n")
