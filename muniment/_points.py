"""Points in both times: what callers may write for `valid_at` and `known_at`, read once at the edge."""

from __future__ import annotations

import re
from typing import Final, NamedTuple, TypeAlias

from muniment.events import BadArgument, BadTime, Instant, NotFound, is_id_prefix, parse_instant
from muniment.projections import Register

KnownAt: TypeAlias = Instant | int
"""An instant, a sequence number, `HEAD~n`, or a decision's id."""

_BACK: Final = re.compile(r"HEAD(?:~([0-9]{1,12}))?\Z")
_NUMBER: Final = re.compile(r"[0-9]{1,18}\Z")


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
        BadTime, BadArgument: one of them is no time, or no sequence number of this log. NotFound: no decision has the
            id.
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
    found = moment(register, known_at, argument)
    return (register.seq_at(found), found) if isinstance(found, int) else found


def moment(register: Register, given: KnownAt, argument: str) -> tuple[int, int] | int:
    """
    Return (end of the batch, instant) of a moment that is named by its place in the log, else the instant.

    Raises:
        BadTime, BadArgument: the log has no such place. NotFound: no decision has the id.
    """
    if isinstance(given, bool):
        raise BadTime(given=given, detail="expected an instant or a sequence number")
    if isinstance(given, int):
        return known_seq(register, given, argument)
    if not isinstance(given, str):
        return parse_instant(given, end=True)
    text = given.strip()
    if match := _BACK.match(text):
        back = int(match[1] or 0)
        if back > register.seq:
            raise BadArgument(argument=argument, detail=f"`{text}` is before the first of {register.seq} events")
        return known_seq(register, register.seq - back, argument)
    if is_number(text):
        return known_seq(register, int(text), argument)
    if len(text) == 32 and is_id_prefix(text):
        decision = register.decisions.get(bytes.fromhex(text))
        if decision is None:
            hint = f"`{argument}` takes a decision's id; for a memory give its sequence number"
            raise NotFound(id=text, hint=hint)
        # Not the sequence number before it: a process's first decision shares its batch with the opening.
        before = decision.at_seq
        return before, max(decision.decided_at, register.recorded_at_seq(before))
    return parse_instant(text, end=True)


def is_number(text: str) -> bool:
    """Tell whether a text is a sequence number; longer ones are ids, or no number that a log has."""
    return _NUMBER.match(text) is not None


def known_seq(register: Register, seq: int, argument: str = "known_at") -> tuple[int, int]:
    """Return (end of the batch that holds a sequence number, its record time)."""
    if not 0 <= seq <= register.seq:
        raise BadArgument(argument=argument, detail=f"expected a sequence number from 0 to {register.seq}, got {seq}")
    recorded_at = register.recorded_at_seq(seq)
    return register.seq_at(recorded_at), recorded_at
