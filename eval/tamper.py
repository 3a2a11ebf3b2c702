"""
Tampering with the log: is every edit, cut, forgery and rollback found, and the first bad event named?

Stores are made through the public API, several segments each, with a forget in them, and then attacked by somebody who
has the whole directory (`_forger`). Each row counts trials, how many were found, how many findings named the first bad
event, or only a range within which it lies, and how many were missed. Where finding needs a checkpoint kept elsewhere,
the same attack is also tried without one, and counted as `told` when `verify` says that it could not check: that is no
miss, and no find.
"""

from __future__ import annotations

import argparse
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import msgspec

import muniment
from muniment.events import VerifierKey, format_verifier_key

from ._forger import Resealer, Segment, read_log, rechain, splice, write_segment
from ._harness import Result

SEGMENT_BYTES = 1_500
SCOPE = "acme/apollo"
NOTHING = "nothing kept elsewhere"

Attack: TypeAlias = "Callable[[Victim, str], Row]"
PairedAttack: TypeAlias = "Callable[[Victim, str], tuple[Row, Row]]"


class Row(msgspec.Struct):
    """What came of one kind of attack."""

    attack: str
    against: str
    trials: int = 0
    found: int = 0
    named: int = 0
    within: int = 0
    told: int = 0
    missed: int = 0


