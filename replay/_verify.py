"""Verification: every byte of the log against the chain, and every seal that has a key. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from muniment.events import NO_SLOT, EventType, Head, KeyMissing, LogCorrupt, Reader


class Report(NamedTuple):
    """What was read and found; `findings` are empty when all is well."""

    events: int
    head: Head
    findings: tuple[str, ...]
    unchecked: tuple[str, ...]
    damage: LogCorrupt | None


def verify_log(reader: Reader, *, open_seals: bool = True) -> Report:
    """Read the whole log, and return what is wrong with it, the first bad event first."""
    findings: list[str] = []
    erased = 0
    events = 0
    try:
        for batch in reader.read_new():
            events += len(batch.events)
            for event in batch.events:
                if event.header.type not in _TYPES:
                    findings.append(f"event {event.seq}: unknown type {event.header.type}")
                if open_seals and event.header.slot != NO_SLOT:
                    erased += reader.open_body(event) is None
    except KeyMissing as error:
        findings.append(f"event {reader.head.seq}: {error}")
    damage = reader.log.damage
    if damage is not None:
        findings.append(str(damage))
    unchecked = ["whether events are missing at the end: no checkpoint was given to compare with"]
    if erased:
        unchecked.append(f"the content of {erased} erased events: their keys were destroyed")
    return Report(events, reader.head, tuple(findings), tuple(unchecked), damage)


def orphan_bytes(reader: Reader) -> Iterator[str]:
    """Yield what lies behind the last whole frame: an unfinished commit that the next writer sets aside."""
    rest = reader.log.bytes_after_head()
    if rest:
        yield f"{rest} bytes of an unfinished commit after event {reader.head.seq}"


_TYPES = frozenset(int(kind) for kind in EventType)
