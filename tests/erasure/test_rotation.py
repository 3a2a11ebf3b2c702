"""The key tree under forgets: what a rotation costs, and what a kill at any of its steps leaves."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from eval._erasure_kill import KillingDisk
from eval._erasure_open import read_keys
from muniment import KeyFile
from muniment.events import Disk, DiskFull, find_store
from muniment.events._log import Log

from .stores import AGENT, RARE, SCOPE, SECRET, ann, create_store, open_store, readable

_ROOT_SLOT = 4096


class CountingDisk(Disk):
    """The real disk, and the offsets at which something was overwritten in place."""

    def __init__(self) -> None:
        self.overwritten: list[int] = []

    def overwrite(self, fd: int, data: bytes, at: int) -> None:
        """Note it where it is not the log's, and do it."""
        if not os.readlink(f"/proc/self/fd/{fd}").endswith(".seg"):
            self.overwritten.append(at)
        super().overwrite(fd, data, at)


def killed_at(path: Path, at: int, deed: Callable[[Path, Disk], None]) -> bool:
    """Do the deed in a process that ends at its disk operation `at`; tell whether it ended there."""
    child = os.fork()
    if child == 0:
        try:
            deed(path, KillingDisk(at))
            os._exit(0)
        except BaseException:
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL)
    return code != 0


def forget_it(path: Path, disk: Disk) -> None:
    """Forget the one memory that holds the secret."""
    store = open_store(path, disk)
    agent = store.session(scope=SCOPE, actor=AGENT)
    (found,) = [record for record in agent.list() if record.content == SECRET]
    agent.forget(found.id, reason="asked")


def remember_it(path: Path, disk: Disk) -> None:
    """Write the secret."""
    store = open_store(path, disk)
    store.session(scope=SCOPE, actor=AGENT).remember_many([{"content": f"{SECRET} {n}"} for n in range(5)])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "store"
    create_store(path)
    return path


def test_forgetting_many_costs_one_rotation(path: Path) -> None:
    """Two writes in place of keys, one a root slot, however many memories go and however many pages hold their keys."""
    disk = CountingDisk()
    with open_store(path, disk) as store:
        agent = store.session(scope=SCOPE, actor=AGENT)
        receipts = agent.remember_many([{"content": f"note {n}"} for n in range(600)])
        epoch = store._engine.keys.epoch

        agent.forget(*[receipt.id for receipt in receipts[::2]], reason="asked")

        assert epoch + 1 == store._engine.keys.epoch
        assert [0, _ROOT_SLOT] == sorted(disk.overwritten)
        assert 300 == len(agent.list(limit=1000))


class FullForKeys(Disk):
    """A disk that takes the log's bytes, and has no room for a new key table."""

    full = True

    def write_file(self, path: Path, data: bytes, *, synced: bool = True) -> None:
        """Refuse it below `keys/`."""
        if self.full and path.parent.name == "keys":
            raise DiskFull(what=path.name)
        super().write_file(path, data, synced=synced)


def test_a_forget_whose_keys_could_not_go_is_no_success_when_asked_again(path: Path) -> None:
    disk = FullForKeys()
    with open_store(path, disk) as store:
        agent = store.session(scope=SCOPE, actor=AGENT)
        receipt = agent.remember(SECRET)
        for _ in range(2):
            with pytest.raises(DiskFull):
                agent.forget(receipt.id, reason="asked", command_id="c1")
        assert readable(path, RARE)

        disk.full = False

        assert "erased" == agent.forget(receipt.id, reason="asked", command_id="c1").status
        assert [] == readable(path, RARE)


def test_after_a_kill_at_any_step_of_a_forget_it_is_done_or_not_begun(path: Path, tmp_path: Path) -> None:
    """Opening is enough to finish it: no value, no old root and no old table stay on the disk."""
    with open_store(path) as store:
        agent = store.session(scope=SCOPE, actor=AGENT)
        agent.remember(SECRET)
        agent.remember("of no concern")
        agent.recall("quinquagenarian")
    before = read_keys(path)
    outcomes: list[bool] = []
    for at in range(1, 100):
        copy = tmp_path / f"at-{at}"
        shutil.copytree(path, copy)
        if not killed_at(copy, at, forget_it):
            break
        open_store(copy).close()

        begun = not any(where.endswith("body") for where in readable(copy, RARE))
        outcomes.append(begun)
        if begun:
            assert [] == readable(copy, RARE)
            assert not any(before.root in file.read_bytes() for file in copy.rglob("*") if file.is_file())
            halves = (copy / "root.key").read_bytes()
            assert halves[:_ROOT_SLOT] == halves[_ROOT_SLOT:]
        with open_store(copy) as store:
            kept = store.session(scope=SCOPE, actor=AGENT).list()
            assert (["of no concern"] if begun else [SECRET, "of no concern"]) == sorted(
                (r.content or "" for r in kept), reverse=True
            )
            assert store.verify().ok
    assert outcomes == sorted(outcomes)
    assert {False, True} == set(outcomes)
    assert 12 < len(outcomes) < 99


