"""An ONNX model of texts and its tokenizer, opened on this machine without the network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast

import numpy as np
from numpy.typing import NDArray

from muniment.events import ModelMissing, ModelUnfit

from ._forks import keep_in_children

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

_INPUTS: Final = ("input_ids", "attention_mask", "token_type_ids")
_INTEGERS: Final = {"tensor(int64)": "int64", "tensor(int32)": "int32"}
# An output that is one vector a text comes first: what the exporter put after the encoder is in it.
_OUTPUTS: Final = ("sentence_embedding", "last_hidden_state", "token_embeddings")


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


class Session:
    """
    A model that reads token ids, with one output that is used: the one named, or the likeliest by its name.

    Raises `ModelMissing` for what is no model, and `ModelUnfit` for one with other inputs, without the named output, or
    of a fixed shape. Safe to share between threads.
    """

    def __init__(self, model: bytes | str, threads: int | None, *, output: str | None = None) -> None:
        self._session = _opened(model, threads)
        keep_in_children(self._session)
        self._kinds: dict[str, str] = {}
        for each in self._session.get_inputs():
            kind = _INTEGERS.get(each.type)
            if each.name not in _INPUTS or kind is None:
                raise ModelUnfit(
                    detail=f"expected inputs {', '.join(_INPUTS)} of integers, got {each.name} {each.type}"
                )
            fixed = [size for size in each.shape if isinstance(size, int)]
            if fixed or len(each.shape) != 2:
                raise ModelUnfit(detail=f"expected any number of texts and tokens, got {each.name} {each.shape}")
            self._kinds[each.name] = kind
        if "input_ids" not in self._kinds:
            raise ModelUnfit(detail=f"expected an input input_ids, got {', '.join(self._kinds) or 'none'}")
        names = [str(each.name) for each in self._session.get_outputs()]
        if output is not None and output not in names:
            raise ModelUnfit(detail=f"the model has no output `{output}`, but {', '.join(names)}")
        self.output = output or next((name for name in _OUTPUTS if name in names), names[0])
        self.is_first = self.output == names[0]
        """Whether it is the model's first output, which is what is used where nothing is said."""

    def run(
        self, ids: Sequence[Sequence[int]], kinds: Sequence[Sequence[int]] | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return the output for some texts' tokens, with their kinds where they have any, and the mask."""
        shape = (len(ids), max(1, *map(len, ids)))
        known = {name: np.zeros(shape, dtype=np.int64) for name in _INPUTS}
        for row, each in enumerate(ids):
            known["input_ids"][row, : len(each)] = each
            known["attention_mask"][row, : len(each)] = 1
            if kinds is not None:
                known["token_type_ids"][row, : len(each)] = kinds[row]
        return self._run(known), known["attention_mask"]

    def _run(self, known: Mapping[str, NDArray[np.int64]]) -> NDArray[np.float32]:
        feed = {name: known[name].astype(kind, copy=False) for name, kind in self._kinds.items()}
        try:
            found = self._session.run([self.output], feed)[0]
        except Exception as error:  # the runtime's own exceptions have no public base
            detail = f"it failed on {known['input_ids'].shape[1]} tokens: {str(error).splitlines()[0][:300]}"
            raise ModelUnfit(detail=detail) from error
        return cast("NDArray[np.float32]", found)


def _opened(model: bytes | str, threads: int | None) -> InferenceSession:
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
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the runtime's own exceptions have no public base
        raise ModelMissing(detail=f"model: {error}") from error
