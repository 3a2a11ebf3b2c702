"""What the files beside a model say about how it is read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from muniment.events import ModelMissing, ModelUnfit
from muniment.projections._model_files import Settings, find_model


def write(folder: Path, **files: object) -> None:
    for name, content in files.items():
        path = folder / (name.replace("__", "/") + ".json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content), encoding="utf-8")


def settings(folder: Path) -> Settings:
    (folder / "model.onnx").touch()
    return find_model(folder).settings


def test_nothing_said_is_the_mean_of_256_tokens_without_prefix(tmp_path: Path) -> None:
    assert Settings(256, "", "", "mean", None, True, ()) == settings(tmp_path)


def test_what_sentence_transformers_writes_is_read(tmp_path: Path) -> None:
    write(
        tmp_path,
        modules=[
            {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
            {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
            {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
        ],
        sentence_bert_config={"max_seq_length": 384, "do_lower_case": False},
        config_sentence_transformers={
            "__version__": {"pytorch": "2.1.0"},
            "prompts": {"query": "Represent this sentence for searching relevant passages: "},
            "default_prompt_name": None,
        },
    )
    write(
        tmp_path,
        **{"1_Pooling__config": {"word_embedding_dimension": 768, "pooling_mode_cls_token": True,
                                 "pooling_mode_mean_tokens": False, "include_prompt": True}},
    )  # fmt: skip
    expected = Settings(384, "Represent this sentence for searching relevant passages: ", "", "cls", None, True, ())
    assert expected == settings(tmp_path)


@pytest.mark.parametrize(
    ("prompts", "query", "passage"),
    [
        ({"query": "query: ", "document": "passage: "}, "query: ", "passage: "),
        (
            {"query": "search_query: ", "passage": "search_document: "},
            "search_query: ",
            "search_document: ",
        ),
        ({"text": "say: "}, "say: ", "say: "),
        ({"text": "say: ", "query": ""}, "", "say: "),
        ({}, "", ""),
    ],
)
def test_prompts_are_found_by_the_names_that_sentence_transformers_has(
    tmp_path: Path, prompts: dict[str, str], query: str, passage: str
) -> None:
    write(tmp_path, config_sentence_transformers={"prompts": prompts, "default_prompt_name": "text"})
    found = settings(tmp_path)
    assert (query, passage) == (found.query_prefix, found.passage_prefix)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, "mean"),
        ({"pooling_mode_mean_sqrt_len_tokens": True}, "mean"),
        ({"pooling_mode_lasttoken": True}, "last"),
        ({"pooling_mode_max_tokens": True}, "max"),
        ({"embedding_dimension": 384, "pooling_mode": "cls"}, "cls"),
        ({"word_embedding_dimension": 384}, "mean"),
    ],
)
def test_pooling_is_read_in_its_older_and_its_newer_form(
    tmp_path: Path, told: dict[str, object], expected: str
) -> None:
    write(tmp_path, **{"1_Pooling__config": told})
    assert expected == settings(tmp_path).pooling


@pytest.mark.parametrize(
    ("files", "tokens"),
    [
        ({"sentence_bert_config": {"max_seq_length": 128}, "tokenizer_config": {"model_max_length": 512}}, 128),
        ({"tokenizer_config": {"model_max_length": 384}}, 384),
        ({"sentence_bert_config": {"max_seq_length": None}, "tokenizer_config": {"model_max_length": 1e30}}, 512),
        ({"sentence_bert_config": {"max_seq_length": 8192}}, 512),
    ],
)
def test_the_length_is_read_and_bounded(tmp_path: Path, files: dict[str, object], tokens: int) -> None:
    write(tmp_path, **files)
    assert tokens == settings(tmp_path).max_tokens


def test_our_own_file_counts_before_the_others(tmp_path: Path) -> None:
    write(
        tmp_path,
        sentence_bert_config={"max_seq_length": 2},
        config_sentence_transformers={"prompts": {"query": "q: ", "document": "d: "}},
    )
    write(tmp_path, **{"1_Pooling__config": {"pooling_mode_weightedmean_tokens": True}})
    told = 'max_tokens = 1024\nquery_prefix = ""\npooling = "last"\noutput = "states"\ncentre = false\n'
    (tmp_path / "model.toml").write_text(told)
    assert Settings(1024, "", "d: ", "last", "states", False, ()) == settings(tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("model.toml", 'pooling = "median"', r"model\.toml: Invalid enum value 'median'"),
        ("model.toml", "max_tokens = 4", r"model\.toml: Expected `int` >= 8"),
        ("model.toml", 'query = "q"', r"model\.toml: Object contains unknown field `query`"),
        ("model.toml", "pooling", r"model\.toml: Expected '=' after a key"),
        ("modules.json", "[", r"modules\.json: Input data was truncated"),
        ("sentence_bert_config.json", '{"max_seq_length": 2}', "`max_seq_length` is 2, expected at least 8"),
        ("1_Pooling/config.json", '{"pooling_mode": "weightedmean"}', "pooling weightedmean is not known here"),
        (
            "1_Pooling/config.json",
            '{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true}',
            "pooling cls_token, mean_tokens is not known here, expected one of cls, ",
        ),
        ("1_Pooling/config.json", '{"include_prompt": false}', "the prompt's tokens are to be left out"),
    ],
)
def test_a_file_that_makes_no_sense_is_named(tmp_path: Path, name: str, text: str, why: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    with pytest.raises(ModelUnfit, match=why):
        settings(tmp_path)


def test_a_folder_holds_one_model_and_its_files_lie_beside_it_or_above(tmp_path: Path) -> None:
    with pytest.raises(ModelMissing, match=r"expected `model\.onnx`, `onnx/model\.onnx` or one `\*\.onnx`, found none"):
        find_model(tmp_path)
    (tmp_path / "a.onnx").touch()
    assert tmp_path / "a.onnx" == find_model(tmp_path).model
    (tmp_path / "b.onnx").touch()
    with pytest.raises(ModelMissing, match=r"found a\.onnx, b\.onnx"):
        find_model(tmp_path)
    (tmp_path / "onnx").mkdir()
    (tmp_path / "onnx" / "model.onnx").touch()
    (tmp_path / "model.toml").write_text('query_prefix = "q: "')
    for path in (tmp_path, tmp_path / "onnx" / "model.onnx"):
        found = find_model(path)
        assert tmp_path / "onnx" / "model.onnx" == found.model
        assert tmp_path / "tokenizer.json" == found.tokenizer
        assert "q: " == found.settings.query_prefix
