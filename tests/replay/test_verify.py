"""Verification in several processes finds what one finds, and runs nothing of the host's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import muniment
from muniment.replay import _verify
from tests.checkout import ROOT

SCRIPT = """
import sys
from pathlib import Path
import muniment
from muniment.replay import _verify
_verify.STRETCH = 2
with (Path(sys.argv[1]) / "runs").open("a") as runs:
    runs.write("x")
with muniment.open(Path(sys.argv[1]) / "store", model="none", read_only=True) as store:
    sys.stdout.write(str(store.verify().ok))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with muniment.open(tmp_path / "store", create=True, model="none") as store:
        speaker = store.session(scope="acme", actor="agent:planner")
        for n in range(8):
            speaker.remember(f"memory {n}")
        speaker.forget(speaker.remember("soon gone").id, reason="asked")
    return tmp_path


@pytest.mark.parametrize("processes", [1, 2, 5])
def test_stretches_find_together_what_one_reading_finds(
    folder: Path, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with muniment.open(folder / "store", model="none", read_only=True) as store:
        whole = _verify.verify_log(folder / "store", store._engine.reader(), sizes=[4, 11])
        monkeypatch.setattr(_verify, "STRETCH", 2)
        parts = _verify.verify_log(folder / "store", store._engine.reader(), sizes=[4, 11], processes=processes)

    assert whole == parts
    assert {4, 11} == set(parts.roots)


def test_verifying_runs_no_script_of_the_host_again(folder: Path) -> None:
    """A host's main module need not be guarded: multiprocessing would run it once more in each process."""
    script = folder / "host.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(script), str(folder)],
        capture_output=True, text=True, check=True, env={"PYTHONPATH": str(ROOT)},
    )  # fmt: skip

    assert "True" == done.stdout
    assert "x" == (folder / "runs").read_text()
