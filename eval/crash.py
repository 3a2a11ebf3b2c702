"""Crashes and disk faults at seeded operations, through the public API: what was acknowledged, and what is left."""

from __future__ import annotations

import argparse
import errno
import os
import random
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import muniment
from muniment import Store
from muniment._engine import Engine, Options
from muniment._version import VERSION
from muniment.events import Disk, KeyMissing, MunimentError, NotFound, find_store
from tests.events.faults import ChanceSurvives, FaultyDisk, NothingSurvives, PowerCut

SCOPE: Final = "acme"
CALLS: Final = 6
BATCH: Final = 3
OPERATIONS: Final = 45
STRIKES: Final = ("kill-before", "kill-half", "kill-after", "ENOSPC", "EIO")
PROMISES: Final = (
    "acknowledged_and_lost",
    "half_visible_batches",
    "memories_without_their_key",
    "forgets_undone",
    "verify_failed",
    "live_differs_from_rebuilt",
    "could_not_open_or_append",
)

Tell = Callable[[str], None]


class StrikingDisk(Disk):
    """A disk whose operation number `at` kills the process, or fails."""

    def __init__(self, at: int, strike: str) -> None:
        self._left, self._strike = at, strike

    # Struck after the operation as well when half of it was asked for: only writes have halves.
    @contextmanager
    def _count(self) -> Generator[bool]:
        self._left -= 1
        struck = self._left == 0
        if struck and self._strike == "kill-before":
            os.kill(os.getpid(), signal.SIGKILL)
        if struck and self._strike in ("ENOSPC", "EIO"):
            number = getattr(errno, self._strike)
            raise OSError(number, os.strerror(number))
        yield struck and self._strike == "kill-half"
        if struck:
            os.kill(os.getpid(), signal.SIGKILL)

    def write(self, fd: int, data: bytes) -> None:
        """As the real disk, or half of it, or struck."""
        with self._count() as half:
            super().write(fd, data[: len(data) // 2] if half else data)

    def overwrite(self, fd: int, data: bytes, at: int) -> None:
        """As the real disk, or half of it, or struck."""
        with self._count() as half:
            super().overwrite(fd, data[: len(data) // 2] if half else data, at)

    def sync(self, fd: int) -> None:
        """As the real disk, or struck."""
        with self._count():
            super().sync(fd)

    def sync_directory(self, path: Path) -> None:
        """As the real disk, or struck."""
        with self._count():
            super().sync_directory(path)

    def truncate(self, fd: int, size: int) -> None:
        """As the real disk, or struck."""
        with self._count():
            super().truncate(fd, size)

    def rename(self, old: Path, new: Path) -> None:
        """As the real disk, or struck."""
        with self._count():
            super().rename(old, new)

    def remove(self, path: Path) -> None:
        """As the real disk, or struck."""
        with self._count():
            super().remove(path)


class Told:
    """What the writers were told before they stopped."""

    def __init__(self, lines: list[str]) -> None:
        self.kept: dict[str, str] = {}
        self.gone: set[str] = set()
        self.forgets_in_doubt: set[str] = set()
        for line in lines:
            verb, *words = line.split()
            match verb:
                case "kept":
                    self.kept |= {one: f"{words[0]} {n}" for n, one in enumerate(words[1:])}
                case "forget":
                    self.forgets_in_doubt.update(words)
                case "forgot":
                    self.gone.update(words)
                    self.forgets_in_doubt.difference_update(words)
                case _:
                    raise ValueError(line)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this evaluation's own arguments."""
    parser.add_argument("--faults", type=int, default=2_000, help="how many, for each number of processes")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--seed", type=int, default=1, help="the first of the seeds, one for each fault")


def run(args: argparse.Namespace) -> dict[str, object]:
    """Strike as often as asked, and count the promises that were broken; each is listed with its seed."""
    broken: list[dict[str, object]] = []
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(prefix="muniment-crash-") as name:
        template = Path(name) / "template"
        _make(template)
        for processes in args.processes:
            counts: Counter[str] = Counter()
            seed, struck = args.seed - 1, 0
            while struck < args.faults:
                seed += 1
                where = Path(name) / "run"
                where.mkdir()
                shutil.copytree(template, where / "store")
                kind, found = _one(where, seed, processes)
                struck += kind != "none"
                counts[kind] += 1
                for promise, what in found:
                    counts[promise] += 1
                    broken.append(
                        {"seed": seed, "processes": processes, "fault": kind, "promise": promise, "what": what}
                    )
                shutil.rmtree(where)
            row: dict[str, object] = {"processes": processes}
            rows.append(row | {name: counts[name] for name in (*STRIKES, "power-cut", "none", *PROMISES)})
    return {
        "ok": not broken,
        "first_seed": args.seed,
        "faults": args.faults,
        "calls_per_process": CALLS,
        "by_processes": rows,
        "broken": broken[:50],
    }


def _make(path: Path) -> None:
    with muniment.open(path, create=True, model="none") as store:
        store.session(scope=SCOPE, actor="user").remember_many([{"content": f"before {n}"} for n in range(BATCH)])


def _one(where: Path, seed: int, processes: int) -> tuple[str, list[tuple[str, str]]]:
    chance = random.Random(seed)
    at = chance.randrange(1, OPERATIONS)
    if processes == 1 and seed % 2:
        kind, lines, path = _cut_power(where, seed, at)
    else:
        kind = chance.choice(STRIKES)
        lines, struck = _strike(where / "store", seed, processes, at, kind)
        kind, path = kind if struck else "none", where / "store"
    return kind, list(_check(path, Told(lines)))


def _cut_power(where: Path, seed: int, at: int) -> tuple[str, list[str], Path]:
    disk = FaultyDisk(where, cut_after=at)
    lines: list[str] = []
    store = None
    try:
        store = _open(where / "store", disk)
        _work(store, random.Random(seed), f"s{seed}", lines.append)
        store.close()
    except PowerCut:
        if store is not None:
            store._engine.abandon()
    kind = "power-cut" if len(disk.operations) >= at else "none"
    survival = NothingSurvives() if seed % 5 == 0 else ChanceSurvives(seed, ordered=seed % 3 == 0)
    disk.materialise(where / "after", survival)
    return kind, lines, where / "after" / "store"


def _strike(path: Path, seed: int, processes: int, at: int, kind: str) -> tuple[list[str], bool]:
    reading, writing = os.pipe()
    children: list[int] = []
    for number in range(processes):
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            _child(path, StrikingDisk(at, kind) if number == 0 else Disk(), seed, number, writing)
        children.append(pid)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        lines = pipe.read().splitlines()
    ended = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
    return lines, ended[0] != 0


def _child(path: Path, disk: Disk, seed: int, number: int, pipe: int) -> None:
    status = 3
    try:
        store = _open(path, disk)
        _work(store, random.Random(seed * 100 + number), f"s{seed}p{number}", lambda line: _say(pipe, line))
        store.close()
        status = 0
    except (MunimentError, OSError):
        status = 1
    finally:
        os._exit(status)


def _say(pipe: int, line: str) -> None:
    os.write(pipe, f"{line}\n".encode())


def _open(path: Path, disk: Disk) -> Store:
    return Store(Engine(find_store(path), Options(disk=disk), VERSION), created=False)


def _work(store: Store, chance: random.Random, name: str, tell: Tell) -> None:
    mem = store.session(scope=SCOPE, actor="user")
    mine: list[str] = []
    for call in range(CALLS):
        if mine and chance.random() < 0.4:
            target = mine.pop(chance.randrange(len(mine)))
            tell(f"forget {target}")
            mem.forget(target, reason="asked")
            tell(f"forgot {target}")
        else:
            tag = f"{name}c{call}"
            size = chance.choice((1, 40, 400))
            receipts = mem.remember_many(
                [{"content": f"{tag} {n}", "metadata": {"padding": "x" * size}} for n in range(BATCH)]
            )
            ids = [one.id for one in receipts]
            tell(f"kept {tag} {' '.join(ids)}")
            mine += ids


def _check(path: Path, told: Told) -> Iterator[tuple[str, str]]:
    try:
        with muniment.open(path, model="none") as store:
            mem = store.session(scope=SCOPE, actor="user")
            mem.remember("one more")
            yield from _check_memories(mem, told)
            report = store.verify()
            if not report.ok:
                yield "verify_failed", str(report.findings)
            if not store.rebuild().ok:
                yield "live_differs_from_rebuilt", ""
    except (MunimentError, OSError) as error:
        yield "could_not_open_or_append", f"{type(error).__name__}: {error}"


def _check_memories(mem: muniment.Session, told: Told) -> Iterator[tuple[str, str]]:
    for one, content in told.kept.items():
        try:
            found = mem.get(one)
        except KeyMissing as error:
            yield "memories_without_their_key", str(error)
            continue
        except NotFound:
            yield "acknowledged_and_lost", one
            continue
        if one in told.gone:
            if found.status != "erased" or found.content is not None:
                yield "forgets_undone", one
        elif one not in told.forgets_in_doubt and found.content != content:
            yield "acknowledged_and_lost", one
    erased = {content.split()[0] for one, content in told.kept.items() if one in told.gone | told.forgets_in_doubt}
    seen: Counter[str] = Counter()
    with suppress(NotFound):
        seen.update((one.content or "").split()[0] for one in mem.list(limit=1000) if one.content)
    for tag, count in seen.items():
        if tag.startswith("s") and tag not in erased and count != BATCH:
            yield "half_visible_batches", f"{tag}: {count}"
