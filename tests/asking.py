"""Asks a session everything that it can be asked, and gives the answers as plain data to compare."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final, NamedTuple

from muniment import Hit, MunimentError, PastSession, Record, Session

QUERIES: Final = ("launch monday", "colours red", "hall", "it")
EVERY_STATUS: Final = (
    "pending", "active", "conditional", "disputed", "superseded", "retired", "rejected", "quarantined",
)  # fmt: skip


class At(NamedTuple):
    """A point of both times, as it is asked for."""

    valid_at: datetime | str | None = None
    known_at: datetime | str | int | None = None


NOW: Final = At()


def answers(reading: Session | PastSession, ids: Iterable[str], at: At = NOW) -> dict[str, object]:
    """Return all that a session says of its scopes at a point, `ids` asked for one by one."""
    valid, known = at
    found: dict[str, object] = {
        "list": [record.to_dict() for record in reading.list(limit=1000, known_at=known)],
        "beliefs": [belief.to_dict() for belief in reading.beliefs(valid_at=valid, known_at=known)],
    }
    for query in QUERIES:
        for status in (("active", "conditional"), EVERY_STATUS):
            hits = reading.recall(query, k=50, valid_at=valid, known_at=known, status=status)
            found[f"recall {query} {len(status)}"] = [hit.to_dict() for hit in hits]
    for identity in ids:
        found[f"get {identity}"] = _got(reading, identity, at)
    return found


def _got(reading: Session | PastSession, identity: str, at: At) -> object:
    valid, known = at
    try:
        return {
            "record": reading.get(identity, valid_at=valid, known_at=known).to_dict(),
            "history": [record.to_dict() for record in reading.history(identity, known_at=known)],
            "links": [link.to_dict() for link in reading.links(identity, depth=3, valid_at=valid, known_at=known)],
        }
    except MunimentError as error:
        return error.code


def without_erased(found: object, erased: frozenset[str]) -> object:
    """
    Return answers as one may give them after some ids were erased: what is said of those is left out.

    An erased record vanishes from lists, and is no successor any more. Scores, ranks and order in recall are left out
    too: the words of the erased record no longer count, so what is promised then is the candidates.
    """
    if isinstance(found, dict):
        kept = {
            key: without_erased(item, erased)
            for key, item in found.items()
            if key not in ("score", "word_score", "word_rank", "why") and key.removeprefix("get ") not in erased
        }
        for key, hits in kept.items():
            if key.startswith("recall ") and isinstance(hits, list):
                hits.sort(key=_identity)
        if kept.get("superseded_by") in erased:
            kept["superseded_by"] = None
        return kept
    if isinstance(found, list):
        return [without_erased(item, erased) for item in found if not _is_of(item, erased)]
    return found


def _identity(hit: object) -> str:
    return str(hit["id"]) if isinstance(hit, dict) else ""


def _is_of(item: object, erased: frozenset[str]) -> bool:
    if not isinstance(item, dict):
        return False
    return bool(erased.intersection(str(item.get(field)) for field in ("id", "start", "end")))


def shown(hits: Iterable[Hit]) -> list[str | None]:
    """Return the contents of hits, best first."""
    return [hit.content for hit in hits]


def contents(records: Iterable[Record]) -> list[str | None]:
    """Return the contents of records, in their order."""
    return [record.content for record in records]
