"""Writing a record while the run goes: a killed process leaves a readable trace."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import BinaryIO, Self

from fsm_agent.events import Event
from fsm_agent.machine import Run, Taken
from fsm_agent.traces.record import Trace, encode

_in_writing: set[str] = set()
"""The files that runs of this process are writing: two of them in one file would make a record of neither."""

_lock = threading.Lock()


class TraceWriter:
    """As a context: writes the lines that are new each time it is told that the run went on."""

    def __init__(self, trace: Trace, path: str | PathLike[str] | None) -> None:
        """``path``: the file, made anew; None: write nothing."""
        self._trace = trace
        self._path = path
        self._written = 0
        self._file: BinaryIO | None = None
        self._log: Sequence[Event | Taken] = trace.log
        self._key = ""
        self._failed = False
        """The file could not be written: nothing more is."""

    def __enter__(self) -> Self:
        """Raises ``OSError`` where the file cannot be made, ``ValueError`` where another run of this process is writing it."""
        if self._path is not None:
            key = os.path.normcase(os.path.realpath(self._path))
            with _lock:
                if key in _in_writing:
                    raise ValueError(f"the trace {os.fspath(self._path)} is being written by another run; give each run a file of its own")
                _in_writing.add(key)
            self._key = key
            try:
                self._file = Path(self._path).open("wb")  # __exit__ closes it
                self._put(encode(self._trace.header))
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
