"""Verification: every byte of the log against the chain, and every seal that has a key. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec import MsgspecError

from muniment.events import NO_SLOT, Head, KeyMissing, LocatedFrame, LogCorrupt, Reader

from ._roots import Roots


class Report(NamedTuple):
    """What was read and found; `findings` are empty when all is well. `roots` are the tree's at the sizes asked for."""

    events: int
    head: Head
    findings: tuple[str, ...]
    unchecked: tuple[str, ...]
    damage: LogCorrupt | None
    roots: dict[int, bytes]


def verify_log(reader: Reader, *, open_seals: bool = True, sizes: Iterable[int] = ()) -> Report:
    """Read the whole log, and return what is wrong with it, the first bad event first."""
    findings: list[str] = []
    roots = Roots(sizes)
    erased = events = 0
    recorded_at = -1
    for located in reader.log.read_new():
        frame = located.frame
        roots.extend(frame.chain)
        events += len(frame.events)
        for index in range(len(frame.events)):
            finding, is_erased, time = _check_event(reader, located, index, open_seals=open_seals)
            erased += is_erased
            if finding is not None:
                findings.append(finding)
            elif time < recorded_at or (index == 0 and time == recorded_at):
                findings.append(f"event {frame.first_seq + index}: its record time is not after the one before")
            recorded_at = max(recorded_at, time)
    damage = reader.log.damage
    if damage is not None:
        findings.append(str(damage))
    unchecked = [f"the content of {erased} erased events: their keys were destroyed"] if erased else []
    return Report(events, reader.head, tuple(findings), tuple(unchecked), damage, roots.found)


def _check_event(
    reader: Reader, located: LocatedFrame, index: int, *, open_seals: bool
) -> tuple[str | None, bool, int]:
    """Return (what is wrong with an event or None, whether its content was erased, its record time)."""
    try:
        event = reader.open_event(located, index)
    except LogCorrupt as error:
        return str(error), False, -1
    except KeyMissing as error:
        return f"event {located.frame.first_seq + index}: {error}", False, -1
    if not open_seals or event.header.slot == NO_SLOT:
        return None, False, event.recorded_at
    try:
        return None, reader.open_body(event) is None, event.recorded_at
    except (KeyMissing, MsgspecError) as error:
        return f"event {event.seq}: {error}", False, event.recorded_at


def orphan_bytes(reader: Reader) -> Iterator[str]:
    """Yield what lies behind the last whole frame: an unfinished commit that the next writer sets aside."""
    rest = reader.log.bytes_after_head()
    if rest:
        yield f"{rest} bytes of an unfinished commit after event {reader.head.seq}"
