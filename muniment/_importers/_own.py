"""Muniment's own export: JSON lines, a header first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

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
    comes through a voice of its own, so that it still does; what did so in a part of its time only comes in parts. What
    somebody set apart, or has not approved, is left out.
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
        missing = 0
        with self._path.open("rb") as file:
            for number, line in numbered_lines(file, self._count):
                where = f"line {number}"
                missing -= 1
                if isinstance(line, Skipped):
                    yield line
                    continue
                try:
                    record = record_of(line)
                    if "muniment_export" in record:
                        yield from _cut_short(f"before {where}", missing + 1)
                        store, scope = plain(record.get("store")), plain(record.get("scope"))
                        missing = _announced(record)
                    elif not store or not scope:
                        raise Unusable("no usable header came before it")
                    else:
                        yield from _memory(record, where, store, scope)
                except Unusable as error:
                    yield Skipped(where=where, why=str(error), code=error.code)
        yield from _cut_short("the end", missing)

    def _count(self, size: int) -> None:
        self.bytes_read += size


def _announced(header: dict[str, object]) -> int:
    count = header.get("memories")
    return count if isinstance(count, int) and not isinstance(count, bool) else 0


def _cut_short(where: str, missing: int) -> Iterator[Found]:
    # Cut between two lines, a file looks whole.
    if missing > 0:
        yield Skipped(where=where, why=f"the file was cut short: its header tells of {missing} more", code="damaged")


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
        ended = instant_of(record.get("retired_from"))
        note = _note(record, instant_of(record.get("valid_to")), f"{store}:{identity}")
        stretches = _stretches(record, entitled=bool(record.get("entitled", status != "disputed")))
    except (BadInstant, BadValue) as error:
        yield Skipped(where=where, why=f"one of its fields is none that an export writes: {error}")
        return
    why = plain(record.get("retired_for")) or "retired before it was exported"
    for number, stretch in enumerate(stretches):
        # The first has the memory's own name, by which others of the file call it.
        name = identity if not number else f"{identity}/{number}"
        via = "" if stretch.entitled else _voice(plain(record.get("origin")))
        said = note if len(stretches) == 1 else _note_of_part(note, record, stretch, f"{store}:{name}")
        yield Turn(scope, name, "", "other", text, stretch.since, "", via, note=said, name=name, beside=bool(via))
        if stretch.settled_from is not None:
            yield Ending(where, name, stretch.settled_from, "settled before it was exported")
        elif record.get("retired_from") is not None and not _is_over(stretch, ended, of=len(stretches)):
            yield Ending(where, name, ended, why)


class _Stretch(msgspec.Struct):
    """A part of a memory's interval, told as a memory of its own; it holds no more from `settled_from` on."""

    since: int | None
    until: int | None
    entitled: bool
    settled_from: int | None = None


def _is_over(stretch: _Stretch, ended: int | None, *, of: int) -> bool:
    # A part that had ended by then; the whole of a memory is retired whenever that was.
    return of > 1 and stretch.until is not None and ended is not None and stretch.until <= ended


def _stretches(record: dict[str, object], *, entitled: bool) -> list[_Stretch]:
    """Return the fewest stretches that the parts make; one where the memory was not told in parts."""
    found: list[_Stretch] = []
    for part in map(as_object, as_list(record.get("parts"))):
        if part is None:
            raise BadInstant("is no part")
        since, until = instant_of(part.get("valid_from")), instant_of(part.get("valid_to"))
        last, claims, settled = found[-1] if found else None, part.get("entitled") is True, part.get("settled") is True
        if since is None or (last is not None and last.until != since):
            raise BadInstant("is a part that does not begin where the one before it ends")
        if last is None or last.entitled != claims or (last.settled_from is not None and not settled):
            found.append(_Stretch(since, until, claims, since if settled else None))
            continue
        last.until = until
        if settled and last.settled_from is None:
            last.settled_from = since
    since, until = instant_of(record.get("valid_from")), instant_of(record.get("valid_to"))
    if not found:
        return [_Stretch(since, until, entitled, since if record.get("settled") else None)]
    if (found[0].since, found[-1].until) != (since, until):
        raise BadInstant("is not the whole of its parts")
    return found


def _note_of_part(note: Note, record: dict[str, object], stretch: _Stretch, command: str) -> Note:
    told, metadata = as_object(note.metadata["imported"]), note.metadata
    if told is not None:
        stated = {key: record.get(key) for key in ("valid_from", "valid_to")}
        metadata = {**metadata, "imported": {**stated, **told}}
    return msgspec.structs.replace(
        note,
        valid_to=stretch.until,
        metadata=metadata,
        # What only stands beside another takes over from nothing.
        supersedes=note.supersedes if stretch.entitled else None,
        command=command,
    )


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
