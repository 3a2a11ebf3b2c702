"""I5: when `forget` returns, no file of the store holds the content, its key, its vector or its terms."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import muniment
from muniment import Action, Store
from muniment.events import Disk, KeyTree
from muniment.projections import packaged_embedder
from tests.checkout import ROOT
from tests.scanning import find_bytes, find_text, spellings
from tests.worlds import AGENT, SCOPE, USER, World

RARE = ("quinquagenarian", "floccinaucinihil", "zyzzyvaforms")
SECRET = f"the {RARE[0]} keeps the {RARE[1]} in a box of {RARE[2]}"


def _open(path: Path, world: World) -> Store:
    return muniment.open(path, model="none", clock=world.clock)


def _told(store: Store) -> list[str | None]:
    session = store.session(scope=SCOPE, actor=AGENT)
    return [record.content for record in (*session.list(), *session.recall(RARE[0]), *session.recall(RARE[2]))]


def test_i05_the_search_sees_a_text_that_was_left_in_any_file_and_encoding(world: World) -> None:
    """The control of the searches below: content is sealed from the start, so a plain one is planted."""
    world.speaker(AGENT).remember(SECRET)
    assert [] == find_text(world.path, SECRET, *RARE)

    for name, data in spellings(RARE[0]).items():
        for place in ("log/x", "keys/x", "projections/x", "checkpoints/x", "stray.tmp"):
            (world.path / place).write_bytes(b"\0\1" + data + b"\2")
            assert f"{place}: {name}" in find_text(world.path, RARE[0])
            (world.path / place).unlink()


def test_i05_a_copy_from_before_reads_the_content_and_one_with_the_keys_of_after_does_not(
    world: World, tmp_path: Path
) -> None:
    """What a forget destroys is the key: the log of before, with all projections of before, says nothing any more."""
    agent = world.speaker(AGENT)
    kept, gone = agent.remember("a harmless note"), agent.remember(SECRET, about=("box", "contents"))
    world.reopen()
    before, robbed = tmp_path / "before", tmp_path / "robbed"
    shutil.copytree(world.path, before)
    shutil.copytree(world.path, robbed)

    world.speaker(AGENT).forget(gone.id, reason="asked by the user")

    with _open(before, world) as copy:
        assert SECRET in _told(copy)
    shutil.rmtree(robbed / "keys")
    shutil.copytree(world.path / "keys", robbed / "keys")
    shutil.copy(world.path / "root.key", robbed / "root.key")
    with _open(robbed, world) as copy:
        session = copy.session(scope=SCOPE, actor=AGENT)
        assert "a harmless note" == session.get(kept.id).content
        assert session.get(gone.id).content is None
        assert not any(SECRET == content for content in _told(copy))
        assert [] == session.recall(RARE[1], status=("active", "superseded", "retired"))


def test_i05_the_old_root_key_and_the_old_tables_are_gone_from_the_disk(world: World) -> None:
    """Everything hangs off the root: an old one left anywhere would open an old table, and so the old data key."""
    receipt = world.speaker(AGENT).remember(SECRET)
    old_root = (world.path / "root.key").read_bytes()[16:48]
    assert ["root.key"] == find_bytes(world.path, old_root)
    tables = {path.name for path in (world.path / "keys").iterdir()}

    world.speaker(AGENT).forget(receipt.id, reason="asked")

    assert [] == find_bytes(world.path, old_root)
    assert not tables.intersection(path.name for path in (world.path / "keys").iterdir())
    halves = (world.path / "root.key").read_bytes()
    assert halves[:4096] == halves[4096:8192]


def test_i05_the_memorys_own_key_and_that_of_its_words_are_gone_from_the_key_tree(world: World) -> None:
    """Read with the store's own keys, as a thief of the whole directory would: other memories keep theirs."""
    agent = world.speaker(AGENT)
    agent.remember("a harmless note")
    receipt = agent.remember(SECRET)
    world.reopen()  # so that snapshots with its words lie on the disk

    def keys() -> tuple[list[bytes], list[str]]:
        tree = KeyTree(world.path / "root.key", world.path / "keys", Disk())
        return [tree.slot_key(slot) for slot in range(tree.capacity)], tree.content_chunks("content/")

    before, chunks = keys()
    assert chunks
    world.speaker(AGENT).forget(receipt.id, reason="asked")

    after, left = keys()
    assert 1 == sum(one != other for one, other in zip(before, after, strict=True))
    assert [] == left


