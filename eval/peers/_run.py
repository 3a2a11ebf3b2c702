"""The whole comparison: environments, then every product at every size, then erasure, verbs and guards."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import cast

from eval._harness import need, time_calls
from eval._plot import log_plot

from ._bench import BATCH, Bench, Caps, K, empty_rss
from ._client import Peer, WorkerGone
from ._erased import erased_row
from ._guards import guard_rows
from ._install import Environment, NotInstalled, default_cache, ensure, frozen
from ._protocol import ADAPTERS
from ._table import markdown
from ._texts import Texts, load_texts
from ._verbs import verbs_row

Row = dict[str, object]
_INDEXED_FROM = 100_000
_INDEX_OF = {"lancedb-index": "lancedb"}
"""Products measured a second time, with an index, from a size on."""


def measure(args: argparse.Namespace) -> Row:
    """Return the result, and write `peers.md` and `peers.svg` beside where it goes."""
    path = need(args, "locomo/locomo_dev.json")
    cache = args.cache or default_cache()
    wanted = list(ADAPTERS) if args.peers == "all" else args.peers.split(",")
    sizes = [int(size) for size in args.sizes.split(",")]
    environments, absent = _environments(wanted, cache)
    texts = load_texts(path, cache, turns=args.turns, questions=args.questions)
    started = time.monotonic()
    rows, failed = _rows(environments, texts, sizes, Caps(args.load_cap, args.part_cap))
    result: Row = {
        **({"smoke": "a smoke run on a busy machine: the times say nothing"} if args.smoke else {}),
        "load_average": round(os.getloadavg()[0], 2),
        "sizes": sizes,
        "k": K,
        "batch": BATCH,
        "caps_s": {"load": args.load_cap, "part": args.part_cap},
        "texts": {"set": "LoCoMo turns", "turns": args.turns, "questions": len(texts.questions)},
        "embedding_a_question_p50_us": _embedding(texts),
        "peers": {name: _facts(name, environment) for name, environment in environments.items()},
        "not_installed": absent,
        "rows": rows,
        "verbs": _each(environments, failed, "verbs", verbs_row),
        "erased": _each(environments, failed, "erased", partial(_erased, texts)),
        "guards": _guards(environments, args.guard_every),
        "failed": failed,
    }
    result["minutes"] = round((time.monotonic() - started) / 60, 1)
    result["ok"] = not failed and not absent
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "peers.md").write_text(markdown(result), encoding="utf-8")
    (args.out / "peers.svg").write_text(_plot(sizes, rows), encoding="utf-8")
    return result


def _environments(wanted: list[str], cache: Path) -> tuple[dict[str, Environment], dict[str, str]]:
    ready: dict[str, Environment] = {}
    absent: dict[str, str] = {}
    for name in wanted:
        try:
            ready[name] = ensure(name, cache)
        except NotInstalled as error:
            absent[name] = str(error)
    return ready, absent


def _facts(name: str, environment: Environment) -> Row:
    with Peer(name, environment) as peer:
        facts = cast("Row", peer.must("facts").value)
    packages = frozen(environment) if environment.requirements else {}
    return {**facts, "requirements": list(environment.requirements), "packages": packages}


def _rows(
    environments: dict[str, Environment], texts: Texts, sizes: list[int], caps: Caps
) -> tuple[list[Row], list[Row]]:
    rows: list[Row] = []
    failed: list[Row] = []
    empty: dict[str, float] = {}
    for size in sizes:
        for name, environment in environments.items():
            if name in _INDEX_OF and size < _INDEXED_FROM:
                continue
            started = time.monotonic()
            with _folder() as folder, _noting(failed, name, f"at {size}"):
                if name not in empty:
                    empty[name] = empty_rss(name, environment, texts, folder / "empty")
                row = Bench(name, environment, texts, folder / "full", caps).run(size)
                grown = cast("float", row["rss_mb"]) - empty[name]
                row["empty_rss_mb"] = round(empty[name], 1)
                row["ram_bytes_per_memory"] = round(grown * 1e6 / cast("int", row["memories"]))
                row["seconds"] = round(time.monotonic() - started, 1)
                rows.append(row)
                _say(f"{name} at {size:,}: {row['seconds']} s, recall {row['recall_p50_us']} us {row['cut_short']}")
    return rows, failed


def _each(
    environments: dict[str, Environment],
    failed: list[Row],
    what: str,
    look: Callable[[str, Environment, Path], Row],
) -> list[Row]:
    rows: list[Row] = []
    for name, environment in environments.items():
        if name in _INDEX_OF:
            continue
        with _folder() as folder, _noting(failed, name, what):
            rows.append(look(name, environment, folder / "store"))
            _say(f"{name}: {what} done")
    return rows


def _erased(texts: Texts, name: str, environment: Environment, folder: Path) -> Row:
    return erased_row(name, environment, texts, folder)


def _guards(environments: dict[str, Environment], every: int) -> list[Row]:
    return guard_rows(environments.get("midas"), every=every) if every else []


def _embedding(texts: Texts) -> float:
    from muniment.projections import packaged_embedder  # noqa: PLC0415  # loads a model's library

    embedder = packaged_embedder()
    asked = iter(texts.questions * 2)
    return round(time_calls(lambda: embedder.embed_query(next(asked).text), n=min(40, len(texts.questions))).p50, 1)


def _plot(sizes: list[int], rows: list[Row]) -> str:
    lines: dict[str, dict[int, float]] = {}
    for row in rows:
        if row["memories"] == row["sought"]:
            lines.setdefault(str(row["peer"]), {})[cast("int", row["sought"])] = cast("float", row["recall_p50_us"])
    return log_plot("Recall, median in microseconds, by number of memories (both axes logarithmic)", sizes, lines)


@contextmanager
def _folder() -> Generator[Path, None, None]:
    with tempfile.TemporaryDirectory(prefix="muniment-peers-") as name:
        yield Path(name)


@contextmanager
def _noting(failed: list[Row], name: str, what: str) -> Generator[None, None, None]:
    """Go on with the others where one fails, and put it in the result."""
    try:
        yield
    except (AssertionError, WorkerGone) as error:
        failed.append({"peer": name, "what": what, "why": str(error)[:500]})
        _say(f"{name} {what}: FAILED, {error}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
