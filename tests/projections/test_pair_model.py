"""A user's own model of two texts: which label counts, and what is no such model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from muniment.errors import BadArgument, ModelMissing, ModelUnfit
from muniment.projections import load_pair_model
from tests.projections.test_embedder import TABLE, write_model

PAIRS = [("w5 w6", "w7"), ("w8", "w9 w10 w11"), ("tail", "tail")]


def expected(one: list[int], other: list[int], label: int) -> float:
    # The hand-made tokenizer has no template for pairs: it sets one text after the other, and nothing around them.
    logits = TABLE[[*one, *other]].astype(np.float64).mean(axis=0)
    chances = np.exp(logits - logits.max())
    return float(chances[label] / chances.sum())


@pytest.mark.parametrize("label", [0, 3])
def test_the_chance_of_the_named_label_is_the_score(tmp_path: Path, label: int) -> None:
    model = load_pair_model(write_model(tmp_path, inputs=("input_ids",), pooled=True), contradiction=label)

    alone = [model.scores([pair])[0] for pair in PAIRS]

    assert [True] * 3 == [0 < score < 1 for score in alone]
    assert expected([4], [4], label) == pytest.approx(alone[2], abs=1e-5)


def test_a_label_that_the_model_has_not_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadArgument, match="4 labels"):
        load_pair_model(write_model(tmp_path, pooled=True), contradiction=4)


def test_a_sentence_encoder_is_no_pair_model(tmp_path: Path) -> None:
    with pytest.raises(ModelUnfit, match="logits"):
        load_pair_model(write_model(tmp_path))


def test_a_missing_tokenizer_is_named(tmp_path: Path) -> None:
    model = write_model(tmp_path, pooled=True)
    with pytest.raises(ModelMissing, match="nothing"):
        load_pair_model(model, tmp_path / "nothing.json")
