"""Standard streams that a command can rely on: they are there, they show any character, and a reader that leaves ends no run."""

from __future__ import annotations

import errno
import io
import os
import sys
from pathlib import Path
from typing import Any, TextIO

_LEFT = (errno.EPIPE, errno.EINVAL) if sys.platform == "win32" else (errno.EPIPE,)
"""What a pipe says when nobody reads it any more."""


class _Pipe(io.RawIOBase):
    """A stream's raw bytes. Once its reader has left (``| head -1``), what is written is dropped.

    Any other failure is raised once: the bytes that it left behind must not fail again when Python ends.
    """

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self._gone = False

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        number: int = self._raw.fileno()
        return number

    def isatty(self) -> bool:
        return False

    def write(self, data: Any) -> int | None:
        if self._gone:
            return len(data)
        try:
            count: int | None = self._raw.write(data)
        except OSError as error:
            self._gone = True
            if error.errno not in _LEFT:
                raise
            return len(data)
        return count


def make_ready() -> None:
    """Put such streams in the place of stdout and stderr."""
    sys.stdout = _ready(sys.stdout, own=sys.stdout is sys.__stdout__)
    sys.stderr = _ready(sys.stderr, own=sys.stderr is sys.__stderr__)


def _ready(stream: TextIO | None, *, own: bool) -> TextIO:
    """``own``: the stream is the process's, and nobody has put another in its place."""
    if stream is None:  # it was closed before the start, as by ``>&-``
        return Path(os.devnull).open("w", encoding="utf-8")
    if own and isinstance(stream, io.TextIOWrapper) and not stream.isatty():
        raw = getattr(stream.buffer, "raw", stream.buffer)
        return io.TextIOWrapper(
            io.BufferedWriter(_Pipe(raw)),
            encoding=stream.encoding,
            errors="backslashreplace",
            line_buffering=stream.line_buffering or stream.write_through,
        )
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return stream
