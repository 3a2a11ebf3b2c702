"""Keeps standard output for the protocol: whatever else is printed, by whatever code, goes to standard error."""

from __future__ import annotations

import io
import os
import sys
from typing import Final

_IN: Final = 0
_OUT: Final = 1
_ERR: Final = 2


def claim_streams() -> tuple[io.TextIOWrapper, io.TextIOWrapper]:
    """
    Return the client's ends of standard input and output, and take both from everything else in this process.

    File descriptor 1 becomes standard error, so that C code and child processes cannot write to the client either;
    descriptor 0 is empty. Called first of all, before anything that may print is imported.
    """
    sys.stdout.flush()
    reading, writing = os.dup(_IN), os.dup(_OUT)
    os.dup2(_ERR, _OUT)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, _IN)
    os.close(empty)
    sys.stdout = sys.stderr
    # A line that is not UTF-8 is answered, not by the end of the server; and it can still be told from one that is.
    incoming = io.TextIOWrapper(os.fdopen(reading, "rb"), encoding="utf-8", errors="surrogateescape", newline="\n")
    outgoing = io.TextIOWrapper(os.fdopen(writing, "wb"), encoding="utf-8", errors="backslashreplace", newline="\n")
    return incoming, outgoing