class Victim:
    """A store, its anchor and its log key, and an intact copy to begin each attack from."""

    def __init__(self, base: Path, memories: int) -> None:
        self.base, self.path, self.intact = base, base / "store", base / "intact"
        self.anchor = base / "elsewhere" / "anchor"
        self.key = muniment.KeyFile.create(base / "elsewhere" / "log.key")
        with self.open(create=True) as store:
            agent = store.session(scope=SCOPE, actor="agent:planner")
            receipts = agent.remember_many([{"content": f"first fact {n}"} for n in range(3)])
            for n in range(memories):
                agent.remember(f"fact number {n} of many", about=("fact", str(n % 3)))
            agent.forget(receipts[0].id, reason="no longer needed")
        # What earlier openings would have left is not needed to find anything: every attack is found from the log.
        shutil.rmtree(self.path / "projections")
        shutil.copytree(self.path, self.intact)
        self.segments = read_log(self.path)
        self.events = sum(len(events) for segment in self.segments for events in segment.events)

    def open(self, *, create: bool = False) -> muniment.Store:
        """Open the store as its owner does."""
        return muniment.open(
            self.path, create=create, anchor=self.anchor, log_key=self.key, model="none", segment_bytes=SEGMENT_BYTES
        )

    def restore(self) -> None:
        """Put the intact store back."""
        shutil.rmtree(self.path)
        shutil.copytree(self.intact, self.path)

    def verify(self, *, anchored: bool, keyed: bool = False) -> muniment.Verification | muniment.MunimentError:
        """Return what verification says of the store as it lies there, or the error that opening it raises."""
        try:
            with muniment.open(self.path, model="none", read_only=True) as store:
                key = format_verifier_key(VerifierKey(store.origin, self.key.public_key)) if keyed else None
                return store.verify(self.anchor if anchored else None, key=key)
        except muniment.MunimentError as error:
            return error


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take the sizes of the two stores."""
    parser.add_argument("--small", type=int, default=6, help="memories of the store of which every byte is edited")
    parser.add_argument("--large", type=int, default=60, help="memories of the store of which some bytes are edited")
    parser.add_argument("--every", type=int, default=53, help="which bytes of the large store: every so many")


def run(args: argparse.Namespace) -> Result:
    """Run every attack, and return the counts."""
    rows: list[Row] = []
    sizes: list[Result] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, memories, step in (("small", args.small, 1), ("large", args.large, args.every)):
            victim = Victim(Path(folder) / name, memories)
            size = sum(segment.path.stat().st_size for segment in victim.segments)
            sizes.append(
                {"store": name, "events": victim.events, "segments": len(victim.segments), "bytes": size, "step": step}
            )
            rows.append(_edits(victim, name, step))
            rows += [attack(victim, name) for attack in (_frames, _events, _truncations, _cut_segments)]
            rows += [row for attack in (_forgeries, _cuts, _rollback, _fork) for row in attack(victim, name)]
    missed = sum(row.missed for row in rows)
    return {"ok": missed == 0, "missed": missed, "stores": sizes, "attacks": [msgspec.to_builtins(row) for row in rows]}


def _judge(row: Row, said: muniment.Verification | muniment.MunimentError, first: int, last: int) -> None:
    """Count one trial whose first bad event lies in [first, last]."""
    row.trials += 1
    findings = [str(said)] if isinstance(said, muniment.MunimentError) else list(said.findings)
    if findings:
        row.found += 1
        low, high = _named(findings[0])
        # A batch is one commit: its events stand and fall together, so any of them names it.
        holds = low <= last and first <= high
        row.named += holds and low == high
        row.within += holds and low < high
    elif (
        row.against == NOTHING
        and not isinstance(said, muniment.MunimentError)
        and any("missing at the end" in one for one in said.unchecked)
    ):
        row.told += 1
    else:
        row.missed += 1


def _named(finding: str) -> tuple[int, int]:
    """Return the events that a finding names, as a range."""
    if ranged := re.search(r"lies in (\d+) to (\d+)", finding):
        return int(ranged[1]), int(ranged[2])
    if cut := re.search(r"it has (\d+), so at least", finding):
        return int(cut[1]) + 1, int(cut[1]) + 1
    if own := re.search(r"tells of (\d+) events, the log has (\d+)", finding):
        return int(own[2]) + 1, int(own[2]) + 1
    named = re.search(r"event (\d+)", finding)
    return (int(named[1]), int(named[1])) if named else (0, 0)


def _places(victim: Victim) -> Iterator[tuple[Segment, int, int, int]]:
    """Yield (segment, frame number, first event, last event) of every frame."""
    seq = 1
    for segment in victim.segments:
        for number, events in enumerate(segment.events):
            yield segment, number, seq, seq + len(events) - 1
            seq += len(events)


def _edits(victim: Victim, store: str, step: int) -> Row:
    row = Row(f"one bit, every byte ({store})" if step == 1 else f"one bit, one byte in {step} ({store})", "chain")
    seq = 1
    for segment in victim.segments:
        data = segment.path.read_bytes()
        bounds = [(0, len(segment.header), seq, seq)]
        for frame, events in zip(segment.frames, segment.events, strict=True):
            bounds.append((bounds[-1][1], bounds[-1][1] + len(frame), seq, seq + len(events) - 1))
            seq += len(events)
        for start, end, first, last in bounds:
            for at in range(start + -start % step, end, step):
                changed = bytearray(data)
                changed[at] ^= 1 << at % 8
                segment.path.chmod(0o600)
                segment.path.write_bytes(changed)
                _judge(row, victim.verify(anchored=False), first, last)
        segment.path.write_bytes(data)
    return row


def _frames(victim: Victim, store: str) -> Row:
    row = Row(f"frame deleted, repeated, swapped ({store})", "chain")
    for segment, number, first, last in _places(victim):
        frames = segment.frames
        swapped = [*frames[:number], *reversed(frames[number : number + 2]), *frames[number + 2 :]]
        if swapped != frames:
            write_segment(segment, swapped)
            _judge(row, victim.verify(anchored=False), first, last)
        write_segment(segment, [*frames[: number + 1], frames[number], *frames[number + 1 :]])
        _judge(row, victim.verify(anchored=False), last + 1, last + 1)
        if last < victim.events:
            write_segment(segment, [*frames[:number], *frames[number + 1 :]])
            _judge(row, victim.verify(anchored=False), first, last + 1)
        write_segment(segment, frames)
    return row


def _events(victim: Victim, store: str) -> Row:
    """Edits inside a frame, its lengths and its stored hash made to fit one another; later frames are left."""
    row = Row(f"event deleted, repeated, swapped in its frame ({store})", "chain")
    edits: list[Callable[[list[bytes]], list[bytes]]] = [
        lambda events: events[1:],
        lambda events: [*events, events[-1]],
        lambda events: list(reversed(events)),
    ]
    for segment, number, first, last in _places(victim):
        events = segment.events[number]
        for edit in edits:
            if (edited := edit(events)) not in ([], events):
                splice(segment, number, edited)
                _judge(row, victim.verify(anchored=False), first, last + 1)
                victim.restore()
    return row


def _truncations(victim: Victim, store: str) -> Row:
    """The last segment cut inside a frame: what a crash leaves, so it is reported as an unfinished commit or a cut."""
    row = Row(f"cut inside the last frame ({store})", "signed checkpoints in the store")
    last = victim.segments[-1]
    whole = last.path.read_bytes()
    first = victim.events - len(last.events[-1]) + 1
    step = 1 if len(last.frames[-1]) < 2_000 else 50
    for size in range(len(whole) - len(last.frames[-1]) + 1, len(whole), step):
        last.path.write_bytes(whole[:size])
        _judge(row, victim.verify(anchored=False, keyed=True), first, victim.events)
    last.path.write_bytes(whole)
    return row


def _cut_segments(victim: Victim, store: str) -> Row:
    row = Row(f"segment removed or emptied ({store})", "chain, signed checkpoints in the store")
    seq = 1
    for segment in victim.segments:
        segment.path.unlink()
        _judge(row, victim.verify(anchored=False, keyed=True), seq, seq)
        segment.path.write_bytes(b"")
        _judge(row, victim.verify(anchored=False, keyed=True), seq, seq)
        victim.restore()
        seq += sum(map(len, segment.events))
    return row


def _batches(victim: Victim) -> list[list[bytes]]:
    return [events for segment in victim.segments for events in segment.events]


def _both(attack: str, store: str) -> tuple[Row, Row]:
    return Row(f"{attack} ({store})", "anchor"), Row(f"{attack} ({store})", NOTHING)


def _judge_both(victim: Victim, rows: tuple[Row, Row], first: int, last: int) -> None:
    _judge(rows[0], victim.verify(anchored=True), first, last)
    _judge(rows[1], victim.verify(anchored=False), first, last)
    try:
        with victim.open() as store:
            opened = f"opened at {store.head.seq}"
    except muniment.MunimentError:
        return
    raise AssertionError(f"{rows[0].attack}: the owner's own opening did not refuse: {opened}")


def _forgeries(victim: Victim, store: str) -> tuple[Row, Row]:
    """Each memory reworded under the store's own keys, and every hash behind it made anew."""
    rows = _both("reworded, resealed, chained anew", store)
    batches = _batches(victim)
    seq = 1
    for number, events in enumerate(batches):
        for n, event in enumerate(events):
            try:
                forged = Resealer(victim.path).reword(event, "pay it to the attacker")
            except ValueError:
                continue
            rechain(victim.path, [*batches[:number], [*events[:n], forged, *events[n + 1 :]], *batches[number + 1 :]])
            _judge_both(victim, rows, seq + n, seq + n)
            victim.restore()
        seq += len(events)
    return rows


