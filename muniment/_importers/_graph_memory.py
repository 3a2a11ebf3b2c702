"""The reference MCP memory server's `memory.jsonl`: entities with observations, and relations between them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ._lines import Unusable, numbered_lines, record_of
from ._turns import Found, Linking, Note, Skipped, Turn, as_list, plain, unfit


class GraphMemoryTranscript:
    """
    A memory for each entity, each of its observations and each relation, under the entity's name, and links for both.

    An observation is linked to its entity (`about`), a relation to both of its ends (`about`), and they to each other
    (`relates`). The file has no times.
    """

    name = "mcp-memory"

    def __init__(self, path: Path) -> None:
        self._path = path
        self.total_bytes = path.stat().st_size
        self.bytes_read = 0

    def turns(self) -> Iterator[Found]:
        """Yield the entities, observations and relations in file order; a broken line is `Skipped`."""
        self.bytes_read = 0
        with self._path.open("rb") as file:
            for number, line in numbered_lines(file, self._count):
                if isinstance(line, Skipped):
                    yield line
                    continue
                try:
                    record = record_of(line)
                    read = {"entity": _entity, "relation": _relation}.get(str(record.get("type")))
                    if read is None:
                        raise Unusable("it is neither an entity nor a relation", "unsupported")
                    yield from read(record, f"line {number}")
                except Unusable as error:
                    yield Skipped(where=f"line {number}", why=str(error), code=error.code)

    def _count(self, size: int) -> None:
        self.bytes_read += size


def _entity(record: dict[str, object], where: str) -> Iterator[Found]:
    name, sort = plain(record.get("name")), plain(record.get("entityType"))
    if not name or not isinstance(record.get("observations"), list):
        raise Unusable("it has no usable `name` or `observations`")
    text = f"{name} ({sort})" if sort else name
    note = Note(kind="fact", about=(name, "type"), value=sort or name, many=True)
    yield Turn("graph", f"entity/{name}", "", "other", text, None, "", note=note, name=name)
    for number, item in enumerate(as_list(record["observations"]), start=1):
        place = f"{where}, observation {number}"
        if not isinstance(item, str):
            yield Skipped(where=place, why="it is not text")
            continue
        # The whole text is what makes it itself: an observation that moved in the list is the same.
        said = Note(kind="fact", about=(name, "observation"), value=item, many=True, links=(("about", name),))
        yield unfit(place, item) or Turn("graph", f"observation/{name}", name, "other", item, None, "", note=said)


def _relation(record: dict[str, object], where: str) -> Iterator[Found]:
    start, end = plain(record.get("from")), plain(record.get("to"))
    sort = plain(record.get("relationType"))
    if not start or not end or not sort:
        raise Unusable("it has no usable `from`, `to` or `relationType`")
    ends = tuple(("about", name) for name in dict.fromkeys((start, end)))
    note = Note(kind="fact", about=(start, sort), value=end, many=True, links=ends)
    yield Turn("graph", f"relation/{start}", "", "other", f"{start} {sort} {end}", None, "", note=note)
    yield Linking(where, start, "relates", end)
