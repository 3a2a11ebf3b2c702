"""Points in both times: what callers may write for `valid_at` and `known_at`, read once at the edge."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from muniment.events import BadArgument, BadTime, Instant, parse_instant
from muniment.projections import Register

KnownAt: TypeAlias = Instant | int
"""An instant, or a sequence number."""


class Point(NamedTuple):
    """An instant of valid time, and the last sequence number that counts as known."""

    valid_at: int
    known: int


def point(register: Register, now: int, valid_at: Instant | None, known_at: KnownAt | None) -> Point:
    """
    Return the point that a read asks about.

    `valid_at` defaults to `known_at`, else to now. Inside a batch `known_at` means the batch's end; a sequence number
    after the last one is refused, since nothing is known of it.

    Raises:
        BadTime, BadArgument: one of them is no time, or no sequence number of this log.
    """
    known, known_instant = (register.seq, now) if known_at is None else _known(register, known_at)
    return Point(known_instant if valid_at is None else parse_instant(valid_at), known)


def span(register: Register, now: int, since: KnownAt, until: KnownAt | None) -> tuple[Point, Point]:
    """
    Return the two points that a difference is asked between; `until` defaults to now.

    Raises:
        BadTime, BadArgument: one of them is no time and no sequence number of this log, or they are in the wrong order.
    """
    first = Point(*reversed(_known(register, since, "since")))
    second = Point(*reversed((register.seq, now) if until is None else _known(register, until, "until")))
    if (first.known, first.valid_at) > (second.known, second.valid_at):
        raise BadArgument(argument="since", detail=f"`{since}` is after `{'now' if until is None else until}`")
    return first, second


def _known(register: Register, known_at: KnownAt, argument: str = "known_at") -> tuple[int, int]:
    if isinstance(known_at, bool):
        raise BadTime(given=known_at, detail="expected an instant or a sequence number")
    if isinstance(known_at, int):
        return known_seq(register, known_at, argument)
    instant = parse_instant(known_at, end=True)
    return register.seq_at(instant), instant


def known_seq(register: Register, seq: int, argument: str = "known_at") -> tuple[int, int]:
    """Return (end of the batch that holds a sequence number, its record time)."""
    if not 0 <= seq <= register.seq:
        raise BadArgument(argument=argument, detail=f"expected a sequence number from 0 to {register.seq}, got {seq}")
    recorded_at = register.recorded_at_seq(seq)
    return register.seq_at(recorded_at), recorded_at
