"""One writer at a time on the machine, and a mark that says where it stands."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from muniment.events._errors import StoreReadOnly
from muniment.events._lock import Mark, WriterLock


def lock_in(where: Path) -> WriterLock:
    (where / "log").mkdir(exist_ok=True)
    return WriterLock(where / "lock", where / "log")


def is_free(where: Path) -> bool:
    """Ask as another process would: a descriptor of one's own shares no flock."""
    fd = os.open(where / "lock", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    else:
        return True
    finally:
        os.close(fd)


def in_a_child(what: Callable[[], bool]) -> bool:
    pid = os.fork()
    if pid == 0:
        os._exit(0 if what() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_i01_who_holds_the_lock_is_alone(tmp_path: Path) -> None:
    lock = lock_in(tmp_path)
    with lock.hold():
        assert not is_free(tmp_path)
        assert in_a_child(lambda: not is_free(tmp_path))
    assert is_free(tmp_path)
    lock.close()


def test_only_the_outermost_holder_is_told_to_catch_up(tmp_path: Path) -> None:
    lock = lock_in(tmp_path)
    with lock.hold() as outer:
        with lock.hold() as inner:
            assert (True, False) == (outer, inner)
        assert not is_free(tmp_path)
    with lock.hold() as again:
        assert again
    lock.close()


def test_an_exception_releases_the_lock(tmp_path: Path) -> None:
    lock = lock_in(tmp_path)
    with pytest.raises(RuntimeError), lock.hold():
        raise RuntimeError
    assert is_free(tmp_path)
    lock.close()


def test_reading_and_closing_the_lock_file_does_not_release_it(tmp_path: Path) -> None:
    lock = lock_in(tmp_path)
    with lock.hold():
        (tmp_path / "lock").read_bytes()
        assert not is_free(tmp_path)
    lock.close()


def test_a_holder_that_dies_releases_it(tmp_path: Path) -> None:
    lock = lock_in(tmp_path)

    def hold_and_die() -> bool:
        other = lock_in(tmp_path)
        other.hold().__enter__()
        return True

    assert in_a_child(hold_and_die)
    with lock.hold() as outermost:
        assert outermost
    lock.close()


def test_i01_increments_under_the_lock_are_never_lost(tmp_path: Path) -> None:
    lock = lock_in(tmp_path)
    counter = tmp_path / "counter"
    counter.write_text("0")

    def count(held: WriterLock) -> None:
        for _ in range(100):
            with held.hold():
                counter.write_text(str(int(counter.read_text()) + 1))

    locks = [lock, lock, lock_in(tmp_path), lock_in(tmp_path)]
    threads = [threading.Thread(target=count, args=(one,)) for one in locks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert "400" == counter.read_text()
    for one in locks:
        one.close()


def test_the_mark_is_seen_by_others_until_it_is_cleared(tmp_path: Path) -> None:
    lock, other = lock_in(tmp_path), lock_in(tmp_path)
    with lock.hold():
        assert lock.mark() is None
        lock.set_mark(Mark(1, 4711))
        assert Mark(1, 4711) == lock.mark() == other.mark()
        lock.clear_mark()
        assert lock.mark() is None
        assert other.mark() is None
    lock.close()
    other.close()


def test_the_mark_outlives_its_holder(tmp_path: Path) -> None:
    lock = lock_in(tmp_path)
    with lock.hold():
        lock.set_mark(Mark(7, 130))
    lock.close()
    again = lock_in(tmp_path)
    assert Mark(7, 130) == again.mark()
    again.close()


def test_i10_a_mark_of_another_boot_or_another_file_says_nothing(tmp_path: Path) -> None:
    lock = lock_in(tmp_path)
    with lock.hold():
        lock.set_mark(Mark(1, 130))
    lock.close()
    data = (tmp_path / "lock").read_bytes()
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "lock").write_bytes(data)
    copy = lock_in(tmp_path / "copy")
    assert copy.mark() is None
    copy.close()
    (tmp_path / "lock").write_bytes(data[:24] + bytes(16) + data[40:])
    lock = lock_in(tmp_path)
    assert lock.mark() is None
    lock.close()


@pytest.mark.parametrize("data", [b"", b"pid 17", bytes(48), b"x" * 48, b"MNMARK1\0"])
def test_what_is_no_mark_is_not_taken_for_one(data: bytes, tmp_path: Path) -> None:
    lock = lock_in(tmp_path)
    (tmp_path / "lock").write_bytes(data)
    assert lock.mark() is None
    lock.close()


def test_the_last_holder_is_told_so_until_another_one_held_it(tmp_path: Path) -> None:
    one, other = lock_in(tmp_path), lock_in(tmp_path)

    def ask(lock: WriterLock) -> bool:
        with lock.hold():
            touched, lock.is_touched = lock.is_touched, False
            return touched

    assert [True, False, False] == [ask(one) for _ in range(3)]
    assert [True, False] == [ask(other) for _ in range(2)]
    with one.hold():
        pass
    assert [True, False] == [ask(one) for _ in range(2)]
    for lock in (one, other):
        lock.close()


def test_a_frame_that_is_being_written_is_nobody_s_end(tmp_path: Path) -> None:
    lock = lock_in(tmp_path)
    with lock.hold():
        lock.is_touched = False
        lock.set_mark(Mark(1, 130))
    with lock.hold():
        assert lock.is_touched
        lock.clear_mark()
        lock.is_touched = False
    with lock.hold():
        assert not lock.is_touched
    lock.close()


def test_a_copy_without_a_lock_file_has_no_mark_and_gets_no_file(tmp_path: Path) -> None:
    lock = lock_in(tmp_path)
    assert lock.mark() is None
    assert not (tmp_path / "lock").exists()
    lock.close()


def test_a_lock_that_cannot_be_made_is_a_typed_error(tmp_path: Path) -> None:
    lock = WriterLock(tmp_path / "missing" / "lock", tmp_path)
    with pytest.raises(StoreReadOnly), lock.hold():
        pass
    lock.close()


def test_i10_a_lock_file_that_was_cut_while_it_was_open_is_made_whole_by_the_next_holder(tmp_path: Path) -> None:
    def survives() -> bool:
        # In a child: the mark is written through a mapping, and the system kills who writes beyond a file's end.
        lock = lock_in(tmp_path)
        with lock.hold():
            lock.set_mark(Mark(1, 130))
            lock.clear_mark()
        os.truncate(tmp_path / "lock", 0)
        with lock.hold():
            lock.set_mark(Mark(1, 4711))
            return Mark(1, 4711) == lock.mark() == lock_in(tmp_path).mark() and lock.is_touched

    assert in_a_child(survives)
