"""
The log's speed, as ratios in one run on one disk: appends, verification, replay and forgetting.

Each figure stands beside the bare resource or the peer that it is compared with: a raw write and fdatasync, SQLite, the
`eventsourcing` package, which is installed into an environment of its own and runs as a child process. Reading is timed
by the processor's clock, all else by the wall. Replay is compared as it is read: verified, unsealed and decoded; the
fold into beliefs and tombstones, which the package has nothing like, is stated beside. `--n 1000000` makes the part
about large stores what the targets name; `open-speed --n 1000000` measures opening them.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Final

from ._harness import Result
from ._log_peer import measure_peer
from ._log_reading import chain_rate, envelope_rate, fold_rate, seal_rate, verify_rate
from ._log_size import cost_by_size
from ._log_writing import batches_at_the_layer, batches_through_the_door, one_a_frame, one_append, sqlite_batches

PEER: Final = "eventsourcing==9.5.6"
_FULL: Final = {"single": 2_000, "batches": 1_000, "n": 100_000, "forgets": 40}
_QUICK: Final = {"single": 100, "batches": 20, "n": 2_000, "forgets": 4}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take the sizes, the disk, and the peer."""
    parser.add_argument("--single", type=int, help="appends of one event")
    parser.add_argument("--batches", type=int, help="appends of a hundred events")
    parser.add_argument("--n", type=int, help="memories in the large store; the targets name 1000000")
    parser.add_argument("--forgets", type=int, help="forgets in the large store")
    parser.add_argument("--quick", action="store_true", help="a few seconds, to see that it runs")
    parser.add_argument("--dir", type=Path, help="where to write; the disk that is measured")
    parser.add_argument("--peer", default=PEER, help="what pip installs for the comparison; `none`")


def run(args: argparse.Namespace) -> Result:
    """Measure, and return the figures and the ratios."""
    sizes = {
        name: size if (given := getattr(args, name, None)) is None else int(given)
        for name, size in (_QUICK if args.quick else _FULL).items()
    }
    with tempfile.TemporaryDirectory(dir=args.dir, prefix="muniment-log-speed-") as name:
        base = Path(name)
        single = one_append(base, sizes["single"])
        layer = batches_at_the_layer(base, sizes["batches"])
        sqlite = sqlite_batches(base, sizes["batches"])
        door = batches_through_the_door(base, sizes["batches"])
        reading = _reading(base, 100 * sizes["batches"])
        peer = None if args.peer == "none" else _peer(args.peer, base, sizes, layer["events a second"], reading)
        large = cost_by_size(base, sizes["n"], appends=sizes["single"] // 4, forgets=sizes["forgets"])
    return {
        "one durable append": single,
        "log layer, 100 events a batch": layer,
        "sqlite, same batches": sqlite,
        "remember_many, 100 a batch": door,
        "reading, events a second": reading,
        "eventsourcing": peer or "left out",
        "by size": large,
        "met": _met(single, layer, sqlite, door, reading, peer, large),
    }


def _reading(base: Path, events: int) -> dict[str, float]:
    one_a_frame(base, events)
    return {
        "chain, 100 a frame": chain_rate(base / "layer"),
        "chain, 100 a frame, least": 400_000,
        "chain, 1 a frame": chain_rate(base / "frames"),
        "chain, 1 a frame, least": 200_000,
        "envelopes unsealed and decoded, one core": envelope_rate(base / "layer"),
        "both seals opened, one core": seal_rate(base / "layer"),
        "verify, as it is called": verify_rate(base / "many"),
        "verify, least": 180_000,
        "replayed into beliefs and tombstones, one core": fold_rate(base / "many"),
    }


def _peer(
    requirement: str, base: Path, sizes: dict[str, int], layer: float, reading: dict[str, float]
) -> dict[str, float]:
    found = measure_peer(
        requirement, base / "peer", batches=sizes["batches"], singles=sizes["single"], replayed=20 * sizes["batches"]
    )
    return {
        "recorder, 100 a batch, events a second": found["batches"],
        "saves of one event, a second": found["saves"],
        "replayed a second": found["replayed"],
        "our batches to the recorder's": layer / found["batches"],
        "our batches, least": 0.6,
        "our replay to its own": reading["envelopes unsealed and decoded, one core"] / found["replayed"],
        "our replay, least": 4.0,
        "our replay into beliefs to its own": (
            reading["replayed into beliefs and tombstones, one core"] / found["replayed"]
        ),
    }


def _met(
    single: dict[str, float],
    layer: dict[str, float],
    sqlite: dict[str, float],
    door: dict[str, float],
    reading: dict[str, float],
    peer: dict[str, float] | None,
    large: dict[str, float],
) -> dict[str, bool]:
    met = {
        "append at the log layer": single["ratio at the log layer"] <= single["most"],
        "append through remember": single["ratio through remember"] <= single["most"],
        "batches at the log layer": layer["events a second"] >= layer["least"],
        "ahead of SQLite that seals": layer["events a second"] >= sqlite["sealed"],
        "remember_many": door["events a second"] >= door["least"],
        "chain, 100 a frame": reading["chain, 100 a frame"] >= reading["chain, 100 a frame, least"],
        "chain, 1 a frame": reading["chain, 1 a frame"] >= reading["chain, 1 a frame, least"],
        "verify": large["verify, as it is called, events a second"] >= reading["verify, least"],
        "append by size": large["ratio of appends"] <= large["ratio of appends, at most"],
        "forget": large["ratio of forget"] <= large["ratio of forget, at most"],
    }
    if peer is not None:
        met["batches beside eventsourcing"] = peer["our batches to the recorder's"] >= peer["our batches, least"]
        met["replay beside eventsourcing"] = peer["our replay to its own"] >= peer["our replay, least"]
    return met
