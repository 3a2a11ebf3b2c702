"""An export that is imported elsewhere is the same memories: all but record time, ids and rank."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, cast

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
    "content", "kind", "about", "value", "many", "source", "tags", "importance", "applies_when", "reason",
)  # fmt: skip
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
    given_back: dict[str, list[Line]] = {}
    for line in after:
        given_back.setdefault(names[str(line["id"])], []).append(line)

    assert sorted(str(line["id"]) for line in expected) == sorted(given_back)
    for line in expected:
        parts = sorted(given_back[str(line["id"])], key=lambda part: str(part["valid_from"]))
        assert (line["valid_from"], line["valid_to"]) == (parts[0]["valid_from"], parts[-1]["valid_to"])
        assert all(one["valid_to"] == following["valid_from"] for one, following in pairwise(parts))
        if len(parts) == 1:
            ended = _is_settled(line) or _replaced_by_another_voice(line, before)
            for key in ("retired_from", "retired_for"):
                assert ended or _stated(line, key) == _stated(parts[0], key), key
        else:
            assert line["parts"]
        for part in parts:
            _says_the_same(line, part, names, in_parts=len(parts) > 1)
    assert not report.refused
    other.close()
    world.store.close()


def _says_the_same(line: Line, found: Line, names: dict[str, str], *, in_parts: bool) -> None:
    for key in KEPT:
        assert line[key] == found[key], key
    told = cast("Line", cast("Line", found["metadata"]).pop("imported"))
    assert line["metadata"] == found["metadata"]
    stated = ("valid_from", "valid_to") if in_parts else ()
    for key in ("origin", "actor", "provenance", "recorded_at", *stated):
        assert line[key] == told[key], key
    there = set(names.values())
    assert [name for name in cast("list[str]", line["derived_from"]) if name in there] == [
        names[identity] for identity in cast("list[str]", found["derived_from"])
    ]
    assert sorted(link for link in cast("list[list[str]]", line["links"]) if link[1] in there) == sorted(
        [kind, names[end]] for kind, end in cast("list[list[str]]", found["links"])
    )


def _is_settled(line: Line) -> bool:
    parts = cast("list[Line]", line["parts"]) or [line]
    return any(part["settled"] for part in parts)


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
    folder = tmp_path_factory.mktemp("trip")
    world = world_of(history, folder)
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
    world = world_of(history, folder)
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


# --- at every point of valid time -------------------------------------------------------------------------------------


class Said(NamedTuple):
    """A keyed statement over days of a month, or what becomes of an earlier one."""

    verb: str
    who: str
    value: str
    since: int
    days: int | None
    target: int


statements = st.builds(
    Said,
    verb=st.sampled_from(
        ("say", "say", "say", "say", "supersede", "note", "retire", "retire then", "forget", "quarantine", "release")
    ),
    who=st.sampled_from((EXTERNAL, f"{EXTERNAL}/page", AGENT, "agent:other", USER)),
    value=st.sampled_from(("red", "blue", "green", "white")),
    since=st.integers(0, 6),
    days=st.one_of(st.none(), st.integers(1, 5)),
    target=st.integers(0, 9),
)
KEY = ("door", "colour")


def day(number: int) -> datetime:
    return datetime(2026, 2, 1, tzinfo=UTC) + timedelta(days=4 * number)


def say(world: World, said: Said) -> None:
    world.clock.advance()
    speaker, target = world.speaker(said.who), world.ids[said.target % len(world.ids)] if world.ids else None
    try:
        match said.verb:
            case "say":
                since, until = day(said.since), None if said.days is None else day(said.since + said.days)
                # The same again is a record of its own: two places are two sources.
                world.ids.append(
                    speaker.remember(
                        f"The door is {said.value}.", about=KEY, value=said.value, valid_from=since, valid_to=until,
                        source=f"place {len(world.ids)}",
                    ).id
                )  # fmt: skip
            case _ if target is None:
                return
            case "supersede":
                since, until = day(said.since), None if said.days is None else day(said.since + said.days)
                told = speaker.supersede(
                    target, f"The door is {said.value}.", value=said.value, valid_from=since, valid_to=until,
                    source=f"place {len(world.ids)}",
                )  # fmt: skip
                world.ids.append(told.id)
            case "note":
                speaker.remember(f"A note of {said.value}.", derived_from=[target])
            case "retire":
                speaker.retire(target, reason="painted over")
            case "retire then":
                speaker.retire(target, reason="to be painted", valid_to=day(said.since))
            case "forget":
                speaker.forget(target, reason="asked")
            case "quarantine":
                world.store.operator().quarantine([target], reason="looks wrong")
            case _:
                world.store.operator().release([target], reason="was sound")
    except (muniment.Refused, muniment.InvalidInput):
        return


def values(store: Store, scope: str, points: Iterable[datetime]) -> list[object]:
    mem = store.session(scope=scope, actor=AGENT)
    return [[one.value for one in mem.beliefs(about=KEY, valid_at=point)] for point in points]


def disputes(store: Store, scope: str, points: Iterable[datetime]) -> list[object]:
    mem = store.session(scope=scope, actor=AGENT)
    found = [mem.beliefs(about=KEY, valid_at=point) for point in points]
    return [[sorted(str(beside.value) for beside in one.disputes) for one in at] for at in found]


@settings(deadline=None, max_examples=60)
@given(history=st.lists(statements, min_size=2, max_size=9), batch=st.integers(1, 5))
def test_every_point_of_valid_time_has_the_value_that_it_had(
    history: list[Said], batch: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whoever said it, over whatever part of another's interval, and whatever became of what had taken over from it."""
    folder = tmp_path_factory.mktemp("points")
    world = World(folder / "world")
    for said in history:
        say(world, said)
    if not exported(world.store, SCOPE):
        world.store.close()
        return
    path = file_of(world.store, SCOPE, folder / "export.jsonl")
    # All instants at which anything begins or ends: days, and when something was retired at once.
    points = sorted({day(n) for n in range(12)} | {world.clock.moment + timedelta(seconds=s) for s in range(-12, 1)})
    with muniment.open(folder / "other", create=True, model="none", clock=world.clock) as other:
        report = other.import_file(path, scope=ELSEWHERE, batch=batch)
        assert not report.refused
        assert values(world.store, SCOPE, points) == values(other, ELSEWHERE, points)
        if not any(said.verb == "supersede" for said in history):
            # A dispute that another voice superseded is ended as a whole, at the import.
            assert disputes(world.store, SCOPE, points) == disputes(other, ELSEWHERE, points)
        assert {"external"} >= {record.rank for record in other.session(scope=ELSEWHERE, actor=AGENT).list(limit=100)}
        if not report.written:
            world.store.close()
            return
        again = file_of(other, ELSEWHERE, folder / "again.jsonl")
        with muniment.open(folder / "third", create=True, model="none", clock=world.clock) as third:
            third.import_file(again, scope=ELSEWHERE)
            assert values(world.store, SCOPE, points) == values(third, ELSEWHERE, points)
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
    assert (0, 1, ["tombstoned"]) == (again.written, again.repeated, [refused.error for refused in again.refused])
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


