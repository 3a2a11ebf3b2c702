"""Muniment's own export: JSON lines, a header first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from muniment._json_values import parse_value
from muniment.events import BadValue

from ._instants import BadInstant, instant_of
from ._lines import Unusable, numbered_lines, record_of
from ._turns import Ending, Found, Note, Skipped, Turn, as_list, as_object, plain, unfit

FORMAT: Final = 1
_EXTERNAL: Final = ("web:", "document:", "tool:", "import:")
# To import them as if they held would let out what somebody set apart, or has not let in.
_WITHHELD: Final = frozenset({"pending", "rejected", "quarantined"})


class MunimentTranscript:
    """
    The memories with all that was said of them; who said it is told in their metadata, under `imported`.

    They are one source, which may correct itself as the memories in the file did. What stood beside a stronger value
    comes through a voice of its own, so that it still does. What somebody set apart, or has not approved, is left out.
    """

    name = "muniment"

    def __init__(self, path: Path) -> None:
        self._path = path
        self.total_bytes = path.stat().st_size
        self.bytes_read = 0

    def turns(self) -> Iterator[Found]:
        """Yield the memories in the order in which they were recorded, and what ended them."""
        self.bytes_read = 0
        store = scope = ""
        with self._path.open("rb") as file:
            for number, line in numbered_lines(file, self._count):
                where = f"line {number}"
                if isinstance(line, Skipped):
                    yield line
                    continue
                try:
                    record = record_of(line)
                    if "muniment_export" in record:
                        store, scope = plain(record.get("store")), plain(record.get("scope"))
                    elif not store or not scope:
                        raise Unusable("no usable header came before it")
                    else:
                        yield from _memory(record, where, store, scope)
                except Unusable as error:
                    yield Skipped(where=where, why=str(error), code=error.code)

    def _count(self, size: int) -> None:
        self.bytes_read += size


def _memory(record: dict[str, object], where: str, store: str, scope: str) -> Iterator[Found]:
    identity, text = plain(record.get("id")), record.get("content")
    if not identity or not isinstance(text, str):
        raise Unusable("it has no usable `id` or `content`")
    where, status = f"{where}, {identity}", plain(record.get("status"))
    if status in _WITHHELD:
        yield Skipped(where=where, why=f"it was {status} when it was exported", code="withheld")
        return
    bad = unfit(where, text)
    if bad is not None:
        yield bad
        return
    try:
        since, until = instant_of(record.get("valid_from")), instant_of(record.get("valid_to"))
        ended = instant_of(record.get("retired_from"))
        note = _note(record, until, f"{store}:{identity}")
    except (BadInstant, BadValue) as error:
        yield Skipped(where=where, why=f"one of its fields is none that an export writes: {error}")
        return
    entitled = record.get("entitled", status != "disputed")
    via = "" if entitled else _voice(plain(record.get("origin")))
    yield Turn(scope, identity, "", "other", text, since, "", via, note=note, name=identity, beside=bool(via))
    if record.get("retired_from") is not None:
        yield Ending(where, identity, ended, plain(record.get("retired_for")) or "retired before it was exported")
    elif record.get("settled"):
        yield Ending(where, identity, None, "settled before it was exported")


def _note(record: dict[str, object], until: int | None, command: str) -> Note:
    about = as_list(record.get("about"))
    metadata = as_object(parse_value(record.get("metadata"))) or {}
    told = {key: plain(record.get(key)) for key in ("id", "recorded_at", "origin", "actor", "provenance")}
    claimed, importance = plain(record.get("provenance")), record.get("importance")
    return Note(
        kind=plain(record.get("kind")) or "note",
        about=(str(about[0]), str(about[1])) if len(about) == 2 else None,  # subject and attribute
        value=parse_value(record.get("value")),
        many=record.get("many") is True,
        # A confirmation was signed for the store that it was given to.
        provenance="observation" if claimed == "user_confirmation" else claimed or "observation",
        importance=float(importance) if isinstance(importance, int | float) else None,
        applies_when=plain(record.get("applies_when")) or None,
        valid_to=until,
        tags=tuple(tag for item in as_list(record.get("tags")) if (tag := plain(item))),
        # The first telling is kept: an export of an import says where the memory came from, and not who carried it.
        metadata={"imported": told, **metadata},
        reason=plain(record.get("reason")) or None,
        source=plain(record.get("source")) or None,
        derived_from=tuple(name for item in as_list(record.get("derived_from")) if (name := plain(item))),
        links=tuple(_links(record.get("links"))),
        supersedes=plain(record.get("supersedes")) or None,
        command=command,
    )


def _links(links: object) -> Iterator[tuple[str, str]]:
    for item in as_list(links):
        pair = [plain(part) for part in as_list(item)]
        if len(pair) == 2 and all(pair):  # a type and an id
            yield pair[0], pair[1]


def _voice(origin: str) -> str:
    # Agents may change what other agents said, and an external source only its own.
    sort = origin.partition(":")[0]
    return origin if origin.startswith(_EXTERNAL) else sort or "somebody"
