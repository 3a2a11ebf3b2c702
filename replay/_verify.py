"""
Verification: every byte of the log against the chain, and every seal that has a key. Changes nothing.

A long log is read twice: once for the chain, in this process, and once for the seals, by one process a core, which
begin as soon as the first reading has a stretch of the log behind it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from muniment.events import (
    NO_SLOT,
    Corrupt,
    Digest,
    Disk,
    Head,
    KeyMissing,
    KeyTree,
    LocatedFrame,
    Log,
    LogCorrupt,
    Reader,
    Sealer,
    WriterLock,
    find_store,
)

from ._crew import Crew
from ._roots import Roots

STRETCH: Final = 25_000
"""Events that one process is given at a time; a log of no more is verified in this process alone."""


class Report(NamedTuple):
    """What was read and found; `findings` are empty when all is well. `roots` are the tree's at the sizes asked for."""

    events: int
    head: Head
    findings: tuple[str, ...]
    unchecked: tuple[str, ...]
    damage: Corrupt | None
    roots: dict[int, bytes]


class Seals(NamedTuple):
    """What opening the seals of a stretch found: problems, and how many bodies have no key any more."""

    findings: tuple[str, ...]
    erased: int


def verify_log(path: Path, reader: Reader, *, sizes: Iterable[int] = (), processes: int | None = None) -> Report:
    """
    Read the whole log of the store at `path`, and return what is wrong with it, the first bad event first.

    The roots of the tree are returned for those of `sizes` that the log reaches.
    """
    roots = Roots(sizes)
    seals = _Stretches(path, processes or os.cpu_count() or 1)
    chain: list[Digest] = []
    start = reader.head
    for located in reader.log.read_new():
        chain += located.frame.chain
        if reader.head.seq - start.seq >= STRETCH:
            roots.extend(chain)
            chain.clear()
            seals.add(start, reader.head.seq)
            start = reader.head
    roots.extend(chain)
    if reader.head != start:
        seals.add(start, reader.head.seq)
    found = seals.finish()
    findings = [problem for part in found for problem in part.findings]
    damage = reader.log.damage
    if damage is not None:
        findings.append(str(damage))
    erased = sum(part.erased for part in found)
    unchecked = [f"the content of {erased} erased events: their keys were destroyed"] if erased else []
    return Report(reader.head.seq, reader.head, tuple(findings), tuple(unchecked), damage, roots.found)


def orphan_bytes(reader: Reader) -> Iterator[str]:
    """Yield what lies behind the last whole frame: an unfinished commit that the next writer sets aside."""
    rest = len(reader.log.remains())
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
        recorded_at = start.recorded_at
        for located in log.read_new():
            first = located.frame.first_seq
            for index in range(len(located.frame.events)):
                finding, is_erased, time = _check_event(reader, located, index)
                erased += is_erased
                if finding is not None:
                    findings.append(finding)
                elif time < recorded_at or (index == 0 and time == recorded_at):
                    findings.append(f"event {first + index}: its record time is not after the one before")
                recorded_at = max(recorded_at, time)
            if log.head.seq >= until:
                break
    finally:
        log.close()
        lock.close()
        keys.close()
    return Seals(tuple(findings), erased)


def _check_event(reader: Reader, located: LocatedFrame, index: int) -> tuple[str | None, bool, int]:
    """Return (what is wrong with an event or None, whether its content was erased, its record time)."""
    try:
        event = reader.open_event(located, index)
    except LogCorrupt as error:
        return str(error), False, -1
    except KeyMissing as error:
        return f"event {located.frame.first_seq + index}: {error}", False, -1
    if event.header.slot == NO_SLOT:
        return None, False, event.recorded_at
    try:
        return None, reader.open_body(event) is None, event.recorded_at
    except (KeyMissing, LogCorrupt, msgspec.MsgspecError) as error:
        return f"event {event.seq}: {error}", False, event.recorded_at


class _Stretches:
    """The stretches of a log whose seals are opened: one in this process, several by a crew."""

    def __init__(self, path: Path, processes: int) -> None:
        self._path, self._processes = os.fspath(path.absolute()), processes
        self._waiting: list[bytes] = []
        self._crew: Crew[Seals] | None = None

    def add(self, start: Head, until: int) -> None:
        """Take the next stretch."""
        self._waiting.append(msgspec.msgpack.encode((self._path, start, until)))
        if self._processes > 1 and self._crew is None and len(self._waiting) > 1:
            self._crew = Crew(self._processes, __name__, "serve", decode=_decode, fall_back=_check)
        if self._crew is not None:
            for task in self._waiting:
                self._crew.add(task)
            self._waiting.clear()

    def finish(self) -> list[Seals]:
        """Return what was found, in order."""
        return [_check(task) for task in self._waiting] if self._crew is None else self._crew.finish()


def serve(task: bytes) -> bytes:
    """Check one stretch, in a worker."""
    return msgspec.msgpack.encode(_check(task))


def _check(task: bytes) -> Seals:
    path, start, until = msgspec.msgpack.decode(task, type=tuple[str, Head, int])
    return check_seals(Path(path), start, until)


_decode: Final = msgspec.msgpack.Decoder(Seals).decode