def test_what_was_withdrawn_after_its_own_end_comes_back_retired(tmp_path: Path) -> None:
    world = World(tmp_path / "world")
    receipt = world.speaker(AGENT).remember("The door is green.", valid_from=day(0), valid_to=day(1))
    world.clock.advance(60 * 86_400)
    world.speaker(AGENT).retire(receipt.id, reason="it never was")

    report = world.store.import_file(file_of(world.store, SCOPE, tmp_path / "export.jsonl"), scope=ELSEWHERE)

    assert 1 == report.retired
    assert ["retired"] == [one.status for one in world.store.session(scope=ELSEWHERE).list(status=("retired",))]


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


def test_a_statement_that_took_over_a_part_of_another_s_interval_comes_back_in_parts(tmp_path: Path) -> None:
    """The agent may take over from the other agent, and not from the user."""
    world = World(tmp_path / "world")
    history = (
        Said("say", AGENT, "red", 0, 2, 0),
        Said("say", USER, "blue", 2, 2, 0),
        Said("say", "agent:other", "green", 1, 2, 0),
    )
    for said in history:
        say(world, said)
    points = [day(n) for n in range(5)]
    path = file_of(world.store, SCOPE, tmp_path / "export.jsonl")
    with muniment.open(tmp_path / "other", create=True, model="none") as other:
        report = other.import_file(path, scope=ELSEWHERE)
        assert [["red"], ["green"], ["blue"], ["blue"], []] == values(other, ELSEWHERE, points)
        assert [[[]], [[]], [["green"]], [[]], []] == disputes(other, ELSEWHERE, points)
        told = [line for line in exported(other, ELSEWHERE) if line["value"] == "green"]
    (green,) = [line for line in exported(world.store, SCOPE) if line["value"] == "green"]
    world.store.close()

    assert (4, 0) == (report.written, report.retired)
    assert (False, False) == (green["entitled"], green["settled"])
    assert [(True, False), (False, False)] == [
        (part["entitled"], part["settled"]) for part in cast("list[Line]", green["parts"])
    ]
    assert [(green["valid_from"], green["valid_to"])] * 2 == [
        (said["valid_from"], said["valid_to"])
        for line in told
        for said in (cast("dict[str, Line]", line["metadata"])["imported"],)
    ]


