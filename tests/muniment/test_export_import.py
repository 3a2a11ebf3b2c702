"""An export that is imported elsewhere is the same memories: all but record time, ids and rank."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import muniment
from muniment import Record, Store
from muniment.events import Rank
from muniment.gate import rank_of
from tests.strategies import histories
from tests.worlds import AGENT, EXTERNAL, SCOPE, USER, Step, World, perform

Line = dict[str, object]
ELSEWHERE = "acme/elsewhere"
KEPT = (
    "content", "kind", "about", "value", "many", "source", "tags", "importance", "applies_when", "valid_from",
    "valid_to", "retired_from", "retired_for", "reason",
)  # fmt: skip
SET_APART = ("quarantine", "release", "approve", "reject")
WITHHELD = {"pending", "rejected", "quarantined"}


def exported(store: Store, scope: str) -> list[Line]:
    file = io.StringIO()
    try:
        store.export(scope, file)
    except muniment.InvalidInput:  # the history wrote nothing
        return []
    return [cast("Line", json.loads(line)) for line in file.getvalue().splitlines()[1:]]


def file_of(store: Store, scope: str, path: Path) -> Path:
    with path.open("w", encoding="utf-8") as file:
        store.export(scope, file)
    return path


def names_of(lines: Iterable[Line]) -> dict[str, str]:
    """Return what each imported memory's id was where it came from."""
    return {str(line["id"]): str(cast("dict[str, Line]", line["metadata"])["imported"]["id"]) for line in lines}


def round_trip(world: World, path: Path) -> tuple[list[Line], list[Line], dict[str, str], Store, muniment.ImportReport]:
    before = exported(world.store, SCOPE)
    other = muniment.open(path, create=True, model="none", clock=world.clock)
    report = other.import_file(file_of(world.store, SCOPE, path.with_suffix(".jsonl")), scope=ELSEWHERE)
    after = exported(other, ELSEWHERE)
    return before, after, names_of(after), other, report


def world_of(history: list[Step], folder: Path) -> World:
    world = World(folder / "world")
    for step in history:
        perform(world, step)
    return world


