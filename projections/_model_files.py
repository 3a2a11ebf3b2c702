"""
Where a user's model lies, and what the files beside it say about how it is read.

Of what is said twice the first counts: `model.toml`, which is ours and can say everything; then what
sentence-transformers writes: `modules.json` and its pooling's configuration, `config_sentence_transformers.json` for
prompts, `sentence_bert_config.json` and `tokenizer_config.json` for the length.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal, TypeVar

import msgspec

from muniment.events import ModelMissing, ModelUnfit

MAX_TOKENS: Final = 256  # what all-MiniLM-L6-v2 was trained to read, and what is read where nothing else is said
MOST_TOKENS: Final = 512
"""No more than this is read at once on the word of sentence-transformers' files: windows of a long text are faster."""
SETTINGS_FILE: Final = "model.toml"

Pooling = Literal["mean", "cls", "last", "max"]
_T = TypeVar("_T")

_MODELS: Final = ("model.onnx", "onnx/model.onnx")
# By their names in the older and in the newer form of the file. A mean over the root of the length is a mean here:
# vectors get length 1 afterwards.
_POOLINGS: Final[dict[str, Pooling]] = {
    "cls": "cls",
    "cls_token": "cls",
    "mean": "mean",
    "mean_tokens": "mean",
    "mean_sqrt_len_tokens": "mean",
    "lasttoken": "last",
    "max": "max",
    "max_tokens": "max",
}
_OF_PASSAGES: Final = ("document", "passage", "corpus")  # where sentence-transformers looks, in its order
_NOTHING_TO_ADD: Final = ("Transformer", "Pooling", "Normalize")


@dataclass(frozen=True)
class Settings:
    """How a model is read; `output` is None where the names of the model's outputs decide."""

    max_tokens: int = MAX_TOKENS
    query_prefix: str = ""
    passage_prefix: str = ""
    pooling: Pooling = "mean"
    output: str | None = None
    centre: bool = True
    layers_after: tuple[str, ...] = ()
    """What comes after the pooling, and is missing from an ONNX file that gives token vectors."""


@dataclass(frozen=True)
class ModelFiles:
    """A model, its tokenizer, and how it is read."""

    model: Path
    tokenizer: Path
    settings: Settings


class _Told(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `model.toml` may hold."""

    max_tokens: Annotated[int, msgspec.Meta(ge=8)] | None = None
    query_prefix: str | None = None
    passage_prefix: str | None = None
    pooling: Pooling | None = None
    output: str | None = None
    centre: bool | None = None


class _Prompts(msgspec.Struct, frozen=True):
    prompts: dict[str, str | None] = {}
    default_prompt_name: str | None = None


class _Module(msgspec.Struct, frozen=True):
    type: str
    path: str = ""


def find_model(path: Path, tokenizer: Path | None = None) -> ModelFiles:
    """
    Return the files of a model at a path: an ONNX file, or a folder that holds one.

    In a folder that is `model.onnx`, `onnx/model.onnx`, or the only `*.onnx`. All other files lie beside it, or beside
    its folder `onnx`. Raises `ModelMissing` when a file is not there or cannot be read, and `ModelUnfit` when one of
    those beside it makes no sense or asks for what is not known here.
    """
    try:
        model = _model_in(path) if path.is_dir() else path
        folder = model.parent
        if folder.name == "onnx" and not (folder / "tokenizer.json").exists():
            folder = folder.parent
        settings = _settings(folder)
    except OSError as error:
        raise ModelMissing(detail=f"{error.filename}: {error.strerror}") from error
    return ModelFiles(model, folder / "tokenizer.json" if tokenizer is None else tokenizer, settings)


def _model_in(folder: Path) -> Path:
    for name in _MODELS:
        if (folder / name).is_file():
            return folder / name
    found = sorted(each for each in folder.iterdir() if each.suffix == ".onnx")
    if len(found) == 1:
        return found[0]
    names = ", ".join(each.name for each in found) or "none"
    raise ModelMissing(detail=f"{folder}: expected `{_MODELS[0]}`, `{_MODELS[1]}` or one `*.onnx`, found {names}")


def _settings(folder: Path) -> Settings:
    told = _read(folder / SETTINGS_FILE, _Told) or _Told()
    prompts = _read(folder / "config_sentence_transformers.json", _Prompts) or _Prompts()
    otherwise = prompts.prompts.get(prompts.default_prompt_name or "") or ""
    query = _first(prompts.prompts, ("query",), otherwise)
    passage = _first(prompts.prompts, _OF_PASSAGES, otherwise)
    modules = _read(folder / "modules.json", list[_Module]) or [_Module("Pooling", "1_Pooling")]
    pooling = next((module.path for module in modules if _kind(module) == "Pooling"), None)
    return Settings(
        max_tokens=told.max_tokens or _max_tokens(folder),
        query_prefix=query if told.query_prefix is None else told.query_prefix,
        passage_prefix=passage if told.passage_prefix is None else told.passage_prefix,
        pooling=told.pooling or _pooling(folder / (pooling or "1_Pooling") / "config.json"),
        output=told.output,
        centre=told.centre is not False,
        layers_after=tuple(kind for module in modules if (kind := _kind(module)) not in _NOTHING_TO_ADD),
    )


def _kind(module: _Module) -> str:
    return module.type.rpartition(".")[2]


def _first(prompts: dict[str, str | None], names: tuple[str, ...], otherwise: str) -> str:
    return next((found for name in names if (found := prompts.get(name)) is not None), otherwise)


def _max_tokens(folder: Path) -> int:
    for file, name in (("sentence_bert_config.json", "max_seq_length"), ("tokenizer_config.json", "model_max_length")):
        told = (_read(folder / file, dict[str, object]) or {}).get(name)
        # A tokenizer without a limit says 10 to the 30th.
        if isinstance(told, int | float) and told >= 1:
            if told < 8:
                raise _unfit(folder / file, f"`{name}` is {told}, expected at least 8")
            return int(min(told, MOST_TOKENS))
    return MAX_TOKENS


def _pooling(file: Path) -> Pooling:
    told = _read(file, dict[str, object]) or {}
    if told.get("include_prompt") is False:
        raise _unfit(file, "the prompt's tokens are to be left out of the pooling, which is not known here")
    asked = {name.removeprefix("pooling_mode_") for name, on in told.items() if on is True and "pooling_mode_" in name}
    if isinstance(mode := told.get("pooling_mode"), str):
        asked = {mode}
    if not asked:
        return "mean"
    if len(asked) > 1 or not asked <= set(_POOLINGS):
        names = ", ".join(sorted(asked))
        raise _unfit(file, f"pooling {names} is not known here, expected one of {', '.join(sorted(_POOLINGS))}")
    return _POOLINGS[asked.pop()]


def _read(file: Path, kind: type[_T]) -> _T | None:
    try:
        data = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        if file.suffix == ".toml":
            return msgspec.convert(tomllib.loads(data.decode()), kind)
        return msgspec.json.decode(data, type=kind)
    except ValueError as error:  # of either library, for text that is not in the format or not what is expected
        raise _unfit(file, str(error)) from error


def _unfit(file: Path, detail: str) -> ModelUnfit:
    return ModelUnfit(detail=f"{file.name}: {detail}")
