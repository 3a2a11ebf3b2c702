"""Counts and sizes of a store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from muniment.events import raise_exhausted

from ._engine import Engine


def stats_of(engine: Engine, *, wait: bool) -> dict[str, object]:
    """Return counts and sizes; see `Store.stats`."""
    with engine.mutex:
        folding = None if wait else engine.folded
        if folding is None:
            engine.refresh()
        size = _bytes_in(engine.files.path)
        return {
            "path": str(engine.files.path),
            "id": engine.files.store_id.hex(),
            "created": engine.files.created,
            "folding": None if folding is None else folding._asdict(),
            **(dict.fromkeys(_COUNTED) if folding is not None else _counts(engine)),
            "key_epoch": engine.keys.epoch,
            "bytes": size,
            "model": engine.dense.model_id,
            "torn": [list(t[:3]) for t in engine.door.torn],
            "warning": engine.files.warning or engine.witness.warning,
        }


def _bytes_in(directory: Path) -> int:
    def failed(error: OSError) -> None:
        raise_exhausted(error, directory)

    found = (Path(folder, name) for folder, _, names in os.walk(directory, onerror=failed) for name in names)
    return sum(path.stat().st_size for path in found)


_COUNTED: Final = (
    "events", "memories", "erased", "scopes", "tombstones", "confirmations", "prohibitions", "decisions", "refusals",
    "rolled_back",
)  # fmt: skip


def _counts(engine: Engine) -> dict[str, object]:
    register = engine.state.register
    memories = register.memories.values()
    found: tuple[object, ...] = (
        engine.head.seq,
        sum(m.erasure is None for m in memories),
        sum(m.erasure is not None for m in memories),
        sorted(scope for scope in register.scopes if scope),
        len(engine.state.tombstones.all),
        len(register.confirmations),
        len(register.prohibitions),
        len(register.decisions),
        sum(register.refusals.values()),
        engine.rolled_back,
    )
    return dict(zip(_COUNTED, found, strict=True))
