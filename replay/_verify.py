"""
Verification: every byte of the log against the chain, and every seal that has a key. Changes nothing.

A long log is read twice: once for the chain, in this process, and once for the seals, by one process a core, each
with a stretch of the log that begins at a head of the first reading.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from muniment.events import (
    NO_SLOT,
    Corrupt,
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
from muniment.events._workers import start_worker

from ._roots import Roots

STRETCH: Final = 50_000
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
    heads = [reader.head]
    roots = Roots(sizes)
    for located in reader.log.read_new():
        roots.extend(located.frame.chain)
        if reader.head.seq - heads[-1].seq >= STRETCH:
            heads.append(reader.head)
    if heads[-1] != reader.head:
        heads.append(reader.head)
    found = list(_verify_seals(path, heads, processes))
    findings = [problem for part in found for problem in part.findings]
    damage = reader.log.damage
    if damage is not None:
        findings.append(str(damage))
    erased = sum(part.erased for part in found)
    unchecked = [f"the content of {erased} erased events: their keys were destroyed"] if erased else []
    return Report(reader.head.seq, reader.head, tuple(findings), tuple(unchecked), damage, roots.found)


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


def _verify_seals(path: Path, heads: list[Head], processes: int | None) -> Iterator[Seals]:
    stretches = [(start, end.seq) for start, end in itertools.pairwise(heads)]
    workers = min(len(stretches), processes or os.cpu_count() or 1)
    if workers <= 1 or not sys.executable:
        for start, until in stretches:
            yield check_seals(path, start, until)
        return
    per_worker = -(-len(stretches) // workers)
    shares = [stretches[at : at + per_worker] for at in range(0, len(stretches), per_worker)]
    for share, worker in [(share, start_worker(_WORKER, _task(path, share))) for share in shares]:
        with worker:
            said = b"" if worker.stdout is None else worker.stdout.read()
        if worker.returncode == 0:
            yield from msgspec.msgpack.decode(said, type=list[Seals])
        else:
            # Whatever stopped it, say no memory, must not pass for a finding.
            for start, until in share:
                yield check_seals(path, start, until)


def _task(path: Path, share: Sequence[tuple[Head, int]]) -> bytes:
    return msgspec.msgpack.encode((sys.path, (os.fspath(path.absolute()), share)))


def serve(task: bytes) -> bytes:
    """Check a share of stretches, in a worker."""
    path, share = msgspec.msgpack.decode(task, type=tuple[str, list[tuple[Head, int]]])
    return msgspec.msgpack.encode([check_seals(Path(path), start, until) for start, until in share])


_WORKER: Final = """
import sys, msgspec
paths, task = msgspec.msgpack.decode(sys.stdin.buffer.read())
sys.path[:] = paths
from muniment.replay._verify import serve
sys.stdout.buffer.write(serve(msgspec.msgpack.encode(task)))
"""