def test_i05_a_long_memory_is_gone_while_the_process_runs_and_after_it_closed(world: World) -> None:
    letters = random.Random(5)
    rare = ["".join(letters.choices("bcdfghjklmnpqrstvwxz", k=14)) for _ in range(40)]
    agent = world.speaker(AGENT)
    receipt = agent.remember(" ".join(letters.choice(rare) for _ in range(13_500)), tags=["tagonelephant"])
    assert 200_000 < len(agent.get(receipt.id).content or "")
    assert 1 == len(agent.recall(rare[0]))
    world.reopen()  # so that snapshots with its words lie on the disk
    agent = world.speaker(AGENT)
    assert 1 == len(agent.recall(rare[0]))

    agent.forget(receipt.id, reason="asked")

    assert [] == find_text(world.path, *rare, "tagonelephant")
    assert [] == agent.recall(rare[0])
    world.reopen()
    assert [] == find_text(world.path, *rare, "tagonelephant")
    assert [] == world.speaker(AGENT).recall(" ".join(rare[:5]))


def test_i05_every_part_of_the_body_goes_and_the_stub_says_who_when_and_why(world: World) -> None:
    agent = world.speaker(AGENT)
    receipt = agent.remember(
        SECRET, about=("box", "contents"), value=RARE[1], source="mail:77", tags=["t"], metadata={"a": 1}, kind="fact"
    )
    agent.forget(receipt.id, reason="asked by the user")

    stub = agent.get(receipt.id)

    assert (None, None, None, None, (), {}) == (
        stub.content, stub.about, stub.value, stub.source, stub.tags, stub.metadata,
    )  # fmt: skip
    assert ("erased", AGENT, "asked by the user") == (stub.status, stub.erased_by, stub.erased_why)
    assert stub.erased_at is not None
    assert "fact" == stub.kind


def test_i05_no_byte_of_the_log_is_rewritten_and_it_still_verifies(world: World) -> None:
    agent = world.speaker(AGENT)
    receipts = agent.remember_many([{"content": f"{SECRET} {n}"} for n in range(5)])
    (segment,) = (world.path / "log").glob("*.seg")
    before = segment.read_bytes()[: world.store.head.offset]

    for receipt in receipts[:3]:
        agent.forget(receipt.id, reason="asked")

    assert segment.read_bytes().startswith(before)
    report = world.store.verify()
    assert report.ok
    assert any("3 erased events" in line for line in report.unchecked)


def test_i05_what_derives_from_it_and_what_says_the_same_goes_with_it(world: World) -> None:
    agent = world.speaker(AGENT)
    first = agent.remember(SECRET, source="mail:1")
    same = agent.remember(SECRET.upper(), source="mail:2")
    summary = agent.remember("a summary of it", derived_from=[first.id])
    deeper = agent.remember("a summary of the summary", derived_from=[summary.id])

    planned = agent.forget(first.id, reason="asked", dry_run=True)
    receipt = agent.forget(first.id, reason="asked")

    assert {first.id, same.id} == set(receipt.asked)
    assert {summary.id, deeper.id} == set(receipt.derived)
    assert (set(planned.asked), set(planned.derived)) == (set(receipt.asked), set(receipt.derived))
    assert [] == agent.list()
    assert all("erased" == agent.get(i).status for i in receipt.erased)


def test_i05_decisions_that_were_about_the_value_lose_their_arguments(world: World) -> None:
    agent, ann = world.speaker(AGENT), world.ann()
    receipt = agent.remember(RARE[0])
    action = Action("email.send", {"to": RARE[0]})
    ann.confirm(action, agent=AGENT, uses=5)
    assert agent.decide(action).allowed

    ann.forget(receipt.id, reason="asked")

    assert not agent.decide(Action("email.send", {"to": RARE[0]}), dry_run=True).allowed


def test_i05_the_reason_may_not_be_where_the_value_lives_on(world: World) -> None:
    agent = world.speaker(AGENT)
    receipt = agent.remember(RARE[0])

    with pytest.raises(muniment.InvalidInput, match="repeats what is to be forgotten"):
        agent.forget(receipt.id, reason=f"it said {RARE[0].upper()}")
    assert RARE[0] == agent.get(receipt.id).content


