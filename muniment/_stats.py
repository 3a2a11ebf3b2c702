"""Counts and sizes of a store."""

from __future__ import annotations

from ._engine import Engine


def stats_of(engine: Engine) -> dict[str, object]:
    """Return counts and sizes; see `Store.stats`."""
    with engine.mutex:
        engine.refresh()
        register = engine.state.register
        memories = register.memories.values()
        size = sum(p.stat().st_size for p in engine.files.path.rglob("*") if p.is_file())
        return {
            "path": str(engine.files.path),
            "id": engine.files.store_id.hex(),
            "created": engine.files.created,
            "events": engine.head.seq,
            "memories": sum(m.erasure is None for m in memories),
            "erased": sum(m.erasure is not None for m in memories),
            "scopes": sorted(scope for scope in register.scopes if scope),
            "tombstones": len(engine.state.tombstones.all),
            "confirmations": len(register.confirmations),
            "prohibitions": len(register.prohibitions),
            "decisions": len(register.decisions),
            "refusals": sum(register.refusals.values()),
            "key_epoch": engine.keys.epoch,
            "bytes": size,
            "model": engine.dense.model_id,
            "rolled_back": engine.rolled_back,
            "torn": [list(t[:3]) for t in engine.door.torn],
            "warning": engine.files.warning or engine.witness.warning,
        }
