"""What a server's process says on its standard error: kept out of the terminal, and its end at hand for when it dies."""

from __future__ import annotations

import os
import re
import threading
from io import TextIOWrapper

from fsm_agent.text import printable

_KEPT = 8192
"""So many bytes of the end are kept."""
_WIDTH = 300
"""So long a line is shown at most."""

_EXCEPTION = re.compile(r"(\w+\.)*\w*(Error|Exception)\b.*[:\[]")
_ERROR = re.compile(r"\b(error|fatal|err!)", re.IGNORECASE)
_STACK = re.compile(r"\s+at |Node\.js v|npm (error|ERR!) A complete log")


class LastWords:
    """A pipe for the process to write to, and a thread that reads it."""

    def __init__(self) -> None:
        reading, writing = os.pipe()
        self.file = TextIOWrapper(os.fdopen(writing, "wb"))
        """What the process gets for its standard error. Close it here once the process has it."""
        self._end = b""
        self._thread = threading.Thread(target=self._read, args=(reading,), name="mcp stderr", daemon=True)
        self._thread.start()

    def _read(self, reading: int) -> None:
        with os.fdopen(reading, "rb", buffering=0) as file:
            while said := file.read(_KEPT):
                self._end = (self._end + said)[-_KEPT:]

    def telling(self) -> str:
        """The line of them that tells most; empty where it said nothing. To be asked once the process has ended."""
        self._thread.join(0.5)  # it ends with the process, unless a process of that one goes on
        return telling(self._end.decode(errors="replace"))


def telling(text: str) -> str:
    """The line that tells most of why a program ended: its last exception, its first error, else its last line."""
    lines = [line for line in text.splitlines() if re.search(r"\w", line) and not _STACK.match(line)]
    exceptions = [line for line in lines if _EXCEPTION.match(line)]
    errors = [index for index, line in enumerate(lines) if _ERROR.search(line)]
    if exceptions:
        chosen = exceptions[-1]
    elif errors:
        chosen = "; ".join(line.strip() for line in lines[errors[0] : errors[0] + 2])
    else:
        chosen = lines[-1] if lines else ""
    shown = printable(chosen.strip())
    return shown if len(shown) <= _WIDTH else shown[: _WIDTH - 1] + "…"