def test_i05_another_handle_drops_it_at_its_next_read(world: World) -> None:
    receipt = world.speaker(AGENT).remember(SECRET)
    with world.open_again() as other:
        assert SECRET in _told(other)

        world.speaker(AGENT).forget(receipt.id, reason="asked")

        assert [] == _told(other)
        assert "erased" == other.session(scope=SCOPE, actor=AGENT).get(receipt.id).status
    assert [] == find_text(world.path, SECRET, *RARE)


_READER = """
import sys, muniment
with muniment.open(sys.argv[1], model="none") as store:
    session = store.session(scope=sys.argv[2], actor="agent:reader")
    for _ in sys.stdin:
        print(len(session.recall(sys.argv[3])), len(session.list()), flush=True)
"""


def test_i05_another_process_drops_it_at_its_next_read(world: World) -> None:
    agent = world.speaker(AGENT)
    agent.remember("a harmless note")
    receipt = agent.remember(SECRET)
    with subprocess.Popen(
        [sys.executable, "-c", _READER, str(world.path), SCOPE, RARE[0]],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)},
    ) as reader:  # fmt: skip
        assert reader.stdin is not None
        assert reader.stdout is not None

        def ask() -> str:
            assert reader.stdin is not None
            assert reader.stdout is not None
            reader.stdin.write("\n")
            reader.stdin.flush()
            return reader.stdout.readline().strip()

        assert "1 2" == ask()
        agent.forget(receipt.id, reason="asked")
        assert "0 1" == ask()
        reader.stdin.close()
        assert 0 == reader.wait(timeout=20)
    assert [] == find_text(world.path, SECRET, *RARE)


def test_i05_its_vector_is_gone_too(tmp_path: Path) -> None:
    """With the packaged model: the vector's bytes, of which the control is that the arm of meaning found it."""
    path = tmp_path / "store"
    (vector,) = packaged_embedder().embed(["the cat sleeps on the warm roof"])
    with muniment.open(path, create=True) as store:
        session = store.session(scope=SCOPE, actor=AGENT)
        receipt = session.remember("the cat sleeps on the warm roof")
        session.remember("the dog waits at the door")
        assert receipt.id == session.recall("a feline naps on top of a house")[0].id
    with muniment.open(path) as store:
        session = store.session(scope=SCOPE, actor=AGENT)
        assert session.recall("a feline naps on top of a house")[0].dense_score is not None

        session.forget(receipt.id, reason="asked")

        assert ["the dog waits at the door"] == [h.content for h in session.recall("a feline naps on top of a house")]
        assert [] == find_bytes(path, vector.astype("float32").tobytes()[:64])
    assert [] == find_bytes(path, vector.astype("float32").tobytes()[:64])


def test_i05_a_whole_scope_goes_and_the_others_stay_whole(world: World) -> None:
    agent, sibling = world.speaker(AGENT), world.speaker(AGENT, "acme/zeus")
    agent.remember(SECRET)
    world.speaker(USER).remember("said by the user", about=("box", "contents"))
    kept = sibling.remember("of another project")

    world.ann().forget_scope(reason="the customer left")

    assert [] == find_text(world.path, SECRET, *RARE)
    assert [] == agent.list()
    with pytest.raises(muniment.Refused, match="forgotten"):
        agent.remember("something new")
    assert "of another project" == sibling.get(kept.id).content
    world.reopen()
    assert [] == world.speaker(AGENT).list()
    assert ["of another project"] == [r.content for r in world.speaker(AGENT, "acme/zeus").list()]
    assert world.store.verify().ok


@pytest.mark.parametrize("when", ["before", "after"])
def test_i05_a_past_on_another_handle_drops_a_scope_that_was_forgotten(world: World, when: str) -> None:
    """The other handle has read the scope's keys before: neither a past that it holds nor a new one may use them."""
    world.speaker(AGENT).remember("the code word is beetroot", about=("code", "word"))
    seq = world.store.head.seq
    with world.open_again() as other:
        assert other.session(scope=SCOPE).recall("beetroot")
        past = other.replay(to=seq)
        assert past.session(scope=SCOPE).recall("beetroot")
        world.ann().forget_scope(reason="all of it")
        if when == "after":
            past = other.replay(to=seq)

        reading = past.session(scope=SCOPE)
        assert ([], [], []) == (reading.recall("beetroot"), reading.beliefs(), reading.list())
        assert [] == past.sql("select id from memories where scope = 'acme/apollo'")[1]
