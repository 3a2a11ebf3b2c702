"""The parts of the recall evaluation that can be wrong on their own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
from numpy.typing import NDArray

from eval._abstention import auc
from eval._kept_vectors import KeptEmbedder
from eval._plot import line_plot
from eval._talks import Probe, halves_of, locomo
from eval.recall_weights import _Case, _fit, _loss
from muniment.projections._evidence import FEATURES


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


class Counting:
    """An embedder that counts what it is given."""

    model_id, dim = "counting", 2

    def __init__(self) -> None:
        self.given: list[str] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.given += texts
        return np.array([[len(text), 1] for text in texts], dtype=np.float32).reshape(-1, 2)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = self.embed([text])[0]
        return vector

    def embed_windows(self, text: str) -> NDArray[np.float32]:
        return self.embed([text])


def test_a_kept_vector_is_made_once_and_a_torn_one_again(tmp_path: Path) -> None:
    first, second = Counting(), Counting()
    expected = KeptEmbedder(first, tmp_path).embed(["one", "three", "one"])
    [file] = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-1])

    again = KeptEmbedder(second, tmp_path).embed(["one", "three", "one"])

    assert [["one", "three"], ["three"]] == [first.given, second.given]
    assert expected.tolist() == again.tolist()


def test_a_text_that_is_to_have_no_vector_is_like_nothing(tmp_path: Path) -> None:
    assert [[3, 1], [0, 0]] == KeptEmbedder(Counting(), tmp_path, only={"one"}).embed(["one", "two"]).tolist()


def test_the_fit_ends_where_every_step_makes_it_worse() -> None:
    """A few rows far from the rest: whole Newton steps overshoot, and never come back."""
    generator = np.random.default_rng(0)
    width = len(FEATURES)
    probe = Probe("", frozenset({"1"}), "", True)
    cases: list[_Case] = []
    for _ in range(20):
        features = np.abs(generator.standard_normal((600, width))) ** 3
        cases.append(_Case(probe, features, np.array([int(np.argmax(features[:, -1] + 0.3 * features[:, 0]))])))
    scale = np.concatenate([case.features for case in cases]).std(axis=0)
    lines = [(case.features / scale, case.gold, 1 / len(cases)) for case in cases]

    found = _fit([(1.0, cases)], np.ones(width)) * scale

    for nudge in np.concatenate((np.eye(width), -np.eye(width))) * 1e-2:
        assert _loss(lines, found) <= _loss(lines, found + nudge)
