"""How long one LoCoMo conversation takes to import, to embed and to be asked; and what importing it again adds.

With `--memory` also how the peak of resident memory grows with the turns imported, without vectors: while they come in,
and when closing the store saves what it holds of them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar, cast

import muniment
from muniment import Session, Store

from ._harness import Result, need, time_each

T = TypeVar("T")
SCOPE = "eval/locomo"
# How many turns of how many characters.
_MEMORY_TURNS = ((0, 0), (20_000, 85), (50_000, 85), (5_000, 3_000))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add which conversation is imported, and whether memory is measured."""
    parser.add_argument("--conversation", default=None, help="its sample_id; the first of the file by default")
    parser.add_argument("--memory", action="store_true", help="measure memory too, in processes of their own")


def run(args: argparse.Namespace) -> Result:
    """Import one conversation into a new store, embed it, ask the questions that the file asks of it, import again."""
    path = need(args, "locomo/locomo_dev.json")
    samples = cast("list[dict[str, object]]", json.loads(path.read_text(encoding="utf-8")))
    name = str(args.conversation or samples[0]["sample_id"])
    sample = next(one for one in samples if one["sample_id"] == name)
    questions = [str(one["question"]) for one in cast("list[dict[str, object]]", sample["qa"])]
    with tempfile.TemporaryDirectory() as folder, muniment.open(Path(folder) / "store", create=True) as store:
        result = _measure(store, path, name, questions)
    if args.memory:
        result["memory"] = [_memory_of(turns, length) for turns, length in _MEMORY_TURNS]
    return result


def _measure(store: Store, path: Path, name: str, questions: list[str]) -> Result:
    def bring_in() -> muniment.ImportReport:
        return store.import_file(path, scope=SCOPE, only=(name,), embed=False)

    first, import_seconds = _timed(bring_in)
    embedded, embed_seconds = _timed(store.embed)
    mem = store.session(scope=SCOPE, actor="agent:eval")
    mem.recall(questions[0])  # the first one absorbs the words
    recall = time_each([partial(_ask, mem, question) for question in questions])
    head = store.head.seq
    again, again_seconds = _timed(bring_in)
    return {
        # Above the number of cores, the durations are those of a machine that others were using.
        "load_average": round(os.getloadavg()[0], 2),
        "conversation": name,
        "turns": first.read,
        "written": first.written,
        "import_seconds": round(import_seconds, 4),
        "turns_per_second": round(first.read / import_seconds),
        "embedded": embedded,
        "embed_seconds": round(embed_seconds, 3),
        "embeds_per_second": round(embedded / embed_seconds, 1),
        "questions": len(questions),
        "recall_us": recall,
        "again_written": again.written,
        "again_repeated": again.repeated,
        "again_events": store.head.seq - head,
        "again_seconds": round(again_seconds, 4),
        "store_bytes": store.stats()["bytes"],
        "ok": first.written == embedded == first.read and again.written == 0 and store.head.seq == head,
    }


def _ask(mem: Session, question: str) -> object:
    return mem.recall(question, k=8)


def _timed(call: Callable[[], T]) -> tuple[T, float]:
    start = time.perf_counter()
    found = call()
    return found, time.perf_counter() - start


def _memory_of(turns: int, length: int) -> Result:
    """Import a file of that many turns in a process of its own, whose peak is then the import's."""
    words = [sys.executable, "-m", __name__, str(turns), str(length)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return cast("Result", json.loads(done.stdout))


def _import_made(turns: int, length: int) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made.jsonl"
        with path.open("w", encoding="utf-8") as file:
            for number in range(turns):
                said = f"Turn {number}: " + (
                    "the heron stood by the river, and nobody asked why; " * (1 + length // 50)
                )
                role = ("user", "assistant")[number % 2]
                file.write(
                    json.dumps({"role": role, "content": said[:length], "time": f"@{1_600_000_000 + number}"}) + "\n"
                )
        with muniment.open(Path(folder) / "store", create=True, model="none") as store:
            report, seconds = _timed(lambda: store.import_file(path, scope=SCOPE, format="jsonl", embed=False))
            imported = _peak_bytes()
        return {
            "turns": report.written,
            "file_bytes": path.stat().st_size,
            "seconds": round(seconds, 2),
            "peak_bytes_imported": imported,
            "peak_bytes_closed": _peak_bytes(),
        }


def _peak_bytes() -> int:
    # Not getrusage: what it gives is inherited from the process that started this one.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1_024 * int(status.partition("VmHWM:")[2].split()[0])


if __name__ == "__main__":
    print(json.dumps(_import_made(int(sys.argv[1]), int(sys.argv[2]))))
