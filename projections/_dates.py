"""The days that a question names, in English and in ISO 8601."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final, NamedTuple

_MONTHS: Final = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_MONTH = "|".join(_MONTHS)
_NAMED = re.compile(
    rf"(?:\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? )?\b(?P<month>{_MONTH})\b"
    r"(?: (?P<after>\d{1,2})(?:st|nd|rd|th)?\b)?(?:,? (?P<year>\d{4})\b)?",
    re.IGNORECASE,
)
_ISO = re.compile(r"\b(\d{4})-(\d{2})(?:-(\d{2}))?\b")
MAX_DATES: Final = 4


class Named(NamedTuple):
    """A date as it was named; a year or a day of 0 was left out."""

    year: int
    month: int
    day: int


def named_dates(text: str) -> list[Named]:
    """Return the dates that a text names, at most `MAX_DATES`; `may` alone is no month."""
    found: list[Named] = []
    for match in _NAMED.finditer(text):
        day, year = int(match["day"] or match["after"] or 0), int(match["year"] or 0)
        if day or year or match["month"].lower() != "may":
            found.append(Named(year, _MONTHS.index(match["month"].lower()) + 1, day))
    for match in _ISO.finditer(text):
        found.append(Named(int(match[1]), int(match[2]), int(match[3] or 0)))
    return [date for date in found if _is_possible(date)][:MAX_DATES]


def nearness(dates: list[Named], instant: int) -> float:
    """
    Return 1 for an instant within a day of one of the dates or in the month, less in the week after it, and 0 beyond.

    What happened on a day is told on it or in the days after.
    """
    return max((_nearness(date, instant) for date in dates), default=0.0)


def _nearness(date: Named, instant: int) -> float:
    when = datetime.fromtimestamp(instant / 1_000_000, UTC)
    if not date.day:
        months = (when.year - date.year) * 12 * bool(date.year) + when.month - date.month
        return 1.0 if months == 0 else 0.5 if months == 1 and when.day <= 7 else 0.0
    days = (when - datetime(date.year or when.year, date.month, min(date.day, 28), tzinfo=UTC)).days
    days -= date.day - min(date.day, 28)
    return 1.0 if -1 <= days <= 1 else 0.7 if 0 <= days <= 7 else 0.3 if -7 <= days <= 14 else 0.0


def _is_possible(date: Named) -> bool:
    return 1 <= date.month <= 12 and date.day <= 31 and (not date.year or 1 <= date.year <= 9999)
