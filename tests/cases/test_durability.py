"""What products of this kind got wrong about durability, integrity, and opening a store."""

from __future__ import annotations

import shutil
import stat
import threading
from pathlib import Path

import pytest

import muniment
from tests.asking import contents
from tests.processes import run
from tests.worlds import AGENT, SCOPE, World


def _files(path: Path) -> dict[Path, bytes]:
    return {found: found.read_bytes() for found in path.rglob("*") if found.is_file()}


def test_verify_and_stats_work_while_a_writer_writes(world: World) -> None:
    done = threading.Event()
    problems: list[object] = []

    def watch() -> None:
        with world.open_again() as other:
            while not done.is_set():
                report = other.verify()
                problems.extend(report.findings)
                other.stats()

    watcher = threading.Thread(target=watch)
    watcher.start()
    agent = world.speaker(AGENT)
    for n in range(40):
        agent.remember_many([{"content": f"line {n} {part}"} for part in range(4)])
    done.set()
    watcher.join()

    assert [] == problems
    assert 160 == len(agent.list(limit=1000))


def test_verify_and_stats_of_a_read_only_copy_change_no_byte(world: World, tmp_path: Path) -> None:
    agent = world.speaker(AGENT)
    agent.forget(agent.remember("gone").id, reason="asked")
    agent.remember("kept")
    shutil.copytree(world.path, tmp_path / "copy")
    before = _files(tmp_path / "copy")
    for path in (tmp_path / "copy").rglob("*"):
        path.chmod(stat.S_IRUSR if path.is_file() else stat.S_IRUSR | stat.S_IXUSR)

    with muniment.open(tmp_path / "copy", model="none", read_only=True) as copy:
        assert copy.verify().ok
        assert 1 == copy.stats()["memories"]
        assert ["kept"] == contents(copy.session(scope=SCOPE, actor=AGENT).list())

    assert before == _files(tmp_path / "copy")
    for path in (tmp_path / "copy", *(tmp_path / "copy").rglob("*")):
        path.chmod(stat.S_IRWXU)


def test_opening_where_there_is_no_store_says_where_it_looked_and_creates_nothing(tmp_path: Path) -> None:
    with pytest.raises(muniment.Unavailable) as error:
        muniment.open(tmp_path / "typo", model="none")

    assert str(tmp_path / "typo") in str(error.value)
    assert "create" in error.value.hint
    assert [] == list(tmp_path.iterdir())


def test_a_changed_working_directory_is_seen_and_opens_no_empty_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with muniment.open("memory", create=True, model="none") as store:
        store.session(scope=SCOPE, actor=AGENT).remember("kept")
    monkeypatch.chdir(tmp_path / "there")

    with pytest.raises(muniment.Unavailable, match="there/memory"):
        muniment.open("memory", model="none")


def test_an_open_store_stays_where_it_was_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "here")
    key = muniment.KeyFile.create("ann.key")
    with muniment.open("memory", create=True, model="none", log_key="ann.key", anchor="anchor") as store:
        mem = store.session(scope=SCOPE, actor=AGENT)
        mem.remember("before")
        monkeypatch.chdir(tmp_path / "there")

        mem.remember("after")
        mem.forget(mem.remember("gone").id, reason="asked to")
        store.enroll("user:ann", key.public_key, scopes=("acme",))
        assert store.rebuild().ok
        assert store.verify().ok
        store.checkpoint()

    assert [] == list((tmp_path / "there").iterdir())
    with muniment.open(tmp_path / "here" / "memory", read_only=True, model="none") as again:
        assert ["before", "after"] == [r.content for r in again.session(scope=SCOPE, actor=AGENT).list()]