def test_forgetting_the_newest_does_not_revive_the_one_before_on_the_way(tmp_path: Path) -> None:
    world = World(tmp_path / "world")
    for said in (
        Said("say", AGENT, "red", 0, None, 0),
        Said("say", AGENT, "blue", 1, None, 0),
        Said("forget", AGENT, "", 0, None, 1),
    ):
        say(world, said)
    path = file_of(world.store, SCOPE, tmp_path / "export.jsonl")
    with muniment.open(tmp_path / "other", create=True, model="none") as other:
        other.import_file(path, scope=ELSEWHERE)
        assert [["red"], [], []] == values(other, ELSEWHERE, (day(0), day(1), day(9)))
    world.store.close()


@pytest.mark.parametrize("about", [None, ("soup", "of the day")])
@pytest.mark.parametrize("gone", ["forgotten", "quarantined"])
def test_what_a_memory_was_superseded_by_does_not_revive_it_on_the_way_when_it_is_gone(
    tmp_path: Path, gone: str, about: tuple[str, str] | None
) -> None:
    """Also of memories without a key, and of one of many values: only the successor's id says that they are over."""
    world = World(tmp_path / "here")
    agent = world.speaker(AGENT)
    first = agent.remember("leek soup", about=about, many=about is not None)
    world.clock.advance(1)
    second = agent.supersede(first.id, "beetroot soup")
    world.clock.advance(1)
    if gone == "forgotten":
        agent.forget(second.id, reason="asked")
    else:
        world.store.operator().quarantine([second.id], reason="looks wrong")

    _, _, _, other, report = round_trip(world, tmp_path / "there")

    reader = other.session(scope=ELSEWHERE, actor=AGENT)
    assert [] == agent.recall("soup") == reader.recall("soup")
    assert [("leek soup", "retired")] == [(record.content, record.status) for record in reader.list()]
    assert 1 == report.retired
    other.close()
    world.store.close()


def test_a_memory_is_over_only_where_what_took_over_from_it_and_is_gone_held(tmp_path: Path) -> None:
    world = World(tmp_path / "here")
    agent = world.speaker(AGENT)
    first = agent.remember("the office closes at six", valid_from="2026-01-01")
    august = agent.supersede(first.id, "it closes at four", valid_from="2026-08-01", valid_to="2026-09-01")
    agent.forget(august.id, reason="asked")
    agent.supersede(first.id, "the office closes at seven", valid_from="2026-12-01")

    _, _, _, other, _ = round_trip(world, tmp_path / "there")

    reader = other.session(scope=ELSEWHERE, actor=AGENT)
    for session in (agent, reader):
        assert ["the office closes at six"] == [hit.content for hit in session.recall("office", valid_at="2026-07-01")]
        assert [] == session.recall("office", valid_at="2026-08-15")
        assert ["the office closes at six"] == [hit.content for hit in session.recall("office", valid_at="2026-10-01")]
        assert ["the office closes at seven"] == [h.content for h in session.recall("office", valid_at="2027-01-01")]
    other.close()
    world.store.close()


@pytest.mark.parametrize(("kept", "missing"), [(1, 3), (3, 1), (4, 0)])
def test_an_export_that_was_cut_between_two_lines_is_not_taken_for_a_whole_one(
    tmp_path: Path, kept: int, missing: int
) -> None:
    world = World(tmp_path / "here")
    world.speaker(AGENT).remember_many([{"content": f"soup number {n}"} for n in range(3)])
    path = file_of(world.store, SCOPE, tmp_path / "export.jsonl")
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:kept]))

    report = world.store.import_file(path, scope=ELSEWHERE)

    assert kept - 1 == report.written
    told = [(item.where, item.code) for item in report.skipped]
    assert ([("the end", "damaged")] if missing else []) == told
    assert not missing or f"its header tells of {missing} more" in report.skipped[0].why
    world.store.close()


def test_an_export_that_comes_back_to_where_it_was_made_adds_nothing(tmp_path: Path) -> None:
    """Whatever its memories are by now; but for what was forgotten, which a lift lets in again."""
    world = World(tmp_path / "here")
    agent, key = world.speaker(AGENT), ("launch", "day")
    agent.remember("monday", about=key)
    friday = agent.remember("friday", about=key)
    over = agent.remember("the old office")
    note = agent.remember("a note", derived_from=(friday.id,), links=(("about", over.id),))
    gone = agent.remember("a secret", derived_from=(note.id,))
    path = file_of(world.store, SCOPE, tmp_path / "export.jsonl")
    agent.retire(over.id, reason="moved")
    forgotten = world.ann().forget(gone.id, reason="asked")
    before = [record.to_dict() for record in agent.list()]

    report = world.store.import_file(path, scope=SCOPE)

    assert (4, 0, 0, 0) == (report.repeated, report.written, report.retired, report.linked)
    assert (["tombstoned"], ()) == ([refused.error for refused in report.refused], report.skipped)
    assert before == [record.to_dict() for record in agent.list()]

    world.ann().lift(forgotten.id or "", reason="needed after all")
    again = world.store.import_file(path, scope=SCOPE)

    assert (4, 1) == (again.repeated, again.written)
    assert ("a secret", (note.id,)) == (agent.list()[-1].content, agent.list()[-1].derived_from)
    elsewhere = world.store.import_file(path, scope=ELSEWHERE)
    assert 5 == elsewhere.written
    world.store.close()


