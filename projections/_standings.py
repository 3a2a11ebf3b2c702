"""
Standings of a whole scope at once: a byte for each row, and how far in both times each of them reaches.

A byte says which status the row has at the present, whether it holds, and whether more than its own interval bears on
that. Of a row on which nothing else bears, the columns tell the standing at any point; of another, its byte is right
within its *span*.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from muniment.events import Status

from ._columns import with_room
from ._resolve import Lookup, breakpoints
from ._state import FAR_FUTURE, FateKind, Memory

Codes = NDArray[np.uint8]
Rows = NDArray[np.int64]

LIVE: Final = frozenset({Status.ACTIVE, Status.CONDITIONAL})
HOLDS: Final = 1
"""Valid, and for a keyed memory the value of its key."""
BOUND: Final = 2
"""More than the memory's own interval says whether it holds: its fates, its key, or that it is pending."""
_SHIFT: Final = 2
_NUMBERS: Final = {status: number for number, status in enumerate(Status, 1)}
_UNKNOWN: Final = 0


class Standing(msgspec.Struct, frozen=True, gc=False):
    """A memory's status at a point, and whether it holds there: valid, and for a keyed one the value of its key."""

    status: Status
    holds: bool


def code_of(standing: Standing, *, bound: bool) -> int:
    """Return the byte of a standing. What is erased is so at every point: nothing more bears on it."""
    code = _NUMBERS[standing.status] << _SHIFT | (HOLDS if standing.holds else 0)
    return code | (BOUND if bound and standing.status is not Status.ERASED else 0)


def is_pending(codes: Codes) -> NDArray[np.bool_]:
    """Tell which bytes are of pending memories."""
    return _among(codes, _bytes_of(Status.PENDING))


def is_bound(codes: Codes) -> NDArray[np.bool_]:
    """Tell which bytes are of memories on which more bears than their own interval."""
    return (codes & BOUND).astype(np.bool_)


def offered(codes: Codes, statuses: Collection[Status]) -> NDArray[np.bool_]:
    """
    Tell which bytes may be offered to whoever asks for some statuses.

    What is live must hold too; of the rest, nothing does, and it is offered where history was asked for.
    """
    if frozenset(statuses) == LIVE:
        return (codes & HOLDS).view(np.bool_)
    history = not LIVE.issuperset(statuses)
    wanted: list[int] = []
    for status in set(statuses) - {Status.ERASED}:
        of_it = _bytes_of(status)
        wanted += of_it if history and status not in LIVE else [code for code in of_it if code & HOLDS]
    return _among(codes, wanted)


def of_status(codes: Codes, statuses: Collection[Status]) -> NDArray[np.bool_]:
    """Tell which bytes are of memories with some statuses that only their own interval bears on, erased ones not."""
    wanted = [code for status in LIVE.intersection(statuses) for code in _bytes_of(status) if not code & BOUND]
    return _among(codes, wanted)


def _bytes_of(status: Status) -> range:
    return range(_NUMBERS[status] << _SHIFT, (_NUMBERS[status] + 1) << _SHIFT)


def _among(codes: Codes, wanted: Collection[int]) -> NDArray[np.bool_]:
    table = np.zeros(256, dtype=np.bool_)
    table[list(wanted)] = True
    return table[codes]


class Span(NamedTuple):
    """
    Where a standing of the present is that of other points too.

    That is at instants from `since` to before `until`, for whoever knows what was recorded up to `touched`.
    """

    since: int
    until: int
    touched: int


def span_of(statements: Iterable[Memory], now: int, lookup: Lookup) -> Span:
    """Return the span of some memories that bear on one another, or of one on which no other bears."""
    since, until, touched = -FAR_FUTURE, FAR_FUTURE, 0
    for memory in statements:
        for point in breakpoints(memory, lookup):
            if point <= now:
                since = max(since, point)
            else:
                until = min(until, point)
        touched = max(touched, memory.seq, *(fate.seq for fate in memory.fates))
        for fate in memory.fates:
            # A successor that waited for approval has taken over only since.
            successor = lookup(fate.by) if fate.kind is FateKind.SUPERSEDED and fate.by is not None else None
            if successor is not None:
                touched = max(touched, successor.seq, *(other.seq for other in successor.fates))
    return Span(since, until, touched)


class Spans:
    """
    The spans of those rows of one scope that were asked about at other points than the present.

    Of the point that was asked about last, the bytes of rows that stood otherwise there are kept too.
    """

    def __init__(self) -> None:
        self._since, self._until = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._touched = np.zeros(0, np.int64)
        self._point = (0, 0)
        self._then: Codes = np.zeros(0, np.uint8)

    def drop(self, row: int) -> None:
        """Learn that the row's standing was asked again."""
        if row < len(self._touched):
            self._touched[row] = _UNKNOWN
        if row < len(self._then):
            self._then[row] = _UNKNOWN

    def reach(self, rows: Rows, valid_at: int, known: int, span: Callable[[int], Span]) -> NDArray[np.bool_]:
        """Tell for each of some ascending rows whether its standing of the present is that of a point too."""
        if not len(rows):
            return np.zeros(0, dtype=np.bool_)
        needed = int(rows[-1]) + 1
        self._since, self._until = with_room(self._since, needed), with_room(self._until, needed)
        self._touched = with_room(self._touched, needed)
        for row in rows[self._touched[rows] == _UNKNOWN].tolist():
            self._since[row], self._until[row], self._touched[row] = span(row)
        return (self._touched[rows] <= known) & (self._since[rows] <= valid_at) & (valid_at < self._until[rows])

    def codes_at(self, rows: Rows, valid_at: int, known: int, ask: Callable[[int], int]) -> Codes:
        """Return the bytes of some ascending rows at a point that their spans do not reach."""
        if self._point != (valid_at, known):
            self._point, self._then = (valid_at, known), np.zeros(0, np.uint8)
        self._then = with_room(self._then, int(rows[-1]) + 1 if len(rows) else 0)
        for row in rows[self._then[rows] == _UNKNOWN].tolist():
            self._then[row] = ask(row)
        return self._then[rows]
