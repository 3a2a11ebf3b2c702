"""I10: what was acknowledged survives kills, torn writes, full disks and many writers; the rest is whole or absent."""

from __future__ import annotations

import json
import shutil
import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import muniment
from tests.processes import run, start
from tests.worlds import AGENT, SCOPE, World

_FRAME = struct.Struct(">4sIQIQI")

_WRITER = """
import json, random, sys, muniment
path, seed = sys.argv[1], int(sys.argv[2])
dice = random.Random(seed)
with muniment.open(path, model="none") as store:
    session = store.session(scope="acme/apollo", actor=f"agent:{seed}")
    kept = []
    for n in range(10_000):
        verb = dice.choice(["one", "one", "batch", "supersede", "forget"] if len(kept) > 3 else ["one", "batch"])
        if verb == "one":
            said = [session.remember(f"writer {seed} number {n}").id]
            kept += said
        elif verb == "batch":
            items = [{"content": f"batch {seed} {n} part {part}"} for part in range(3)]
            said = [r.id for r in session.remember_many(items)]
        elif verb == "supersede":
            said = [kept.pop(0), session.supersede(kept[0], f"writer {seed} again {n}").id]
            kept[0] = said.pop()
            said = [kept[0]]
        else:
            said = [kept.pop()]
            session.forget(said[0], reason="asked")
        print(json.dumps([verb, said]), flush=True)
"""


def _written_before_the_kill(path: Path, seed: int, lines: int) -> list[tuple[str, list[str]]]:
    """Return what a writer acknowledged before it was killed, with SIGKILL, after some number of answers."""
    with start(_WRITER, path, str(seed)) as writer:
        assert writer.stdout is not None
        said = [writer.stdout.readline() for _ in range(lines)]
        writer.kill()
        # What stood in the pipe was acknowledged too; the last line may be cut.
        said += writer.stdout.read().splitlines(keepends=True)
        writer.wait(timeout=20)
    return [(verb, ids) for line in said if line.endswith("\n") for verb, ids in [json.loads(line)]]


@pytest.mark.parametrize(("seed", "lines"), [(1, 1), (2, 7), (3, 20), (4, 45), (5, 90), (6, 33)])
def test_i10_what_was_acknowledged_survives_a_kill(world: World, seed: int, lines: int) -> None:
    world.store.close()

    said = _written_before_the_kill(world.path, seed, lines)

    world.store = world.open_again()
    assert len(said) >= lines
    assert world.store.verify().ok
    session = world.store.session(scope=SCOPE, actor=AGENT)
    gone = {i for verb, ids in said if verb == "forget" for i in ids}
    for verb, ids in said:
        for identity in ids:
            record = session.get(identity)
            if identity in gone:
                assert ("erased", None) == (record.status, record.content), verb
            elif record.status == "erased":
                # The forget that was under way when the kill came, and had been written but not been reported.
                assert record.erased_why == "asked"
            else:
                assert record.content is not None, verb
    _check_batches_are_whole(session)
    session.remember("life goes on")
    assert world.store.verify().ok


def _check_batches_are_whole(session: muniment.Session) -> None:
    batches = Counter(
        content.rsplit(" part ", 1)[0]
        for record in session.list(limit=10_000)
        if (content := record.content or "").startswith("batch ")
    )
    assert {3} >= set(batches.values())


def test_i10_the_same_store_survives_one_kill_after_another(world: World) -> None:
    world.store.close()
    said: list[tuple[str, list[str]]] = []
    for seed in range(20, 24):
        said += _written_before_the_kill(world.path, seed, 10 + seed)

    world.store = world.open_again()
    session = world.store.session(scope=SCOPE, actor=AGENT)
    assert world.store.verify().ok
    assert all(session.get(identity).seq for _, ids in said for identity in ids)
    _check_batches_are_whole(session)
    assert world.store.rebuild().ok


_ONE_OF_MANY = """
import sys, muniment
with muniment.open(sys.argv[1], model="none") as store:
    session = store.session(scope="acme/apollo", actor=f"agent:{sys.argv[2]}")
    sys.stdin.readline()
    for n in range(50):
        print(session.remember(f"writer {sys.argv[2]} number {n}").seq)
"""


def test_i10_many_processes_write_one_chain_and_lose_nothing(world: World) -> None:
    before = world.store.head.seq
    writers = [start(_ONE_OF_MANY, world.path, str(number)) for number in range(8)]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    seqs: list[int] = []
    for writer in writers:
        out, _ = writer.communicate(timeout=60)
        assert 0 == writer.returncode
        seqs += [int(line) for line in out.split()]

    records = world.speaker(AGENT).list(limit=1000)
    assert 400 == len(set(seqs)) == len(records)
    assert sorted(seqs) == sorted(record.seq for record in records)
    assert max(seqs) <= before + 400 + 8  # each writer also announces itself once
    assert world.store.verify().ok
    for number in range(8):
        own = [r.content for r in records if r.actor == f"agent:{number}"]
        assert [f"writer {number} number {n}" for n in range(50)] == own
    assert world.store.rebuild().ok


