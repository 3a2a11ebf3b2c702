"""The scope of a folder: a valid one, the repository's, and no other folder's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment._mcp._projects import project_folder, project_scope, scope_named
from muniment.events import parse_scope

NAMES = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=60)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "apollo"
    (folder / ".git").mkdir(parents=True)
    (folder / "src" / "deep").mkdir(parents=True)
    return folder


def test_every_folder_of_a_repository_has_the_repositorys_scope(repository: Path) -> None:
    assert project_scope(repository) == project_scope(repository / "src" / "deep")
    assert project_scope(repository).startswith("project/apollo-")


def test_a_folder_in_no_repository_is_its_own(tmp_path: Path) -> None:
    assert tmp_path.resolve() == project_folder(tmp_path)


def test_the_same_folder_by_a_link_has_the_same_scope(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(repository)

    assert project_scope(repository) == project_scope(tmp_path / "link" / "src")


def test_a_git_file_does_not_lead_into_another_project(repository: Path, tmp_path: Path) -> None:
    """As in a work tree; but here somebody wrote it to read another project's memories."""
    planted = tmp_path / "planted"
    planted.mkdir()
    (planted / ".git").write_text(f"gitdir: {repository}/.git\n", encoding="utf-8")

    assert planted.resolve() == project_folder(planted)


@pytest.mark.parametrize(
    ("one", "other"),
    [("a/b", "a-b"), ("x y", "x-y"), ("é", "e\u0301"), ("App", "app"), ("a", "a "), ("п", "р")],
)
def test_folders_that_are_spelled_alike_are_two_scopes(tmp_path: Path, one: str, other: str) -> None:
    assert project_scope(tmp_path / one) != project_scope(tmp_path / other)


@given(name=NAMES)
def test_any_folder_has_a_valid_scope(name: str) -> None:
    scope = project_scope(Path(os.sep) / name)

    assert scope == parse_scope(scope)


def test_a_named_scope_is_taken_as_it_is(tmp_path: Path) -> None:
    assert "acme/apollo" == scope_named("acme/apollo", tmp_path)
