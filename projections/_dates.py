"""The days that a question names, in English and in ISO 8601."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
_LONGEST_MONTH: Final = 31


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


def nearness(dates: Sequence[Named], instants: NDArray[np.int64]) -> NDArray[np.float64]:
    """
    Return 1 for an instant within a day of one of the dates or in the month, less in the week after it, and 0 beyond.

    What happened on a day is told on it or in the days after. Instants are in microseconds since the epoch, UTC.
    """
    best = np.zeros(len(instants), dtype=np.float64)
    when = instants.astype("datetime64[us]")
    days, months = when.astype("datetime64[D]").astype(np.int64), when.astype("datetime64[M]").astype(np.int64)
    for date in dates:
        month = (date.year - 1970) * 12 + date.month - 1 if date.year else months // 12 * 12 + date.month - 1
        first = np.asarray(month, dtype=np.int64).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
        late = days - first
        if date.day:
            late = late - (date.day - 1)
            spans = [(-7, 14, 0.3), (0, 7, 0.7), (-1, 1, 1.0)]
        else:
            spans = [(0, _LONGEST_MONTH + 6, 0.5), (0, _LONGEST_MONTH - 1, 1.0)]
        for least, most, worth in spans:
            best = np.maximum(best, np.where((late >= least) & (late <= most), worth, 0.0))
    return best


def _is_possible(date: Named) -> bool:
    return 1 <= date.month <= 12 and date.day <= 31 and (not date.year or 1 <= date.year <= 9999)
