"""The log keeps what was appended, finds what was changed, and sets aside what was never acknowledged."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import stat
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.events._codec import EVENT_HEADER, NO_COMMITMENT, NO_SLOT, SEGMENT_HEADER_BYTES, Digest, format_frame
from muniment.events._disk import Disk
from muniment.events._errors import DiskFull, LogCorrupt, MunimentError, StoreReadOnly, WriterPoisoned
from muniment.events._lock import Mark, WriterLock
from muniment.events._log import Log
from muniment.events._torn import TornTail
from tests.processes import start

from .faults import Fault, FaultyDisk, HastyDisk, NothingSurvives, Outcome
from .stores import contents

LOG_ID = bytes(range(16))
condemned: list[frozenset[int]] = []


def event(seq: int, content: bytes = b"x" * 80, *, slot: int | None = None) -> bytes:
    slot = seq if slot is None else slot
    head = EVENT_HEADER.pack(
        1, 2, 0, seq, 1000 + seq, b"i" * 16, 0, slot, b"n" * 12, NO_COMMITMENT, NO_COMMITMENT, len(content), 5
    )
    return head + content + b"body!"


def make(where: Path) -> Path:
    where.mkdir(parents=True, exist_ok=True)
    Log.create(where / "log", LOG_ID, HastyDisk()).close()
    return where


def opened(
    where: Path, disk: Disk | None = None, *, locked: bool = True, read_only: bool = False, segment_bytes: int = 1 << 20
) -> Log:
    lock = WriterLock(where / "lock", where / "log") if locked else None
    return Log(where / "log", LOG_ID, disk or HastyDisk(), lock=lock, read_only=read_only, segment_bytes=segment_bytes)


def append(log: Log, *sizes: int) -> list[bytes]:
    first = log.head.seq + 1
    events = [event(first + n, b"x" * size) for n, size in enumerate(sizes)]
    log.append(events, 1000 + log.head.seq + len(sizes))
    return events


def read(log: Log) -> list[list[bytes]]:
    return [located.frame.events for located in log.read_new()]


def filled(where: Path, *, segment_bytes: int = 1 << 20) -> list[list[bytes]]:
    """Make a log of four batches, left without room as a store is that was closed."""
    log = opened(make(where), segment_bytes=segment_bytes)
    batches = [append(log, *sizes) for sizes in ((10,), (600, 0, 7), (300,), (40, 40))]
    log.cut_room()
    log.close()
    return batches


ROOM = pytest.mark.parametrize("room", [0, 5, 3_000], ids="room of {}".format)


def recover(log: Log) -> TornTail | None:
    log.complete()
    list(log.read_new())
    return log.recover(condemned.append)


@settings(max_examples=25)
@given(st.lists(st.lists(st.integers(0, 700), min_size=1, max_size=4), max_size=6), st.integers(129, 3000))
def test_what_was_appended_is_read_back_in_batches(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[int]], segment_bytes: int
) -> None:
    where = make(tmp_path_factory.mktemp("log"))
    log = opened(where, segment_bytes=segment_bytes)
    written = [append(log, *sizes) for sizes in batches]
    again = opened(where, segment_bytes=segment_bytes)
    assert written == read(again)
    assert log.head == again.head
    assert [] == read(again)
    assert again.damage is None
    log.close()
    again.close()


def test_a_reader_follows_a_writer(tmp_path: Path) -> None:
    writer = opened(make(tmp_path), segment_bytes=500)
    reader = opened(tmp_path, segment_bytes=500)
    for n in range(8):
        assert not reader.is_behind()
        events = append(writer, 100 + n)
        assert reader.is_behind()
        assert [events] == read(reader)
        assert writer.head == reader.head
    assert 3 <= len(writer.segments())
    writer.close()
    reader.close()


def test_a_reader_resumes_from_a_head_that_the_log_confirms_and_no_other(tmp_path: Path) -> None:
    batches = filled(tmp_path)
    log = opened(tmp_path)
    heads = [log.head for _ in log.read_new()]
    again = opened(tmp_path)
    assert again.resume(heads[1])
    assert batches[2:] == read(again)
    assert again.resume(again.start)
    assert batches == read(again)
    changes: list[dict[str, object]] = [
        {"log_id": b"y" * 16}, {"chain": bytes(32)}, {"offset": heads[1].offset + 1}, {"segment": 99}
    ]  # fmt: skip
    foreign = [msgspec.structs.replace(heads[1], **change) for change in changes]
    assert [False] * 4 == [again.resume(head) for head in foreign]
    log.close()
    again.close()


def test_the_head_knows_the_last_record_time_and_the_first_free_slot(tmp_path: Path) -> None:
    log = opened(make(tmp_path))
    log.append([event(1, slot=9), event(2, slot=NO_SLOT)], 1002)
    assert (2, 1002, 10) == (log.head.seq, log.head.recorded_at, log.head.next_slot)
    log.close()


def test_an_event_is_read_by_its_place(tmp_path: Path) -> None:
    filled(tmp_path, segment_bytes=400)
    log = opened(tmp_path, segment_bytes=400)
    for located in list(log.read_new()):
        for n, raw in enumerate(located.frame.events):
            assert raw == log.read_at(located.location(n))
    log.close()


@ROOM
def test_i02_any_flipped_bit_is_damage_and_its_place_is_named(room: int, tmp_path: Path) -> None:
    batches = filled(tmp_path)
    (path,) = (tmp_path / "log").glob("*.seg")
    whole = path.read_bytes()
    log = opened(tmp_path)
    starts = [(located.frame.first_seq, located.offset) for located in log.read_new()]
    log.close()
    for at in range(SEGMENT_HEADER_BYTES, len(whole)):
        bad = bytearray(whole + bytes(room))
        bad[at] ^= 1 << at % 8
        path.write_bytes(bad)
        frame = max(n for n, (_, start) in enumerate(starts) if start <= at)
        log = opened(tmp_path)
        assert batches[:frame] == read(log)
        assert isinstance(log.damage, LogCorrupt)
        seq, offset = starts[frame]
        assert (seq, offset, path.name) == tuple(log.damage.facts[name] for name in ("seq", "offset", "segment"))
        with pytest.raises(LogCorrupt):
            log.recover(condemned.append)
        with pytest.raises(LogCorrupt):
            append(log, 1)
        log.close()
        assert bytes(bad) == path.read_bytes()


@ROOM
def test_i10_a_log_cut_at_every_byte_of_its_last_frame_is_recovered(room: int, tmp_path: Path) -> None:
    """It ends there, or goes on with zeros: as a frame does that was half written over room."""
    batches = filled(tmp_path)
    (path,) = (tmp_path / "log").glob("*.seg")
    whole = path.read_bytes()
    log = opened(tmp_path)
    start = [located.offset for located in log.read_new()][-1]
    log.close()
    for size in range(start, len(whole)):
        path.write_bytes(whole[:size] + bytes(len(whole) - size + room if room else 0))
        log = opened(tmp_path)
        torn = recover(log)
        left = whole[start:size].rstrip(b"\0")
        assert (len(left) or None) == (torn and torn.size)
        assert batches[-1] != append(log, 33)
        log.close()
        again = opened(tmp_path)
        assert batches[:-1] == read(again)[:-1]
        assert again.damage is None
        again.close()
        if torn:
            assert left == (tmp_path / "log" / torn.kept_in).read_bytes()


def test_a_bit_in_the_room_is_reported_and_hides_no_event(tmp_path: Path) -> None:
    """As the remains of a commit where it could be one, else as damage: zeros do not change by themselves."""
    batches = filled(tmp_path)
    (path,) = (tmp_path / "log").glob("*.seg")
    whole = path.read_bytes()
    found = list[bool]()
    for at in range(0, 3_000, 97):
        bad = bytearray(whole + bytes(3_000))
        bad[len(whole) + at] = 8
        path.write_bytes(bad)
        log = opened(tmp_path)
        assert batches == read(log)
        found.append(log.damage is None)
        if log.damage is None:
            assert at + 1 == len(log.remains())
            assert recover(log) is not None
        log.close()
    assert {True, False} == set(found)


def test_i02_damage_is_told_while_others_append_behind_it(tmp_path: Path) -> None:
    """Theirs is a head that a snapshot gave them, from beyond the damage."""
    filled(tmp_path)
    writer = opened(tmp_path)
    list(writer.read_new())
    (path,) = writer.segments()
    with path.open("r+b") as file:
        file.seek(SEGMENT_HEADER_BYTES + 90)
        file.write(b"rot")

    class Meanwhile(WriterLock):
        def mark(self) -> Mark | None:
            append(writer, 10)
            return None

    lock = Meanwhile(tmp_path / "lock", tmp_path / "log")
    reader = Log(tmp_path / "log", LOG_ID, HastyDisk(), lock=lock, read_only=True)
    assert [] == read(reader)
    assert isinstance(reader.damage, LogCorrupt)
    assert "chain hash" in str(reader.damage)
    for one in (reader, writer, lock):
        one.close()


def test_i02_zeros_behind_a_sealed_segment_are_damage(tmp_path: Path) -> None:
    paths = segments_of(tmp_path)
    with paths[1].open("ab") as file:
        file.write(bytes(700))
    assert isinstance(damage_of(tmp_path), LogCorrupt)


def test_i10_nothing_is_written_where_something_stands(tmp_path: Path) -> None:
    """Whoever appends where the head is no longer the end has another process's frame before him, or a cut log."""
    log, other = opened(make(tmp_path), locked=False), opened(tmp_path, locked=False)
    append(log, 10)
    list(other.read_new())
    theirs = append(other, 20)
    with pytest.raises(LogCorrupt, match="without the lock"):
        append(log, 30)
    os.truncate(log.segments()[-1], SEGMENT_HEADER_BYTES + 5)
    with pytest.raises(LogCorrupt, match="without the lock"):
        append(other, 30)
    assert 20 == len(theirs[0]) - len(event(1, b""))
    log.close()
    other.close()


