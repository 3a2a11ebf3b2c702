"""A store's log kept in another back end, frame by frame: what it holds, and what comes of it again."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import muniment
from muniment.events import ChainHead, EmbeddedLog, copy_frames, find_store, genesis
from tests.asking import answers
from tests.events.backends import checked, sqlite_log
from tests.worlds import AGENT, World, one_of_each, perform


def _everything(world: World) -> World:
    for step in one_of_each():
        perform(world, step)
    return world


def _with_keys_only(path: Path, where: Path) -> Path:
    """Make what a node has before any of the log reached it: the store, its keys and its checkpoints."""
    shutil.copytree(path, where, ignore=shutil.ignore_patterns("log", "lock", "projections"))
    return where


def test_i11_a_log_brought_back_from_another_back_end_gives_the_same_digests_and_answers(
    world: World, tmp_path: Path
) -> None:
    _everything(world)
    files = find_store(world.path)
    digests, before = world.store.digests(), answers(world.speaker(AGENT), world.ids)
    again = _with_keys_only(world.path, tmp_path / "again")
    with (
        closing(EmbeddedLog(files, read_only=True)) as ours,
        closing(sqlite_log(tmp_path / "log.db", files.store_id)) as theirs,
        closing(EmbeddedLog(find_store(again))) as back,
    ):
        assert 0 < copy_frames(ours, theirs) == copy_frames(theirs, back)
        start = ChainHead(0, genesis(files.store_id))
        assert ours.head() == theirs.head() == back.head() == checked(theirs.read(1), start)
        assert world.store.head.chain == theirs.head().chain
    (kept,), (came_back,) = files.log.iterdir(), (again / "log").iterdir()
    assert kept.name == came_back.name
    assert kept.read_bytes()[: world.store.head.offset] == came_back.read_bytes()
    with muniment.open(again, model="none", clock=world.clock) as store:
        assert digests == store.digests()
        assert before == answers(world.speaker(AGENT, store=store), world.ids)
        assert store.verify().ok


def test_a_copy_follows_a_store_that_goes_on_writing(world: World, tmp_path: Path) -> None:
    files = find_store(world.path)
    again = _with_keys_only(world.path, tmp_path / "again")
    with (
        closing(EmbeddedLog(files, read_only=True)) as ours,
        closing(EmbeddedLog(find_store(again))) as copy,
    ):
        copy_frames(ours, copy)
        with muniment.open(again, read_only=True, model="none", clock=world.clock) as follower:
            for n in range(3):
                seq = world.store.head.seq
                said = world.speaker(AGENT).remember(f"the launch moves to hall {n}")
                assert ours.wait(seq + 1, timeout=10)
                copy_frames(ours, copy)
                assert f"the launch moves to hall {n}" == world.speaker(AGENT, store=follower).get(said.id).content
                assert world.store.digests() == follower.digests()


def test_an_open_store_goes_on_behind_what_was_copied_into_its_log(world: World, tmp_path: Path) -> None:
    """Into a new segment, even: the store must notice that somebody else held its lock."""
    world.speaker(AGENT).remember("said here, before")
    shutil.copytree(world.path, tmp_path / "other")
    with muniment.open(tmp_path / "other", model="none", clock=world.clock) as other:
        said = world.speaker(AGENT, store=other).remember("said elsewhere")
    with (
        closing(EmbeddedLog(find_store(tmp_path / "other"), read_only=True)) as theirs,
        closing(EmbeddedLog(find_store(world.path), segment_bytes=129)) as ours,
    ):
        assert 0 < copy_frames(theirs, ours)
        after = world.speaker(AGENT).remember("said here, after")
        assert said.seq < after.seq == ours.head().seq
    assert "said elsewhere" == world.speaker(AGENT).get(said.id).content
    assert 1 < len(list((world.path / "log").glob("*.seg")))
    assert world.store.verify().ok


def test_i05_another_back_end_never_holds_what_was_said_nor_a_key(world: World, tmp_path: Path) -> None:
    """Frames are sealed: a copy that was taken before a forget cannot be read after it, without the keys."""
    secret = "the quick zebrafish of hall nine"
    said = world.speaker(AGENT).remember(secret)
    files = find_store(world.path)
    with (
        closing(EmbeddedLog(files, read_only=True)) as ours,
        closing(sqlite_log(tmp_path / "log.db", files.store_id)) as theirs,
    ):
        copy_frames(ours, theirs)
        world.ann().forget(said.id, reason="asked")
        copy_frames(ours, theirs)
        kept = b"".join(path.read_bytes() for path in tmp_path.glob("log.db*"))
    assert files.store_id in kept
    for word in secret.split():
        if len(word) > 4:
            assert word.encode() not in kept
    again = _with_keys_only(world.path, tmp_path / "again")
    with (
        closing(sqlite_log(tmp_path / "log.db", files.store_id)) as theirs,
        closing(EmbeddedLog(find_store(again))) as back,
    ):
        copy_frames(theirs, back)
    with muniment.open(again, model="none", clock=world.clock) as store:
        assert "erased" == world.speaker(AGENT, store=store).get(said.id).status
