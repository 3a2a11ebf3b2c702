"""The disk that the other tests trust: it shows what was written, and loses what was not synced."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from muniment.events._disk import Disk
from muniment.events._errors import DiskFull

from .faults import (
    ChanceSurvives,
    EverythingSurvives,
    Fault,
    FaultyDisk,
    NothingSurvives,
    Outcome,
    PowerCut,
    Survival,
)
from .stores import contents


def found(disk: FaultyDisk, where: Path, survival: Survival) -> dict[str, bytes]:
    target = where / f"image-{len(list(where.iterdir()))}"
    disk.materialise(target, survival)
    return contents(target)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    (root / "old").write_bytes(b"old")
    return root


def work(disk: Disk, root: Path) -> None:
    disk.write_file(root / "new", b"new")
    disk.replace_file(root / "old", b"replaced")
    fd = os.open(root / "old", os.O_RDWR | os.O_APPEND)
    disk.write(fd, b" and more")
    disk.sync(fd)
    disk.write(fd, b" unsynced")
    disk.truncate(fd, 3)
    disk.write(fd, b"!")
    os.close(fd)
    (root / "below").mkdir()
    disk.write_file(root / "below" / "deep", b"deep")
    disk.sync_directory(root / "below")
    disk.remove(root / "new")


def test_what_survives_wholly_is_what_is_there(root: Path, tmp_path: Path) -> None:
    disk = FaultyDisk(root)
    work(disk, root)
    for at in range(1, 1 + len(disk.operations)):
        where = tmp_path / str(at)
        where.mkdir()
        (where / "old").write_bytes(b"old")
        cut = FaultyDisk(where, cut_after=at)
        with pytest.raises(PowerCut):
            work(cut, where)
        assert contents(where) == found(cut, tmp_path, EverythingSurvives())


def test_what_was_not_synced_is_lost_and_entries_need_their_directory(root: Path, tmp_path: Path) -> None:
    disk = FaultyDisk(root)
    disk.write_file(root / "new", b"new")
    assert {"old": b"old"} == found(disk, tmp_path, NothingSurvives())
    disk.sync_directory(root)
    assert {"old": b"old", "new": b"new"} == found(disk, tmp_path, NothingSurvives())
    disk.rename(root / "new", root / "old")
    assert {"old": b"old", "new": b"new"} == found(disk, tmp_path, NothingSurvives())
    disk.sync_directory(root)
    disk.remove(root / "old")
    assert {"old": b"new"} == found(disk, tmp_path, NothingSurvives())
    (root / "below").mkdir()
    disk.write_file(root / "below" / "deep", b"deep")
    disk.sync_directory(root / "below")
    assert {"old": b"new"} == found(disk, tmp_path, NothingSurvives())
    disk.sync_directory(root)
    assert {"below/deep": b"deep"} == found(disk, tmp_path, NothingSurvives())


@pytest.mark.parametrize(("outcome", "durable"), [("nothing", b""), ("half", b"ab"), ("all", b"abcd")])
def test_a_sync_that_failed_dooms_what_it_did_not_write(
    outcome: str, durable: bytes, root: Path, tmp_path: Path
) -> None:
    disk = FaultyDisk(root)
    fd = disk.create(root / "file")
    disk.sync_directory(root)
    disk.write(fd, b"abcd")
    disk.arm(fault=Fault(1, errno.EIO, Outcome(outcome)))
    with pytest.raises(OSError, match="file"):
        disk.sync(fd)
    disk.sync(fd)
    assert b"abcd" == (root / "file").read_bytes()
    assert durable == found(disk, tmp_path, NothingSurvives())["file"]
    disk.overwrite(fd, b"x", 8)
    os.close(fd)


def test_a_failed_write_is_typed_and_leaves_the_share_that_was_asked_for(root: Path) -> None:
    disk = FaultyDisk(root, fault=Fault(2, errno.ENOSPC, Outcome.HALF))
    with pytest.raises(DiskFull):
        disk.write_file(root / "file", b"abcd")
    assert b"ab" == (root / "file").read_bytes()


def test_a_seed_decides_once_and_for_all(root: Path, tmp_path: Path) -> None:
    disk = FaultyDisk(root)
    work(disk, root)
    for seed in range(8):
        one = found(disk, tmp_path, ChanceSurvives(seed, ordered=bool(seed % 2)))
        assert one == found(disk, tmp_path, ChanceSurvives(seed, ordered=bool(seed % 2)))