class _Finishing(WriterLock):
    """A writer that finishes its frame, and clears its mark, between a reader's look at the bytes and at the mark."""

    lacking: tuple[Path, int, bytes] | None = None

    def mark(self) -> Mark | None:
        if self.lacking is not None:
            path, at, data = self.lacking
            self.lacking = None
            with path.open("r+b") as file:
                file.seek(at)
                file.write(data)
        return None


@pytest.mark.parametrize("share", [0.01, 0.3, 0.6, 0.99])
def test_i10_a_frame_that_is_finished_while_it_is_read_is_read_again(share: float, tmp_path: Path) -> None:
    batches = filled(tmp_path)
    (path,) = (tmp_path / "log").glob("*.seg")
    whole = path.read_bytes()
    start_of_last = [located.offset for located in opened(tmp_path).read_new()][-1]
    cut = start_of_last + int(share * (len(whole) - start_of_last))
    path.write_bytes(whole[:start_of_last] + bytes(9_000))
    lock = _Finishing(tmp_path / "lock", tmp_path / "log")
    log = Log(tmp_path / "log", LOG_ID, HastyDisk(), lock=lock, read_only=True)
    for following in (False, True):
        path.write_bytes(whole[:start_of_last] + bytes(9_000))
        log.rewind()
        if following:
            assert batches[:-1] == read(log)
        path.write_bytes(whole[:cut] + bytes(9_000))
        lock.lacking = path, cut, whole[cut:]
        assert (batches[-1:] if following else batches) == read(log)
        assert log.damage is None
    log.close()
    lock.close()


