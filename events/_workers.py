"""Worker processes: plain interpreters that run a piece of our code over bytes."""

from __future__ import annotations

import contextlib
import subprocess
import sys


def start_worker(code: str, task: bytes) -> subprocess.Popen[bytes]:
    """Start an interpreter with the task on its standard input; what it answers is read from its standard output."""
    # multiprocessing would run the host's main module again, which may well write to stores; a fork would copy the
    # locks of the host's threads as they stand.
    worker = subprocess.Popen(  # noqa: S603  # this interpreter, and no argument from outside
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    if worker.stdin is not None:
        with contextlib.suppress(BrokenPipeError):
            worker.stdin.write(task)
            worker.stdin.close()
    return worker
