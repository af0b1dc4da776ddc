"""A file that one process writes: whoever opens it next is told so. The system lifts the lock with the process, however it ends."""

from __future__ import annotations

import sys
from typing import BinaryIO

if sys.platform == "win32":
    import msvcrt

    _FAR = 1 << 40
    """Windows locks bytes, and then nobody else may read them: this one is far behind the end of any record."""

    def lock(file: BinaryIO) -> bool:
        """Whether the file can be had: False where another process, or another open file of this one, has it."""
        at = file.tell()
        file.seek(_FAR)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            file.seek(at)
        return True

else:
    import fcntl

    def lock(file: BinaryIO) -> bool:
        """Whether the file can be had: False where another process, or another open file of this one, has it."""
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks gives a file to everybody
            return True
        return True
