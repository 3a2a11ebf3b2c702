"""What the embedded files promise beyond the contract, and how frames are copied between back ends."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from muniment.events import (
    BadArgument,
    ChainHead,
    EmbeddedLog,
    HeadMoved,
    LogBackend,
    LogCorrupt,
    StoreFiles,
    StoreReadOnly,
    WriterPoisoned,
    copy_frames,
    genesis,
)

from .backends import KINDS, LOG_ID, Embedded, framed
from .stores import contents

EMPTY = ChainHead(0, genesis(LOG_ID))


def opened(where: Path, *, log_id: bytes = LOG_ID, read_only: bool = False) -> EmbeddedLog:
    where.mkdir(exist_ok=True)
    return EmbeddedLog(StoreFiles(where, log_id, "", None), segment_bytes=700, read_only=read_only)


def fill(log: LogBackend, *batches: tuple[int, ...]) -> list[bytes]:
    frames: list[bytes] = []
    for sizes in batches:
        head = log.head()
        frames.append(framed(head, *sizes)[0])
        log.append(*head, frames[-1])
    return frames


def test_frames_are_read_across_segments_from_any_event(tmp_path: Path) -> None:
    with closing(opened(tmp_path)) as log, closing(opened(tmp_path, read_only=True)) as other:
        frames = fill(log, *[(200, n) for n in range(9)])
        assert 3 <= len(list((tmp_path / "log").glob("*.seg")))
        for reader in (log, other):
            for seq in (*range(18, 0, -1), *range(1, 19)):
                assert frames[(seq - 1) // 2 :] == list(reader.read(seq))


def test_a_damaged_segment_header_is_named_where_reading_begins_there(tmp_path: Path) -> None:
    with closing(opened(tmp_path)) as log:
        fill(log, *[(400,)] * 6)
    path = max((tmp_path / "log").glob("*.seg"))
    path.chmod(0o600)
    data = bytearray(path.read_bytes())
    data[40] ^= 1
    path.write_bytes(data)
    with closing(opened(tmp_path, read_only=True)) as log, pytest.raises(LogCorrupt, match=path.name):
        list(log.read(int(path.stem)))


def test_an_append_finishes_what_a_writer_left_whole_and_unsynced(tmp_path: Path) -> None:
    """Its frame may have been kept or not; it was, and the next writer's expectation is stale."""
    with closing(opened(tmp_path)) as log:
        first = fill(log, (40,))
        head = log.head()
        left, after = framed(head, 40)
        Embedded().die_within(tmp_path, left, 1)
        assert head == log.head()
        mine, _ = framed(head, 50)
        with pytest.raises(HeadMoved) as caught:
            log.append(*head, mine)
        assert after.seq == caught.value.facts["seq"]
        assert [*first, left] == list(log.read(1))


def test_without_a_hand_on_the_keys_a_torn_tail_is_left_to_the_store(tmp_path: Path) -> None:
    """Its slots would be handed out again with their keys, and what was forgotten could be read from the remains."""
    with closing(opened(tmp_path)) as log:
        fill(log, (40,))
        head = log.head()
        lost, _ = framed(head, 300)
        Embedded().die_within(tmp_path, lost, 0.5)
        before = contents(tmp_path / "log")
        with pytest.raises(WriterPoisoned, match="unfinished commit"):
            log.append(*head, framed(head, 1)[0])
        assert before == contents(tmp_path / "log")
    named: list[frozenset[int]] = []
    files = StoreFiles(tmp_path, LOG_ID, "", None)
    with closing(EmbeddedLog(files, condemn=named.append)) as log:
        log.append(*head, framed(head, 1)[0])
    assert [frozenset[int]()] == named


def test_a_log_opened_for_reading_is_not_written_nor_made(tmp_path: Path) -> None:
    with closing(opened(tmp_path)) as log:
        fill(log, (40,))
    with closing(opened(tmp_path, read_only=True)) as log:
        head = log.head()
        with pytest.raises(StoreReadOnly):
            log.append(*head, framed(head, 1)[0])
    missing = tmp_path / "missing"
    with closing(opened(missing, read_only=True)) as log, pytest.raises(LogCorrupt):
        log.head()
    assert [] == list(missing.iterdir())


@pytest.mark.parametrize("source", KINDS)
@pytest.mark.parametrize("target", KINDS)
def test_a_copy_takes_what_is_lacking_and_nothing_twice(source: str, target: str, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with closing(KINDS[source].opened(tmp_path / "a")) as one, closing(KINDS[target].opened(tmp_path / "b")) as two:
        assert 0 == copy_frames(one, two)
        frames = fill(one, (1,), (50, 0, 3), (2_000,))
        assert 3 == copy_frames(one, two)
        assert 0 == copy_frames(one, two)
        frames += fill(one, (9, 9))
        assert 1 == copy_frames(one, two)
        assert frames == list(two.read(1))
        assert one.head() == two.head()


def test_a_copy_refuses_a_target_that_is_ahead_or_another_log(tmp_path: Path) -> None:
    source, ahead, equal, foreign = (tmp_path / name for name in ("source", "ahead", "equal", "foreign"))
    with (
        closing(opened(source)) as one,
        closing(opened(ahead)) as two,
        closing(opened(equal)) as three,
        closing(opened(foreign, log_id=bytes(16))) as four,
    ):
        fill(one, (10,), (10,))
        fill(two, (10,), (10,), (10,))
        fill(three, (10,), (10,))
        for target in (two, three):
            with pytest.raises(HeadMoved) as caught:
                copy_frames(one, target)
            assert caught.value.facts["seq"] == target.head().seq
        with pytest.raises(BadArgument, match="chain hash"):
            copy_frames(one, four)
        assert 0 == four.head().seq
