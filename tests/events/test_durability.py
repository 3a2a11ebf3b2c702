"""
What was acknowledged survives (I10), and what was forgotten does not (I5): each durable step, each way to fail there.

A scenario is run once to count its operations, then once for each operation and each fault. Afterwards the store is
looked at twice: as the files are (the process died, the machine lives) and as a power cut would have left them.
"""

from __future__ import annotations

import contextlib
import errno
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from muniment.events._disk import Disk
from muniment.events._errors import MunimentError
from muniment.events._ids import Id
from muniment.events._keys import SLOTS_PER_PAGE, _read_root_slots

from .faults import (
    ChanceSurvives,
    EverythingSurvives,
    Fault,
    FaultyDisk,
    HastyDisk,
    NothingSurvives,
    Outcome,
    PowerCut,
    Survival,
)
from .stores import Bare, contents, fresh_ids, make

SEEDS = range(2)


class History:
    """What callers were told: what is kept, what is gone, and what is in doubt because a call did not return."""

    def __init__(self) -> None:
        self.kept: dict[Id, str] = {}
        self.gone: set[Id] = set()
        self.batch_in_doubt: dict[Id, str] = {}
        self.forget_in_doubt: set[Id] = set()
        self.dead_roots: set[bytes] = set()
        self.acknowledged = 0

    def remember(self, store: Bare, *texts: str, slot: int | None = None) -> list[Id]:
        ids = fresh_ids(len(texts))
        self.batch_in_doubt |= dict(zip(ids, texts, strict=True))
        store.remember(*texts, ids=ids, slot=slot)
        for one in ids:
            self.kept[one] = self.batch_in_doubt.pop(one)
        self.acknowledged += 1
        return ids

    def forget(self, store: Bare, *targets: Id) -> None:
        self.forget_in_doubt.update(targets)
        root = store.keys._root
        store.forget(*targets)
        self.dead_roots.add(root)
        self.forget_in_doubt.difference_update(targets)
        self.gone.update(targets)
        for one in targets:
            del self.kept[one]
        self.acknowledged += 1


Scenario = Callable[[Path, Disk, History], None]


def check(path: Path, history: History) -> None:
    """Hold a store that was left somehow to what callers were told."""
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
    with Bare(path, HastyDisk()) as store:
        store.door.settle()
        check_promises(store, history)
        check_at_rest(path, history)


def check_promises(store: Bare, history: History) -> None:
    found = store.texts()
    forgets_done = history.forget_in_doubt & store.register.forgotten
    assert forgets_done in (set(), history.forget_in_doubt), "a forget is whole"
    for one, text in history.kept.items():
        assert (None if one in forgets_done else text) == found[one], "what was acknowledged is there, with its key"
    for one in history.gone:
        assert found[one] is None, "a forget that returned is final"
    seen = {one: text for one, text in history.batch_in_doubt.items() if one in found}
    assert seen in ({}, history.batch_in_doubt), "a batch is whole or absent"
    for one, text in seen.items():
        assert text == found[one]
    assert set(history.kept) | history.gone | set(seen) == set(found), "nothing else is there"


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


SCENARIOS = (first_memory, three_batches, forget_one, new_page_of_keys, chunk_keys)


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
        for error, outcome in (
            (errno.ENOSPC, Outcome.NOTHING),
            (errno.ENOSPC, Outcome.HALF),
            (errno.EIO, Outcome.NOTHING),
            (errno.EIO, Outcome.ALL),
        ):
            yield Case(scenario, at, operation, Fault(at, error, outcome))


def survivals() -> Iterator[tuple[str, Survival]]:
    yield "killed", EverythingSurvives()
    yield "synced only", NothingSurvives()
    for seed in SEEDS:
        yield f"journal, seed {seed}", ChanceSurvives(seed, ordered=True)
        yield f"chance, seed {seed}", ChanceSurvives(seed, ordered=False)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_i10_acknowledged_means_kept_whatever_fails_at_any_step(scenario: Scenario, tmp_path: Path) -> None:
    failures: dict[str, str] = {}
    for case in cases(scenario, tmp_path):
        where = tmp_path / str(case)
        _, disk, history = run_with(case, where)
        for name, survival in survivals():
            image = where / name
            disk.materialise(image, survival)
            try:
                check(image / "store", _copy(history))
            except (AssertionError, MunimentError, OSError) as error:
                failures[f"{case}, {name}"] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            shutil.rmtree(image)
        shutil.rmtree(where)
    assert not failures, "\n".join(f"{case}: {what}" for case, what in failures.items())


def _copy(history: History) -> History:
    copy = History()
    copy.kept, copy.gone = dict(history.kept), set(history.gone)
    copy.batch_in_doubt, copy.forget_in_doubt = dict(history.batch_in_doubt), set(history.forget_in_doubt)
    copy.dead_roots = set(history.dead_roots)
    return copy
