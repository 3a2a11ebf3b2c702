"""Keys are there before they are used, and gone when they were destroyed, whoever looks, however it was interrupted."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from muniment.events._disk import Disk
from muniment.events._errors import DiskFailed, DiskFull, KeyMissing
from muniment.events._keys import SLOTS_PER_PAGE, KeyTree, _read_root_slots
from muniment.events._ledger import Ledger, LedgerTombstone

from .faults import Fault, FaultyDisk, HastyDisk, NothingSurvives, Outcome, PowerCut
from .stores import contents

TOMBSTONE: LedgerTombstone = ("value", bytes(32), None, 1, "acme", True, 2, 5)


def make(where: Path, disk: Disk | None = None) -> KeyTree:
    where.mkdir(exist_ok=True)
    return KeyTree.create(where / "root.key", where / "keys", disk or HastyDisk())


def opened(where: Path, disk: Disk | None = None) -> KeyTree:
    return KeyTree(where / "root.key", where / "keys", disk or HastyDisk())


def all_keys(tree: KeyTree) -> list[bytes]:
    return [tree.slot_key(slot) for slot in range(tree.capacity)]


def test_a_tree_that_is_opened_again_has_the_same_keys(tmp_path: Path) -> None:
    tree = make(tmp_path)
    again = opened(tmp_path)
    assert all_keys(tree) == all_keys(again)
    assert tree.value_secret == again.value_secret
    assert SLOTS_PER_PAGE == len(set(all_keys(tree)))


def test_reserving_adds_keys_and_changes_none(tmp_path: Path) -> None:
    tree = make(tmp_path)
    before = all_keys(tree)
    tree.reserve(3 * SLOTS_PER_PAGE + 1)
    assert 4 * SLOTS_PER_PAGE <= tree.capacity
    assert before == all_keys(tree)[:SLOTS_PER_PAGE]
    assert all_keys(tree) == all_keys(opened(tmp_path))
    at_rest = contents(tmp_path)
    tree.reserve(tree.capacity)
    assert at_rest == contents(tmp_path)


def test_i05_shredding_changes_the_key_of_its_slot_and_no_other(tmp_path: Path) -> None:
    tree = make(tmp_path)
    tree.reserve(2 * SLOTS_PER_PAGE)
    before, secret = all_keys(tree), tree.value_secret
    gone = {5, SLOTS_PER_PAGE + 7}
    tree.shred(gone, tombstones=[TOMBSTONE])
    for seen in (tree, opened(tmp_path)):
        after = all_keys(seen)
        assert gone == {slot for slot, key in enumerate(before) if key != after[slot]}
        assert gone == seen.shredded
        assert (2, secret, (TOMBSTONE,)) == (seen.epoch, seen.value_secret, seen.ledger)
        assert seen.is_shredded(5)
        assert not seen.is_shredded(6)


def test_i05_no_file_holds_an_old_root_or_opens_under_the_new_one(tmp_path: Path) -> None:
    tree = make(tmp_path)
    _, old_root, _ = _read_root_slots(tmp_path / "root.key")
    old = contents(tmp_path / "keys")
    tree.shred({1})
    _, root, slots = _read_root_slots(tmp_path / "root.key")
    assert [(2, root)] * 2 == slots
    assert all(old_root not in data for data in contents(tmp_path).values())
    for name, data in old.items():
        (tmp_path / "keys" / name).write_bytes(data)
    again = opened(tmp_path)
    assert all_keys(tree) == all_keys(again)


def test_i05_a_stolen_copy_of_the_keys_directory_opens_nothing_without_the_root(tmp_path: Path) -> None:
    make(tmp_path / "here")
    make(tmp_path / "there")
    (tmp_path / "here" / "root.key").write_bytes((tmp_path / "there" / "root.key").read_bytes())
    with pytest.raises(KeyMissing, match="no table of epoch 1 opens under the root"):
        opened(tmp_path / "here")


def test_the_ledger_grows_with_each_forget_and_reads_back_the_same(tmp_path: Path) -> None:
    tree = make(tmp_path)
    for slots in ({1}, {200, 2}, {2, 3}, set[int]()):
        tree.shred(slots, tombstones=[TOMBSTONE])
        again = opened(tmp_path)
        assert (tree.ledger, tree.shredded) == (again.ledger, again.shredded)
        assert 201 >= again.first_never_shredded == tree.first_never_shredded == 1 + max(again.shredded)
    assert (4, frozenset({1, 2, 3, 200})) == (len(again.ledger), again.shredded)


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 65_535, 65_536])
def test_a_ledger_is_encoded_piece_by_piece_as_in_one(count: int) -> None:
    decode = msgspec.msgpack.Decoder(tuple[frozenset[int], tuple[LedgerTombstone, ...]]).decode
    for first in {0, min(count, 1), count}:
        ledger = Ledger.of(frozenset(range(first)), (TOMBSTONE,) * first)
        ledger = ledger.with_shredded(range(count), (TOMBSTONE,) * (count - first))
        assert (frozenset(range(count)), (TOMBSTONE,) * count) == decode(msgspec.msgpack.encode(ledger.encoded()))
        assert count == ledger.first_never_shredded


def test_chunk_keys_are_kept_and_dropped(tmp_path: Path) -> None:
    tree = make(tmp_path)
    tree.set_chunks({"content/a": b"a" * 32, "beliefs/b": b"b" * 32})
    tree.set_chunks({"beliefs/b": None, "content/c": b"c" * 32})
    again = opened(tmp_path)
    assert [b"a" * 32, None, b"c" * 32] == [again.chunk_key(name) for name in ("content/a", "beliefs/b", "content/c")]
    assert ["content/a", "content/c"] == sorted(again.content_chunks("content/"))
    tree.shred((), drop_chunks=["content/a"])
    assert ["content/c"] == opened(tmp_path).content_chunks("content/")


def test_another_process_sees_what_was_done_when_it_reloads(tmp_path: Path) -> None:
    tree, other = make(tmp_path), opened(tmp_path)
    kept = other.slot_key(3)
    assert not other.reload()
    tree.shred({3})
    assert kept == other.slot_key(3)
    assert not other.is_current()
    assert other.reload()
    assert tree.slot_key(3) == other.slot_key(3) != kept
    assert other.is_current()


def test_i05_a_reader_that_had_not_opened_a_page_finds_the_new_one(tmp_path: Path) -> None:
    tree, other = make(tmp_path), opened(tmp_path)
    expected = all_keys(tree)
    tree.shred({3})
    expected[3] = tree.slot_key(3)
    assert expected == all_keys(other)


@pytest.mark.parametrize("slot", [0, 1])
def test_one_damaged_root_slot_is_survived_and_repaired(slot: int, tmp_path: Path) -> None:
    tree = make(tmp_path)
    path = tmp_path / "root.key"
    data = bytearray(path.read_bytes())
    data[4096 * slot + 20] ^= 1
    path.write_bytes(data)
    again = opened(tmp_path)
    assert all_keys(tree) == all_keys(again)
    again.resume()
    _, root, slots = _read_root_slots(path)
    assert [(1, root)] * 2 == slots


def damage_both_slots(where: Path) -> None:
    data = bytearray((where / "root.key").read_bytes())
    data[20] ^= 1
    data[4116] ^= 1
    (where / "root.key").write_bytes(data)


def remove_root(where: Path) -> None:
    (where / "root.key").unlink()


def remove_tables(where: Path) -> None:
    for path in (where / "keys").glob("table-*"):
        path.unlink()


def flip_table_bit(where: Path) -> None:
    for path in (where / "keys").glob("table-*"):
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data)


@pytest.mark.parametrize("damage", [damage_both_slots, remove_root, remove_tables, flip_table_bit])
def test_missing_or_damaged_keys_are_an_error_and_never_other_keys(
    damage: Callable[[Path], None], tmp_path: Path
) -> None:
    make(tmp_path)
    damage(tmp_path)
    with pytest.raises(KeyMissing):
        opened(tmp_path)


def test_a_damaged_page_is_an_error_for_its_slots(tmp_path: Path) -> None:
    make(tmp_path)
    (page,) = (tmp_path / "keys").glob("pages-*")
    data = bytearray(page.read_bytes())
    data[100] ^= 1
    page.write_bytes(data)
    with pytest.raises(KeyMissing, match="key page 0 cannot be opened"):
        opened(tmp_path).slot_key(3)
    with pytest.raises(KeyMissing, match="key page 9 cannot be opened"):
        opened(tmp_path).slot_key(9 * SLOTS_PER_PAGE)


def test_the_root_is_overwritten_in_place_by_a_rotation(tmp_path: Path) -> None:
    tree = make(tmp_path)
    inode = os.stat(tmp_path / "root.key").st_ino
    disk = FaultyDisk(tmp_path)
    opened(tmp_path, disk).shred({1})
    tree.reload()
    assert inode == os.stat(tmp_path / "root.key").st_ino
    assert ["overwrite", "sync", "overwrite", "sync"] == [
        operation.kind for operation in disk.operations if operation.name == "root.key"
    ]


@pytest.mark.parametrize("cut_after", range(1, 14))
def test_i05_a_rotation_is_all_or_nothing_and_the_next_holder_resumes_it(cut_after: int, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    before = all_keys(make(tmp_path / "disk" / "tree"))
    disk = FaultyDisk(tmp_path / "disk", cut_after=cut_after)
    with pytest.raises(PowerCut):
        opened(tmp_path / "disk" / "tree", disk).shred({3})
    disk.arm()
    disk.materialise(tmp_path / "after", NothingSurvives())
    tree = opened(tmp_path / "after" / "tree")
    tree.resume()
    after = all_keys(tree)
    assert before[:3] + before[4:] == after[:3] + after[4:]
    assert (2 if after[3] != before[3] else 1) == tree.epoch
    _, root, slots = _read_root_slots(tmp_path / "after" / "tree" / "root.key")
    assert [(tree.epoch, root)] * 2 == slots
    assert 2 == len(contents(tmp_path / "after" / "tree" / "keys"))


def test_i05_a_root_that_a_failed_sync_left_in_memory_reaches_the_disk_before_the_old_one_goes(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    make(tmp_path / "disk" / "tree")
    disk = FaultyDisk(tmp_path / "disk")
    opened(tmp_path / "disk" / "tree", disk).shred({2})
    commit = 1 + [operation.kind for operation in disk.operations].index("overwrite")
    disk.arm(fault=Fault(commit + 1, errno.EIO, Outcome.NOTHING))
    tree = opened(tmp_path / "disk" / "tree", disk)
    with pytest.raises(DiskFailed, match=r"root\.key"):
        tree.shred({3})
    disk.arm()
    opened(tmp_path / "disk" / "tree", disk).resume()
    disk.materialise(tmp_path / "after", NothingSurvives())
    _, root, slots = _read_root_slots(tmp_path / "after" / "tree" / "root.key")
    assert [(3, root)] * 2 == slots


def test_a_full_disk_is_a_typed_error_and_changes_no_key(tmp_path: Path) -> None:
    before = all_keys(make(tmp_path / "tree"))
    disk = FaultyDisk(tmp_path, fault=Fault(1, errno.ENOSPC, Outcome.NOTHING))
    tree = opened(tmp_path / "tree", disk)
    with pytest.raises(DiskFull):
        tree.shred({3})
    assert before == all_keys(tree) == all_keys(opened(tmp_path / "tree"))
    disk.arm()
    tree.shred({3})
    assert before[3] != tree.slot_key(3)


def test_what_a_crash_left_goes_with_the_first_forget_and_after_another_process_was_here(tmp_path: Path) -> None:
    tree, other = make(tmp_path), opened(tmp_path)
    orphan = tmp_path / "keys" / "pages-0000000000000001-00000009"
    orphan.write_bytes(b"left by a power cut")
    tree.shred({1})
    assert not orphan.exists()
    other.reload()
    other.shred({2})
    orphan.write_bytes(b"left by another's crash")
    assert tree.reload()
    tree.shred({3})
    assert not orphan.exists()
