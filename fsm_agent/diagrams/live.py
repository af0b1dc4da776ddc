"""Following a trace file while its run goes: the run as far as it has come, each time that it has gone on."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import attrs

from fsm_agent.guards import Guard
from fsm_agent.machine import Run, Taken, UnexpectedEvent
from fsm_agent.traces.load import MAX_LINE
from fsm_agent.traces.notes import Note
from fsm_agent.traces.record import Header, Trace, TraceError, decode_entry, decode_header

POLL_S = 0.25
"""Between two looks at the file, in seconds."""


@attrs.frozen
class Seen:
    """A run as far as its file has it."""

    run: Run
    header: Header


@attrs.define
class _Follower:
    """What was read of the file so far."""

    path: Path
    guards: Sequence[Guard] | None
    position: int = 0
    """Bytes read; always at the start of a line."""
    lines: int = 0
    first: bytes = b""
    """The first line. Where it changes, the file holds another run."""
    header: Header | None = None
    run: Run | None = None

    def look(self) -> bool:
        """Read what is new, whole lines alone; whether there was anything. Raises ``TraceError`` or ``OSError``."""
        try:
            there = self.path.stat()
        except FileNotFoundError:
            return False
        if not stat.S_ISREG(there.st_mode):
            raise TraceError(f"{self.path} is no regular file; a trace is read from a file")
        with self.path.open("rb") as file:
            if there.st_size < self.position or file.read(len(self.first)) != self.first:
                self._begin_anew()
            file.seek(self.position)
            new = file.read(MAX_LINE + 1)
        whole, line_break, rest = new.rpartition(b"\n")
        if len(rest) > MAX_LINE:
            raise TraceError(f"{self.path}, line {self.lines + 1}: the line is longer than {MAX_LINE // 2**20} MiB")
        if not line_break:
            return False
        for line in whole.split(b"\n"):
            self.lines += 1
            self._take(line)
        self.position += len(whole) + 1
        return self.run is not None

    def _begin_anew(self) -> None:
        self.position, self.lines, self.first, self.header, self.run = 0, 0, b"", None, None

    def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            if self.run is None:
                self.header = decode_header(line.removeprefix(b"\xef\xbb\xbf"))
                self.run = Trace(self.header, ()).new_run(self.guards)
                self.first = line if self.lines == 1 else b""
                return
            entry = decode_entry(line)
            if isinstance(entry, Note):
                return
            if not isinstance(entry, Taken) and self.run.effect is not None:
                self.run.feed(entry)
        except TraceError as error:
            raise TraceError(f"{self.path}, line {self.lines}: {error}") from None
        except UnexpectedEvent as error:
            raise TraceError(f"{self.path}, line {self.lines}: these events belong to no run: {error}") from None


def follow(path: Path, guards: Sequence[Guard] | None = None, *, wait: Callable[[], None] = lambda: time.sleep(POLL_S)) -> Iterator[Seen]:
    """The run in the trace ``path``, again each time that the file has grown, until the run has halted.

    The file may be made later; where it is made anew, the new run is followed. ``guards`` replaces the run's own. ``wait`` is called
    between two looks. Raises ``TraceError`` with the line for what is no trace, ``OSError`` where it cannot be read.
    """
    follower = _Follower(path, guards)
    while True:
        if follower.look() and follower.run is not None and follower.header is not None:
            yield Seen(follower.run, follower.header)
            if follower.run.reason is not None:
                return
        wait()


def put_whole(data: bytes, output: Path) -> None:
    """Write a file so that whoever looks at it meanwhile sees the old one or the new one, and never a part."""
    if output.exists() and not output.is_file():  # a device
        output.write_bytes(data)
        return
    fresh = output.with_name(f".{output.name}.{os.getpid()}")
    try:
        fresh.write_bytes(data)
        try:
            fresh.replace(output)
        except PermissionError:  # a program holds the old one open, on a system on which it then cannot be replaced
            output.write_bytes(data)
    finally:
        fresh.unlink(missing_ok=True)
