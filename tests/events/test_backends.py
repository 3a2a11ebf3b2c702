"""What every back end of the log promises: `muniment.events.LogBackend`, asked of each."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muniment.events import BadArgument, ChainHead, Conflict, Corrupt, HeadMoved, LogBackend, genesis
from muniment.events._codec import format_frame
from tests.processes import start

from .backends import KINDS, LOG_ID, Backend, Kind, checked, event, framed

EMPTY = ChainHead(0, genesis(LOG_ID))
MIB = 1 << 20


@pytest.fixture(params=KINDS)
def name(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


@pytest.fixture
def kind(name: str) -> Kind:
    return KINDS[name]


@pytest.fixture
def backend(kind: Kind, tmp_path: Path) -> Generator[Backend, None, None]:
    with closing(kind.opened(tmp_path)) as opened:
        yield opened


@pytest.fixture
def other(kind: Kind, tmp_path: Path, backend: Backend) -> Generator[Backend, None, None]:
    """The same log, opened once more before anything was appended."""
    with closing(kind.opened(tmp_path)) as opened:
        yield opened


def append(backend: LogBackend, *sizes: int) -> bytes:
    head = backend.head()
    frame, _ = framed(head, *sizes)
    backend.append(*head, frame)
    return frame


def test_an_empty_log_has_the_genesis_for_its_head_and_no_frames(backend: Backend) -> None:
    assert EMPTY == backend.head()
    assert [] == list(backend.read(1))


def test_the_head_is_the_last_event_and_its_chain_hash(backend: Backend) -> None:
    frame, after = framed(EMPTY, 10, 0, 500)
    backend.append(*EMPTY, frame)
    assert ChainHead(3, after.chain) == backend.head()
    assert frame[-32:] == backend.head().chain


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(batches=st.lists(st.lists(st.integers(0, 900), min_size=1, max_size=4), min_size=1, max_size=5))
def test_frames_are_read_byte_for_byte_from_any_event_on(
    kind: Kind, tmp_path_factory: pytest.TempPathFactory, batches: list[list[int]]
) -> None:
    """An event inside a frame is read with all of it."""
    where = tmp_path_factory.mktemp("log")
    with closing(kind.opened(where)) as writer, closing(kind.opened(where)) as before:
        assert EMPTY == before.head()
        frames = [append(writer, *sizes) for sizes in batches]
        with closing(kind.opened(where)) as after:
            for reader in (writer, before, after):
                for first, number in ((n, sum(map(len, batches[:n])) + 1) for n in range(len(batches))):
                    for inside in range(len(batches[first])):
                        assert frames[first:] == list(reader.read(number + inside))
                assert writer.head() == reader.head() == checked(reader.read(1), EMPTY)


@pytest.mark.parametrize("size", [1, 5 * MIB])
def test_a_frame_of_one_sealed_byte_and_one_of_several_mebibytes(size: int, kind: Kind, tmp_path: Path) -> None:
    frame, _ = framed(EMPTY, size)
    with closing(kind.opened(tmp_path)) as writer:
        writer.append(*EMPTY, frame)
        following = append(writer, 1)
    with closing(kind.opened(tmp_path)) as reader:
        assert [frame, following] == list(reader.read(1))
        assert [following] == list(reader.read(2))
        assert reader.head() == checked(reader.read(1), EMPTY)


def test_reading_begins_at_one_and_beyond_the_head_there_is_nothing(backend: Backend) -> None:
    append(backend, 3, 3)
    for wrong in (0, -1):
        with pytest.raises(BadArgument, match="from_seq"):
            backend.read(wrong)
    assert [] == list(backend.read(3))
    assert [] == list(backend.read(1_000))


EXPECTATIONS: dict[str, Callable[[ChainHead, ChainHead], ChainHead]] = {
    "a stale one": lambda stale, _head: stale,
    "the empty log": lambda _stale, _head: EMPTY,
    "inside the last frame": lambda _stale, head: ChainHead(head.seq - 1, head.chain),
    "beyond the head": lambda _stale, head: ChainHead(head.seq + 1, head.chain),
    "another chain": lambda stale, head: ChainHead(head.seq, stale.chain),
}


@pytest.mark.parametrize("expectation", EXPECTATIONS)
def test_an_append_that_expects_another_head_writes_nothing_and_is_told_the_head(
    expectation: str, kind: Kind, backend: Backend, tmp_path: Path
) -> None:
    append(backend, 40)
    stale = backend.head()
    append(backend, 40, 40, 40)
    head, frames, kept = backend.head(), list(backend.read(1)), kind.kept(tmp_path)
    expected = EXPECTATIONS[expectation](stale, head)
    frame, _ = framed(expected, 7)
    with pytest.raises(HeadMoved) as caught:
        backend.append(*expected, frame)
    assert isinstance(caught.value, Conflict)
    assert "head_moved" == caught.value.code
    assert {
        "expected_seq": expected.seq,
        "expected_chain": expected.chain.hex(),
        "seq": head.seq,
        "chain": head.chain.hex(),
    } == caught.value.facts
    assert (head, frames) == (backend.head(), list(backend.read(1)))
    assert kept == kind.kept(tmp_path)
    append(backend, 1)


def test_the_message_of_a_moved_head_has_the_expected_one_first(backend: Backend) -> None:
    append(backend, 1)
    frame, _ = framed(EMPTY, 1)
    with pytest.raises(HeadMoved, match=r"expected event 0 \(`[0-9a-f]{16}`\) to be the head, it is 1 \("):
        backend.append(*EMPTY, frame)


def _malformed(head: ChainHead) -> dict[str, bytes]:
    frame, _ = framed(head, 20, 20)
    later, _ = framed(ChainHead(head.seq + 1, head.chain), 20)
    elsewhere, _ = framed(ChainHead(head.seq, EMPTY.chain), 20)
    short, _ = format_frame(head.seq + 1, [event(head.seq + 1, 5), b"x"], head.chain)
    return {
        "nothing": b"",
        "one byte": b"x",
        "cut": frame[:-1],
        "a byte too many": frame + b"x",
        "two": frame + frame,
        "a changed bit": frame[:80] + bytes([frame[80] ^ 1]) + frame[81:],
        "a later one": later,
        "of another chain": elsewhere,
        "an event without a header": short,
    }


@pytest.mark.parametrize("which", _malformed(EMPTY))
def test_what_is_no_frame_that_follows_the_head_is_refused_and_nothing_written(
    which: str, kind: Kind, backend: Backend, tmp_path: Path
) -> None:
    append(backend, 40)
    head, kept = backend.head(), kind.kept(tmp_path)
    with pytest.raises(BadArgument, match="frame"):
        backend.append(*head, _malformed(head)[which])
    assert head == backend.head()
    assert kept == kind.kept(tmp_path)


RACER = """
import json, sys
from pathlib import Path
from muniment.events import HeadMoved
from tests.events.backends import KINDS, framed

