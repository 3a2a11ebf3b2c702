"""Everything enters by one door: under the lock, in batches, after catching up, and what it condemns is gone."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.events._disk import Disk
from muniment.events._door import Moment
from muniment.events._errors import DiskFull, StoreMissing, StoreReadOnly
from muniment.events._model import Draft, Opened

from .faults import Fault, FaultyDisk, HastyDisk, Outcome
from .stores import NOW, Bare, contents, fresh_ids, make, memory


def opened(where: Path, disk: Disk | None = None, *, read_only: bool = False) -> Bare:
    return Bare(where, disk or HastyDisk(), read_only=read_only)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    make(tmp_path / "store", HastyDisk())
    return tmp_path / "store"


def test_i01_a_batch_is_one_frame_and_is_seen_at_once(path: Path) -> None:
    with opened(path) as store:
        ids = store.remember("red", "green", "blue")
        assert ["red", "green", "blue"] == [store.text(one) for one in ids]
        assert [[1, 2, 3, 4]] == store.register.batches
        assert isinstance(store.register.events[0].envelope, Opened)
        store.remember("grey")
        assert [[1, 2, 3, 4], [5]] == store.register.batches
    with opened(path) as again:
        again.door.catch_up()
        assert [[1, 2, 3, 4], [5]] == again.register.batches
        assert store.register.events == again.register.events


def test_i01_a_plan_is_made_after_catching_up_and_told_where_it_will_stand(path: Path) -> None:
    with opened(path) as one, opened(path) as other:
        ids = one.remember("red")
        seen: list[Moment] = []

        def plan(moment: Moment) -> Sequence[Draft]:
            assert set(ids) == set(other.register.memories)
            seen.append(moment)
            return [memory("green")]

        batch = other.door.append(plan)
        assert batch is not None
        assert [seen[-1].first_seq] == [event.seq for event in batch.events]
        assert seen[-1].recorded_at == batch.events[0].recorded_at


def test_a_plan_that_raises_or_returns_nothing_writes_nothing(path: Path) -> None:
    with opened(path) as store:
        store.remember("red")
        before = contents(path / "log")

        def refuse(moment: Moment) -> Sequence[Draft]:
            raise LookupError("refused")

        with pytest.raises(LookupError, match="refused"):
            store.door.append(refuse)
        assert store.door.append(lambda moment: []) is None
        assert before == contents(path / "log")
        store.remember("green")


@settings(max_examples=20)
@given(st.lists(st.integers(-5_000_000, 5_000_000), min_size=1, max_size=6))
def test_record_time_rises_whatever_the_clock_does(tmp_path_factory: pytest.TempPathFactory, clock: list[int]) -> None:
    where = tmp_path_factory.mktemp("clock") / "store"
    make(where, HastyDisk())
    ticks = iter(clock)
    with Bare(where, HastyDisk(), clock=lambda: NOW + next(ticks)) as store:
        for _ in clock:
            store.remember("red", "green")
        times = [
            [event.recorded_at for event in store.register.events if event.seq in batch]
            for batch in store.register.batches
        ]
        assert all(1 == len(set(batch)) for batch in times)
        firsts = [batch[0] for batch in times]
        assert sorted(set(firsts)) == firsts


def test_i05_a_forget_destroys_the_key_before_it_returns(path: Path) -> None:
    with opened(path) as store, opened(path) as other:
        one, kept = store.remember("red", "green")
        other.door.catch_up()
        old_root = store.keys._root
        store.forget(one)
        assert (None, "green") == (store.text(one), store.text(kept))
        assert all(old_root not in data for data in contents(path).values())
        assert 1 == len(store.keys.ledger)
        assert store.keys.is_shredded(store.register.memories[one].header.slot)
        other.remember("blue")
        assert (None, "green") == (other.text(one), other.text(kept))


def test_i05_the_log_is_not_rewritten_by_a_forget(path: Path) -> None:
    with opened(path) as store:
        one, _ = store.remember("red", "green")
        (before,) = contents(path / "log").values()
        written = before[: store.door.head.offset]
        store.forget(one)
        (after,) = contents(path / "log").values()
        assert written == after[: len(written)]


def test_i05_a_forget_whose_erasure_failed_is_an_error_and_is_finished_by_the_next_append(tmp_path: Path) -> None:
    make(tmp_path / "store", HastyDisk())
    disk = FaultyDisk(tmp_path)
    with opened(tmp_path / "store", disk) as store:
        (one,) = store.remember("red")
        disk.arm(fault=Fault(3, errno.ENOSPC, Outcome.NOTHING))
        with pytest.raises(DiskFull):
            store.forget(one)
        disk.arm()
        store.remember("green")
        assert store.text(one) is None


def test_i05_a_forget_that_another_thread_commits_and_cannot_finish_does_not_return(tmp_path: Path) -> None:
    """The thread that has the lock commits for those that wait."""
    make(tmp_path / "store", HastyDisk())
    disk = FaultyDisk(tmp_path)
    with opened(tmp_path / "store", disk) as store:
        one, other = store.remember("red", "green")
        disk.arm(fault=Fault(3, errno.ENOSPC, Outcome.NOTHING))
        outcomes: list[str] = []

        def forget() -> None:
            try:
                store.forget(one)
            except DiskFull:
                outcomes.append("error")
            else:
                outcomes.append("done" if store.keys.is_shredded(store.register.memories[one].header.slot) else "lie")

        thread = threading.Thread(target=forget)
        with store.door._mutex:
            thread.start()
            while not store.door._waiting:
                pass
            try:
                store.remember("blue")
            except DiskFull:
                outcomes.append("taken")
        thread.join()
        assert "lie" not in outcomes
        assert store.text(other) == "green"


def test_i01_threads_that_write_at_once_lose_nothing(path: Path) -> None:
    with opened(path) as store, opened(path) as other:
        ids = [[fresh_ids(5) for _ in range(5)] for _ in range(4)]

        def write(where: Bare, batches: list[list[object]]) -> None:
            for batch in batches:
                where.remember(*map(str, batch), ids=batch)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # ids, kept as objects for the thread

        threads = [
            threading.Thread(target=write, args=(store if n % 2 else other, batches)) for n, batches in enumerate(ids)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        store.door.catch_up()
        for batches in ids:
            for batch in batches:
                assert [str(one) for one in batch] == [store.text(one) for one in batch]
                seqs = [store.register.memories[one].seq for one in batch]
                assert list(range(seqs[0], seqs[0] + 5)) == seqs


def test_i10_processes_that_write_at_once_lose_nothing_and_one_that_is_killed_harms_nobody(path: Path) -> None:
    ids = [[fresh_ids(3) for _ in range(6)] for _ in range(4)]
    children: list[int] = []
    for n, batches in enumerate(ids):
        pid = os.fork()
        if pid == 0:
            with opened(path) as store:
                for batch in batches[: 3 if n == 0 else None]:
                    store.remember(*map(str, batch), ids=batch)
            os._exit(0)
        children.append(pid)
    assert [0] * 4 == [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
    with opened(path) as store:
        store.door.settle()
        for n, batches in enumerate(ids):
            for batch in batches[: 3 if n == 0 else None]:
                assert [str(one) for one in batch] == [store.text(one) for one in batch]
        assert 63 == len(store.register.memories)
        assert not store.door.torn


def test_i01_who_held_the_lock_last_still_sees_what_others_did_in_between(path: Path) -> None:
    """Each kind of change in turn: an append, a forget, a rotation of the keys alone, and a new segment."""
    with opened(path) as one, opened(path) as other:
        one.log._segment_bytes = other.log._segment_bytes = 4_096
        kept = one.remember("red")
        for turn in range(40):
            [green, *_] = other.remember(f"green {turn}")
            if turn % 3 == 0:
                other.forget(green)
            if turn % 5 == 0:
                with other.lock.hold():
                    other.door.settle()
                    other.keys.shred(())
            kept += one.remember(f"red {turn}", f"blue {turn}")
            assert (other.keys.epoch, green in one.register.memories) == (one.keys.epoch, True)
        assert 3 < len(one.log.segments())
    with opened(path) as again:
        again.door.catch_up()
        assert again.log.damage is None
        assert all(again.text(identity) is not None for identity in kept)


def test_i01_a_roll_by_one_who_leaves_no_sign_is_seen(path: Path) -> None:
    """As by an older program, which knows nothing of signs."""
    with opened(path) as one, opened(path) as other:
        one.log._segment_bytes = other.log._segment_bytes = 4_096
        while one.log.head.offset < 4_096:
            one.remember("red")
        before = (path / "lock").read_bytes()
        other.remember("green")
        (path / "lock").write_bytes(before)
        one.remember("blue")
        assert 1 + other.log.head.seq == one.log.head.seq
        assert 2 == len(one.log.segments())


class _Interrupted(HastyDisk):
    """Is interrupted by its caller, once, where a frame was written and not yet synced."""

    armed = False

    def sync(self, fd: int) -> None:
        if self.armed:
            self.armed = False
            raise KeyboardInterrupt
        super().sync(fd)


def test_i10_a_writer_that_was_interrupted_finds_what_the_next_one_made_of_its_frame(path: Path) -> None:
    disk = _Interrupted()
    with opened(path, disk) as store:
        store.remember("red")
        disk.armed = True
        with pytest.raises(KeyboardInterrupt):
            store.remember("green")
        with opened(path) as other:
            other.door.settle()
        store.remember("blue")
        assert [1, 2, 3, 4] == [event.header.seq for event in store.register.events]
    with opened(path) as again:
        again.door.catch_up()
        assert (4, None) == (again.log.head.seq, again.log.damage)


def test_slots_are_never_shared_by_two_memories(path: Path) -> None:
    with opened(path) as store, opened(path) as other:
        for n in range(12):
            writer = store if n % 2 else other
            ids = writer.remember(*(f"text {m}" for m in range(40)), scope=f"scope-{n % 3}")
            if n % 4 == 3:
                writer.forget(ids[0])
        store.door.catch_up()
        headers = [event.header for event in store.register.events if event.header.body_bytes]
        assert len(headers) == len({header.slot for header in headers})
        assert {header.slot for header in headers}.isdisjoint(store.register.scopes.values())
        assert len(store.register.scopes) == len(set(store.register.scopes.values()))


def test_a_door_that_only_reads_refuses_to_write_and_changes_no_byte(path: Path) -> None:
    with opened(path) as store:
        (one,) = store.remember("red")
    before = contents(path)
    with opened(path, read_only=True) as reader:
        reader.door.catch_up()
        assert "red" == reader.text(one)
        with pytest.raises(StoreReadOnly):
            reader.remember("green")
    assert before == contents(path)


def test_a_body_is_read_by_its_place(path: Path) -> None:
    with opened(path) as store:
        (one,) = store.remember("red")
        assert memory("red").body == store.door.read_body(store.register.memories[one].where)
        store.forget(one)
        assert store.door.read_body(store.register.memories[one].where) is None


def test_i10_a_store_that_was_deleted_while_it_was_open_acknowledges_nothing(path: Path) -> None:
    with opened(path) as store:
        store.remember("red")
        shutil.rmtree(path)
        with pytest.raises(StoreMissing, match="no store at") as caught:
            store.remember("blue")
        assert "it was deleted while it was open" == caught.value.hint
        make(path, HastyDisk())
        with pytest.raises(StoreMissing):
            store.remember("blue")


def test_i10_a_file_that_may_not_grow_is_a_full_disk(path: Path) -> None:
    disk = FaultyDisk(path)
    with opened(path, disk) as store:
        store.remember("red")
        disk.arm(fault=Fault(1, errno.EFBIG, Outcome.NOTHING))
        with pytest.raises(DiskFull) as caught:
            store.remember("blue")
        assert "ulimit -f" in caught.value.hint
