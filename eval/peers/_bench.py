"""
What is timed of one product at one size, with a cap on each part: a part that was cut short says so in the row.

Times are the product's own, by the worker's clock. Rows of a table are one run: the machine was the same for all.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import NamedTuple, cast

from eval._harness import percentile

from ._client import Peer
from ._install import Environment
from ._protocol import Memory
from ._texts import Texts

K = 8
BATCH = 1_000
"""Memories in a batch; of a small size a tenth, so that there are ten of them."""
_WARM = 5
_OTHERS = 10
_LAGS = 20
_WRITES = 100

Row = dict[str, object]


class Caps(NamedTuple):
    """The most seconds that a part may take; the load has most of it."""

    load: float
    part: float


class Bench:
    """One product at one size, in a folder of its own."""

    def __init__(self, name: str, environment: Environment, texts: Texts, folder: Path, caps: Caps) -> None:
        self._name, self._environment, self._texts, self._folder, self._caps = name, environment, texts, folder, caps
        self._fresh = self._fresh_memories()
        self._short: list[str] = []

    def run(self, size: int) -> Row:
        """Load, measure, reopen; return the row."""
        row: Row = {"peer": self._name, "sought": size}
        with self._peer() as peer:
            peer.must("setup", folder=self._folder)
            row |= self._load(peer, size)
            row |= self._settle(peer)
            # Before the single writes: each of those leaves some products a fragment, or a row outside the index.
            row |= self._recalls(peer)
            row |= self._writes(peer)
            row |= self._lag(peer)
            row |= self._other_process(peer)
            peer.must("close")
        memories = cast("int", row["memories"])
        row["disk_bytes_per_memory"] = round(disk_bytes(self._folder) / memories)
        row |= self._reopened()
        row["cut_short"] = self._short
        return row

    def _peer(self) -> Peer:
        return Peer(self._name, self._environment)

    def _fresh_memories(self) -> Iterator[Memory]:
        for number in count():
            yield self._texts.memories(number, number + 1, mark="fresh")[0]

    def _load(self, peer: Peer, size: int) -> Row:
        """Write the memories in batches, or one by one where there is no batch call, until the cap."""
        started, done, each = time.monotonic(), 0, list[float]()
        batch = max(1, min(BATCH, size // 10))
        batched = True
        while done < size and time.monotonic() - started < self._caps.load:
            memories = self._texts.memories(done, min(size, done + batch))
            reply = peer.call("remember_many", memories=memories) if batched else None
            if reply is not None and reply.unavailable is None:
                if not reply.ok:
                    raise AssertionError(f"{self._name} could not load: {reply.why}")
                each.append(reply.ns / len(memories) / 1e3)
                done += len(memories)
                continue
            batched = False
            for memory in memories:
                if time.monotonic() - started >= self._caps.load:
                    break
                each.append(peer.must("remember", memory=memory).ns / 1e3)
                done += 1
        if done < size:
            self._short.append(f"load: {done:,} of {size:,} after {self._caps.load:.0f} s")
        return {
            "memories": done,
            "load_s": round(time.monotonic() - started, 2),
            "batch": batch if batched else 1,
            "batch_write_us_per_memory": round(statistics.median(each), 1),
        }

    def _settle(self, peer: Peer) -> Row:
        reply = peer.call("settle")
        if reply.error or reply.refused:
            raise AssertionError(f"{self._name} could not settle: {reply.why}")
        return {"settle_ms": round(reply.ns / 1e6, 1) if reply.ok else None, "settle": reply.value or reply.why}

    def _writes(self, peer: Peer) -> Row:
        times = self._timed("writes", lambda: peer.must("remember", memory=next(self._fresh)).ns, _WRITES)
        return spread("write", times)

    def _recalls(self, peer: Peer) -> Row:
        questions = self._texts.questions

        def ask(number: int) -> int:
            question = questions[number % len(questions)]
            return peer.must("recall", text=question.text, vector=question.vector, k=K).ns

        for number in range(_WARM):
            ask(number)
        numbers = count()
        return spread("recall", self._timed("recalls", lambda: ask(next(numbers)), len(questions)))

    def _lag(self, peer: Peer) -> Row:
        """Write, then ask until it is there: from the acknowledgement to the end of the recall that gave it."""
        found: list[bool] = []

        def once() -> int:
            reply = peer.must("lag", memory=next(self._fresh))
            found.append(bool(cast("dict[str, object]", reply.value)["found"]))
            return reply.ns

        times = self._timed("lag", once, _LAGS)
        return {**spread("lag", times), "lag_found": sum(found) / len(found)}

    def _other_process(self, peer: Peer) -> Row:
        """A second process writes, and this one asks at once."""
        found: list[bool] = []
        times: list[float] = []
        with self._peer() as other:
            reply = other.call("setup", folder=self._folder)
            for memory in islice(self._fresh, _OTHERS) if reply.ok else ():
                reply = other.call("remember", memory=memory)
                if not reply.ok:
                    break
                seen = cast("dict[str, object]", peer.must("find", memory=memory).value)
                found.append(bool(seen["found"]))
                times.append(cast("int", seen["ns"]) / 1e3)
            other.call("close")
        if not found:
            return {"other_process_p50_us": None, "other_process_found": 0.0, "other_process": reply.why}
        # A median of times after which nothing was found would look like a latency.
        p50 = round(percentile(times, 50), 1) if sum(found) * 2 > len(found) else None
        return {"other_process_p50_us": p50, "other_process_found": sum(found) / len(found)}

    def _reopened(self) -> Row:
        """A fresh process opens the store and asks once; its imports are made before, and stated apart."""
        question = self._texts.questions[0]
        with self._peer() as peer:
            before = cast("int", peer.must("resident").value)
            opened = peer.must("setup", folder=self._folder)
            first = peer.must("recall", text=question.text, vector=question.vector, k=K)
            resident = cast("int", peer.must("resident").value)
            peer.must("close")
            return {
                "import_ms": round(peer.start_ns / 1e6),
                "reopen_ms": round(opened.ns / 1e6, 2),
                "first_recall_ms": round(first.ns / 1e6, 2),
                "reopen_to_recall_ms": round((opened.ns + first.ns) / 1e6, 2),
                "imported_rss_mb": round(before / 1e6, 1),
                "rss_mb": round(resident / 1e6, 1),
            }

    def _timed(self, part: str, call: Callable[[], int], most: int) -> list[float]:
        """Call until there are enough, or the part's time is over; microseconds."""
        started, times = time.monotonic(), list[float]()
        for _ in range(most):
            if times and time.monotonic() - started > self._caps.part:
                self._short.append(f"{part}: {len(times)} of {most} after {self._caps.part:.0f} s")
                break
            times.append(call() / 1e3)
        return times


def spread(name: str, times: list[float]) -> Row:
    """Return the median, the 99th percentile and how many there were."""
    return {
        f"{name}_p50_us": round(percentile(times, 50), 1),
        f"{name}_p99_us": round(percentile(times, 99), 1),
        f"{name}s": len(times),
    }


def disk_bytes(folder: Path) -> int:
    """Return what the files of a folder take on the disk, whole blocks counted."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def empty_rss(name: str, environment: Environment, texts: Texts, folder: Path) -> float:
    """Return the resident megabytes of a process with an almost empty store, reopened and asked once."""
    question = texts.questions[0]
    with Peer(name, environment) as peer:
        peer.must("setup", folder=folder)
        peer.must("remember", memory=texts.memories(0, 1)[0])
        peer.call("settle")
        peer.must("close")
    with Peer(name, environment) as peer:
        peer.must("setup", folder=folder)
        peer.must("recall", text=question.text, vector=question.vector, k=K)
        return cast("int", peer.must("resident").value) / 1e6
