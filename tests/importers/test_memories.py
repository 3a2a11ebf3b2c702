"""Files of memories: mem0, Midas and the reference MCP memory server. What supersedes, ends and links what."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import muniment
from muniment import Session, Store
from tests.importers.fixtures import DATA

SCOPE = "acme/inbox"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with muniment.open(tmp_path / "store", create=True, model="none") as opened:
        yield opened


@pytest.fixture
def reader(store: Store) -> Session:
    return store.session(scope=SCOPE, actor="agent:reader")


def test_midas_tells_what_superseded_what_and_what_it_claims_stays_a_claim(store: Store, reader: Session) -> None:
    report = store.import_file(DATA / "midas.json", scope=SCOPE)
    records = {str(record.source).rpartition("/")[2]: record for record in reader.list()}

    assert {"r1": "superseded", "r2": "active", "r3": "active", "r5": "retired", "r6": "active"} == {
        name: record.status for name, record in records.items()
    }
    assert records["r1"].superseded_by == records["r3"].id
    assert ("fact", 1.0, "observation") == (records["r1"].kind, records["r1"].importance, records["r1"].provenance)
    assert {"source": "chat", "actor": "ann", "provenance": "user_confirmation"} == records["r1"].metadata["imported"]
    assert ("commitment", "planning", 0.5) == (records["r6"].kind, records["r6"].provenance, records["r6"].importance)
    assert "garden" == records["r2"].metadata["project"]
    assert 1 == report.retired


def test_in_midas_the_successor_may_come_first_and_several_may_have_the_same(
    store: Store, reader: Session, tmp_path: Path
) -> None:
    def record(name: str, at: int, successor: str | None) -> dict[str, object]:
        return {"id": name, "content": f"It is {name}.", "kind": "fact", "created_at": at, "superseded_by": successor}

    path = tmp_path / "midas.json"
    records = [record("late", 300, None), record("a", 100, "late"), record("b", 100, "mid"), record("c", 100, "mid")]
    path.write_text(json.dumps({"midas_export": 1, "records": [*records, record("mid", 200, None)]}))
    store.import_file(path, scope=SCOPE)

    status = {record.content: record.status for record in reader.list()}
    assert {
        "It is late.": "active", "It is a.": "retired", "It is b.": "superseded", "It is c.": "retired",
        "It is mid.": "active",
    } == status  # fmt: skip
    (ended,) = [record for record in reader.list() if record.content == "It is a."]
    assert ended.valid_to is not None
    assert "1970-01-01T00:05:00+00:00" == ended.valid_to.isoformat()


def test_mem0_keeps_whose_it_is_its_tags_and_its_relations(store: Store, reader: Session) -> None:
    store.import_file(DATA / "mem0.json", scope=SCOPE)
    tea, seoul, lives = reader.list()

    assert ({"category": "drinks", "imported": {"user_id": "ann"}}, ("food",)) == (tea.metadata, tea.tags)
    assert {"user_id": "ann", "agent_id": "planner"} == seoul.metadata["imported"]
    assert (("ann", "lives_in"), "seoul") == (lives.about, lives.value)


@pytest.mark.parametrize("shape", ["list", "results", "memories"])
def test_every_shape_that_mem0_gives_is_read(store: Store, tmp_path: Path, shape: str) -> None:
    record = {"id": "m1", "memory": "Ann likes tea", "user_id": "ann", "created_at": "2024-07-26T00:00:00Z"}
    path = tmp_path / "given"
    path.write_text(json.dumps([record] if shape == "list" else {"total": 1, shape: [record]}))

    report = store.import_file(path, scope=SCOPE)
    assert ("mem0", 1) == (report.format, report.written)


def test_a_memory_of_mem0_ends_where_it_expires(store: Store, reader: Session, tmp_path: Path) -> None:
    path = tmp_path / "given"
    path.write_text(
        json.dumps([{"id": "m", "memory": "Ann is away", "created_at": "2024-01-01", "expiration_date": "2024-02-01"}])
    )
    store.import_file(path, scope=SCOPE)
    (record,) = reader.list()
    assert record.valid_to is not None
    assert "2024-02-01T00:00:00+00:00" == record.valid_to.isoformat()


def test_entities_observations_and_relations_are_linked(store: Store, reader: Session) -> None:
    report = store.import_file(DATA / "mcp-memory.jsonl", scope=SCOPE, batch=2)
    names = {record.id: record.content for record in reader.list()}
    ann = next(record for record in reader.list() if record.content == "Ann (person)")
    links = {(names[link.start], link.type, names[link.end]) for link in reader.links(ann.id)}

    assert {
        ("Ann: likes tea", "about", "Ann (person)"),
        ("Ann: 住在首尔", "about", "Ann (person)"),
        ("Ann works_at Acme", "about", "Ann (person)"),
        ("Ann knows Nobody", "about", "Ann (person)"),
        ("Ann (person)", "relates", "Acme (organization)"),
    } == links
    assert 6 == report.linked
    assert {"damaged": 1, "dangling": 2} == report.skipped_codes
    assert ["likes tea", "住在首尔"] == [belief.value for belief in reader.beliefs(about=("Ann", "observation"))]


def test_a_link_that_was_ended_since_does_not_come_back_with_its_file(store: Store, reader: Session) -> None:
    store.import_file(DATA / "mcp-memory.jsonl", scope=SCOPE)
    ann = next(record for record in reader.list() if record.content == "Ann (person)")
    (link,) = [link for link in reader.links(ann.id) if link.type == "relates"]
    reader.unlink(link.start, "relates", link.end)

    assert 0 == store.import_file(DATA / "mcp-memory.jsonl", scope=SCOPE).linked
    assert "relates" not in {found.type for found in reader.links(ann.id)}