kind, where, me, upto = sys.argv[1:]
backend, won, moved = KINDS[kind].opened(Path(where)), 0, 0
print("ready", flush=True)
sys.stdin.readline()
while (head := backend.head()).seq < int(upto):
    frame, after = framed(head, 30, salt=me.encode())
    try:
        backend.append(*head, frame)
    except HeadMoved as error:
        assert error.facts["seq"] >= head.seq + 1, error.facts
        moved += 1
    else:
        won += 1
        assert backend.head().seq >= after.seq
print(json.dumps([won, moved]))
"""


def test_of_processes_that_race_for_a_sequence_number_exactly_one_wins(
    name: str, kind: Kind, backend: Backend, tmp_path: Path
) -> None:
    rounds = 60
    racers = {me: start(RACER, name, tmp_path, me, str(rounds)) for me in ("red", "blue", "grey")}
    for racer in racers.values():
        assert racer.stdout is not None
        assert "ready\n" == racer.stdout.readline()
    for racer in racers.values():
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    told = {me: json.loads(racer.communicate(timeout=240)[0]) for me, racer in racers.items()}
    frames = list(backend.read(1))
    assert rounds == len(frames) == sum(won for won, _ in told.values())
    assert ChainHead(rounds, backend.head().chain) == checked(iter(frames), EMPTY)
    assert {me: won for me, (won, _) in told.items()} == {me: sum(me.encode() in f for f in frames) for me in told}
    assert 0 < sum(moved for _, moved in told.values()), "nobody raced"


APPENDER = """
import os, signal, sys
from pathlib import Path
from tests.events.backends import KINDS, framed

backend = KINDS[sys.argv[1]].opened(Path(sys.argv[2]))
for _ in range(3):
    head = backend.head()
    frame, after = framed(head, 100, 2_000)
    backend.append(*head, frame)