def test_a_file_that_names_memories_of_its_scope_as_its_own_changes_none_of_them(tmp_path: Path) -> None:
    world = World(tmp_path / "here")
    theirs = world.ann().remember("never deploy on fridays")
    path = file_of(world.store, SCOPE, tmp_path / "export.jsonl")
    header, line = (json.loads(text) for text in path.read_text().splitlines())
    line |= {"retired_from": line["valid_from"], "retired_for": "forged", "settled": True}
    other = line | {"id": "f" * 32, "content": "deploy on fridays", "supersedes": theirs.id, "retired_from": None}
    path.write_text("".join(json.dumps(each) + "\n" for each in (header | {"memories": 2}, line, other)))

    world.store.import_file(path, scope=SCOPE)

    assert "active" == world.speaker(AGENT).get(theirs.id).status
    world.store.close()


def test_an_export_without_parts_is_read_as_before(tmp_path: Path) -> None:
    world = World(tmp_path / "world")
    say(world, Said("say", USER, "blue", 2, 2, 0))
    say(world, Said("say", AGENT, "green", 1, 2, 0))
    lines = exported(world.store, SCOPE)
    path = file_of(world.store, SCOPE, tmp_path / "export.jsonl")
    text = path.read_text(encoding="utf-8")
    for line in lines:
        parts = json.dumps(line.pop("parts"), separators=(",", ":"))
        text = text.replace(f',"parts":{parts}', "")
    assert '"parts"' not in text
    path.write_text(text, encoding="utf-8")
    with muniment.open(tmp_path / "other", create=True, model="none") as other:
        assert 2 == other.import_file(path, scope=ELSEWHERE).written
        assert [["green"], ["blue"], ["blue"]] == values(other, ELSEWHERE, (day(1), day(2), day(3)))
    world.store.close()


@pytest.mark.parametrize(
    "parts",
    [
        '["x"]',
        '[{"valid_from":"2026-02-05T00:00:00Z","valid_to":null}]',
        '[{"valid_from":null,"valid_to":null}]',
        '[{"valid_from":"2026-02-01T00:00:00Z","valid_to":"2026-02-02T00:00:00Z"},'
        '{"valid_from":"2026-02-03T00:00:00Z","valid_to":null}]',
    ],
)
def test_parts_that_are_not_the_whole_are_none_that_an_export_writes(tmp_path: Path, parts: str) -> None:
    world = World(tmp_path / "world")
    say(world, Said("say", AGENT, "red", 0, None, 0))
    path = file_of(world.store, SCOPE, tmp_path / "export.jsonl")
    path.write_text(path.read_text(encoding="utf-8").replace('"parts":null', f'"parts":{parts}'), encoding="utf-8")
    report = world.store.import_file(path, scope=ELSEWHERE)
    world.store.close()

    assert (0, {"damaged": 1}) == (report.written, report.skipped_codes)


@pytest.mark.parametrize("how", ["note", "supersede"])
def test_a_page_s_value_does_not_come_first_because_something_names_it(tmp_path: Path, how: str) -> None:
    """What it stood beside was forgotten, and what names it needs it to be there."""
    world = World(tmp_path / "world")
    user, agent = world.speaker(USER), world.speaker(AGENT)
    first = user.remember("The bank is X.", about=("bank", "name"))
    page = world.speaker(EXTERNAL).remember("The bank is Evil.", about=("bank", "name"))
    user.forget(first.id, reason="asked")
    if how == "note":
        agent.remember("A page names a bank.", derived_from=[page.id])
        agent.remember("The bank is Y.", about=("bank", "name"))
    else:
        agent.supersede(page.id, "The bank is Y.")
    path = file_of(world.store, SCOPE, tmp_path / "export.jsonl")
    with muniment.open(tmp_path / "other", create=True, model="none") as other:
        report = other.import_file(path, scope=ELSEWHERE)
        assert 0 == report.skipped_count
        mem = other.session(scope=ELSEWHERE, actor=AGENT)
        assert ["The bank is Y."] == [bank.content for bank in mem.beliefs(about=("bank", "name"))]
        notes = {str(record.content): record.derived_from for record in mem.list()}
        assert (how == "note") == any(notes.values())
    world.store.close()
