"""The three standard streams, as whoever started the process left them: closed, full, in any locale."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from typing import Final

_STANDING_IN: Final = (os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)
"""For a closed stream: nothing to read, an error where an answer is to go, and talk that nobody hears."""


class OutputLost(OSError):
    """Standard output cannot be written; by a name of its own, since the store's disk is another one."""


class _Output(TextIOWrapper):
    def write(self, text: str, /) -> int:
        try:
            return super().write(text)
        except OSError as error:
            raise _lost(error) from error

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            raise _lost(error) from error


def _lost(error: OSError) -> OSError:
    return error if isinstance(error, BrokenPipeError) else OutputLost(error.errno, error.strerror)


def fill_streams() -> None:
    """Put something where a standard stream is closed; else the next file that is opened takes its number."""
    for stream, flags in enumerate(_STANDING_IN):
        try:
            os.fstat(stream)
        except OSError:
            made = os.open(os.devnull, flags)
            if made != stream:
                os.dup2(made, stream)
                os.close(made)
    # Python has None for what was closed when it started.
    sys.stdin = sys.stdin or os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)


def encode_streams() -> None:
    """
    Make standard input and output UTF-8 in every locale, since programs read them; a terminal keeps its own encoding.

    What a terminal cannot write is written as `\\u8f66`, and never ends a command.
    """
    if isinstance(sys.stdin, TextIOWrapper) and not sys.stdin.isatty():
        sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")
    if isinstance(sys.stdout, TextIOWrapper):
        is_terminal = sys.stdout.isatty()
        encoding = sys.stdout.encoding if is_terminal else "utf-8"
        sys.stdout = _Output(sys.stdout.detach(), encoding, "backslashreplace", line_buffering=is_terminal)


def give_up_output() -> None:
    """Send what standard output did not take nowhere; else Python complains once more when it exits."""
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, sys.stdout.fileno())
    os.close(sink)
