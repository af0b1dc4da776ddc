"""Writing a record while the run goes: a killed process leaves a readable trace."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import BinaryIO, Self

from fsm_agent.machine import Run
from fsm_agent.traces.record import Trace, encode


class TraceWriter:
    """As a context: writes the lines that are new each time it is told that the run went on."""

    def __init__(self, trace: Trace, path: str | PathLike[str] | None) -> None:
        """``path``: the file, made anew; None: write nothing."""
        self._trace = trace
        self._path = path
        self._written = 0
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        """Raises ``OSError`` where the file cannot be made."""
        if self._path is not None:
            self._file = Path(self._path).open("wb")  # __exit__ closes it
            self._put(encode(self._trace.header))
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, run: Run) -> None:
        """Write what ``run`` has logged since the last time. Raises ``OSError`` where that cannot be done."""
        if self._file is not None:
            self._put(b"".join(encode(entry) for entry in run.log[self._written :]))
            self._written = len(run.log)

    def _put(self, lines: bytes) -> None:
        if self._file is not None:
            self._file.write(lines)
            self._file.flush()