_BIG_FRAMES = """
import sys
from pathlib import Path
from tests.events.test_log import append, opened
log = opened(Path(sys.argv[1]), segment_bytes=6 << 20)
for n in range(150):
    with log._lock.hold():
        append(log, 30_000 + n, 90_000, n)
log.close()
"""


def test_i10_a_reader_beside_a_writer_never_takes_a_frame_for_damage(tmp_path: Path) -> None:
    """Frames are written over room: a reader may see half of one, and must read it again."""
    reader = opened(make(tmp_path), read_only=True, segment_bytes=6 << 20)
    seen = 0
    with start(_BIG_FRAMES, tmp_path) as writer:
        while writer.poll() is None:
            seen += sum(map(len, read(reader)))
            assert reader.damage is None
    assert 0 == writer.returncode
    assert 450 == seen + sum(map(len, read(reader)))
    assert 3 <= len(reader.segments())
    reader.close()


def test_i02_a_chained_event_that_is_shorter_than_its_header_is_damage(tmp_path: Path) -> None:
    """The chain has no key: a forger makes it hold, and reading must still say where, not end in an error of ours."""
    log = opened(make(tmp_path))
    append(log, 40)
    forged, _ = format_frame(2, [b"x"], Digest(log.head.chain))
    log.close()
    with next((tmp_path / "log").glob("*.seg")).open("ab") as file:
        file.write(forged)
    again = opened(tmp_path)
    assert 1 == len(read(again))
    assert isinstance(again.damage, LogCorrupt)
    assert 2 == again.damage.facts["seq"]
    again.close()


