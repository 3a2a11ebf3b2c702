"""What is asked of a golden store: everything that a reader may state about it, at every position of its log."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Final

import muniment
from muniment import Store
from muniment._answers import jsonable
from muniment.projections import PROJECTION_VERSIONS
from tests.worlds import SCOPE, START

FOLDER: Final = Path(__file__).parent
INSTANT: Final = int(START.timestamp() * 1_000_000) + 86_400_000_000
"""The wall clock of whoever asks: a day after the store was begun."""


def unpack(version: int, folder: Path) -> Path:
    """Unpack the golden store of a format version, and return where it lies."""
    with tarfile.open(FOLDER / f"format-{version}.tar") as archive:
        # Our own archive; before 3.11.4 there are no filters, and from 3.14 on this is the default.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(folder)
    return folder / "store"


def answers(store: Store) -> dict[str, object]:
    """Return everything that the store states, as plain data."""
    session = store.session(scope=SCOPE, actor="agent:planner")
    operator = store.operator()
    past: list[object] = []
    for seq in range(1, store.head.seq + 1):
        then = store.replay(to=seq).session(scope=SCOPE)
        beliefs = [(belief.id, belief.status) for belief in then.beliefs()]
        past.append([beliefs, [(record.id, record.status) for record in then.list(limit=1000)]])
    return {
        "head": [store.head.seq, store.head.chain.hex()],
        "memories": _plain(session.get(identity) for identity in _ids(store)),
        "beliefs": _plain(session.beliefs()),
        "found": [hit.id for hit in session.recall("launch", k=10)],
        "links": [_plain(session.links(identity)) for identity in _ids(store)],
        "tombstones": operator.tombstones(),
        "prohibitions": operator.prohibitions(SCOPE),
        "requests": operator.requests(),
        "events": [list(row) for row in store.sql("SELECT seq, type, id, scope, actor, origin FROM events")[1]],
        "decisions": [list(row) for row in store.sql("SELECT id, use, allowed, reasons, action FROM decisions")[1]],
        "past": past,
    }


def digests_of(store: Store) -> dict[str, object]:
    """Return the digests of the projections, live and replayed to the middle, with the versions that give them."""
    middle = store.replay(to=store.head.seq // 2)
    return {"versions": list(PROJECTION_VERSIONS), "live": store.digests(), "replayed": middle.digests()}


def format_answers(stated: dict[str, object]) -> str:
    """Return answers as JSON, one a line; instants and the like as their text."""
    lines = [f"{json.dumps(name)}: {json.dumps(jsonable(part), ensure_ascii=False)}" for name, part in stated.items()]
    return "{" + ",\n".join(lines) + "}\n"


_EVERY_ID = f"""
SELECT id FROM (SELECT id, scope, seq FROM memories UNION ALL SELECT id, scope, seq FROM stubs)
WHERE scope = '{SCOPE}' ORDER BY seq
"""  # our constant


def _ids(store: Store) -> list[str]:
    rows = store.sql(_EVERY_ID)[1]
    return [str(identity) for (identity,) in rows]


def _plain(answers: object) -> list[object]:
    return [answer.to_dict() for answer in answers]  # type: ignore[attr-defined]


def opened(path: Path, *, read_only: bool = False) -> Store:
    """Open the store under the asking clock, words only."""
    return muniment.open(path, model="none", clock=lambda: INSTANT, read_only=read_only)
