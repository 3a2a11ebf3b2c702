"""
What was acknowledged survives (I10), and what was forgotten does not (I5): each durable step, each way to fail there.

A scenario is run once to count its operations, then once for each operation and each fault. Afterwards the store is
looked at twice: as the files are (the process died, the machine lives) and as a power cut would have left them.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import shutil
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from muniment.events._codec import NO_SLOT
from muniment.events._disk import Disk
from muniment.events._errors import MunimentError, StoreMissing
from muniment.events._files import find_store
from muniment.events._ids import Id
from muniment.events._keys import SLOTS_PER_PAGE, _read_root_slots
from muniment.events._torn import slots_named

from .faults import (
    ChanceSurvives,
    Fault,
    FaultyDisk,
    HastyDisk,
    NothingSurvives,
    Outcome,
    PowerCut,
    Survival,
)
from .stores import Bare, contents, fresh_ids, make


class History:
    """What callers were told: what is kept, what is gone, and what is in doubt because a call did not return."""

    def __init__(self) -> None:
        self.kept: dict[Id, str] = {}
        self.gone: set[Id] = set()
        self.batches_in_doubt: list[dict[Id, str]] = []
        self.forgets_in_doubt: list[frozenset[Id]] = []
        self.dead_roots: set[bytes] = set()

    def copy(self) -> History:
        other = History()
        other.kept, other.gone, other.dead_roots = dict(self.kept), set(self.gone), set(self.dead_roots)
        other.batches_in_doubt, other.forgets_in_doubt = list(self.batches_in_doubt), list(self.forgets_in_doubt)
        return other

    def remember(self, store: Bare, *texts: str, slot: int | None = None) -> list[Id]:
        ids = fresh_ids(len(texts))
        batch = dict(zip(ids, texts, strict=True))
        self.batches_in_doubt.append(batch)
        store.remember(*texts, ids=ids, slot=slot)
        self.batches_in_doubt.remove(batch)
        self.kept |= batch
        return ids

    def forget(self, store: Bare, *targets: Id) -> None:
        self.forgets_in_doubt.append(frozenset(targets))
        root = store.keys._root
        store.forget(*targets)
        self.forgets_in_doubt.remove(frozenset(targets))
        self.dead_roots.add(root)
        self.gone.update(targets)
        for one in targets:
            del self.kept[one]


Scenario = Callable[[Path, Disk, History], None]


def check(path: Path, told: History) -> None:
    """Hold a store that was left somehow to what callers were told."""
    history = told.copy()
    with Bare(path, HastyDisk()) as store:
        store.door.settle()
        check_promises(store, history)
        check_at_rest(path, history)
    settled = contents(path)
    with Bare(path, HastyDisk()) as store:
        store.door.settle()
        assert settled == contents(path), "recovering twice changes nothing"
        more = history.remember(store, "one more")
        check_promises(store, history)
        history.forget(store, *more)
        check_promises(store, history)
    check_at_rest(path, history)


def check_promises(store: Bare, history: History) -> None:
    found = store.texts()
    forgotten: set[Id] = set()
    for targets in history.forgets_in_doubt:
        done = targets & store.register.forgotten
        assert done in (set(), targets), "a forget is whole or absent"
        forgotten |= done
    for one, text in history.kept.items():
        assert (None if one in forgotten else text) == found.get(one, "nothing"), (
            "what was acknowledged is there, with its key"
        )
    for one in history.gone:
        assert found.get(one, "nothing") is None, "a forget that returned is final"
    seen: dict[Id, str] = {}
    for batch in history.batches_in_doubt:
        visible = {one: text for one, text in batch.items() if one in found}
        assert visible in ({}, batch), "a batch is whole or absent"
        seen |= visible
    for one, text in seen.items():
        assert (None if one in forgotten else text) == found[one]
    assert set(history.kept) | history.gone | set(seen) == set(found), "nothing else is there"
    check_torn(store)


def check_torn(store: Bare) -> None:
    """The keys that a torn commit names are destroyed, so that what was set aside can never be read."""
    for file in (store.path / "log").glob("*.torn-*"):
        segment, _, rest = file.name.partition(".")
        place = int(segment), int(rest.split("-")[1])
        events = store.register.events
        before = [event.header for event in events if (event.where.segment, event.where.offset) < place]
        used = {slot for header in before for slot in (header.scope_slot, header.slot) if slot != NO_SLOT}
        named = slots_named(file.read_bytes(), 1 + max(used, default=-1))
        assert named <= store.keys.shredded, "the keys that a torn commit names are destroyed"


def check_at_rest(path: Path, history: History) -> None:
    _, root, slots = _read_root_slots(path / "root.key")
    assert slots[0] == slots[1], "at rest both slots hold the current root"
    for name, data in contents(path).items():
        for dead in history.dead_roots:
            assert dead not in data, f"{name} holds a root that a forget destroyed"
        assert root not in data or name == "root.key"


# --- Scenarios --------------------------------------------------------------------------------------------------------


def first_memory(path: Path, disk: Disk, history: History) -> None:
    with Bare(path, disk) as store:
        history.remember(store, "red")


def three_batches(path: Path, disk: Disk, history: History) -> None:
    with Bare(path, disk) as store:
        history.remember(store, "red")
        history.remember(store, "green", "blue", "a longer text " * 100)
        history.remember(store, "grey")


def forget_one(path: Path, disk: Disk, history: History) -> None:
    with Bare(path, disk) as store:
        one, other, _ = history.remember(store, "red", "green", "blue")
        history.forget(store, one)
        history.remember(store, "grey")
        history.forget(store, other)


def new_page_of_keys(path: Path, disk: Disk, history: History) -> None:
    with Bare(path, disk) as store:
        history.remember(store, "in the last slot but two", slot=SLOTS_PER_PAGE - 3)
        history.remember(store, "one", "two", "three", "four")
        history.remember(store, "five")


def chunk_keys(path: Path, disk: Disk, history: History) -> None:
    with Bare(path, disk) as store:
        (one,) = history.remember(store, "red")
        with store.lock.hold():
            store.keys.set_chunks({"content/words-1": bytes(32), "beliefs-1": bytes(32)})
        history.forget(store, one)
        history.remember(store, "green")


def carrying_on(path: Path, disk: Disk, history: History) -> None:
    """Whatever fails, the next call is made all the same, by a process that opens the store anew."""
    calls = 0
    while calls < 6:
        with contextlib.suppress(OSError, MunimentError), Bare(path, disk) as store:
            while calls < 6:
                calls += 1
                if calls % 3:
                    history.remember(store, f"text {calls}", "and another")
                elif history.kept:
                    history.forget(store, min(history.kept))


def same_process_carrying_on(path: Path, disk: Disk, history: History) -> None:
    """Whatever fails, the same process makes the next call."""
    with Bare(path, disk) as store:
        for call in range(1, 7):
            with contextlib.suppress(OSError, MunimentError):
                if call % 3:
                    history.remember(store, f"text {call}")
                elif history.kept:
                    history.forget(store, min(history.kept))


SCENARIOS = (
    carrying_on,
    same_process_carrying_on,
    first_memory,
    three_batches,
    forget_one,
    new_page_of_keys,
    chunk_keys,
)


class Case(NamedTuple):
    """A scenario and one thing that happens in it."""

    scenario: Scenario
    at: int
    operation: str
    fault: Fault | None

    def __str__(self) -> str:
        how = f"{errno.errorcode[self.fault.error]}-{self.fault.outcome.value}" if self.fault else "power-cut"
        return f"{self.scenario.__name__}-{self.at}-{self.operation}-{how}"


def prepared(where: Path, disk_root: str = "disk") -> tuple[Path, FaultyDisk]:
    root = where / disk_root
    root.mkdir(parents=True)
    make(root / "store", HastyDisk())
    return root / "store", FaultyDisk(root)


def run_with(case: Case, where: Path) -> tuple[Path, FaultyDisk, History]:
    path, disk = prepared(where)
    disk.arm(fault=case.fault, cut_after=None if case.fault else case.at)
    history = History()
    with contextlib.suppress(PowerCut, OSError, MunimentError):
        case.scenario(path, disk, history)
    disk.arm()
    return path, disk, history


def count_operations(scenario: Scenario, where: Path) -> list[str]:
    path, disk = prepared(where)
    scenario(path, disk, History())
    names = [operation.kind for operation in disk.operations]
    shutil.rmtree(where)
    return names


def cases(scenario: Scenario, where: Path) -> Iterator[Case]:
    for at, operation in enumerate(count_operations(scenario, where / "count"), 1):
        yield Case(scenario, at, operation, None)
        for error, outcome in faults_of(operation):
            yield Case(scenario, at, operation, Fault(at, error, outcome))


def faults_of(operation: str) -> Iterator[tuple[int, Outcome]]:
    yield errno.EIO, Outcome.ALL
    match operation:
        case "write" | "overwrite":
            yield errno.ENOSPC, Outcome.HALF
        case "sync":
            yield errno.EIO, Outcome.NOTHING
        case _:
            yield errno.ENOSPC, Outcome.NOTHING


def images(disk: FaultyDisk, live: Path, where: Path) -> Iterator[tuple[str, Path]]:
    """Yield what the next process finds: the files as they are, or what a power cut leaves of them."""
    shutil.copytree(live, where / "killed")
    yield "killed", where / "killed"
    seed = zlib.crc32(live.parent.name.encode())
    survivals: dict[str, Survival] = {
        "nothing but the synced": NothingSurvives(),
        f"journal-{seed}": ChanceSurvives(seed, ordered=True),
        f"chance-{seed}": ChanceSurvives(seed, ordered=False),
    }
    for name, survival in survivals.items():
        disk.materialise(where / name, survival)
        yield name, where / name


def failures_of(disk: FaultyDisk, live: Path, what: Callable[..., None], *told: object) -> Iterator[str]:
    for name, image in images(disk, live, live.parent):
        try:
            what(image / "store", *told)
        except (AssertionError, MunimentError, OSError) as error:
            yield f"{name}: {type(error).__name__}: {str(error).splitlines()[0]}"
        shutil.rmtree(image)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_i10_acknowledged_means_kept_whatever_fails_at_any_step(scenario: Scenario, tmp_path: Path) -> None:
    failures: list[str] = []
    for case in cases(scenario, tmp_path):
        path, disk, history = run_with(case, tmp_path / str(case))
        failures += [f"{case}, {failure}" for failure in failures_of(disk, path.parent, check, history)]
        shutil.rmtree(tmp_path / str(case))
    assert not failures, "\n".join(failures)


def torn(path: Path, size: int) -> None:
    """Append to the log what a commit of two memories leaves that was cut after some of its bytes."""
    with Bare(path, HastyDisk()) as store:
        store.door.settle()
        before = store.log.head.offset
        store.remember("never acknowledged", "nor this " * 60)
        end = store.log.head.offset
    (segment,) = (path / "log").glob("*.seg")
    whole = segment.read_bytes()
    assert before + size < end
    segment.write_bytes(whole[: before + size])


@pytest.mark.parametrize("size", [1, 40, 300, 700])
def test_recovery_that_is_interrupted_at_any_step_is_done_by_the_next_one(size: int, tmp_path: Path) -> None:
    failures: list[str] = []
    for at in itertools.count(1):
        path, _ = prepared(tmp_path / str(at))
        history = History()
        with Bare(path, HastyDisk()) as store:
            history.remember(store, "red", "green")
        torn(path, size)
        disk = FaultyDisk(path.parent, cut_after=at)
        with contextlib.suppress(PowerCut), Bare(path, disk) as store:
            store.door.settle()
        reached = len(disk.operations)
        failures += [f"cut after {at}, {failure}" for failure in failures_of(disk, path.parent, check, history)]
        if reached < at:
            break
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, None])
def test_a_creation_that_is_interrupted_at_any_step_leaves_a_store_or_none(error: int | None, tmp_path: Path) -> None:
    failures: list[str] = []
    for at in itertools.count(1):
        root = tmp_path / str(at) / "disk"
        root.mkdir(parents=True)
        disk = FaultyDisk(root)
        disk.arm(
            fault=None if error is None else Fault(at, error, Outcome.NOTHING), cut_after=at if error is None else None
        )
        returned = False
        with contextlib.suppress(PowerCut, OSError, MunimentError):
            make(root / "store", disk)
            returned = True
        reached = len(disk.operations)
        failures += [f"{at}, {failure}" for failure in failures_of(disk, root, check_created, returned)]
        if reached < at:
            break
    assert not failures, "\n".join(failures)


def check_created(path: Path, must_be_there: bool) -> None:
    try:
        find_store(path)
    except StoreMissing:
        assert not must_be_there, "a store that was created is there"
        make(path, HastyDisk())
    check(path, History())
