"""The acceptance tests for agent memory: every step can fail, for its own fault only, and Muniment passes all."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from eval._atlas import failing, table_text
from eval._atlas_muniment import MunimentAdapter
from eval.atlas.agent_memory_atlas import STEPS, Adapter, Item, Step, Trial, assess, run_step
from eval.atlas.agent_memory_atlas.__main__ import main
from eval.atlas.agent_memory_atlas._faults import FAULTS
from eval.atlas.agent_memory_atlas.reference import PLANTED, Leaky, Sound, leaky
from tests.checkout import ROOT

REFERENCE = "eval.atlas.agent_memory_atlas.reference"
IDS = [step.id for step in STEPS]


def test_the_sound_reference_passes_every_step_on_memories_of_their_own() -> None:
    assert {} == failing(assess(Sound))


def test_there_is_a_leak_for_every_step() -> None:
    assert len(IDS) == len(set(IDS))
    assert sorted(IDS) == sorted(FAULTS)


@pytest.mark.parametrize("step", IDS)
def test_a_leak_that_is_switched_on_alone_fails_exactly_its_step(step: str) -> None:
    assert {step: "fail"} == failing(assess(leaky(step), shared=True))


def test_the_leaky_reference_fails_exactly_what_was_planted() -> None:
    assert dict.fromkeys(PLANTED, "fail") == failing(assess(Leaky))


def test_a_leak_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ValueError, match="no leak `nonsense`; there are mark"):
        leaky("nonsense")


# --- what is not a pass -----------------------------------------------------------------------------------------------


def test_a_feature_that_is_not_there_is_unavailable() -> None:
    assert {"unavailable"} == {one.outcome for one in assess(Adapter, shared=True).outcomes}


class StoresNothing(Sound):
    """Acknowledges everything, keeps nothing."""

    name = "stores nothing"

    def recall(self, query: str, *, scope: str, k: int = 10) -> list[Item]:
        """Return nothing."""
        return []

    def look(self, where: str, *, scope: str) -> list[str]:
        """Return nothing."""
        return []

    def context(self, query: str, *, scope: str) -> str:
        """Return nothing."""
        return "<memories>\n</memories>"

    def get(self, id: str, *, scope: str) -> str | None:  # noqa: A002
        """Return nothing."""
        return None

    def current(self, key: object, *, scope: str, valid_at: object = None, known_at: object = None) -> list[str]:
        """Return nothing."""
        return []

    def may(self, action: str, *, evidence: Sequence[str], scope: str) -> bool:
        """Allow nothing."""
        return False

    def audit(self, *, scope: str) -> list[object]:  # type: ignore[override]
        """Return nothing."""
        return []

    def run_case(self, name: str) -> bool:
        """Pass nothing."""
        return False


def test_a_memory_that_stores_nothing_passes_no_step() -> None:
    """It never shows what it should not: without controls it would pass every step that looks for absence."""
    report = assess(StoresNothing, shared=True)

    assert [] == report.of("pass")
    assert {"obligations": "0/28", "invariants": "0/56"} == {
        sort: report.to_dict()[sort] for sort in ("obligations", "invariants")
    }


def test_a_step_without_a_control_or_an_expectation_is_not_passed(tmp_path: Path) -> None:
    def without_control(t: Trial) -> None:
        t.expect(True, "so it is")

    def without_expectation(t: Trial) -> None:
        t.control(True, "so it is")

    for attempt in (without_control, without_expectation):
        outcome = run_step(Step("mark.x", "nothing", "invariant", attempt), lambda _: Sound(tmp_path))
        assert ("control_failed", "the step stated no control or no expectation") == (outcome.outcome, outcome.detail)


def test_what_an_adapter_raises_is_an_error_of_that_step_and_ends_no_run(tmp_path: Path) -> None:
    def broken(t: Trial) -> None:
        raise KeyError("x")

    outcome = run_step(Step("mark.x", "nothing", "invariant", broken), lambda _: Sound(tmp_path))

    assert ("error", "KeyError: 'x'") == (outcome.outcome, outcome.detail)


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_says_with_its_exit_code_how_it_came_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["run", f"{REFERENCE}:Sound", "--only", "scope", "--shared"])
    assert "reference (sound) 1: 5 pass, 0 fail, 0 unavailable, 0 control_failed, 0 error" in capsys.readouterr().out
    assert 1 == main(["run", f"{REFERENCE}:Leaky", "--only", "scope", "--json"])
    report = json.loads(capsys.readouterr().out)
    assert (False, "4/5") == (report["ok"], report["invariants"])
    assert 2 == main(["run", f"{REFERENCE}:Nobody"])
    assert 2 == main(["run", REFERENCE])


def test_the_list_has_every_step_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["list"])
    lines = capsys.readouterr().out.splitlines()
    assert IDS == [line.split()[0] for line in lines]
    assert not [line for line in lines if len(line.split()) < 4]


def test_the_package_stands_by_itself() -> None:
    """Without this repository on the path, without Muniment, without site packages."""
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'eval' / 'atlas')!r}); "
        "from agent_memory_atlas.__main__ import main; "
        "code = main(['run', 'agent_memory_atlas.reference:Sound', '--shared']); "
        "sys.exit(code or any(name.split('.')[0] in ('muniment', 'eval') for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)

    assert (0, "") == (done.returncode, done.stderr)


# --- Muniment, and what is committed ----------------------------------------------------------------------------------


class WordsOnly(MunimentAdapter):
    """Muniment without its embedder, and with the case that pytest would run left to the evaluation."""

    model = "none"

    def run_case(self, name: str) -> bool:
        """Look the case up instead of starting pytest within pytest."""
        return f"def {name}(" in self.negative_case().file.read_text(encoding="utf-8")


@pytest.mark.parametrize("group", dict.fromkeys(step.group for step in STEPS))
def test_muniment_passes_every_step(group: str) -> None:
    assert {} == failing(assess(WordsOnly, only=[group], shared=True))


def test_the_committed_table_is_made_of_the_committed_result() -> None:
    results = ROOT / "eval" / "results"
    result = json.loads((results / "atlas.json").read_text(encoding="utf-8"))["result"]

    assert result["ok"]
    assert IDS == [row["step"] for row in result["table"]]
    assert table_text(result) == (results / "atlas.md").read_text(encoding="utf-8")