@pytest.mark.parametrize("sector", range(1, 5))
def test_i10_a_last_frame_with_a_sector_that_was_never_written_is_torn(sector: int, tmp_path: Path) -> None:
    log = opened(make(tmp_path))
    first = append(log, 200)
    append(log, 2000)
    log.close()
    (path,) = (tmp_path / "log").glob("*.seg")
    bad = bytearray(path.read_bytes())
    bad[512 * sector : 512 * sector + 512] = bytes(len(bad[512 * sector : 512 * sector + 512]))
    path.write_bytes(bad)
    log = opened(tmp_path)
    assert recover(log) is not None
    log.close()
    again = opened(tmp_path)
    assert [first] == read(again)
    again.close()


@pytest.mark.parametrize("ours", [1, 2, 15, 16, 100])
@pytest.mark.parametrize("lost", ["first", "last"])
def test_i10_a_lost_sector_that_held_only_a_few_bytes_of_the_frame_is_torn(
    ours: int, lost: str, tmp_path: Path
) -> None:
    log = opened(make(tmp_path))
    begin = log.head.offset
    empty = append(log, 0)
    overhead = log.head.offset - begin
    # The frame before ends so that the last one begins, or ends, that many bytes from a boundary.
    wanted = -ours if lost == "first" else ours - overhead - 600
    first = append(log, (wanted - log.head.offset - overhead) % 512)
    begin = log.head.offset
    append(log, 600)
    end = log.head.offset
    log.close()
    assert ours == (-begin % 512 if lost == "first" else end % 512)
    (path,) = (tmp_path / "log").glob("*.seg")
    bad = bytearray(path.read_bytes())
    low, high = (begin, begin + ours) if lost == "first" else (end - ours, end)
    bad[low:high] = bytes(ours)
    path.write_bytes(bad)
    log = opened(tmp_path)
    assert [empty, first] == read(log)
    assert recover(log) is not None
    log.close()


def test_a_zeroed_sector_with_a_frame_after_it_is_damage(tmp_path: Path) -> None:
    log = opened(make(tmp_path))
    append(log, 2000)
    append(log, 10)
    log.close()
    (path,) = (tmp_path / "log").glob("*.seg")
    bad = bytearray(path.read_bytes())
    bad[512:1024] = bytes(512)
    path.write_bytes(bad)
    log = opened(tmp_path)
    with pytest.raises(LogCorrupt):
        recover(log)
    log.close()


@settings(max_examples=50)
@given(st.binary(min_size=1, max_size=200).filter(lambda noise: any(noise)))
def test_garbage_after_the_last_frame_never_hides_or_changes_it(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes
) -> None:
    where = tmp_path_factory.mktemp("log")
    batches = filled(where)
    (path,) = (where / "log").glob("*.seg")
    with path.open("ab") as file:
        file.write(noise)
    log = opened(where)
    assert batches == read(log)
    assert log.damage is None or 8 == log.damage.facts["seq"]
    log.close()


def test_recovery_condemns_the_slots_that_a_torn_frame_names_and_no_others(tmp_path: Path) -> None:
    log = opened(make(tmp_path))
    log.append([event(1, slot=4)], 1001)
    log.cut_room()
    data, _ = format_frame(2, [event(2, slot=6), event(3, slot=4), event(4, slot=9)], log.head.chain)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # a head's chain is a digest
    log.close()
    (path,) = (tmp_path / "log").glob("*.seg")
    whole = path.read_bytes()
    for cut, expected in ((-40, {6, 9}), (-116, {6, 9}), (-118, {6}), (-560, set[int]())):
        path.write_bytes(whole + data[:cut])
        log = opened(tmp_path)
        torn = recover(log)
        assert torn is not None
        assert expected == torn.slots == condemned[-1]
        log.close()


def test_opening_and_reading_change_no_byte(tmp_path: Path) -> None:
    filled(tmp_path, segment_bytes=400)
    with (tmp_path / "log" / "0000000000000001.seg").open("rb"):
        before = contents(tmp_path)
        log = opened(tmp_path, read_only=True, segment_bytes=400)
        list(log.read_new())
        log.resume(log.start)
        with pytest.raises(StoreReadOnly):
            append(log, 1)
        log.close()
        assert before == contents(tmp_path)


def test_segments_are_named_by_their_first_event_and_the_old_ones_become_read_only(tmp_path: Path) -> None:
    filled(tmp_path, segment_bytes=400)
    paths = opened(tmp_path).segments()
    assert [1, 5, 6] == [int(path.name[:-4]) for path in paths]
    assert [0o444, 0o444, 0o600] == [stat.S_IMODE(path.stat().st_mode) for path in paths]


