"""
Instants and half-open intervals, in microseconds since the epoch, UTC.

What people write is understood in one documented way:

    2026-05-20T08:29:42        UTC (a time without offset means UTC)
    2026-05-20T10:29:42+02:00  the same instant
    2026-05-20                 00:00 that day; the day's last microsecond where a bound is inclusive (`end=True`)
    @1779265782                epoch seconds; `@1779265782000` epoch milliseconds (from 1e11 on)
    datetime, date objects     as above; naive means UTC
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Final, TypeAlias, cast

from ._errors import BadArgument, BadTime

Instant: TypeAlias = str | datetime | date
"""An instant as people give it."""

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MIN_INSTANT: Final = -62_135_596_800_000_000
"""Year 1, the first instant that a datetime can say."""
MAX_INSTANT: Final = 253_402_300_799_999_999
"""The last microsecond of year 9999."""
FOREVER: Final = 1 << 62
"""The end of an interval that was left open; later than any instant."""

_CLOCK_END: Final = 221_845_392_000_000_000  # year 9000: what is counted from there on still ends before 9999
_DAY: Final = 86_400_000_000
_MILLISECONDS_FROM: Final = 100_000_000_000
_MICROSECOND: Final = timedelta(microseconds=1)
_EPOCH_NUMBER: Final = re.compile(r"@(-?[0-9]{1,18})(?:\.([0-9]{1,6}))?\Z")
_DIGITS_ONLY: Final = re.compile(r"[+-]?[0-9]+\Z")


def parse_instant(given: Instant, *, end: bool = False) -> int:
    """
    Return the instant in microseconds since the epoch.

    Raises:
        BadTime: it is not one of the forms above, or outside years 1 to 9999. A string of digits alone is refused:
            bare integers are sequence numbers.
    """
    if isinstance(given, datetime):
        return _from_datetime(given)
    if isinstance(given, date):
        return _from_date(given, end=end)
    text = _text(given)
    if match := _EPOCH_NUMBER.match(text):
        return _from_epoch(given, match)
    if _DIGITS_ONLY.match(text):
        raise BadTime(given=given, detail="bare digits are a sequence number; write epoch seconds as `@N`")
    try:
        return _from_date(date.fromisoformat(text), end=end)
    except ValueError:
        pass  # with a time of day, or none at all
    try:
        return _from_datetime(datetime.fromisoformat(text))
    except ValueError as error:
        raise BadTime(given=given, detail="not ISO 8601") from error


def format_instant(micros: int) -> str:
    """Return the instant as ISO 8601 in UTC with a `Z`, as short as it stays exact."""
    moment = to_datetime(micros)
    return moment.isoformat(timespec="auto").replace("+00:00", "Z")


def to_datetime(micros: int) -> datetime:
    """Return the instant as an aware UTC datetime."""
    return EPOCH + timedelta(microseconds=micros)


def wall_clock() -> int:
    """Return the machine's clock. Only the door and the public face read it; no projection does."""
    return time.time_ns() // 1_000


def checked_clock(clock: Callable[[], int]) -> Callable[[], int]:
    """
    Return the clock; whoever reads it gets an instant that it gives, or an error. What is before 1970 reads as 1970.

    Raises:
        BadArgument: it cannot be called; or, later, it gives anything but whole microseconds in the years 1 to 8999.
    """
    if clock is wall_clock:
        return clock
    if not callable(cast("object", clock)):
        raise BadArgument(argument="clock", detail=f"expected a function, got {type(clock).__name__}")

    def read() -> int:
        now = clock()
        if isinstance(now, bool) or not isinstance(cast("object", now), int):
            raise BadArgument(argument="clock", detail=f"expected whole microseconds, it gave {type(now).__name__}")
        # Not printed: Python refuses to, where there are too many digits.
        if not MIN_INSTANT <= now < _CLOCK_END:
            raise BadArgument(argument="clock", detail="it gave an instant outside the years 1 to 8999")
        return max(now, 0)

    return read


def check_interval(start: int, end: int | None) -> None:
    """
    Check a half-open interval.

    Raises:
        BadTime: it is empty or inverted.
    """
    if end is not None and end <= start:
        raise BadTime(
            given=format_instant(end), detail=f"the interval is empty: it starts at {format_instant(start)}",
            hint="an end after the start: it is the first instant that no longer counts",
        )  # fmt: skip


def _text(given: object) -> str:
    # Not every caller runs a type checker, and a bare integer is a mistake that must not pass for an instant.
    if not isinstance(given, str):
        raise BadTime(given=given, detail="expected text, a date or a datetime")
    return given.strip()


def _from_datetime(moment: datetime) -> int:
    if moment.utcoffset() is None:
        moment = moment.replace(tzinfo=UTC)
    micros = (moment - EPOCH) // _MICROSECOND
    # An offset can carry the first and the last hours of the calendar beyond it, to what no datetime can say again.
    if not MIN_INSTANT <= micros <= MAX_INSTANT:
        raise BadTime(given=moment.isoformat(), detail="outside years 1 to 9999")
    return micros


def _from_date(day: date, *, end: bool) -> int:
    start = (datetime(day.year, day.month, day.day, tzinfo=UTC) - EPOCH) // _MICROSECOND
    return start + _DAY - 1 if end else start


def _from_epoch(given: str, match: re.Match[str]) -> int:
    whole, fraction = int(match[1]), (match[2] or "").ljust(6, "0")
    if abs(whole) >= _MILLISECONDS_FROM:
        micros = whole * 1_000 + int(fraction[:3])
    else:
        sign = -1 if match[1].startswith("-") else 1
        micros = whole * 1_000_000 + sign * int(fraction)
    if not MIN_INSTANT <= micros <= MAX_INSTANT:
        raise BadTime(given=given, detail="outside years 1 to 9999")
    return micros
