"""A store is made whole or not at all, and only by who knows its format."""

from __future__ import annotations

from pathlib import Path

import pytest

from muniment.events._codec import FORMAT
from muniment.events._errors import BadArgument, StoreMissing, StoreNewer
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


@pytest.mark.parametrize("text", ["", "format = 1", "format = 'x'\nstore_id = ''", "\x00", "store_id = 5\nformat = 1"])
def test_a_damaged_file_is_no_store_and_says_so(text: str, tmp_path: Path) -> None:
    (tmp_path / "muniment.toml").write_text(text)
    with pytest.raises(StoreMissing) as caught:
        find_store(tmp_path)
    assert "muniment.toml is damaged" in caught.value.hint


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
