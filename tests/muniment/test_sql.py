"""SQL through the public calls: a session's scopes only, the operator's all, and the past."""

from __future__ import annotations

from pathlib import Path

import pytest

import muniment
from muniment import InvalidInput, Store
from tests.worlds import AGENT, World


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return muniment.open(tmp_path / "store", create=True, model="none")


def test_i08_a_session_s_sql_sees_its_scopes_and_the_operator_s_sees_all(store: Store) -> None:
    store.session(scope="a", actor="agent:x").remember("of a")
    store.session(scope="b", actor="agent:x").remember("of b")
    both = store.session(scope="a", actor="agent:x", reads=("b",))
    query = "SELECT content FROM memories ORDER BY seq"

    assert (["content"], [("of a",)]) == store.session(scope="a", actor="agent:x").sql(query)
    assert (["content"], [("of a",), ("of b",)]) == both.sql(query)
    assert (["content"], [("of a",), ("of b",)]) == store.sql(query)


def test_i05_sql_shows_nothing_of_what_another_process_forgot(store: Store) -> None:
    session = store.session(scope="a", actor="agent:x")
    receipt = session.remember("the door code is blue")
    query = "SELECT content, status FROM memories"
    assert [("the door code is blue", "active")] == session.sql(query)[1]
    past = store.replay(to=receipt.seq)
    assert [("the door code is blue", "active")] == past.sql(query)[1]

    with muniment.open(store.path, model="none") as other:
        other.session(scope="a", actor="agent:x").forget(receipt.id, reason="asked")

    assert [] == session.sql(query)[1] == store.sql(query, to=receipt.seq)[1] == past.sql(query)[1]
    stub = [(receipt.id, "erased")]
    query = "SELECT id, status FROM stubs"
    assert stub == session.sql(query)[1] == store.sql(query, to=receipt.seq)[1] == past.sql(query)[1]
    assert not past._past.graph._filled


def test_what_was_erased_is_not_counted_and_its_stub_says_when_and_by_whom(store: Store) -> None:
    session = store.session(scope="a", actor="agent:x")
    kept, gone = session.remember("this stays"), session.remember("this goes")
    assert [(2,)] == store.sql("SELECT count(*) FROM memories")[1]
    receipt = session.forget(gone.id, reason="asked")

    assert [(kept.id,)] == store.sql("SELECT id FROM memories")[1]
    assert 1 == store.stats()["memories"]
    told = "SELECT s.id, erased_by, erased_at, erasure, reason FROM stubs s JOIN tombstones t ON t.id = s.erasure"
    assert {(gone.id, "agent:x", receipt.recorded_at, receipt.id, "asked")} == set(session.sql(told)[1])
    # Everything that both views have is the same of both.
    columns = [set(store.sql(f"SELECT * FROM {view}")[0]) for view in ("memories", "stubs")]
    assert {"erased_at", "erased_by", "erasure"} == columns[1] - columns[0]
    assert not {"content", "subject", "value", "source", "tags", "metadata", "reason"} & columns[1]


def test_i04_sql_in_the_past_equals_sql_in_a_replayed_store(store: Store) -> None:
    session = store.session(scope="a", actor="agent:x")
    first = session.remember("the car is red", about=("car", "colour"))
    session.remember("the car is blue", about=("car", "colour"))
    query = "SELECT id, status, content FROM memories"

    now = session.sql(query, known_at=first.seq)
    assert (["id", "status", "content"], [(first.id, "active", "the car is red")]) == now
    assert now == store.replay(to=first.seq).session(scope="a").sql(query)
    assert now == store.sql(query, to=first.seq)


def test_sql_shows_each_status_as_get_does(store: Store) -> None:
    session = store.session(scope="a", actor="agent:x")
    ids = [session.remember(f"the car is {c}", about=("car", "colour"), value=c).id for c in ("red", "blue")]
    ids.append(session.supersede(ids[1], "the car is green", about=("car", "colour"), value="green").id)
    records = [session.get(i) for i in ids]

    expected = [(r.id, r.status, r.superseded_by, r.value, r.valid_from, r.valid_to, r.rank) for r in records]
    _, rows = session.sql(
        "SELECT id, status, superseded_by, value, valid_from, valid_to, rank FROM memories ORDER BY seq"
    )
    assert expected == rows


def test_sql_that_cannot_be_read_is_an_input_error(store: Store) -> None:
    with pytest.raises(InvalidInput, match="syntax error"):
        store.sql("SELEKT 1")


def test_an_event_lists_the_memories_that_it_touched(world: World) -> None:
    """Who removed these, when: also where one deed removed several, and only what the asker may see."""
    agent, ann = world.speaker(AGENT), world.ann()
    first = agent.remember("The vault code is 7713.").id
    derived = agent.remember("The code ends in 13.", derived_from=[first]).id
    kept = agent.remember("The vault is in the cellar.").id
    forgotten = ann.forget(first, reason="asked").id
    world.store.operator().quarantine([kept], reason="doubtful")
    query = "SELECT type, touched FROM events WHERE touched <> [] ORDER BY seq"

    assert [("forgotten", [first, derived]), ("quarantined", [kept])] == world.store.sql(query)[1]
    found = world.store.sql(f"SELECT id, actor FROM events WHERE list_contains(touched, '{derived}')")[1]
    assert [(forgotten, "user:ann")] == found
    assert [("forgotten", [first, derived])] == agent.sql(query)[1]
    assert [] == world.speaker(AGENT, "acme/other").sql(query)[1]
