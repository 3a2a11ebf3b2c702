"""The lines of a file of JSON lines, one at a time, however long."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import BinaryIO

from ._turns import MAX_VALUE_BYTES, Skipped, as_object

_BOM = b"\xef\xbb\xbf"


class Unusable(Exception):
    """Why a line gives no turn; `code` is that of what is skipped for it."""

    def __init__(self, why: str, code: str = "damaged") -> None:
        super().__init__(why)
        self.code = code


def numbered_lines(file: BinaryIO, on_read: Callable[[int], None]) -> Iterator[tuple[int, bytes | Skipped]]:
    """Yield the lines that are not blank with their numbers; one that is too long is passed over, and not held."""
    number = 0
    while line := file.readline(MAX_VALUE_BYTES):
        number += 1
        on_read(len(line))
        too_long = len(line) == MAX_VALUE_BYTES and not line.endswith(b"\n")
        if too_long:
            _pass_over_line(file, on_read)
            yield number, Skipped(where=f"line {number}", why=f"it is longer than {MAX_VALUE_BYTES} bytes")
            continue
        if number == 1:
            line = line.removeprefix(_BOM)
        if line.strip():
            yield number, line


def record_of(line: bytes) -> dict[str, object]:
    """Return the object that a line holds; raises Unusable for any other line."""
    # Decoded here because json.loads lets lone surrogates in bytes pass, and guesses at UTF-16.
    try:
        record = as_object(json.loads(line.decode("utf-8")))
    except UnicodeDecodeError:
        raise Unusable("it is not UTF-8") from None
    except (ValueError, RecursionError):
        raise Unusable("it is not JSON, or was cut short") from None
    if record is None:
        raise Unusable("it is not a JSON object")
    return record


def _pass_over_line(file: BinaryIO, on_read: Callable[[int], None]) -> None:
    while rest := file.readline(MAX_VALUE_BYTES):
        on_read(len(rest))
        if rest.endswith(b"\n"):
            return
