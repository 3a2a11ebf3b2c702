"""Worker processes: plain interpreters that run a piece of our code over one task after another, by their pipes."""

from __future__ import annotations

import contextlib
import json
import struct
import subprocess
import sys
from typing import Final

_SIZE: Final = struct.Struct(">I")
_CODE: Final = """
import json, struct, sys
size = struct.Struct(">I")
def read():
    head = sys.stdin.buffer.read(4)
    return sys.stdin.buffer.read(*size.unpack(head)) if head else None
sys.path[:] = json.loads(read())
from {module} import {function} as serve
while (task := read()) is not None:
    answer = serve(task)
    sys.stdout.buffer.write(size.pack(len(answer)) + answer)
    sys.stdout.buffer.flush()
"""


class Worker:
    """One interpreter that runs `function` of `module`, from bytes to bytes, as often as it is asked."""

    def __init__(self, module: str, function: str) -> None:
        # multiprocessing would run the host's main module again, which may well write to stores; a fork would copy the
        # locks of the host's threads as they stand.
        self._process = subprocess.Popen(  # noqa: S603  # this interpreter, and no argument from outside
            [sys.executable, "-P", "-c", _CODE.format(module=module, function=function)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        with contextlib.suppress(OSError):
            self._send(json.dumps(sys.path).encode())

    def ask(self, task: bytes) -> bytes | None:
        """Return the answer, or None when the worker ended without one, for whatever reason."""
        out = self._process.stdout
        try:
            self._send(task)
        except OSError:
            return None
        head = b"" if out is None else out.read(_SIZE.size)
        if out is None or len(head) < _SIZE.size:
            return None
        (size,) = _SIZE.unpack(head)
        answer = out.read(size)
        return answer if len(answer) == size else None

    def close(self) -> None:
        """Let it end."""
        with contextlib.suppress(OSError):
            self._process.communicate()

    def _send(self, data: bytes) -> None:
        if self._process.stdin is not None:
            self._process.stdin.write(_SIZE.pack(len(data)) + data)
            self._process.stdin.flush()
