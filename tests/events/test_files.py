"""A store is made whole or not at all, and only by who knows its format."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import muniment
from muniment.events._codec import FORMAT
from muniment.events._errors import BadArgument, StoreDamaged, StoreMissing, StoreNewer
from muniment.events._files import create_store, find_store

from .faults import HastyDisk
from .stores import NOW, Bare, contents, make


def test_a_store_that_was_made_is_found(tmp_path: Path) -> None:
    made = create_store(tmp_path / "a" / "b", HastyDisk(), NOW)
    assert made == find_store(tmp_path / "a" / "b")
    assert "2023-11-14T22:13:20Z" == made.created
    assert {"muniment.toml", "lock", "log", "keys", "root.key", "projections", "checkpoints"} == {
        file.name for file in made.path.iterdir()
    }


def test_nobody_else_may_read_what_was_made(tmp_path: Path) -> None:
    make(tmp_path / "store", HastyDisk())
    assert all(0 == file.stat().st_mode & 0o077 for file in (tmp_path / "store").rglob("*"))
    assert 0 == (tmp_path / "store").stat().st_mode & 0o077


def test_two_stores_share_neither_id_nor_secret(tmp_path: Path) -> None:
    make(tmp_path / "a", HastyDisk())
    make(tmp_path / "b", HastyDisk())
    with Bare(tmp_path / "a", HastyDisk()) as a, Bare(tmp_path / "b", HastyDisk()) as b:
        assert a.log.head.log_id != b.log.head.log_id
        assert a.keys.value_secret != b.keys.value_secret


@pytest.mark.parametrize("where", ["nothing here", "."])
def test_where_there_is_no_store_none_is_found_and_nothing_is_made(where: str, tmp_path: Path) -> None:
    with pytest.raises(StoreMissing, match="no store at"):
        find_store(tmp_path / where)
    assert {} == contents(tmp_path)


def test_a_store_of_a_newer_format_is_refused_before_anything_is_touched(tmp_path: Path) -> None:
    make(tmp_path, HastyDisk())
    toml = tmp_path / "muniment.toml"
    toml.write_text(toml.read_text().replace(f"format = {FORMAT}", f"format = {FORMAT + 1}"))
    before = contents(tmp_path)
    with pytest.raises(StoreNewer, match=f"has format {FORMAT + 1}, this program knows up to {FORMAT}"):
        find_store(tmp_path)
    assert before == contents(tmp_path)


ID = "ab" * 16


@pytest.mark.parametrize(
    ("data", "line", "detail"),
    [
        (b"", 1, "`format`"),
        (b"format = 1", 2, "`store_id`"),
        (b"# one\nformat = 'x'\nstore_id = ''", 2, "`format`"),
        (b"format = true", 1, "`format`"),
        (b"\x00", 1, "not TOML"),
        (b'format = 1\nstore_id = "', 2, "not TOML"),
        (b"format = 1\n\xff", 2, "not UTF-8"),
        (b"store_id = 5\nformat = 1", 1, "`store_id`"),
        (b"format = 1\nstore_id = 'ab'", 2, "`store_id`"),
        (f"format = 1\nstore_id = '{ID}'\ncreated = 5".encode(), 3, "`created`"),
    ],
)
def test_a_damaged_file_is_named_with_its_line_and_is_not_a_missing_store(
    data: bytes, line: int, detail: str, tmp_path: Path
) -> None:
    (tmp_path / "muniment.toml").write_bytes(data)
    with pytest.raises(StoreDamaged, match=f"muniment.toml` is damaged at line {line}: .*{detail}"):
        find_store(tmp_path)


def test_a_damaged_file_can_be_written_anew_from_what_the_error_says(tmp_path: Path) -> None:
    files = create_store(tmp_path, HastyDisk(), NOW)
    toml = tmp_path / "muniment.toml"
    toml.write_text("torn")
    before = contents(tmp_path)
    with pytest.raises(StoreDamaged) as caught:
        find_store(tmp_path)
    assert before == contents(tmp_path)

    said = re.search('store_id = "[0-9a-f]{32}"', caught.value.hint)
    assert said is not None
    toml.write_text(f'format = {FORMAT}\n{said[0]}\ncreated = "2026-01-01T00:00:00Z"\n')
    assert files.store_id == find_store(tmp_path).store_id


def test_a_newer_format_is_named_whatever_else_its_file_says(tmp_path: Path) -> None:
    (tmp_path / "muniment.toml").write_text(f"format = {FORMAT + 1}\nstore = 5")
    with pytest.raises(StoreNewer):
        find_store(tmp_path)


def test_a_damaged_store_is_never_created_over(tmp_path: Path) -> None:
    make(tmp_path, HastyDisk())
    (tmp_path / "muniment.toml").write_text("torn")
    before = contents(tmp_path)
    with pytest.raises(StoreDamaged):
        muniment.open(tmp_path, create=True, model="none")
    assert before == contents(tmp_path)


def test_a_directory_with_other_files_is_not_taken_over(tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("dear")
    with pytest.raises(BadArgument, match="`letters"):
        make(tmp_path, HastyDisk())
    assert {"letters.txt": b"dear"} == contents(tmp_path)


def test_what_an_interrupted_creation_left_is_cleared_away(tmp_path: Path) -> None:
    make(tmp_path, HastyDisk())
    (tmp_path / "muniment.toml").rename(tmp_path / ".muniment.toml.4711")
    make(tmp_path, HastyDisk())
    with Bare(tmp_path, HastyDisk()) as store:
        store.remember("red")
    assert not list(tmp_path.glob(".muniment*"))


def test_a_log_with_events_is_never_taken_for_an_interrupted_creation(tmp_path: Path) -> None:
    make(tmp_path, HastyDisk())
    with Bare(tmp_path, HastyDisk()) as store:
        store.remember("red")
    (tmp_path / "muniment.toml").unlink()
    before = contents(tmp_path)
    with pytest.raises(BadArgument, match="restore that file"):
        make(tmp_path, HastyDisk())
    assert before == contents(tmp_path)


@pytest.mark.parametrize("taken", ["a file", "below a file", "a link to nowhere"])
def test_a_place_that_cannot_be_a_directory_is_refused_by_name(tmp_path: Path, taken: str) -> None:
    where = tmp_path / "taken"
    if taken == "a link to nowhere":
        where.symlink_to(tmp_path / "nowhere")
    else:
        where.write_text("somebody's")
    with pytest.raises(BadArgument, match="cannot be made a directory"):
        make(where / "store" if taken == "below a file" else where, HastyDisk())
