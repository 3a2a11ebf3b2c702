"""
Verification: every byte of the log against the chain, and every seal that has a key. Changes nothing.

A long log is read twice: once for the chain, in this process, and once for the seals, by one process a core, each
with a stretch of the log that begins at a head of the first reading.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

from muniment.events import (
    NO_SLOT,
    Disk,
    EventType,
    Head,
    KeyMissing,
    KeyTree,
    Log,
    LogCorrupt,
    MunimentError,
    Reader,
    Sealer,
    WriterLock,
    find_store,
)

STRETCH: Final = 50_000
"""Events that one process is given at a time; a log of no more is verified in this process alone."""


class Report(NamedTuple):
    """What was read and found; `findings` are empty when all is well."""

    events: int
    head: Head
    findings: tuple[str, ...]
    unchecked: tuple[str, ...]
    damage: LogCorrupt | None


class Seals(NamedTuple):
    """What opening the seals of a stretch found: problems, and how many bodies have no key any more."""

    findings: tuple[str, ...]
    erased: int


def verify_log(path: Path, reader: Reader, *, processes: int | None = None) -> Report:
    """Read the whole log of the store at `path`, and return what is wrong with it, the first bad event first."""
    heads = [reader.head]
    for _ in reader.log.read_new():
        if reader.head.seq - heads[-1].seq >= STRETCH:
            heads.append(reader.head)
    if heads[-1] != reader.head:
        heads.append(reader.head)
    found = list(_verify_seals(path, heads, processes))
    findings = [problem for part in found for problem in part.findings]
    damage = reader.log.damage
    if damage is not None:
        findings.append(str(damage))
    unchecked = ["whether events are missing at the end: no checkpoint was given to compare with"]
    erased = sum(part.erased for part in found)
    if erased:
        unchecked.append(f"the content of {erased} erased events: their keys were destroyed")
    return Report(reader.head.seq, reader.head, tuple(findings), tuple(unchecked), damage)


def orphan_bytes(reader: Reader) -> Iterator[str]:
    """Yield what lies behind the last whole frame: an unfinished commit that the next writer sets aside."""
    rest = reader.log.bytes_after_head()
    if rest:
        yield f"{rest} bytes of an unfinished commit after event {reader.head.seq}"


def check_seals(path: Path, start: Head, until: int) -> Seals:
    """Open every seal from a head up to a sequence number, in whatever process this is."""
    files = find_store(path)
    keys = KeyTree(files.root_key, files.keys, Disk())
    lock = WriterLock(files.lock, files.log)
    log = Log(files.log, files.store_id, Disk(), lock=lock, read_only=True)
    reader = Reader(log, Sealer(files.store_id, keys))
    findings: list[str] = []
    erased = 0
    try:
        if not log.resume(start):
            return Seals((f"event {start.seq}: the log changed while it was verified",), 0)
        for batch in reader.read_new():
            for event in batch.events:
                if event.header.type not in _TYPES:
                    findings.append(f"event {event.seq}: unknown type {event.header.type}")
                elif event.header.slot != NO_SLOT:
                    erased += reader.open_body(event) is None
            if batch.head.seq >= until:
                break
    except (KeyMissing, LogCorrupt) as error:
        findings.append(f"event {reader.head.seq}: {error}")
    finally:
        log.close()
        lock.close()
        keys.close()
    return Seals(tuple(findings), erased)


def _verify_seals(path: Path, heads: list[Head], processes: int | None) -> Iterator[Seals]:
    stretches = list(itertools.pairwise(heads))
    workers = min(len(stretches), processes or os.cpu_count() or 1)
    if workers <= 1:
        for start, end in stretches:
            yield check_seals(path, start, end.seq)
        return
    # Spawned, not forked: the host may have threads, and a fork copies their locks as they stand.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        jobs = [pool.submit(check_seals, path, start, end.seq) for start, end in stretches]
        for job in jobs:
            try:
                yield job.result()
            except MunimentError as error:
                yield Seals((str(error),), 0)


_TYPES: Final = frozenset(int(kind) for kind in EventType)
