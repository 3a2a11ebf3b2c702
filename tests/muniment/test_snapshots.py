"""Saved projections: whatever becomes of the files, the answers are those of the log."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import muniment
from muniment import Session, Store
from muniment.events import StoreFiles, find_store

SCOPE = "acme/main"
WORDS = ("red", "blue", "green", "apple", "pear", "monday", "rain", "ship")


class Clock:
    """A clock that moves a second each time it is read."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000_000

    def __call__(self) -> int:
        self.now += 1_000_000
        return self.now


class World:
    """A store whose clock is its own, and which can be killed."""

    def __init__(self, path: Path) -> None:
        self.path, self.clock = path, Clock()
        self.store = self._open(create=True)

    def _open(self, *, create: bool = False) -> Store:
        return muniment.open(self.path, create=create, model="none", clock=self.clock)

    @property
    def files(self) -> StoreFiles:
        return find_store(self.path)

    def session(self, scope: str = SCOPE) -> Session:
        return self.store.session(scope=scope, actor="user")

    def fill(self, n: int, seed: int = 1) -> list[str]:
        drawn = random.Random(seed)
        said = [f"{number} " + " ".join(drawn.sample(WORDS, 4)) for number in range(n)]
        items = [
            {"content": text, "tags": ["t"], "source": f"talk:{n % 3}/{n}"}
            | ({"about": (f"s{n % 7}", "colour")} if n % 2 else {})
            for n, text in enumerate(said)
        ]
        return [item.id for item in self.session().remember_many(items)]

    def save(self, *, words: bool) -> None:
        """Save as a long-running process does, and go on over what was saved."""
        self.store._engine._save(words=words)

    def close(self) -> None:
        self.store.close()

    def kill(self) -> None:
        self.store._engine.abandon()

    def reopen(self) -> None:
        self.store = self._open()

    def answers(self) -> object:
        session = self.session()
        found = [(hit.id, hit.score) for word in WORDS for hit in session.recall(word, k=20)]
        tagged = [hit.id for hit in session.recall("red", tags=["t"], k=20)]
        beliefs = [(b.id, b.content) for b in session.beliefs()]
        records = [(r.id, r.status, r.content) for r in session.list(limit=1_000)]
        return found, tagged, beliefs, records


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "store")
    yield made
    made.kill()


def test_a_store_that_was_saved_answers_as_before(world: World) -> None:
    ids = world.fill(60)
    world.session().retire(ids[5], reason="no longer so")
    answers, digests = world.answers(), world.store.digests()
    world.close()
    world.reopen()
    assert digests == world.store.digests()
    assert answers == world.answers()
    assert world.store.rebuild().ok


def test_what_came_after_a_save_without_closing_is_folded_over_it(world: World) -> None:
    ids = world.fill(40)
    world.answers()
    world.save(words=False)
    world.session().forget(ids[3], reason="not wanted")
    world.session().supersede(ids[-1], "something else")
    world.session().link(ids[8], "relates", ids[9])
    answers, digests = world.answers(), world.store.digests()
    world.kill()
    world.reopen()
    assert answers == world.answers()
    assert digests == world.store.digests()
    assert world.store.rebuild().ok


