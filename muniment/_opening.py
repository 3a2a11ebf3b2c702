"""What `open` is given, made into options: all of it is checked before a store is looked for, let alone made."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Final, cast

from muniment.events import BadArgument, Disk, check_path, checked_clock
from muniment.gate import KeyFile, Policy, Signer, check_flag, check_signer, rule_names
from muniment.projections import Embedder, load_embedder, packaged_embedder

from ._engine import Options

_NO_VECTORS: Final = ("none", "off")


def options_of(
    *,
    read_only: bool,
    policy: Policy | str | Path | None,
    model: str | Path | None,
    secrets: str,
    exempt_secrets: Sequence[str],
    anchor: str | Path | None,
    log_key: Signer | str | Path | None,
    graph: bool,
    segment_bytes: int,
    clock: Callable[[], int],
) -> Options:
    """
    Return the options of a store that is to be opened; see `muniment.open`.

    Raises:
        BadArgument: one is not what its name says; the error names it.
    """
    if secrets not in ("refuse", "mask"):
        raise BadArgument(argument="secrets", detail=f"expected refuse or mask, got `{secrets}`")
    return Options(
        read_only=check_flag(read_only, "read_only"),
        policy=policy if isinstance(policy, Policy) else None if policy is None else Policy.from_file(policy),
        load_embedder=_embedder_loader(model),
        mask_secrets=secrets == "mask",
        exempt_secrets=_rules(exempt_secrets),
        clock=checked_clock(clock),
        disk=Disk(),
        log_key=None if log_key is None else _signer(log_key),
        anchor=None if anchor is None else check_path(anchor, "anchor").expanduser().absolute(),
        segment_bytes=_bytes(segment_bytes),
        graph=check_flag(graph, "graph"),
    )


def _embedder_loader(model: str | Path | None) -> Callable[[], Embedder] | None:
    if model is None:
        return packaged_embedder
    if str(model) in _NO_VECTORS:
        return None
    path = check_path(model, "model").absolute()  # it is loaded when it is needed, wherever the process stands by then
    return lambda: load_embedder(path)


def _rules(given: object) -> tuple[str, ...]:
    if not isinstance(given, Collection) or isinstance(given, (str, bytes, Mapping)):
        raise BadArgument(argument="exempt_secrets", detail=f"expected a list of names, got {type(given).__name__}")
    known = rule_names()
    for name in cast("Collection[object]", given):
        if not isinstance(name, str) or name not in known:
            raise BadArgument(argument="exempt_secrets", detail=f"no such rule: {name}")
    return tuple(cast("Collection[str]", given))


def _signer(given: Signer | str | Path) -> Signer:
    if isinstance(given, (str, Path)):
        return KeyFile(given)
    check_signer(given, "log_key")
    return given


def _bytes(given: object) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not 0 < given < 1 << 63:
        raise BadArgument(argument="segment_bytes", detail=f"expected a number of bytes, got `{given!r:.40}`")
    return given
