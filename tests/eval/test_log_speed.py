"""The evaluation of the log's speed, as small as can be: what it measures is there, and is what it says."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, cast

from eval import log_speed
from eval._log_reading import chain_rate
from eval._log_writing import one_a_frame
from muniment.events import Disk, Log, find_store


def test_every_line_of_the_log_is_measured(tmp_path: Path) -> None:
    args = argparse.Namespace(single=4, batches=1, n=20, forgets=1, quick=True, dir=tmp_path, peer="none")
    result = cast("dict[str, Any]", log_speed.run(args))

    assert "left out" == result["eventsourcing"]
    assert 20 == result["by size"]["memories"]
    assert {
        "append at the log layer", "append through remember", "batches at the log layer", "ahead of SQLite that seals",
        "remember_many", "chain, 100 a frame", "chain, 1 a frame", "verify", "append by size", "forget",
    } == set(result["met"])  # fmt: skip
    assert [] == list(tmp_path.iterdir())


def test_frames_of_one_event_hold_one_event(tmp_path: Path) -> None:
    one_a_frame(tmp_path, 7)
    files = find_store(tmp_path / "frames")
    log = Log(files.log, files.store_id, Disk(), read_only=True)

    assert [1] * 7 == [len(located.frame.events) for located in log.read_new()]
    assert chain_rate(tmp_path / "frames") > 0
