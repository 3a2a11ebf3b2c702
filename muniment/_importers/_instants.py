"""Instants as files write them: ISO 8601, and numbers of seconds or milliseconds since the epoch."""

from __future__ import annotations

import math

from muniment.events._errors import BadTime
from muniment.events._time import parse_instant


class BadInstant(Exception):
    """Why a value is no instant."""


def instant_of(value: object) -> int | None:
    """Return microseconds since the epoch, or None for null; raises BadInstant for what is no instant."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise BadInstant("is neither text nor a number")
    if isinstance(value, float) and not math.isfinite(value):
        raise BadInstant("is not a finite number")
    try:
        return parse_instant(value if isinstance(value, str) else _epoch_text(value))
    except (BadTime, ValueError):  # ValueError: an integer of thousands of digits
        raise BadInstant("cannot be read as an instant") from None


def _epoch_text(number: float) -> str:
    # A float of seconds prints seven decimals, or an exponent; neither is an instant.
    return f"@{number:.6f}" if isinstance(number, float) else f"@{number}"
