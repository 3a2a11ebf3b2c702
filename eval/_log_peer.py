"""
The package `eventsourcing` from the index, in an environment of its own: its SQLite recorder, and its replay.

It neither seals nor chains. Batches are of a hundred events with a state of 300 bytes, as ours; a replay is what its
documentation calls one, an aggregate made again from its events.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Final, cast

_CHILD: Final = """
import json, os, statistics, sys, time
from uuid import uuid4
from eventsourcing.application import Application
from eventsourcing.domain import Aggregate, event
from eventsourcing.persistence import StoredEvent
from eventsourcing.sqlite import SQLiteApplicationRecorder, SQLiteDatastore

folder, batches, singles, replayed = sys.argv[1], *map(int, sys.argv[2:])

class Memory(Aggregate):
    @event("Said")
    def say(self, content: str) -> None:
        self.content = content

def timed(call, clock=time.perf_counter):
    started = clock()
    call()
    return clock() - started

def batched():
    recorder = SQLiteApplicationRecorder(SQLiteDatastore(os.path.join(folder, "recorder.db")))
    recorder.create_table()
    state, seconds = os.urandom(300), []
    for _ in range(batches):
        origin = uuid4()
        events = [StoredEvent(origin, n + 1, "memory:Said", state) for n in range(100)]
        seconds.append(timed(lambda: recorder.insert_events(events)))
    return 100 / statistics.median(seconds)

def single(app):
    memory, seconds = Memory(), []
    for n in range(singles):
        memory.say(f"{n} " + "x" * 150)
        seconds.append(timed(lambda: app.save(memory)))
    return 1 / statistics.median(seconds)

def replay(app):
    memory = Memory()
    for n in range(replayed):
        memory.say(f"{n} " + "x" * 150)
    app.save(memory)
    return replayed / min(timed(lambda: app.repository.get(memory.id), time.process_time) for _ in range(5))

path = os.path.join(folder, "app.db")
app = Application(env={"PERSISTENCE_MODULE": "eventsourcing.sqlite", "SQLITE_DBNAME": path})
print(json.dumps({"batches": batched(), "saves": single(app), "replayed": replay(app)}))
"""


def measure_peer(requirement: str, folder: Path, *, batches: int, singles: int, replayed: int) -> dict[str, float]:
    """
    Return the peer's events a second: `batches` of a hundred, single `saves`, and `replayed`.

    Its databases go into `folder`, so that they are on the disk that is measured.
    """
    with tempfile.TemporaryDirectory() as name:
        venv.create(name, with_pip=True)
        python = str(Path(name) / "bin" / "python")
        subprocess.run([python, "-m", "pip", "install", "--quiet", requirement], check=True, stdout=sys.stderr)
        folder.mkdir()
        done = subprocess.run(
            [python, "-c", _CHILD, str(folder), str(batches), str(singles), str(replayed)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    return cast("dict[str, float]", json.loads(done.stdout))