@settings(deadline=None, max_examples=12)  # it opens stores each time, and the disk is shared
@given(history=histories)
def test_every_memory_comes_back_with_all_that_was_said_of_it(
    history: list[Step], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("trip")
    world = world_of(history, folder)
    before = exported(world.store, SCOPE)
    if not before:
        return
    before, after, names, other, report = round_trip(world, folder / "other")
    expected = [line for line in before if line["status"] not in WITHHELD]
    given_back = {names[str(line["id"])]: line for line in after}

    assert sorted(str(line["id"]) for line in expected) == sorted(names[str(line["id"])] for line in after)
    for line in expected:
        found = given_back[str(line["id"])]
        ended = line["settled"] or _replaced_by_another_voice(line, before)
        for key in KEPT:
            if key not in ("retired_from", "retired_for") or not ended:
                assert _stated(line, key) == _stated(found, key), key
        told = cast("Line", cast("Line", found["metadata"]).pop("imported"))
        assert line["metadata"] == found["metadata"]
        assert [line[key] for key in ("origin", "actor", "provenance", "recorded_at")] == [
            told[key] for key in ("origin", "actor", "provenance", "recorded_at")
        ]
        there = set(names.values())
        assert [name for name in cast("list[str]", line["derived_from"]) if name in there] == [
            names[identity] for identity in cast("list[str]", found["derived_from"])
        ]
        assert sorted(link for link in cast("list[list[str]]", line["links"]) if link[1] in there) == sorted(
            [kind, names[end]] for kind, end in cast("list[list[str]]", found["links"])
        )
    assert not report.refused
    other.close()
    world.store.close()


def _stated(line: Line, key: str) -> object:
    # What was retired before it would have held never held; since when makes no difference.
    retired, since = line[key], str(line["valid_from"])
    return None if key == "retired_from" and retired is not None and str(retired) <= since else retired


def _replaced_by_another_voice(line: Line, lines: list[Line]) -> bool:
    return not line["entitled"] and any(other["supersedes"] == line["id"] for other in lines)


@settings(deadline=None, max_examples=12)
@given(history=histories)
def test_what_is_current_stays_current_and_what_disputes_it_stays_beside_it(
    history: list[Step], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Of statements that hold from when they were made: one that takes over a part of another's time may lose it."""
    folder = tmp_path_factory.mktemp("trip")
    world = world_of([step._replace(hours=None) for step in history if step.verb not in SET_APART], folder)
    if not exported(world.store, SCOPE):
        return
    *_, names, other, _ = round_trip(world, folder / "other")

    def beliefs(store: Store, scope: str, name: Callable[[Record], str]) -> dict[object, tuple[str, list[str]]]:
        found = store.session(scope=scope, actor=AGENT).beliefs()
        return {one.about: (name(one), sorted(name(beside) for beside in one.disputes)) for one in found}

    assert beliefs(world.store, SCOPE, lambda one: one.id) == beliefs(other, ELSEWHERE, lambda one: names[one.id])
    other.close()
    world.store.close()


@settings(deadline=None, max_examples=12)
@given(history=histories)
def test_i07_no_weaker_value_becomes_current_on_the_way(
    history: list[Step], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("trip")
    world = world_of([step for step in history if step.verb not in SET_APART], folder)
    if not exported(world.store, SCOPE):
        return
    *_, other, _ = round_trip(world, folder / "other")
    before = {one.about: rank_of(one.origin) for one in world.store.session(scope=SCOPE, actor=AGENT).beliefs()}
    after = {one.about: one.metadata for one in other.session(scope=ELSEWHERE, actor=AGENT).beliefs()}

    for about, metadata in after.items():
        assert rank_of(str(cast("Line", metadata["imported"])["origin"])) >= before.get(about, Rank.EXTERNAL)
    other.close()
    world.store.close()


@settings(deadline=None, max_examples=10)
@given(history=histories, batch=st.integers(1, 4))
def test_the_same_export_twice_adds_nothing_and_an_export_of_the_import_gives_nothing_new(
    history: list[Step], batch: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("trip")
    world = world_of(history, folder)
    if not exported(world.store, SCOPE):
        return
    path = file_of(world.store, SCOPE, folder / "export.jsonl")
    with muniment.open(folder / "other", create=True, model="none", clock=world.clock) as other:
        first = other.import_file(path, scope=ELSEWHERE, batch=batch)
        head = other.head
        again = other.import_file(path, scope=ELSEWHERE)
        assert (0, first.written) == (again.written, again.repeated)
        assert head == other.head
    world.store.close()


# --- named cases ------------------------------------------------------------------------------------------------------


def test_i06_what_was_forgotten_since_is_refused_from_an_older_export_with_all_that_derives_from_it(
    tmp_path: Path,
) -> None:
    world = World(tmp_path / "world")
    user = world.speaker(USER)
    code = user.remember("The code is blue heron.")
    user.remember("Ann told the code.", derived_from=[code.id])
    user.remember("The door is green.")
    path = file_of(world.store, SCOPE, tmp_path / "older.jsonl")
    user.forget(code.id, reason="asked for it")

    again = world.store.import_file(path, scope=SCOPE)
    assert (1, ["tombstoned"]) == (again.written, [refused.error for refused in again.refused])
    assert {"derived": 1} == again.skipped_codes
    assert "asked for it" in again.refused[0].message
    assert "heron" not in repr(again)

    with muniment.open(tmp_path / "other", create=True, model="none") as other:
        other.user_session(scope=ELSEWHERE, principal="user:ann").forget_value("the CODE is blue heron", reason="no")
        assert (1, 1) == ((report := other.import_file(path, scope=ELSEWHERE)).written, report.refused_count)
    world.store.close()


def test_a_dispute_does_not_hold_the_key_because_what_it_disputed_was_kept_out(tmp_path: Path) -> None:
    """A page's value would otherwise be there first, and what the user said later would stand beside it."""
    world = World(tmp_path / "world")
    world.speaker(USER).remember("The bank is X.", about=("bank", "name"))
    world.speaker(EXTERNAL).remember("The bank is Evil.", about=("bank", "name"))
    world.speaker(USER).remember("The bank is Y.", about=("bank", "name"))
    path = file_of(world.store, SCOPE, tmp_path / "export.jsonl")
    with muniment.open(tmp_path / "other", create=True, model="none") as other:
        other.user_session(scope=ELSEWHERE, principal="user:ann").forget_value("The bank is X.", reason="asked")
        other.import_file(path, scope=ELSEWHERE)
        (bank,) = other.session(scope=ELSEWHERE, actor=AGENT).beliefs()

    assert ("The bank is Y.", ["The bank is Evil."]) == (bank.content, [beside.content for beside in bank.disputes])
    world.store.close()


@pytest.mark.parametrize("status", ["quarantined", "rejected", "pending"])
def test_what_was_set_apart_is_not_let_out_by_an_import(tmp_path: Path, status: str) -> None:
    world = World(tmp_path / "world")
    world.speaker(AGENT).remember("The door is green.")
    path = file_of(world.store, SCOPE, tmp_path / "export.jsonl")
    path.write_text(path.read_text(encoding="utf-8").replace('"status":"active"', f'"status":"{status}"'))
    report = world.store.import_file(path, scope=ELSEWHERE)
    world.store.close()

    assert (0, {"withheld": 1}) == (report.written, report.skipped_codes)


def test_an_export_that_claims_to_be_the_users_signed_word_is_an_import(tmp_path: Path) -> None:
    world = World(tmp_path / "world")
    world.ann().remember("Pay them all.", provenance="user_confirmation")
    path = file_of(world.store, SCOPE, tmp_path / "export.jsonl")
    world.store.import_file(path, scope=ELSEWHERE)
    (record,) = world.speaker(AGENT, ELSEWHERE).list()
    world.store.close()

    assert ("import:muniment", "external", "observation") == (record.origin, record.rank, record.provenance)
    assert "user_confirmation" == cast("Line", record.metadata["imported"])["provenance"]


def test_an_export_of_an_import_still_tells_who_said_it_first(tmp_path: Path) -> None:
    world = World(tmp_path / "world")
    world.speaker(AGENT).remember("The door is green.")
    world.store.import_file(file_of(world.store, SCOPE, tmp_path / "one.jsonl"), scope="acme/two")
    world.store.import_file(file_of(world.store, "acme/two", tmp_path / "two.jsonl"), scope="acme/three")
    (record,) = world.speaker(AGENT, "acme/three").list()
    world.store.close()

    assert AGENT == cast("Line", record.metadata["imported"])["origin"]
