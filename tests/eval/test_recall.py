"""The parts of the recall evaluation that can be wrong on their own."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

from eval._abstention import auc
from eval._plot import line_plot
from eval._talks import halves_of, locomo


def test_auc_is_the_chance_of_the_right_order_and_ties_count_half() -> None:
    assert 1.0 == auc([2.0, 3.0], [1.0])
    assert 0.5 == auc([1.0], [1.0])
    assert 0.125 == auc([1.0, 2.0], [2.0, 3.0])
    assert None is auc([], [1.0])


def test_halves_are_the_same_for_the_same_seed_and_share_nothing() -> None:
    names = [f"talk {n}" for n in range(12)]
    first, second = halves_of(names)
    assert (first, second) == halves_of(names[::-1])
    assert not first & second
    assert set(names) == first | second
    assert 6 == len(first)


def test_malformed_evidence_is_read_as_far_as_it_can_be(tmp_path: Path) -> None:
    turns = [{"dia_id": f"D8:{n}", "speaker": "A", "text": "x"} for n in (5, 6)]
    turns.append({"dia_id": "D9:17", "speaker": "A", "text": "x"})
    asked = [
        {"question": "q", "evidence": ["D8:6; D9:17", "D:8:05", "D"], "category": 1},
        {"question": "q", "evidence": [], "category": 5},
    ]
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps([{"sample_id": "c", "conversation": {"session_1": turns}, "qa": asked}]))

    (talk,) = locomo(path)

    assert [{"D8:6", "D9:17", "D8:5"}, set()] == [set(probe.gold) for probe in talk.probes]
    assert [True, False] == [probe.answerable for probe in talk.probes]


def test_a_plot_is_well_formed_and_names_every_line() -> None:
    text = line_plot("a < b", (1, 5, 10), {"words & meaning": [10.0, 20.0, 30.0], "recency": [0.0, 1.0, 2.0]})
    ET.fromstring(text)
    assert "words &amp; meaning 30.0" in text
