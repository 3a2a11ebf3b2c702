"""
Ids of memories, decisions and events.

    7 bytes  microseconds since the epoch when the id was drawn, big-endian, so that ids sort by age
    9 bytes  random

An id never depends on content, and is written as 32 hexadecimal digits. A person may type any unique prefix.
"""

from __future__ import annotations

import os
import re
from typing import Final, NewType

from ._errors import BadArgument

Id = NewType("Id", bytes)
"""Sixteen bytes."""

ID_BYTES: Final = 16
_TIME_MASK: Final = (1 << 56) - 1
_HEX_PREFIX: Final = re.compile(r"[0-9a-f]{1,32}\Z")


def new_id(now: int) -> Id:
    """Return a fresh id; `now` in microseconds."""
    return Id((now & _TIME_MASK).to_bytes(7, "big") + os.urandom(9))


def format_id(identity: bytes) -> str:
    """Return the id as 32 hexadecimal digits."""
    return identity.hex()


def parse_id(text: str) -> Id:
    """
    Return the id that the text spells in full.

    Raises:
        BadArgument: it is not 32 lower-case hexadecimal digits.
    """
    if not is_id_prefix(text) or len(text) != 2 * ID_BYTES:
        raise BadArgument(argument="id", detail=f"expected 32 hexadecimal digits, got `{str(text)[:64]}`")
    return Id(bytes.fromhex(text))


def is_id_prefix(text: object) -> bool:
    """Tell whether it is text that may begin an id."""
    return isinstance(text, str) and bool(_HEX_PREFIX.match(text))