def segments_of(where: Path) -> list[Path]:
    filled(where, segment_bytes=400)
    paths = sorted((where / "log").glob("*.seg"))
    for path in paths:
        path.chmod(0o600)
    assert 3 == len(paths)
    return paths


def damage_of(where: Path) -> MunimentError | None:
    log = opened(where, segment_bytes=400)
    try:
        list(log.read_new())
    except MunimentError as error:
        return error
    finally:
        log.close()
    return log.damage


def test_room_is_made_for_many_frames_and_cut_off_when_a_segment_is_sealed_or_the_store_is_closed(
    tmp_path: Path,
) -> None:
    log = opened(make(tmp_path), segment_bytes=40_000)
    sizes, before = set[int](), 0
    while len(log.segments()) == 1:
        before = log.head.offset
        append(log, 300)
        sizes.add(log.segments()[0].stat().st_size)
    assert 5 >= len(sizes)
    sealed, last = log.segments()
    assert before == sealed.stat().st_size
    assert log.head.offset < last.stat().st_size <= 40_000
    log.cut_room()
    assert log.head.offset == last.stat().st_size
    log.cut_room()
    append(log, 3_000)
    assert log.head.offset < last.stat().st_size
    log.close()
    again = opened(tmp_path, segment_bytes=40_000)
    assert log.head.seq == sum(map(len, read(again)))
    assert again.damage is None
    again.close()


def test_a_writer_goes_on_in_the_room_that_another_left(tmp_path: Path) -> None:
    one, other = opened(make(tmp_path)), opened(tmp_path)
    batches: list[list[bytes]] = []
    for n in range(6):
        writer = (one, other)[n % 2]
        list(writer.read_new())
        batches.append(append(writer, 200 + n))
    (path,) = one.segments()
    assert 17_000 > path.stat().st_size > one.head.offset, "room was made once"
    one.close()
    other.close()
    again = opened(tmp_path)
    assert batches == read(again)
    again.close()


@pytest.mark.parametrize("outcome", Outcome)
def test_a_disk_that_has_no_room_ahead_is_written_to_all_the_same(outcome: Outcome, tmp_path: Path) -> None:
    disk = FaultyDisk(make(tmp_path), fault=Fault(1, errno.ENOSPC, outcome))
    log = opened(tmp_path, disk)
    batches = [append(log, 300) for _ in range(5)]
    log.close()
    assert ["overwrite", "truncate", "overwrite", "sync"] == [done.kind for done in disk.operations[:4]]
    again = opened(tmp_path)
    assert batches == read(again)
    again.close()


def test_i02_a_segment_that_does_not_continue_the_one_before_is_damage(tmp_path: Path) -> None:
    paths = segments_of(tmp_path / "log")
    other = segments_of(tmp_path / "other")
    paths[1].write_bytes(other[1].read_bytes()[:40] + paths[1].read_bytes()[40:])
    assert damage_of(tmp_path / "log") is None, "the same bytes"
    paths[1].write_bytes(paths[2].read_bytes())
    assert isinstance(damage_of(tmp_path / "log"), LogCorrupt)


def test_i02_a_missing_segment_with_later_ones_is_damage(tmp_path: Path) -> None:
    paths = segments_of(tmp_path)
    paths[1].unlink()
    assert isinstance(damage_of(tmp_path), LogCorrupt)


def test_i02_a_first_segment_that_is_missing_is_damage(tmp_path: Path) -> None:
    paths = segments_of(tmp_path)
    paths[0].unlink()
    assert isinstance(damage_of(tmp_path), LogCorrupt)


@pytest.mark.parametrize("keep", ["a frame", "half a frame", "the header"])
def test_i10_a_sealed_segment_that_was_cut_is_damage_and_nothing_is_set_aside(keep: str, tmp_path: Path) -> None:
    paths = segments_of(tmp_path)
    frame = SEGMENT_HEADER_BYTES + 32 + 4 + len(event(1, b"x" * 10)) + 32
    size = {"a frame": frame, "half a frame": frame + 100, "the header": SEGMENT_HEADER_BYTES}[keep]
    os.truncate(paths[0], size)
    before = contents(tmp_path)
    log = opened(tmp_path, segment_bytes=400)
    with pytest.raises(LogCorrupt):
        recover(log)
    log.close()
    assert before == contents(tmp_path)


