"""
Muniment as the suite `agent-memory-integrity` (agmi) sees a store: raw records that its edits change, and one verdict.

A record is an event of the log. The suite's attacker has the store's files and none of the tool's signing keys; here
the store's files include the keys that seal, since those lie in it. Two attackers are played:

    plain      changes an event's bytes in its frame, as one changes a row in a table
    thorough   also seals with the store's keys, makes every hash anew, and removes the store's own checkpoints and
               projections, so that nothing in the directory contradicts him

and two owners: one who keeps nothing elsewhere, and one who keeps the anchor and the log key in another place.
`restore_store` puts back the store and nothing outside it, as the suite asks.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import muniment
from muniment.events import EventType, parse_event_header

from ._forger import RawFrame, Resealer, read_raw, rechain, write_raw

FIRST, OTHER = "agmi/first", "agmi/other"
_NONCE_AT = 44


@dataclass
class Record:
    """One entry, in the suite's shape: its place among the context's entries, and what is there."""

    seq: int
    fields: dict[str, str]
    event: bytes


class MunimentAdapter:
    """One store under attack. The suite asks for these methods by name."""

    supports_replay = True
    supports_metadata = True
    supports_snapshot = True
    detection_point = "audit"

    def __init__(self, *, thorough: bool, anchored: bool) -> None:
        self.name = f"muniment, {'anchor' if anchored else 'nothing'} elsewhere, {'thorough' if thorough else 'plain'}"
        self.verify_detail: str | None = None
        self._thorough, self._anchored = thorough, anchored
        self._base = self._store = Path()
        self._slots: dict[str, int] = {}

    # --- the owner ----------------------------------------------------------------------------------------------------

    def setup(self) -> None:
        """Make a store with two scopes, closed again: it is attacked at rest."""
        self._base = Path(tempfile.mkdtemp(prefix="agmi-muniment-"))
        self._store = self._base / "store"
        muniment.KeyFile.create(self._base / "elsewhere" / "log.key")
        self._slots = {}
        with self._open(create=True):
            pass

    def teardown(self) -> None:
        """Remove everything."""
        shutil.rmtree(self._base, ignore_errors=True)

    def seed(self, n: int) -> None:
        """Write entries into the first context."""
        self._seed(FIRST, n)

    def seed_other(self, n: int) -> None:
        """Write entries into the second context."""
        self._seed(OTHER, n)

    def append_genuine(self) -> None:
        """Write one more entry."""
        self._seed(FIRST, 1)

    def reload(self) -> None:
        """Open and close the store, as a restart does; an opening that refuses is told by `verify`."""
        try:
            with self._open():
                pass
        except muniment.MunimentError:
            return

    def verify(self) -> bool:
        """Return whether the owner, opening his store and having it verified, is told that all is well."""
        self.verify_detail = None
        try:
            with self._open(read_only=True) as store:
                report = store.verify()
        except muniment.MunimentError as error:
            self.verify_detail = f"opening: {error}"
            return False
        if not report.ok:
            self.verify_detail = f"verify: {report.findings[0]}"
        return report.ok

    def _open(self, *, create: bool = False, read_only: bool = False) -> muniment.Store:
        elsewhere = self._base / "elsewhere"
        return muniment.open(
            self._store, create=create, read_only=read_only, model="none",
            anchor=elsewhere / "anchor" if self._anchored else None,
            log_key=elsewhere / "log.key" if self._anchored else None,
        )  # fmt: skip

    def _seed(self, scope: str, n: int) -> None:
        with self._open() as store:
            session = store.session(scope=scope, actor="agent:seed")
            for _ in range(n):
                at = store.head.seq
                session.remember(f"{scope}: after event {at} the limit is {40 + at}")
            self._slots.setdefault(scope, parse_event_header(read_raw(self._store)[-1].events[-1]).scope_slot)

    # --- the attacker -------------------------------------------------------------------------------------------------

    def read_all_raw(self) -> list[Record]:
        """Return the entries of the first context."""
        return self._read(FIRST)

    def read_other_raw(self) -> list[Record]:
        """Return the entries of the second context."""
        return self._read(OTHER)

    def write_raw(self, record: Record) -> None:
        """Put an event's bytes into the place of an entry, or behind the last one."""
        frames = read_raw(self._store)
        places = self._places(frames, FIRST)
        if record.seq < len(places):
            number, index = places[record.seq]
            frames[number].events[index] = record.event
        else:
            last = frames[-1]
            frames.append(RawFrame(last.first_seq + len(last.events), [record.event], last.trailer))
        self._write(frames)

    def delete_raw(self, seq: int) -> None:
        """Take an entry out of the log."""
        frames = read_raw(self._store)
        number, index = self._places(frames, FIRST)[seq]
        del frames[number].events[index]
        self._write([frame for frame in frames if frame.events])

    def mutate_payload(self, record: Record) -> Record:
        """Change what an entry says; without the store's keys that can only be other sealed bytes."""
        if self._thorough:
            return self._record(record.seq, Resealer(self._store).reword(record.event, "the limit is 9999"), FIRST)
        event = record.event
        return self._record(record.seq, event[:-20] + bytes([event[-20] ^ 1]) + event[-19:], FIRST)

    def forge_record(self, template: Record) -> Record:
        """Return an entry of the attacker's making, with an id of its own, to stand behind the last one."""
        identity = bytes(reversed(template.event[20:36]))
        if self._thorough:
            event = Resealer(self._store).reword(template.event, "the limit is 9999, forged", id=identity)
        else:
            changed = self.mutate_payload(template).event
            event = changed[:20] + identity + changed[36:]
        return self._record(template.seq + 1, event, FIRST)

    def replay_onto(self, victim_seq: int, donor: Record) -> None:
        """Copy a genuine entry's content into the place of another, which keeps its id, place and scope."""
        frames = read_raw(self._store)
        number, index = self._places(frames, FIRST)[victim_seq]
        victim = frames[number].events[index]
        if self._thorough:
            keys = Resealer(self._store)
            frames[number].events[index] = keys.reword(victim, keys.words(donor.event))
        else:
            frames[number].events[index] = victim[:_NONCE_AT] + donor.event[_NONCE_AT:]
        self._write(frames)

    def read_meta(self, seq: int) -> dict[str, object]:
        """Return the record time, which is in clear."""
        frames = read_raw(self._store)
        number, index = self._places(frames, FIRST)[seq]
        return {"recorded_at": parse_event_header(frames[number].events[index]).recorded_at}

    def write_meta(self, seq: int, meta: dict[str, object]) -> None:
        """Write another record time into the clear part: a microsecond later, so that the order still fits."""
        if not meta.get("agmi_meta_tampered"):
            return
        frames = read_raw(self._store)
        number, index = self._places(frames, FIRST)[seq]
        event = frames[number].events[index]
        header = parse_event_header(event)
        later = header.recorded_at + 1
        if self._thorough:
            frames[number].events[index] = Resealer(self._store).move(event, header.seq, later)
        else:
            frames[number].events[index] = event[:12] + later.to_bytes(8, "big", signed=True) + event[20:]
        self._write(frames)

    def snapshot_store(self) -> Path:
        """Copy the store's directory, and nothing that is kept elsewhere."""
        copy = Path(tempfile.mkdtemp(prefix="agmi-copy-", dir=self._base)) / "store"
        shutil.copytree(self._store, copy)
        return copy

    def restore_store(self, token: Path) -> None:
        """Put the copy back."""
        shutil.rmtree(self._store)
        shutil.copytree(token, self._store)

    # --- what the suite compares --------------------------------------------------------------------------------------

    def identity_of(self, record: Record) -> str:
        """Return the entry's id."""
        return record.fields["id"]

    def payload_of(self, record: Record) -> str:
        """Return what the entry says, as far as this attacker can tell: the words, or else the sealed bytes."""
        return record.fields["says"]

    def owner_of(self, record: Record) -> str | None:
        """Return the context to which the entry belongs."""
        return record.fields["owner"]

    def _read(self, scope: str) -> list[Record]:
        frames = read_raw(self._store)
        return [
            self._record(seq, frames[number].events[index], scope)
            for seq, (number, index) in enumerate(self._places(frames, scope))
        ]

    def _record(self, seq: int, event: bytes, scope: str) -> Record:
        header = parse_event_header(event)
        fields = {"id": header.id.hex(), "owner": scope}
        if self._thorough:
            # What has to be made anew behind an edit, such as sequence numbers, is no edit of that entry.
            return Record(seq, {**fields, "says": Resealer(self._store).words(event)}, event)
        return Record(seq, {**fields, "says": event[96:].hex(), "head": event[:96].hex()}, event)

    def _places(self, frames: list[RawFrame], scope: str) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        for number, frame in enumerate(frames):
            for index, event in enumerate(frame.events):
                header = parse_event_header(event)
                if header.type == EventType.REMEMBERED and header.scope_slot == self._slots.get(scope):
                    found.append((number, index))
        return found

    def _write(self, frames: list[RawFrame]) -> None:
        if not self._thorough:
            write_raw(self._store, frames)
            return
        keys = Resealer(self._store)
        times = sorted(max(parse_event_header(event).recorded_at for event in frame.events) for frame in frames)
        fixed: list[list[bytes]] = []
        seq = before = 0
        for frame, time in zip(frames, times, strict=True):
            before = max(time, before + 1)
            fixed.append([keys.move(event, seq + n, before) for n, event in enumerate(frame.events, start=1)])
            seq += len(frame.events)
        rechain(self._store, fixed)