def _cuts(victim: Victim, store: str) -> tuple[Row, Row]:
    """The log cut after each frame, and the store's own checkpoints removed."""
    rows = _both("cut after a frame", store)
    batches = _batches(victim)
    for count in range(1, len(batches)):
        rechain(victim.path, batches[:count])
        events = sum(map(len, batches[:count]))
        _judge_both(victim, rows, events + 1, events + 1)
        victim.restore()
    return rows


def _rollback(victim: Victim, store: str) -> tuple[Row, Row]:
    """The whole directory put back as it was, byte for byte, and its owner goes on."""
    rows = _both("whole store rolled back", store)
    for more in range(1, 4):
        kept = victim.anchor.read_bytes()
        with victim.open() as opened:
            for n in range(more):
                opened.session(scope=SCOPE, actor="agent:planner").remember(f"since the copy {more} {n}")
        victim.restore()
        _judge_both(victim, rows, victim.events + 1, victim.events + 1)
        victim.anchor.write_bytes(kept)
    return rows


def _fork(victim: Victim, store: str) -> tuple[Row, Row]:
    """Two copies of the store that both go on, with the same words: the nonce of their opening tells them apart."""
    rows = _both("two copies that both went on", store)
    for more in range(3):
        kept = victim.anchor.read_bytes()
        with victim.open() as opened:
            opened.session(scope=SCOPE, actor="agent:planner").remember("said in both copies")
        victim.restore()
        with muniment.open(victim.path, model="none", segment_bytes=SEGMENT_BYTES) as opened:
            for _ in range(1 + more):
                opened.session(scope=SCOPE, actor="agent:planner").remember("said in both copies")
            for n in range(more):
                opened.session(scope=SCOPE, actor="agent:planner").remember(f"and more {n}")
        _judge_both(victim, rows, victim.events + 1, victim.events + 2)
        victim.restore()
        victim.anchor.write_bytes(kept)
    return rows