def test_a_directory_with_other_files_is_not_made_a_store(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("do not touch")

    with pytest.raises(muniment.InvalidInput, match=r"thesis\.txt"):
        muniment.open(tmp_path, create=True, model="none")

    assert ["thesis.txt"] == [path.name for path in tmp_path.iterdir()]


def test_creating_where_a_store_is_opens_it_and_loses_nothing(world: World) -> None:
    world.speaker(AGENT).remember("kept")
    identity = world.store.id
    world.store.close()

    world.store = muniment.open(world.path, create=True, model="none", clock=world.clock)

    assert identity == world.store.id
    assert ["kept"] == contents(world.speaker(AGENT).list())


def test_a_damaged_log_still_reads_up_to_the_damage_and_is_not_written_to(world: World) -> None:
    agent = world.speaker(AGENT)
    agent.remember("before the damage")
    (segment,) = (world.path / "log").glob("*.seg")
    whole = world.store.head.offset
    agent.remember("in the damage")
    agent.remember("after the damage")
    world.store.close()
    data = bytearray(segment.read_bytes())
    data[whole + 150] ^= 0x10
    segment.write_bytes(data)
    shutil.rmtree(world.path / "projections")

    with pytest.raises(muniment.Corrupt, match=rf"byte {whole}"):
        world.open_again()
    with muniment.open(world.path, model="none", read_only=True) as store:
        assert ["before the damage"] == contents(store.session(scope=SCOPE, actor=AGENT).list())
    assert bytes(data) == segment.read_bytes()


def test_a_byte_that_rots_under_a_snapshot_costs_a_reader_one_memory_and_names_it(world: World) -> None:
    """The snapshot has seen the frame whole, so that nothing reads it again before somebody asks for what it holds."""
    agent = world.speaker(AGENT)
    said = {agent.remember(f"note {n} about the launch").id: f"note {n} about the launch" for n in range(6)}
    begin = world.store.head.offset
    victim = agent.remember("it rots, and says when the launch is")
    end = world.store.head.offset
    said |= {
        victim.id: "it rots, and says when the launch is",
        agent.remember("and one after it").id: "and one after it",
    }
    world.store.close()
    (segment,) = (world.path / "log").glob("*.seg")
    whole = segment.read_bytes()
    unreadable = 0
    for at in range(begin, end, 13):
        data = bytearray(whole)
        data[at] ^= 0x10
        segment.write_bytes(data)
        with muniment.open(world.path, model="none", read_only=True) as store:
            reader = store.session(scope=SCOPE, actor=AGENT)
            found = {record.id: record for record in reader.list()}
            assert list(said) == list(found)
            lost = {one.id for one in found.values() if one.content is None}
            assert lost <= {victim.id}
            assert {i: text for i, text in said.items() if i not in lost} == {
                one.id: one.content for one in found.values() if one.id not in lost
            }
            if lost:
                unreadable += 1
                assert f"damaged at event {victim.seq} ({segment.name}" in str(found[victim.id].unreadable)
                assert "active" == found[victim.id].status, "what it is stands in memory, only its words are lost"
            assert victim.id not in lost or victim.id not in {
                hit.id for hit in reader.recall("when is the launch") if hit.content
            }
            assert not store.verify().ok
    assert unreadable > 10
    segment.write_bytes(whole[: end - 60] + b"rot" + whole[end - 57 :])
    with muniment.open(world.path, model="none") as store:
        session = store.session(scope=SCOPE, actor=AGENT)
        with pytest.raises(muniment.Corrupt, match=f"damaged at event {victim.seq}"):
            session.list()
    exported = world.path.parent / "salvaged.jsonl"
    with muniment.open(world.path, model="none", read_only=True) as store, exported.open("w") as file:
        assert len(said) == store.export(SCOPE, file)
    with muniment.open(world.path.parent / "new", create=True, model="none") as store:
        report = store.import_file(exported, scope=SCOPE)
        assert (len(said) - 1, ["damaged"]) == (report.written, list(report.skipped_codes))
        assert set(said.values()) - {said[victim.id]} == set(contents(store.session(scope=SCOPE, actor=AGENT).list()))
    segment.write_bytes(whole)
    world.store = world.open_again()


def test_a_lost_key_is_an_error_and_never_an_empty_memory(world: World) -> None:
    world.speaker(AGENT).remember("kept")
    world.store.close()
    (world.path / "root.key").write_bytes(bytes(8192))

    with pytest.raises(muniment.Corrupt) as error:
        world.open_again()
    assert "key_missing" == error.value.code


@pytest.mark.parametrize("lost", ["root.key", "keys", "keys/*"])
def test_lost_key_files_are_said_to_be_missing(world: World, lost: str) -> None:
    world.speaker(AGENT).remember("kept")
    world.store.close()
    for path in world.path.glob(lost):
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    for read_only in (True, False):
        with pytest.raises(muniment.Corrupt) as error:
            muniment.open(world.path, model="none", read_only=read_only)
        assert "key_missing" == error.value.code


_FORKED = """
import os, sys, muniment
store = muniment.open(sys.argv[1], model="none")
session = store.session(scope="acme/apollo", actor="agent:parent")
session.remember("before the fork")
child = os.fork()
if child == 0:
    for n in range(20):
        session.remember(f"child {n}")
    os._exit(0)
for n in range(20):
    session.remember(f"parent {n}")
assert os.waitpid(child, 0)[1] == 0
print(len(session.list()), store.verify().ok)
store.close()
"""


def test_a_store_that_is_used_after_a_fork_is_one_log_still(world: World) -> None:
    world.store.close()

    assert "41 True" == run(_FORKED, world.path).strip()

    world.store = world.open_again()
    assert 41 == len(world.speaker(AGENT).list())
    assert world.store.rebuild().ok


_FORKED_WITH_ALL = """
import os, sys, muniment
with muniment.open(sys.argv[1]) as store:
    session = store.session(scope="acme/apollo", actor="agent:parent")
    session.remember("The cat sat on the mat.")
    assert [hit.dense_score is not None for hit in session.recall("a cat")] == [True]
    assert session.sql("select count(*) from memories")[1] == [(1,)]
    child = os.fork()
    if child == 0:
        session.remember("The dog ran home.")
        assert {hit.dense_score is not None for hit in session.recall("a dog")} == {True}
        assert session.sql("select count(*) from memories")[1] == [(2,)]
        os._exit(0)  # as multiprocessing does: onnxruntime itself hangs where an inherited model's process ends else
    assert os.waitpid(child, 0)[1] == 0
    print(len(session.recall("animals")))
"""


def test_a_child_goes_on_with_a_model_and_a_database_of_its_own(world: World) -> None:
    world.store.close()
    assert "2" == run(_FORKED_WITH_ALL, world.path).strip()
    world.store = world.open_again()


def test_closing_twice_is_allowed_and_using_it_afterwards_is_an_error(world: World) -> None:
    agent = world.speaker(AGENT)
    world.store.close()
    world.store.close()

    for use in (lambda: agent.remember("late"), lambda: agent.recall("late"), lambda: agent.get("ab")):
        with pytest.raises(muniment.Unavailable, match="is closed"):
            use()


def test_files_of_a_store_are_their_owners_only(world: World) -> None:
    agent = world.speaker(AGENT)
    agent.forget(agent.remember("gone").id, reason="asked")
    world.reopen()

    private = [world.path, *(path for path in world.path.iterdir() if path.is_dir())]
    private += [world.path / "root.key", world.path / "lock", *(world.path / "keys").iterdir()]
    assert not [path for path in private if path.stat().st_mode & 0o077]


_PRINTS_WITHOUT_STREAMS = """
import os, sys
from contextlib import suppress
import muniment

path = sys.argv[1]
taken = []
for stream in (0, 1, 2):
    os.close(stream)
for round in range(2):
    with muniment.open(path, model="none") as store:
        session = store.session(scope="acme", actor="agent:bot")
        gone = session.remember(f"in front {round}")
        session.forget(gone.id, reason="asked")
        session.remember(f"kept {round}")
        for stream in (0, 1, 2):
            # As a library that complains does, which knows nothing of files.
            with suppress(OSError):
                os.write(stream, b"a warning that nobody reads")
            taken += [os.readlink(f"/proc/self/fd/{stream}")] if os.path.exists(f"/proc/self/fd/{stream}") else []
        session.remember(f"behind {round}")
# Python cannot flush streams that are closed, and says so by its exit code.
os._exit(len(taken))
"""


def test_what_is_printed_without_standard_streams_does_not_go_into_the_store(world: World) -> None:
    """A daemon has closed them, so that its next files get their numbers."""
    run(_PRINTS_WITHOUT_STREAMS, world.path)

    with world.open_again() as store:
        assert store.verify().ok
        assert ["kept 0", "behind 0", "kept 1", "behind 1"] == contents(
            store.session(scope="acme", actor=AGENT).list(status=("active",))
        )