os.write(1, f"{after.seq} {after.chain.hex()}".encode())
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_i10_an_append_that_returned_survives_kill_9(name: str, kind: Kind, tmp_path: Path) -> None:
    killed = start(APPENDER, name, tmp_path)
    told = killed.communicate(timeout=120)[0].split()
    assert -9 == killed.returncode
    with closing(kind.opened(tmp_path)) as after:
        assert [str(after.head().seq), after.head().chain.hex()] == told
        assert after.head() == checked(after.read(1), EMPTY)
        append(after, 1)


@pytest.mark.parametrize(("size", "share"), [(60, 0.01), (60, 0.5), (60, 0.999), (5 * MIB, 0.5)])
def test_i10_an_append_that_died_half_way_is_never_seen_and_the_next_one_goes_through(
    size: int, share: float, kind: Kind, backend: Backend, other: Backend, tmp_path: Path
) -> None:
    first = append(backend, 40)
    head = backend.head()
    lost, _ = framed(head, size)
    kind.die_within(tmp_path, lost, share)
    with closing(kind.opened(tmp_path)) as later:
        for reader in (backend, other, later):
            assert head == reader.head()
            assert [first] == list(reader.read(1))
            assert not reader.wait(head.seq + 1, timeout=0)
        second = append(later, 33)
    for reader in (backend, other):
        assert [first, second] == list(reader.read(1))
        assert reader.wait(head.seq + 1, timeout=0)


def test_writers_that_take_turns_see_each_other_s_frames(backend: Backend, other: Backend) -> None:
    frames = [append(writer, 10, 10) for writer in (backend, other, other, backend, other)]
    assert frames == list(backend.read(1)) == list(other.read(1))
    assert backend.head() == other.head()


def test_an_iterator_that_is_not_exhausted_holds_up_nobody(backend: Backend, other: Backend) -> None:
    frames = [append(backend, 20) for _ in range(40)]
    reading = backend.read(1)
    assert frames[0] == next(reading)
    frames += [append(backend, 20), append(other, 20)]
    assert frames[1:40] == list(reading)[:39]
    assert frames == list(other.read(1))


WAITER = """
import sys, time
from pathlib import Path
from tests.events.backends import KINDS

backend = KINDS[sys.argv[1]].opened(Path(sys.argv[2]))
print(backend.head().seq, flush=True)
before = time.process_time()
print(backend.wait(2, timeout=60), len(list(backend.read(1))))
print(time.process_time() - before)
"""


def _waiter(name: str, where: Path) -> subprocess.Popen[str]:
    waiter = start(WAITER, name, where)
    assert waiter.stdout is not None
    assert "0\n" == waiter.stdout.readline()
    return waiter


def test_a_reader_that_waits_in_another_process_is_woken_by_the_append_it_waits_for(
    name: str, backend: Backend, tmp_path: Path
) -> None:
    waiter = _waiter(name, tmp_path)
    append(backend, 5)
    append(backend, 5)
    said, spent = waiter.communicate(timeout=120)[0].splitlines()
    assert "True 2" == said
    assert 0.5 > float(spent)


def test_waiting_ends_with_its_time_and_takes_next_to_no_processor(backend: Backend) -> None:
    append(backend, 5)
    assert backend.wait(1, timeout=0)
    assert backend.wait(1)
    assert not backend.wait(2, timeout=0)
    spent, began = time.process_time(), time.monotonic()
    assert not backend.wait(2, timeout=0.5)
    assert 0.5 <= time.monotonic() - began
    assert 0.1 > time.process_time() - spent


def test_reading_writes_nothing(kind: Kind, backend: Backend, other: Backend, tmp_path: Path) -> None:
    append(backend, 40, 40)
    append(backend, 40)
    kept = kind.kept(tmp_path)
    with closing(kind.opened(tmp_path)) as fresh:
        for reader in (backend, other, fresh):
            reader.head()
            assert [2, 1, 0] == [len(list(reader.read(seq))) for seq in (1, 3, 4)]
            reader.wait(9, timeout=0)
        assert kept == kind.kept(tmp_path)


def test_i02_what_was_altered_where_it_is_kept_is_found_by_who_reads(
    kind: Kind, backend: Backend, tmp_path: Path
) -> None:
    append(backend, 40)
    append(backend, 40)
    kind.alter(tmp_path)
    with closing(kind.opened(tmp_path)) as reader, pytest.raises((Corrupt, BadArgument), match="chain hash"):
        checked(reader.read(1), EMPTY)
