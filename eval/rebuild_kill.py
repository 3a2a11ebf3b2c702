"""
Rebuilds killed by SIGKILL at seeded instants and file operations, while another process writes and forgets.

After each kill the store is opened as it lies there: its digests must be those of a fold of the log, every acknowledged
memory must be there and every forgotten one gone, also from all that a key on the disk opens, and recall and beliefs
must answer as a store without projections does. Then a second run must complete, and leave nothing of the first.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import muniment
from muniment import Store
from muniment.events import MunimentError

from ._erasure_open import open_all, read_keys
from ._harness import Result
from ._rebuild_child import SCOPE, WAYS, Child, open_with_letters, rebuild, small, write

PROMISES: Final = (
    "opened_wrong",
    "acknowledged_and_lost",
    "forgotten_and_back",
    "forgotten_and_readable",
    "answered_wrong",
    "second_run_failed",
    "left_behind",
)
QUESTIONS: Final = ("harbour", "note 17", "said 3", "berth 5", "what is in the harbour now?")
_OPERATIONS: Final = 90
_LONGEST_MS: Final = 900


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this evaluation's own arguments."""
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--events", type=int, default=1_000, help="in the store when a rebuild begins")
    parser.add_argument("--seed", type=int, default=1, help="the first of the seeds, one for each kill")


def run(args: argparse.Namespace) -> Result:
    """Kill as often as asked, and count the promises that were broken; each is listed with its seed."""
    counts: Counter[str] = Counter()
    broken: list[Result] = []
    with small(), tempfile.TemporaryDirectory(prefix="muniment-rebuild-") as name:
        template = Path(name) / "template"
        _make(template, args.events)
        seed = args.seed - 1
        while counts["killed"] < args.kills:
            seed += 1
            where = Path(name) / "run"
            shutil.copytree(template, where)
            trial = Trial(where, seed)
            found = list(trial.run())
            counts.update(trial.counts)
            for promise, what in found:
                counts[promise] += 1
                broken.append({"seed": seed, "how": trial.how, "promise": promise, "what": what})
            shutil.rmtree(where)
    return {
        "ok": not broken,
        "first_seed": args.seed,
        "events_before": args.events,
        **{key: counts[key] for key in ("killed", "at_an_operation", "at_an_instant", "ended_before_the_kill")},
        "second_run_from": {start: counts[f"from {start}"] for start in ("origin", "partial", "snapshot")},
        "rebuilt": {how: counts[f"how {how}"] for how in WAYS},
        "writes_acknowledged_meanwhile": counts["kept"],
        "forgets_acknowledged_meanwhile": counts["forgot"],
        **{promise: counts[promise] for promise in PROMISES},
        "broken": broken[:50],
    }


def _make(path: Path, events: int) -> None:
    muniment.open(path, create=True, model="none").close()
    with open_with_letters(path) as store:
        session = store.session(scope=SCOPE, actor="agent:planner")
        for start in range(0, events, 100):
            session.remember_many(
                [
                    {"content": f"note {n} of the harbour", "about": ("ship", f"berth {n % 40}"), "value": str(n)}
                    for n in range(start, min(start + 100, events))
                ]
            )
        store.embed()


class Trial:
    """One rebuild, killed, and what came of it."""

    def __init__(self, path: Path, seed: int) -> None:
        self._path, self._seed = path, seed
        chance = random.Random(seed)
        self.how = chance.choice(WAYS)
        self._at = chance.randrange(1, _OPERATIONS) if seed % 2 else 0
        self._after = chance.random() * _LONGEST_MS / 1000
        self.counts: Counter[str] = Counter()
        self._kept: dict[str, str] = {}
        self._gone: set[str] = set()

    def run(self) -> Iterator[tuple[str, str]]:
        """Kill, look, rebuild again, and yield each promise that was broken, and by what."""
        killed = self._kill()
        self.counts["killed" if killed else "ended_before_the_kill"] += 1
        if not killed:
            return
        self.counts["at_an_operation" if self._at else "at_an_instant"] += 1
        self.counts[f"how {self.how}"] += 1
        try:
            yield from self._look()
            yield from self._again()
        except (MunimentError, OSError) as error:
            yield "opened_wrong", f"{type(error).__name__}: {error}"

    def _kill(self) -> bool:
        writer = Child(write(self._path, self._seed))
        told = [writer.line() for _ in range(4)]
        job = Child(rebuild(self._path, self.how, self._at))
        job.line()
        if not self._at:
            time.sleep(self._after)
        job.end(None if self._at else signal.SIGKILL)
        for line in [*told, *writer.end(signal.SIGTERM)]:
            verb, identity, *text = line.split(" ")
            if verb not in ("kept", "forgot"):
                raise RuntimeError(f"the writer of seed {self._seed}: {line}")
            self.counts[verb] += 1
            if verb == "kept":
                self._kept[identity] = " ".join(text)
            else:
                self._gone.add(identity)
        return job.code == -signal.SIGKILL

    def _look(self) -> Iterator[tuple[str, str]]:
        bare = self._path.with_name("bare")
        shutil.copytree(self._path, bare)
        shutil.rmtree(bare / "projections")
        # As found, and by a reader that can finish nothing: what is on the disk must be right as it lies there.
        with open_with_letters(self._path, read_only=True) as store, open_with_letters(bare, read_only=True) as log:
            if store.digests() != log.digests():
                yield "opened_wrong", f"{store.digests()} is not {log.digests()}"
            log.embed()
            if _answers(store) != _answers(log):
                yield "answered_wrong", self.how
            session = store.session(scope=SCOPE, actor="user")
            for identity, text in self._kept.items():
                content = session.get(identity).content
                if identity in self._gone and content is not None:
                    yield "forgotten_and_back", identity
                if identity not in self._gone and content != text:
                    yield "acknowledged_and_lost", identity
        shutil.rmtree(bare)
        # With every key that lies on the disk, a forgotten text must open nowhere: not in what was built so far either.
        gone = [text.encode() for identity, text in self._kept.items() if identity in self._gone]
        for item in open_all(self._path, read_keys(self._path)):
            if any(text in item.plain for text in gone):
                yield "forgotten_and_readable", item.where

    def _again(self) -> Iterator[tuple[str, str]]:
        said = Child(rebuild(self._path, self.how, 0)).end()[-1:]
        if not said or not said[0].startswith("done True"):
            yield "second_run_failed", " ".join(said)
            return
        self.counts[f"from {said[0].split()[-1]}"] += 1
        with open_with_letters(self._path) as store:
            if not store.rebuild(check=True).ok:
                yield "second_run_failed", "a check differs"
            keys = store._engine.keys
            names = [*keys.content_chunks("state/"), *keys.content_chunks("content/")]
            built = [*keys.content_chunks("build/"), *keys.content_chunks("content/build/")]
            files = [path.name for path in (self._path / "projections").iterdir() if path.suffix != ".bin"]
            if built or len(files) != len(names):
                yield "left_behind", f"{built} {len(files)} files of {len(names)} names"


def _answers(store: Store) -> list[object]:
    session = store.session(scope=SCOPE, actor="user")
    hits = [[(hit.id, hit.score, hit.content) for hit in session.recall(question, k=10)] for question in QUESTIONS]
    return [hits, [(b.id, b.value, b.content) for b in session.beliefs()]]