def _last_frame(data: bytes) -> int:
    at, last = 128, 128
    while at < len(data):
        last, at = at, at + _FRAME.size + _FRAME.unpack_from(data, at)[1] + 32
    return last


def test_i10_a_torn_tail_is_set_aside_wherever_it_was_cut(world: World, tmp_path: Path) -> None:
    """At every byte of the last frame: what stood before is whole, the rest is gone wholly, and writing goes on."""
    agent = world.speaker(AGENT)
    agent.remember("before it")
    agent.remember_many([{"content": "torn a"}, {"content": "torn b"}])
    world.store.close()
    (segment,) = (world.path / "log").glob("*.seg")
    data = segment.read_bytes()
    shutil.rmtree(world.path / "projections")
    start_of_frame = _last_frame(data)

    for cut in range(start_of_frame, len(data)):
        segment.write_bytes(data[:cut])
        with world.open_again() as store:
            session = store.session(scope=SCOPE, actor=AGENT)
            assert ["before it"] == [r.content for r in session.list()], cut
            session.remember("after it")
            assert ["before it", "after it"] == [r.content for r in session.list()]
            assert store.verify().ok
            assert (cut > start_of_frame) is bool(store.stats()["torn"])
        assert segment.read_bytes().startswith(data[:start_of_frame])
        for path in (*(world.path / "projections").iterdir(), *(world.path / "log").glob("*.torn*")):
            path.unlink()
    world.store = world.open_again()


def test_i10_verify_tells_of_a_torn_tail_and_leaves_it_where_it_is(world: World) -> None:
    agent = world.speaker(AGENT)
    agent.remember("before it")
    agent.remember("torn")
    world.store.close()
    (segment,) = (world.path / "log").glob("*.seg")
    shutil.rmtree(world.path / "projections")
    torn = segment.read_bytes()[:-9]
    segment.write_bytes(torn)

    world.store = world.open_again()
    report = world.store.verify()

    assert report.ok
    assert any("unfinished commit" in line for line in report.unchecked)
    assert torn == segment.read_bytes()


def test_i10_zeros_after_a_lost_write_are_a_torn_tail(world: World) -> None:
    """A file system may keep a file's new length and lose its new blocks."""
    agent = world.speaker(AGENT)
    agent.remember("before it")
    (segment,) = (world.path / "log").glob("*.seg")
    whole = world.store.head.offset
    agent.remember("lost " * 400)
    world.store.close()
    with segment.open("r+b") as file:
        file.seek(whole)
        file.write(bytes(segment.stat().st_size - whole))
    shutil.rmtree(world.path / "projections")

    world.store = world.open_again()

    session = world.speaker(AGENT)
    session.remember("after it")
    assert ["before it", "after it"] == [r.content for r in session.list()]
    assert world.store.verify().ok


_FULL = """
import json, os, resource, signal, sys, muniment
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path = sys.argv[1]
said = []
with muniment.open(path, model="none") as store:
    session = store.session(scope="acme/apollo", actor="agent:full")
    said.append(session.remember("written while there was room").id)
    log = max(os.path.getsize(os.path.join(path, "log", name)) for name in os.listdir(os.path.join(path, "log")))
    for room in (0, 1, 40, 300):
        resource.setrlimit(resource.RLIMIT_FSIZE, (log + room, resource.RLIM_INFINITY))
        try:
            session.remember("x" * 500_000)
        except (muniment.MunimentError, OSError) as error:
            print(type(error).__name__)
        else:
            sys.exit("it was acknowledged without having been written")
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    said.append(session.remember("written when there was room again").id)
    print(json.dumps(said))
"""


_NO_ROOM = """
import resource, signal, sys, muniment
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = muniment.open(sys.argv[1], model="none")
session = store.session(scope="acme/apollo", actor="agent:full")
session.remember("written while there was room")
resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
for call in (store.rebuild, store.close):
    try:
        call()
    except muniment.MunimentError as error:
        print(error.code)
try:
    session.list()
except muniment.MunimentError as error:
    print(error.code)
"""


def test_i10_maintenance_that_finds_no_room_says_so_and_loses_nothing(world: World) -> None:
    world.store.close()

    assert ["disk_full", "disk_full", "store_closed"] == run(_NO_ROOM, world.path).splitlines()

    world.store = world.open_again()
    assert ["written while there was room"] == [r.content for r in world.speaker(AGENT).list()]
    assert world.store.rebuild().ok


