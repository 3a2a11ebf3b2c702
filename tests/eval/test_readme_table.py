"""What the README says was measured is what the committed results say."""

from __future__ import annotations

from pathlib import Path

import pytest

from eval._harness import ROOT
from eval.readme_table import BLOCKS, block, with_block

RESULTS = ROOT / "eval" / "results"


@pytest.mark.parametrize("name", BLOCKS)
def test_the_readme_has_what_the_committed_results_give(name: str) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert with_block(text, name, block(name, RESULTS)) == text


def test_a_block_is_replaced_and_nothing_else() -> None:
    begin, end = "<!-- peers:begin -->", "<!-- peers:end -->"
    text = f"before\n{begin}\nold\n{end}\nafter\n"
    assert f"before\n{begin}\n\nnew\n\n{end}\nafter\n" == with_block(text, "peers", "new\n")
    assert with_block(text, "peers", "new\n") == with_block(with_block(text, "peers", "new\n"), "peers", "new\n")
    with pytest.raises(ValueError, match="not enough values"):
        with_block("no comments here", "peers", "new")


def test_without_a_result_the_comparison_says_so(tmp_path: Path) -> None:
    assert "Not measured yet" in block("peers", tmp_path)


def test_a_figure_that_changes_changes_the_claim(tmp_path: Path) -> None:
    for path in RESULTS.glob("*.json"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    crash = (tmp_path / "crash.json").read_text(encoding="utf-8")
    (tmp_path / "crash.json").write_text(crash.replace('"acknowledged_and_lost": 0', '"acknowledged_and_lost": 1'))
    assert "0 acknowledged and lost" in block("measured", RESULTS)
    assert "2 acknowledged and lost" in block("measured", tmp_path)