def test_i02_the_first_segment_of_another_log_is_damage(tmp_path: Path) -> None:
    filled(tmp_path)
    log = Log(tmp_path / "log", b"another log's id", HastyDisk())
    assert [] == read(log)
    assert isinstance(log.damage, LogCorrupt)
    log.close()


def test_i10_a_failed_sync_stops_the_writer(tmp_path: Path) -> None:
    disk = FaultyDisk(make(tmp_path), fault=Fault(3, errno.EIO, Outcome.NOTHING))
    log = opened(tmp_path, disk)
    with pytest.raises(WriterPoisoned, match="fdatasync"):
        append(log, 10)
    for _ in range(2):
        with pytest.raises(WriterPoisoned, match="an earlier commit has an unknown outcome"):
            append(log, 10)
    log.close()


def test_i10_a_frame_that_a_failed_sync_left_in_memory_is_shown_to_nobody_before_it_is_durable(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    make(tmp_path / "disk" / "here")
    disk = FaultyDisk(tmp_path / "disk", fault=Fault(3, errno.EIO, Outcome.NOTHING))
    log = opened(tmp_path / "disk" / "here", disk)
    with pytest.raises(WriterPoisoned):
        append(log, 10)
    log.close()
    disk.arm()
    reader = opened(tmp_path / "disk" / "here", read_only=True)
    assert not reader.is_behind()
    assert [] == read(reader)
    writer = opened(tmp_path / "disk" / "here", disk)
    assert recover(writer) is None
    acknowledged = append(writer, 20)
    assert 2 == len(read(reader))
    disk.materialise(tmp_path / "after", NothingSurvives())
    after = opened(tmp_path / "after" / "here")
    assert acknowledged == read(after)[-1]
    for one in (reader, writer, after):
        one.close()


@pytest.mark.parametrize("outcome", Outcome)
def test_i10_a_full_disk_is_a_typed_error_and_the_next_append_works(outcome: Outcome, tmp_path: Path) -> None:
    disk = FaultyDisk(make(tmp_path), fault=Fault(2, errno.ENOSPC, outcome))
    log = opened(tmp_path, disk)
    with pytest.raises(DiskFull):
        append(log, 10)
    events = append(log, 20)
    again = opened(tmp_path)
    assert [events] == read(again)
    log.close()
    again.close()


def test_i10_a_short_write_that_cannot_be_taken_back_stops_the_writer(tmp_path: Path) -> None:
    class Stuck(HastyDisk):
        def overwrite(self, fd: int, data: bytes, at: int) -> None:
            super().overwrite(fd, data[:50], at)
            raise OSError(errno.ENOSPC, "full")

        def truncate(self, fd: int, size: int) -> None:
            raise OSError(errno.EIO, "broken")

    log = opened(make(tmp_path), Stuck())
    with pytest.raises(WriterPoisoned, match="write"):
        append(log, 10)
    with pytest.raises(WriterPoisoned):
        append(log, 10)
    log.close()
    again = opened(tmp_path)
    assert recover(again) is not None
    append(again, 10)
    again.close()


def test_i10_a_roll_that_failed_at_any_step_is_done_again(tmp_path: Path) -> None:
    for at in itertools.count(1):
        where = make(tmp_path / str(at))
        disk = FaultyDisk(where)
        log = opened(where, disk, segment_bytes=200)
        first = append(log, 300)
        disk.arm(fault=Fault(at, errno.ENOSPC, Outcome.NOTHING))
        try:
            append(log, 300)
        except (MunimentError, OSError):
            log.close()
            log = opened(where, segment_bytes=200)
            recover(log)
        done = len(disk.operations) < at
        disk.arm()
        last = append(log, 300)
        again = opened(where, segment_bytes=200)
        batches = read(again)
        assert (first, last) == (batches[0], batches[-1])
        log.close()
        again.close()
        if done:
            break


def test_i10_a_mark_from_before_a_power_cut_hides_nothing_in_a_read_only_copy(tmp_path: Path) -> None:
    """The mark is never synced: after a power cut the lock file may hold any mark that it ever held."""
    batches = filled(tmp_path / "here")
    lock = WriterLock(tmp_path / "here" / "lock", tmp_path / "here" / "log")
    with lock.hold():
        lock.set_mark(Mark(1, SEGMENT_HEADER_BYTES))
    lock.close()
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    log = opened(tmp_path / "there", read_only=True)
    assert batches == read(log)
    log.close()
