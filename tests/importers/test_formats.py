"""What holds for every format: it is told apart, read at its own times, and never more than an import."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import muniment
from muniment import Store
from muniment._importers import FORMATS, detect_format
from muniment.events import BadArgument
from tests.checkout import ROOT
from tests.importers.fixtures import DATA, FIXTURES, Fixture, archive

SCOPE = "acme/inbox"
each = pytest.mark.parametrize("one", FIXTURES, ids=lambda one: one.file)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with muniment.open(tmp_path / "store", create=True, model="none") as opened:
        yield opened


def test_every_format_has_a_fixture() -> None:
    assert set(FORMATS) == {one.format for one in FIXTURES}


@each
def test_a_file_is_detected_as_what_it_is_whatever_it_is_called(one: Fixture, tmp_path: Path) -> None:
    renamed = tmp_path / ("AGENTS.md" if one.format == "agents-md" else "given.file")
    renamed.write_bytes((DATA / one.file).read_bytes())

    assert one.format == detect_format(DATA / one.file)
    assert one.format == detect_format(renamed)


@each
def test_a_file_read_as_any_other_format_gives_no_memory_that_its_own_does_not(one: Fixture, store: Store) -> None:
    """Otherwise a wrong `format=` would bring in something that nobody said."""
    own = set(one.says)
    for name in sorted(set(FORMATS) - {one.format, "agents-md"}):
        report = store.import_file(DATA / one.file, scope=f"{SCOPE}/{name}", format=name)
        written = store.session(scope=f"{SCOPE}/{name}", actor="agent:x").list()
        assert len(written) == report.written
        assert not own & {record.content for record in written}, name


@each
def test_everything_is_said_at_its_own_time_and_the_damaged_record_is_named(one: Fixture, store: Store) -> None:
    report = store.import_file(DATA / one.file, scope=SCOPE)
    records = store.session(scope=SCOPE, actor="agent:x").list()
    times = {record.content: record.valid_from.isoformat() for record in records}
    now = {record.content for record in records if record.valid_from == record.recorded_at}

    assert (one.memories, one.memories) == (report.written, len(records))
    assert one.says.items() <= {**times, **dict.fromkeys(now)}.items()
    assert one.damaged in {skipped.where for skipped in report.skipped}
    assert "damag" not in repr([skipped.why for skipped in report.skipped])


@each
def test_i07_what_is_imported_is_external_whatever_the_file_claims(one: Fixture, store: Store) -> None:
    store.import_file(DATA / one.file, scope=SCOPE)
    records = store.session(scope=SCOPE, actor="agent:x").list()

    assert {"external"} == {record.rank for record in records}
    assert {f"import:{one.format}"} == {record.actor for record in records}
    assert {f"import:{one.format}"} == {record.origin.partition("/")[0] for record in records}
    assert {record.provenance for record in records} <= {"planning", "action", "observation"}


@each
def test_the_same_file_twice_adds_nothing(one: Fixture, store: Store) -> None:
    first = store.import_file(DATA / one.file, scope=SCOPE, batch=2)
    head = store.head
    again = store.import_file(DATA / one.file, scope=SCOPE)

    assert (0, first.written, 0, 0) == (again.written, again.repeated, again.retired, again.linked)
    assert head == store.head


@each
def test_a_dry_run_reads_all_of_it_and_changes_no_byte(one: Fixture, tmp_path: Path) -> None:
    def contents() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in (tmp_path / "store").rglob("*") if path.is_file()}

    muniment.open(tmp_path / "store", create=True, model="none").close()
    before = contents()
    with muniment.open(tmp_path / "store", model="none", read_only=True) as store:
        report = store.import_file(DATA / one.file, scope=SCOPE, dry_run=True)

    assert (one.memories, True) == (report.written, report.dry_run)
    assert one.damaged in {skipped.where for skipped in report.skipped}
    assert before == contents()


@each
def test_a_file_that_was_cut_anywhere_is_read_as_far_as_it_goes(one: Fixture, store: Store, tmp_path: Path) -> None:
    whole = (DATA / one.file).read_bytes()
    full = store.import_file(DATA / one.file, scope=SCOPE)
    for part in (2, 3, 5):
        cut = tmp_path / one.file
        cut.write_bytes(whole[: len(whole) * (part - 1) // part])
        report = store.import_file(cut, scope=SCOPE, format=one.format)
        assert report.written + report.repeated <= full.written
        # A bullet that was cut is another one; everything else is all there or not at all.
        assert report.written <= int(one.format == "agents-md")


@each
def test_i06_what_was_forgotten_does_not_come_back_with_its_file(one: Fixture, store: Store) -> None:
    store.import_file(DATA / one.file, scope=SCOPE)
    user = store.user_session(scope=SCOPE, principal="user:ann")
    said = next(iter(one.says))
    (target,) = [record.id for record in user.list() if record.content == said]
    user.forget(target, reason="asked for it")

    again = store.import_file(DATA / one.file, scope=SCOPE)

    assert ["tombstoned"] == [refused.error for refused in again.refused]
    assert (0, 1) == (again.written, again.refused_count)
    assert said not in repr(again)


def test_a_secret_is_refused_counted_and_not_quoted_and_the_rest_is_kept(store: Store, tmp_path: Path) -> None:
    key = "AKIA" + "Q7XBM2ZLWF4KTRPD"
    path = tmp_path / "mem.json"
    path.write_text((DATA / "mem0.json").read_text(encoding="utf-8").replace("Ann likes tea", f"the key {key}"))
    report = store.import_file(path, scope=SCOPE)

    assert (2, 1, ["secret_found"]) == (report.written, report.refused_count, [one.error for one in report.refused])
    assert 1 == store.stats()["refusals"]
    assert key not in repr(report)


def test_a_store_that_masks_secrets_keeps_the_rest_of_the_words(tmp_path: Path) -> None:
    key = "AKIA" + "Q7XBM2ZLWF4KTRPD"
    path = tmp_path / "mem.json"
    path.write_text((DATA / "mem0.json").read_text(encoding="utf-8").replace("Ann likes tea", f"the key {key}"))
    with muniment.open(tmp_path / "store", create=True, model="none", secrets="mask") as store:
        report = store.import_file(path, scope=SCOPE)
        said = [record.content for record in store.session(scope=SCOPE, actor="agent:x").list()]

    assert (3, 1, 0) == (report.written, report.masked, report.refused_count)
    assert any(content is not None and content.startswith("the key [") for content in said)
    assert key not in repr(said)


@pytest.mark.parametrize(
    ("data", "seen"),
    [
        (b'{"midas_export": 2, "records": []}', "version 2 of what midas exports; known is 1"),
        (b'{"muniment_export": 2, "store": "00"}\n', "version 2 of what muniment exports; known is 1"),
        (b'{"results": []}', "a JSON object whose first key is `results`"),
        (b'{"type": "note", "name": "x"}\n', "a JSON object whose first key is `type`"),
        (b"# Notes\n- one\n", "text that is not JSON"),
    ],
)
def test_an_unknown_format_is_refused_before_anything_is_written(
    store: Store, tmp_path: Path, data: bytes, seen: str
) -> None:
    path = tmp_path / "given.md"
    path.write_bytes(data)
    head = store.head
    with pytest.raises(BadArgument) as caught:
        store.import_file(path, scope=SCOPE)

    assert seen in str(caught.value)
    assert head == store.head


def test_an_archive_is_told_apart_by_what_is_in_it(tmp_path: Path) -> None:
    assert "chatgpt" == detect_format(archive(tmp_path / "a.zip", conversations="chatgpt.json"))
    assert "claude" == detect_format(archive(tmp_path / "b.zip", conversations="claude.json"))
    assert "claude" == detect_format(archive(tmp_path / "c.zip", data__memories="claude-memories.json"))
    with pytest.raises(BadArgument, match="an archive without conversations"):
        detect_format(archive(tmp_path / "d.zip", other="mem0.json"))
    with pytest.raises(BadArgument, match="an archive whose conversations are in no known form"):
        detect_format(archive(tmp_path / "e.zip", conversations="midas.json"))


def test_the_docs_have_a_row_for_every_format_and_every_code(store: Store) -> None:
    text = (ROOT / "docs" / "importing.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| `([\w-]+)` \|", text, re.MULTILINE))
    codes = {code for one in FIXTURES for code in store.import_file(DATA / one.file, scope=SCOPE).skipped_codes}

    assert len(codes) > 6
    assert {*FORMATS, *codes} <= rows
