"""
The writer lock: `flock` on a file that is never deleted.

Not `fcntl` locks: closing any descriptor of the file in this process would drop those, also one that a library opened.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from ._errors import StoreReadOnly


class WriterLock:
    """Held by at most one thread of one process on the machine."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mutex = threading.RLock()
        self._depth = 0
        self._fd: int | None = None

    @contextmanager
    def hold(self) -> Generator[bool]:
        """Wait for the lock and hold it; gives True to the outermost holder, who has to catch up first."""
        with self._mutex:
            if self._depth == 0:
                fcntl.flock(self._descriptor(), fcntl.LOCK_EX)
            self._depth += 1
            try:
                yield self._depth == 1
            finally:
                self._depth -= 1
                if self._depth == 0:
                    fcntl.flock(self._descriptor(), fcntl.LOCK_UN)

    def close(self) -> None:
        """Release the descriptor."""
        with self._mutex:
            if self._fd is not None:
                os.close(self._fd)
                self._fd = None

    def _descriptor(self) -> int:
        if self._fd is None:
            try:
                self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except (PermissionError, OSError) as error:
                raise StoreReadOnly(path=str(self._path.parent), detail=str(error.strerror)) from error
        return self._fd
