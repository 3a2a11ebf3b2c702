"""A user's own model of two texts: natural language inference, or any cross-encoder, as an ONNX file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from muniment.events import BadArgument, ModelMissing, ModelUnfit

from ._onnx import Session, open_tokenizer

MAX_TOKENS: Final = 512
_BATCH: Final = 8


class PairModel(Protocol):
    """Says of two texts how likely the second contradicts or revises the first, from 0 to 1."""

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Sequence[float]: ...


def load_pair_model(
    model: Path,
    tokenizer: Path | None = None,
    *,
    contradiction: int = 0,
    max_tokens: int = MAX_TOKENS,
    threads: int | None = None,
) -> PairModel:
    """
    Return a model from an ONNX file of a cross-encoder, by default with the `tokenizer.json` beside it.

    Of several outputs a pair (logits of labels), `contradiction` is the label that counts, after a softmax; a single
    output goes through a logistic curve. A pair that is too long loses the end of its longer text. Raises
    `ModelMissing` when a file cannot be read or is no such model.
    """
    if max_tokens < 8:
        raise BadArgument(argument="max_tokens", detail=f"expected at least 8, got {max_tokens}")
    path = model.parent / "tokenizer.json" if tokenizer is None else tokenizer
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ModelMissing(detail=f"{error.filename}: {error.strerror}") from error
    return _OnnxPairs(str(model), data, contradiction, max_tokens, threads)


class _OnnxPairs:
    """Safe to share between threads: the session and the tokenizer are only read after construction."""

    def __init__(self, model: str, tokenizer: bytes, label: int, max_tokens: int, threads: int | None) -> None:
        self._tokenizer = open_tokenizer(tokenizer, max_tokens, stride=0)
        self._session = Session(model, threads)
        self._label = label
        labels = self._logits([("a", "b")]).shape[1]
        if not 0 <= label < labels:
            raise BadArgument(argument="contradiction", detail=f"the model has {labels} labels, got number {label}")

    def scores(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return for each pair how likely the second text contradicts the first."""
        found: list[float] = []
        for start in range(0, len(pairs), _BATCH):
            logits = self._logits(pairs[start : start + _BATCH]).astype(np.float64)
            if logits.shape[1] == 1:
                found.extend((1 / (1 + np.exp(-logits[:, 0]))).tolist())
                continue
            chances = np.exp(logits - logits.max(axis=1, keepdims=True))
            found.extend((chances[:, self._label] / chances.sum(axis=1)).tolist())
        return found

    def _logits(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        read = [self._tokenizer.encode(one, other) for one, other in pairs]
        output, _ = self._session.run([each.ids for each in read], [each.type_ids for each in read])
        if output.ndim == 1:
            output = output[:, None]
        if output.ndim != 2:
            raise ModelUnfit(detail=f"expected one line of logits a pair, got shape {output.shape}")
        return output