_CLOSED_WITHOUT_ROOM = """
import asyncio, json, os, resource, signal, sys, threading, muniment, muniment.aio
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path = sys.argv[1]

def held():
    links = [os.path.join("/proc/self/fd", fd) for fd in os.listdir("/proc/self/fd")]
    return [os.readlink(link) for link in links if os.path.islink(link) and os.readlink(link).startswith(path)]

def files():
    return sorted(os.path.join(place, name) for place, _, names in os.walk(path) for name in names)

def room(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

def speaker(store):
    return store.session(scope="acme/apollo", actor="agent:full")

store = muniment.open(path, model="none")
speaker(store).remember("written while there was room")
before, threads = files(), threading.active_count()
room(100)
try:
    store.close()
except muniment.MunimentError as error:
    print(json.dumps(error.to_dict()))
print(json.dumps([held(), files() == before, threading.active_count() <= threads]))
store.close()

def fail(store, how):
    room(resource.RLIM_INFINITY)
    speaker(store).remember(f"written by who failed {how}")
    room(100)
    raise ValueError("what went wrong")

def failing():
    with muniment.open(path, model="none") as store:
        fail(store, "at once")

async def failing_later():
    async with muniment.aio.open(path, model="none") as store:
        fail(store.sync, "later")

for doing in (failing, lambda: asyncio.run(failing_later())):
    try:
        doing()
    except Exception as error:
        print(json.dumps(str(error)))
again = muniment.open(path, model="none")
print(json.dumps([record.content for record in speaker(again).list()]))
room(resource.RLIM_INFINITY)
speaker(again).remember("written when there was room again")
again.close()
print(json.dumps(held()))
"""


def test_i10_closing_without_room_releases_everything_and_says_that_nothing_is_lost(world: World) -> None:
    world.store.close()

    said, left, *failures, listed, held = map(json.loads, run(_CLOSED_WITHOUT_ROOM, world.path).splitlines())

    assert "disk_full" == said["error"]
    assert said["message"].startswith("no space left while writing ")
    assert said["hint"] == (
        "nothing acknowledged is lost, and the store is closed: after the next opening what could not be saved is made "
        "from the log again"
    )
    assert [[], True, True] == left
    # What the caller's own block raised says more than what closing could not save.
    assert ["what went wrong", "what went wrong"] == failures
    kept = ["written while there was room", "written by who failed at once", "written by who failed later"]
    assert kept == listed
    assert [] == held
    world.store = world.open_again()
    again = [*kept, "written when there was room again"]
    assert again == [record.content for record in world.speaker(AGENT).list()]
    assert world.store.verify().ok


def test_i10_a_store_that_was_closed_has_no_room_behind_its_log_and_one_that_only_read_cuts_none(world: World) -> None:
    agent = world.speaker(AGENT)
    agent.remember("kept")
    world.store._engine.save()
    (segment,) = (world.path / "log").glob("*.seg")
    end = world.store.head.offset
    assert segment.stat().st_size > end
    with muniment.open(world.path, model="none", clock=world.clock) as other:
        assert ["kept"] == [record.content for record in other.session(scope=SCOPE, actor=AGENT).list()]
    assert segment.stat().st_size > end, "a store that was only read from changes no byte of the log"
    world.store.close()
    assert end == segment.stat().st_size
    world.store = world.open_again()


def test_i10_a_write_that_finds_no_room_leaves_nothing_and_the_next_one_goes_on(world: World) -> None:
    """The limit on a file's size is the one way to have no room that needs no privileges."""
    world.store.close()

    *errors, said = run(_FULL, world.path).splitlines()

    assert 4 == len(errors)
    world.store = world.open_again()
    session = world.speaker(AGENT)
    expected = ["written while there was room", "written when there was room again"]
    assert expected == [record.content for record in session.list()]
    assert json.loads(said) == [record.id for record in session.list()]
    report = world.store.verify()
    assert report.ok
    assert not any("unfinished" in line for line in report.unchecked)


def test_i10_a_retry_with_its_command_id_writes_nothing_twice(world: World) -> None:
    """What a caller does who was killed between the append and the answer."""
    agent = world.speaker(AGENT)
    first = agent.remember("paid 10 to ann", command_id="pay-1")
    world.reopen()

    again = world.speaker(AGENT).remember("paid 10 to ann", command_id="pay-1")

    assert (first.id, first.seq, True) == (again.id, again.seq, again.repeated)
    with pytest.raises(muniment.Conflict, match="was used at"):
        world.speaker(AGENT).remember("paid 11 to ann", command_id="pay-1")


@pytest.mark.parametrize("verb", ["remember", "retire", "forget", "decide", "link"])
def test_i10_a_store_opened_for_reading_refuses_and_changes_no_byte(world: World, verb: str) -> None:
    receipt = world.speaker(AGENT).remember("what is there")
    world.store.close()
    before = {path: path.read_bytes() for path in world.path.rglob("*") if path.is_file()}

    with muniment.open(world.path, model="none", read_only=True) as store:
        session = store.session(scope=SCOPE, actor=AGENT)
        deeds: dict[str, Callable[[], object]] = {
            "remember": lambda: session.remember("more"),
            "retire": lambda: session.retire(receipt.id, reason="over"),
            "forget": lambda: session.forget(receipt.id, reason="away"),
            "decide": lambda: session.decide(muniment.Action("x")),
            "link": lambda: session.link(receipt.id, "relates", receipt.id),
        }
        with pytest.raises(muniment.Unavailable, match="reading"):
            deeds[verb]()
        assert "what is there" == session.get(receipt.id).content
        assert store.verify().ok

    assert before == {path: path.read_bytes() for path in world.path.rglob("*") if path.is_file()}
    world.store = world.open_again()