@pytest.mark.parametrize("damage", ["flip", "truncate", "remove", "empty"])
@pytest.mark.parametrize("which", ["state", "words"])
def test_a_damaged_file_leaves_the_answers_as_they_were(world: World, damage: str, which: str) -> None:
    world.fill(60)
    answers, digests = world.answers(), world.store.digests()
    world.close()
    for path in world.files.projections.glob(f"{which}-*.snap"):
        data = bytearray(path.read_bytes())
        if damage == "flip":
            data[len(data) // 3] ^= 4
        path.unlink()
        if damage != "remove":
            path.write_bytes(data[: {"truncate": len(data) // 2, "empty": 0}.get(damage, len(data))])
    world.reopen()
    assert answers == world.answers()
    assert digests == world.store.digests()


def test_any_flipped_bit_of_the_state_leaves_the_answers_as_they_were(world: World) -> None:
    world.fill(25)
    answers = world.answers()
    world.close()
    (path,) = world.files.projections.glob("state-*.snap")
    whole = path.read_bytes()
    for at in range(0, len(whole), len(whole) // 40):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        world.reopen()
        assert answers == world.answers()
        world.kill()


def test_a_forget_destroys_the_keys_of_no_more_words_than_it_touches(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("_segments", "_recall", "_bundle"):
        monkeypatch.setattr(f"muniment.projections.{module}.SEGMENT_BITS", 4)
    ids = world.fill(80)
    world.close()
    world.reopen()
    keys = world.store._engine.keys
    before = set(keys.content_chunks("content/"))
    world.session().forget(ids[40], reason="not wanted")
    seq = world.session().get(ids[40]).seq
    assert {f"content/words/{seq >> 4:08x}"} == before - set(keys.content_chunks("content/"))
    answers = world.answers()
    world.kill()
    world.reopen()
    assert answers == world.answers()
    assert world.store.rebuild().ok


def test_forgetting_a_scope_destroys_the_keys_of_all_that_was_saved(world: World) -> None:
    world.fill(10)
    world.session("acme/side").remember("of another scope")
    world.close()
    world.reopen()
    world.store.user_session(scope=SCOPE, principal="user:ann").forget_scope(reason="gone")
    keys = world.store._engine.keys
    assert [] == keys.content_chunks("content/") + keys.content_chunks("state/")
    digests = world.store.digests()
    world.kill()
    world.reopen()
    assert digests == world.store.digests()
    assert 1 == len(world.session("acme/side").list())


def test_a_crash_before_the_keys_are_kept_leaves_the_save_before_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.fill(20)
    world.close()
    world.reopen()
    world.session().remember("one more")
    answers = world.answers()
    monkeypatch.setattr(world.store._engine.keys, "set_chunks", _crash)
    with pytest.raises(_Killed):
        world.save(words=True)
    world.kill()
    world.reopen()
    assert answers == world.answers()
    assert 0 < world.store._engine._saved_at


class _Killed(Exception):
    pass


def _crash(_: object) -> None:
    raise _Killed


deeds = st.lists(
    st.sampled_from(
        ["fill", "retire", "supersede", "forget", "link", "save", "saveall", "kill", "close", "ask", "side"]
    ),
    min_size=3,
    max_size=14,
)


@given(deeds=deeds, seed=st.integers(0, 9))
@settings(max_examples=25, deadline=None)
def test_digests_do_not_depend_on_when_anything_was_saved(
    tmp_path_factory: pytest.TempPathFactory, deeds: list[str], seed: int
) -> None:
    world, drawn = World(tmp_path_factory.mktemp("world") / "store"), random.Random(seed)
    ids = world.fill(8, seed)
    for number, deed in enumerate(deeds):
        session, some = world.session(), drawn.choice(ids)
        try:
            if deed == "fill":
                ids += world.fill(5, 100 * seed + number)
            elif deed == "retire":
                session.retire(some, reason="no longer so")
            elif deed == "supersede":
                ids.append(session.supersede(some, f"instead {number}").id)
            elif deed == "forget":
                session.forget(some, reason="not wanted")
            elif deed == "link":
                session.link(some, "relates", drawn.choice(ids))
            elif deed == "side":
                world.session("acme/side").remember(f"aside {number}", command_id=f"c{number}")
            elif deed.startswith("save"):
                world.save(words=deed == "saveall")
            elif deed == "ask":
                world.answers()
            else:
                world.kill() if deed == "kill" else world.close()
                world.reopen()
        except muniment.Refused:
            pass  # the value was forgotten, or the target is not current: the next deed goes on
    answers = world.answers()
    assert world.store.rebuild().ok
    assert answers == world.answers()
    world.kill()


def test_closing_saves_the_words_that_a_save_under_way_left_queued(world: World) -> None:
    world.fill(10)
    world.save(words=False)
    assert [] == world.store._engine.keys.content_chunks("content/")
    world.close()
    world.reopen()
    assert ["content/words/00000000"] == world.store._engine.keys.content_chunks("content/")