def test_what_a_torn_commit_leaves_can_never_be_read(path: Path, tmp_path: Path) -> None:
    """Nobody was told of it, so nobody could have it forgotten. Killed again at each step of setting it aside."""
    with open_store(path) as store:
        store.session(scope=SCOPE, actor=AGENT).remember("of no concern")
    torn = tmp_path / "torn"
    for at in range(1, 30):
        shutil.rmtree(torn, ignore_errors=True)
        shutil.copytree(path, torn)
        killed_at(torn, at, remember_it)
        if _bytes_after_head(torn):
            break
    assert _bytes_after_head(torn)
    for at in range(1, 100):
        copy = tmp_path / f"again-{at}"
        shutil.copytree(torn, copy)
        ended = killed_at(copy, at, lambda where, disk: open_store(where, disk)._engine.door.settle())
        remember_other(copy)

        assert [] == readable(copy, RARE)
        assert list((copy / "log").glob("*.torn-*"))
        if not ended:
            break


def test_a_torn_commit_whose_headers_are_missing_can_never_be_read(path: Path, tmp_path: Path) -> None:
    """The sector in which it says what is in it was not written, those with its events were."""
    with open_store(path) as store:
        store.session(scope=SCOPE, actor=AGENT).remember("of no concern")
    (segment,) = (path / "log").glob("*.seg")
    offset = segment.stat().st_size
    with open_store(path) as store:
        store.session(scope=SCOPE, actor=AGENT).remember_many([{"content": f"{SECRET} {n}"} for n in range(9)])
        torn = tmp_path / "torn"
        shutil.copytree(path, torn)
    with (torn / "log" / segment.name).open("r+b") as file:
        file.seek(offset)
        file.write(bytes(1024 - offset % 512))
    shutil.rmtree(torn / "projections")
    (torn / "projections").mkdir()

    remember_other(torn)

    assert list((torn / "log").glob("*.torn-*"))
    assert [] == readable(torn, RARE)


def remember_other(path: Path) -> None:
    """Write enough for every slot that the torn commit took to be taken again, were it free."""
    with open_store(path) as store:
        store.session(scope="acme/other", actor=AGENT).remember_many([{"content": f"other {n}"} for n in range(20)])


def _bytes_after_head(path: Path) -> int:
    files = find_store(path)
    log = Log(files.log, files.store_id, Disk(), read_only=True)
    try:
        list(log.read_new())
        return len(log.remains())
    finally:
        log.close()


def test_keys_of_a_torn_commit_are_not_taken_for_an_older_log(path: Path, tmp_path: Path) -> None:
    """They too move the key epoch past the log's last forget; the tombstones of a forgotten scope are gone by then."""
    key = KeyFile(path.with_suffix(".userkey"))
    with open_store(path) as store:
        agent = store.session(scope=SCOPE, actor=AGENT)
        agent.forget(agent.remember("first").id, reason="asked")
        agent.remember("second")
        ann(store, key).forget_scope(reason="the customer left")
    torn = tmp_path / "torn"
    for at in range(1, 30):
        shutil.rmtree(torn, ignore_errors=True)
        shutil.copytree(path, torn)
        killed_at(torn, at, remember_elsewhere)
        if _bytes_after_head(torn):
            break
    assert _bytes_after_head(torn)

    open_store(torn)._engine.door.settle()

    with open_store(torn) as store:
        assert 0 == store.stats()["rolled_back"]
        store.session(scope="acme/other", actor=AGENT).remember("goes on")


def remember_elsewhere(path: Path, disk: Disk) -> None:
    """Write in another scope."""
    open_store(path, disk).session(scope="acme/other", actor=AGENT).remember("of no concern")


def test_a_closed_store_holds_no_file_open(path: Path) -> None:
    """A file that somebody holds open keeps its bytes on the device after it was removed, and its disk mounted."""
    with open_store(path) as store:
        agent = store.session(scope=SCOPE, actor=AGENT)
        receipt = agent.remember(SECRET)
        for _ in range(2):
            agent.forget(receipt.id, reason="asked", command_id="c1")
        store.verify()
        store.rebuild()

    targets = [link.readlink() for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    assert [] == [target for target in targets if path in target.parents]
