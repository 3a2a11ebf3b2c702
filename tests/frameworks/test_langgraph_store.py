"""What a Muniment store does for LangGraph beyond the contract, and where it deviates from the reference."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from typing import Any

import pytest
from langgraph.store.base import InvalidNamespaceError, Item, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

import muniment
from muniment.errors import BadArgument
from muniment.langgraph import MunimentStore
from tests.erasure.stores import readable
from tests.worlds import World

from .conftest import run

NS = ("users", "ann")
SCOPE = "acme/graph/users/ann"
ABOUT = ("langgraph/k", "item")


def _value(store: MunimentStore, key: str, namespace: tuple[str, ...] = NS) -> dict[str, Any] | None:
    item = store.get(namespace, key)
    return None if item is None else item.value


def _found(item: Item | None) -> Item:
    assert item is not None
    return item


# --- scopes and names -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("namespace", "scope"),
    [
        (("users", "ann"), "acme/graph/users/ann"),
        (("users", "ann/1"), "acme/graph/users/ann%2F1"),
        (("users/ann",), "acme/graph/users%2Fann"),
        (("a%2Fb",), "acme/graph/a%252Fb"),
        ((" x ", "*"), "acme/graph/%20x%20/%2A"),
        (("日本", "Zoë"), "acme/graph/日本/Zoë"),
        (("Zoe\u0308",), "acme/graph/Zoe%CC%88"),
        (("\u3164",), "acme/graph/%E3%85%A4"),
    ],
)
def test_a_namespace_is_a_scope_below_the_root(
    world: World, ours: MunimentStore, namespace: tuple[str, ...], scope: str
) -> None:
    ours.put(namespace, "k", {"v": 1})

    assert [namespace] == ours.list_namespaces()
    assert {"v": 1} == _value(ours, "k", namespace)
    assert [{"v": 1}] == [item.value for item in ours.search(namespace)]
    assert 1 == len(world.store.session(scope=scope, actor="agent:planner").list())


def test_a_namespace_that_no_scope_can_spell_is_refused(ours: MunimentStore) -> None:
    with pytest.raises(muniment.InvalidInput, match="longer than 64"):
        ours.put(("x" * 65,), "k", {"v": 1})
    with pytest.raises(muniment.InvalidInput, match="more than 16 segments"):
        ours.put(tuple("abcdefghijklmno"), "k", {"v": 1})
    with pytest.raises(muniment.InvalidInput, match="surrogate"):
        ours.put(("\ud800",), "k", {"v": 1})
    with pytest.raises(muniment.InvalidInput, match="surrogate"):
        ours.put(NS, "\ud800", {"v": 1})


def test_labels_are_checked_in_batches_too(ours: MunimentStore) -> None:
    """The reference checks them in its methods only, and lets a batch through."""
    for namespace in [("a.b",), ("",), ()]:
        with pytest.raises(InvalidNamespaceError):
            ours.batch([PutOp(namespace, "k", {"v": 1})])

    assert [] == ours.list_namespaces()


def test_nothing_beside_the_root_and_nothing_that_is_no_item_is_seen(world: World, ours: MunimentStore) -> None:
    beside = MunimentStore(world.store, scope="acme/graph2", actor="agent:planner")
    beside.put(NS, "k", {"text": "the launch is beside"})
    MunimentStore(world.store, scope="acme", actor="agent:planner").put(("other",), "k", {"text": "the launch above"})
    said: dict[str, Any] = {"langgraph": {"key": "k", "value": {}, "index": True, "ttl": None}}
    for scope, about in [
        ("acme/graph", ABOUT),
        (SCOPE, None),
        ("acme/graph/not ours", ABOUT),
        ("acme/graph/%6B", ABOUT),
    ]:
        session = world.store.session(scope=scope, actor="agent:planner")
        session.remember(f"The launch in {scope}", about=about, metadata=said)

    assert [] == ours.list_namespaces()
    assert [] == ours.search(())
    assert [] == ours.search((), query="launch")
    assert _value(ours, "k") is None


def test_two_actors_below_one_root_share_it(world: World, ours: MunimentStore) -> None:
    other = MunimentStore(world.store, scope="acme/graph", actor="agent:writer")
    ours.put(NS, "k", {"v": 1})
    other.put(NS, "k", {"v": 2})

    assert {"v": 2} == _value(ours, "k")
    [record] = [r for r in world.store.session(scope=SCOPE).list() if r.status == "active"]
    assert "agent:writer" == record.origin


# --- versions ---------------------------------------------------------------------------------------------------------


def test_each_put_is_a_version_that_supersedes_the_one_before(world: World, ours: MunimentStore) -> None:
    """`created_at` stays that of the first, as in LangGraph's Postgres store; the reference gives the last put's."""
    ours.put(NS, "k", {"v": 1})
    first = _found(ours.get(NS, "k"))
    world.clock.advance(60)
    ours.put(NS, "k", {"v": 2})
    ours.put(NS, "k", {"v": 1})

    item = _found(ours.get(NS, "k"))
    session = world.store.session(scope=SCOPE, actor="agent:planner")
    [belief] = session.beliefs()

    assert first.created_at == first.updated_at == item.created_at
    assert item.created_at + timedelta(seconds=60) <= item.updated_at
    assert ["superseded", "superseded", "active"] == [r.status for r in session.history(belief.id)]
    assert ['{"v": 1}', '{"v": 2}', '{"v": 1}'] == [r.content for r in session.history(belief.id)]


def test_a_key_that_was_deleted_begins_anew(world: World, ours: MunimentStore) -> None:
    ours.put(NS, "k", {"v": 1})
    before = _found(ours.get(NS, "k")).created_at
    ours.delete(NS, "k")
    ours.put(NS, "k", {"v": 1})

    assert before < _found(ours.get(NS, "k")).created_at


def test_a_changed_item_keeps_its_place_in_a_search(ours: MunimentStore) -> None:
    for key in ("a", "b", "c"):
        ours.put(NS, key, {"v": key})
    ours.put(NS, "a", {"v": "changed"})

    assert ["a", "b", "c"] == [item.key for item in ours.search(NS)]


def test_a_batch_is_written_wholly_or_not_at_all(world: World, ours: MunimentStore) -> None:
    ours.put(NS, "k", {"v": 1})
    secret = {"key": "AKIA" + "IOSFODNN7EXAMPL" + "Q"}

    with pytest.raises(muniment.Refused) as refused:
        ours.batch([PutOp(NS, "new", {"v": 1}), PutOp(NS, "k", None), PutOp(("other",), "k", secret)])

    assert "secret_found" == refused.value.code
    assert {"v": 1} == _value(ours, "k")
    assert [NS] == ours.list_namespaces()


@pytest.mark.parametrize("value", [{"when": date(2026, 3, 1)}, {"n": float("nan")}, {"b": b"x"}, {"o": object()}])
def test_what_is_not_json_is_refused(ours: MunimentStore, value: dict[str, Any]) -> None:
    """The reference keeps any object, in memory."""
    with pytest.raises(muniment.InvalidInput, match="not JSON"):
        ours.put(NS, "k", value)


def test_values_are_what_json_gives_back(ours: MunimentStore) -> None:
    ours.put(NS, "k", {"pair": (1, 2), "big": 2**70, "text": "\u0000 and \u200b", "": {}})

    assert {"pair": [1, 2], "big": 2**70, "text": "\u0000 and \u200b", "": {}} == _value(ours, "k")


def test_threads_that_put_at_once_leave_one_value_a_key(world: World, ours: MunimentStore) -> None:
    def put(number: int) -> None:
        ours.put(NS, f"k{number % 2}", {"v": number})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(put, range(24)))

    assert ["k0", "k1"] == sorted(item.key for item in ours.search(NS))
    records = world.store.session(scope=SCOPE).list()
    assert ["active"] * 2 + ["superseded"] * 22 == sorted(record.status for record in records)


# --- authority --------------------------------------------------------------------------------------------------------


def test_an_agent_cannot_put_over_what_the_user_said(world: World, ours: MunimentStore) -> None:
    MunimentStore(world.store, scope="acme/graph", actor="user").put(NS, "k", {"v": "the user's"})

    for value in ({"v": "the agent's"}, None):
        with pytest.raises(muniment.Refused) as refused:
            ours.batch([PutOp(NS, "k", value), PutOp(NS, "other", {"v": 1})])
        assert "rank_too_low" == refused.value.code

    assert {"v": "the user's"} == _value(ours, "k")
    assert _value(ours, "other") is None


def test_a_put_is_readable_also_where_the_user_deleted_another_value(world: World, ours: MunimentStore) -> None:
    """Acknowledged means kept: a put never ends as a dispute that no get returns."""
    users = MunimentStore(world.store, scope="acme/graph", actor="user")
    users.put(NS, "k", {"v": "the user's"})
    users.delete(NS, "k")

    with pytest.raises(muniment.Refused) as refused:
        ours.put(NS, "k", {"v": "the user's"})
    assert "retired_value" == refused.value.code
    ours.put(NS, "k", {"v": "another"})
    assert {"v": "another"} == _value(ours, "k")


def test_a_writer_of_the_web_stays_one(world: World) -> None:
    web = MunimentStore(world.store, scope="acme/graph", actor="agent:reader", origin="web:shop.example")
    web.put(NS, "k", {"v": 1})

    [record] = world.store.session(scope=SCOPE).list()
    assert ("web:shop.example", "external") == (record.origin, record.rank)


# --- deletion ---------------------------------------------------------------------------------------------------------


def test_delete_retires_and_history_keeps_the_value(world: World, ours: MunimentStore) -> None:
    ours.put(NS, "k", {"v": "kept in history"})
    known = world.store.head.seq
    ours.delete(NS, "k")

    session = world.store.session(scope=SCOPE)
    assert ["retired"] == [r.status for r in session.list()]
    assert ['{"v": "kept in history"}'] == [b.content for b in session.beliefs(known_at=known)]
    # The reference goes on to list a namespace whose last item was deleted, and any that was only asked for.
    assert [] == ours.list_namespaces()
    reference = InMemoryStore()
    reference.get(("asked", "for"), "k")
    assert [("asked", "for")] == reference.list_namespaces()


def test_delete_can_forget_every_version_and_keeps_the_values_out(world: World) -> None:
    store = MunimentStore(world.store, scope="acme/graph", actor="agent:planner", delete="forget")
    store.put(NS, "k", {"v": "quetzalcoatlus one"})
    store.put(NS, "k", {"v": "quetzalcoatlus two"})
    store.put(("elsewhere",), "k", {"v": "quetzalcoatlus one"})
    store.delete(NS, "k")
    store.delete(NS, "k")
    store.delete(NS, "never")

    assert _value(store, "k") is None
    for key, value in [("k", "quetzalcoatlus one"), ("k", "QUETZALCOATLUS two"), ("other", "quetzalcoatlus two")]:
        with pytest.raises(muniment.Refused) as refused:
            store.put(NS, key, {"v": value})
        assert "tombstoned" == refused.value.code
    assert {"v": "quetzalcoatlus one"} == _value(store, "k", ("elsewhere",))
    store.put(NS, "k", {"v": "another"})
    assert {"v": "another"} == _value(store, "k")
    assert world.store.verify().ok


def test_i05_what_delete_forgets_is_in_no_file(world: World) -> None:
    store = MunimentStore(world.store, scope="acme/graph", actor="agent:planner", delete="forget")
    store.put(NS, "k", {"v": "quetzalcoatlus northropi"})
    store.put(NS, "other", {"v": "pteranodon"})
    store.search(NS, query="quetzalcoatlus")
    world.store.rebuild()
    found = readable(world.path, "quetzalcoatlus", "northropi")
    store.delete(NS, "k")
    world.store.close()

    assert found
    assert [] == readable(world.path, "quetzalcoatlus", "northropi")


def test_a_delete_that_forgets_asks_the_user_about_the_users_words(world: World) -> None:
    MunimentStore(world.store, scope="acme/graph", actor="user").put(NS, "k", {"v": 1})
    store = MunimentStore(world.store, scope="acme/graph", actor="agent:planner", delete="forget")

    with pytest.raises(muniment.Refused) as refused:
        store.delete(NS, "k")

    assert "needs_grant" == refused.value.code
    assert {"v": 1} == _value(store, "k")


def test_delete_is_one_of_two_words(world: World) -> None:
    with pytest.raises(muniment.InvalidInput, match="expected retire or forget"):
        MunimentStore(world.store, scope="acme", actor="agent:planner", delete="drop")


# --- time to live -----------------------------------------------------------------------------------------------------


def test_an_item_expires_and_what_it_replaced_stays_replaced(world: World, ours: MunimentStore) -> None:
    ours.put(NS, "k", {"v": "for good"})
    ours.put(NS, "k", {"v": "for a minute"}, ttl=1)
    ours.put(NS, "stays", {"v": 1})
    assert {"v": "for a minute"} == _value(ours, "k")
    world.clock.advance(61)

    assert _value(ours, "k") is None
    assert ["stays"] == [item.key for item in ours.search(NS)]
    assert [] == ours.search(NS, query="minute good", filter={"v": {"$ne": 1}})
    ours.put(NS, "k", {"v": "again"})
    assert {"v": "again"} == _value(ours, "k")


def test_validity_in_the_log_is_the_time_to_live(world: World, ours: MunimentStore) -> None:
    ours.put(NS, "k", {"v": 1}, ttl=90)

    [record] = world.store.session(scope=SCOPE).list()
    assert record.valid_to is not None
    assert timedelta(minutes=90) - timedelta(seconds=1) < record.valid_to - record.valid_from <= timedelta(minutes=90)


def test_a_time_to_live_beyond_the_calendar_is_refused_and_nothing_is_written(ours: MunimentStore) -> None:
    ours.put(NS, "k", {"v": 1})

    with pytest.raises(BadArgument, match="after year 9999"):
        ours.put(NS, "k", {"v": 2}, ttl=1e12)

    assert {"v": 1} == _value(ours, "k")


def test_a_namespace_of_expired_items_is_not_listed(world: World, ours: MunimentStore) -> None:
    ours.put(NS, "k", {"v": 1}, ttl=1)
    world.clock.advance(61)

    assert [] == ours.list_namespaces()


def test_a_read_begins_the_time_to_live_anew_and_changes_nothing_else(world: World, ours: MunimentStore) -> None:
    ours.put(NS, "got", {"v": 1}, ttl=1)
    ours.put(NS, "found", {"v": 2}, ttl=1)
    ours.put(NS, "asked", {"v": 3}, ttl=1)
    before = [_found(ours.get(NS, key, refresh_ttl=False)) for key in ("got", "found", "asked")]
    world.clock.advance(40)
    ours.get(NS, "got")
    ours.search(NS, filter={"v": 2})
    ours.get(NS, "asked", refresh_ttl=False)
    ours.search(NS, refresh_ttl=False)
    world.clock.advance(40)

    after = [ours.get(NS, key, refresh_ttl=False) for key in ("got", "found", "asked")]
    assert [before[0], before[1], None] == after
    world.clock.advance(21)
    assert [] == ours.search(NS)


@pytest.mark.parametrize("value", [{"v": "newer"}, None])
def test_a_refresh_never_brings_back_what_was_changed_since_the_read(
    ours: MunimentStore, value: dict[str, Any] | None
) -> None:
    """Another thread or process may have written between the two."""
    ours.put(NS, "k", {"v": "read"}, ttl=1)
    read = ours._reads.get(NS, "k")
    assert read is not None
    ours.batch([PutOp(NS, "k", value)])
    ours._writes.refresh([read])

    assert value == _value(ours, "k")


def test_reads_write_nothing_where_the_host_says_so(world: World) -> None:
    store = MunimentStore(
        world.store, scope="acme/graph", actor="agent:planner", ttl={"refresh_on_read": False, "default_ttl": 1}
    )
    store.put(NS, "k", {"v": 1})
    store.put(NS, "stays", {"v": 2}, ttl=None)
    seq = world.store.head.seq
    world.clock.advance(40)
    store.get(NS, "k")
    store.search(NS, query="v")

    assert seq == world.store.head.seq
    world.clock.advance(21)
    assert ["stays"] == [item.key for item in store.search(NS)]


def test_what_a_reader_may_not_change_it_does_not_refresh(world: World, ours: MunimentStore) -> None:
    MunimentStore(world.store, scope="acme/graph", actor="user").put(NS, "k", {"v": 1}, ttl=1)
    seq = world.store.head.seq

    assert {"v": 1} == _value(ours, "k")
    assert seq == world.store.head.seq


def test_a_store_opened_for_reading_is_read_and_not_written(world: World, ours: MunimentStore) -> None:
    ours.put(NS, "k", {"v": 1}, ttl=1)
    world.store.close()
    with muniment.open(world.path, read_only=True, model="none", clock=world.clock) as opened:
        store = MunimentStore(opened, scope="acme/graph", actor="agent:planner")
        assert {"v": 1} == _value(store, "k")
        with pytest.raises(muniment.Unavailable):
            store.put(NS, "k", {"v": 2})


@pytest.mark.parametrize("ttl", [0, -1, float("inf"), float("nan")])
def test_a_time_to_live_that_is_none_is_refused(ours: MunimentStore, ttl: float) -> None:
    with pytest.raises(muniment.InvalidInput, match="ttl"):
        ours.put(NS, "k", {"v": 1}, ttl=ttl)


# --- search -----------------------------------------------------------------------------------------------------------

NOTES = {
    "a": {"text": "the red apple falls", "n": 1},
    "b": {"text": "the green apple rolls", "n": 2},
    "c": {"text": "an apple, an apple and a red apple", "n": 3},
    "d": {"text": "cars and trains", "n": 4},
}


def test_a_query_ranks_by_recall_with_scores(ours: MunimentStore) -> None:
    for key, value in NOTES.items():
        ours.put(NS, key, value)

    found = ours.search(("users",), query="red apple")
    scores = [item.score for item in found if item.score is not None]

    assert {"a", "c"} == {item.key for item in found[:2]}
    assert len(found) == len(scores)
    assert sorted(scores, reverse=True) == scores


def test_filters_narrow_what_a_query_ranks_before_it_is_cut(ours: MunimentStore) -> None:
    for i in range(30):
        ours.put(NS, f"noise{i}", {"text": "red apple red apple", "n": 0})
    for key, value in NOTES.items():
        ours.put(("other", key), key, value)

    assert ["b"] == [item.key for item in ours.search((), query="red apple", filter={"n": 2}, limit=2)]
    assert {"a", "b", "c"} == {i.key for i in ours.search((), query="apple", filter={"n": {"$gt": 0}}, limit=3)}
    assert [] == ours.search(("others",), query="apple")


def test_pages_of_a_query_do_not_overlap(ours: MunimentStore) -> None:
    for i in range(5):
        ours.put(NS, f"doc{i}", {"text": f"test document number {i}"})

    pages = [ours.search(NS, query="test", limit=2, offset=offset) for offset in (0, 2, 4, 6)]

    assert [2, 2, 1, 0] == [len(page) for page in pages]
    assert 5 == len({item.key for page in pages for item in page})


def test_what_is_not_indexed_is_found_last_and_without_a_score(ours: MunimentStore) -> None:
    ours.put(NS, "hidden", {"text": "apple apple apple"}, index=False)
    ours.put(NS, "shown", {"text": "an apple"}, index=["text"])

    assert [("shown", True), ("hidden", False)] == [
        (item.key, item.score is not None) for item in ours.search(NS, query="apple")
    ]
    assert ["shown"] == [item.key for item in ours.search(NS, query="apple", limit=1)]
    assert ["hidden"] == [item.key for item in ours.search(NS, query="apple", limit=1, offset=1)]


def test_items_without_a_number_do_not_match_a_comparison(ours: MunimentStore) -> None:
    """The reference raises TypeError or ValueError as soon as one item lacks the number."""
    ours.put(NS, "a", {"n": 5})
    ours.put(NS, "b", {"n": None})
    ours.put(NS, "c", {"n": "many"})
    ours.put(NS, "d", {})

    assert ["a"] == [item.key for item in ours.search(NS, filter={"n": {"$gt": 1}})]
    with pytest.raises(muniment.InvalidInput, match="compares numbers"):
        ours.search(NS, filter={"n": {"$gt": "many"}})


def test_bounds_below_zero_are_refused(ours: MunimentStore) -> None:
    """The reference counts them from the end."""
    for op in (SearchOp((), limit=-1), SearchOp((), offset=-1)):
        with pytest.raises(muniment.InvalidInput, match="not below 0"):
            ours.batch([op])


def test_what_was_searched_just_before_is_traced_in_what_is_put(world: World, ours: MunimentStore) -> None:
    ours.put(NS, "k", {"text": "the launch is on 12 March"})
    ours.search(NS, query="launch")
    ours.put(("notes",), "k", {"text": "she asked about it"})

    [read] = world.store.session(scope=SCOPE).list()
    [written] = world.store.session(scope="acme/graph/notes").list()
    assert [written.id] == [r.id for r in world.store.operator().trace(read.id).recalled_before]


# --- the package ------------------------------------------------------------------------------------------------------


def test_without_the_extra_the_module_says_what_to_install() -> None:
    script = (
        "import sys; sys.modules['langgraph'] = None\n"
        "import muniment\n"
        "try: import muniment.langgraph\n"
        "except muniment.Unavailable as error: print(error.code, error.hint)"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert "extra_missing" in said.stdout
    assert "muniment[langgraph]" in said.stdout


def test_calls_from_a_running_loop_do_not_block_it(ours: MunimentStore) -> None:
    async def use() -> dict[str, Any] | None:
        await ours.aput(NS, "k", {"v": 1})
        return _found(await ours.aget(NS, "k")).value

    assert {"v": 1} == run(use())
