"""
The contract of LangGraph's stores, asked of its own in-memory store and of ours with the same assertions.

The cases are those of LangGraph's suite for `InMemoryStore`, and what its operations' documentation says beside them.
Where ours deviates, test_langgraph_store.py says how, and docs/langgraph.md why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)
from langgraph.store.base.batch import AsyncBatchedBaseStore

from .conftest import run

DOC = {"foo": "bar"}


def _fill(store: BaseStore, namespaces: Iterable[tuple[str, ...]]) -> None:
    for i, namespace in enumerate(namespaces):
        store.put(namespace, f"id_{i}", {"data": f"value_{i:02d}"})


def _keys(items: Iterable[Item]) -> list[str]:
    return sorted(item.key for item in items)


# --- items ------------------------------------------------------------------------------------------------------------


def test_a_put_value_comes_back_with_its_place_and_times(store: BaseStore) -> None:
    value = {"text": "héllo", "n": 1, "f": 1.5, "none": None, "yes": True, "deep": {"list": [1, {"a": "b"}, []]}}
    store.put(("users", "ann"), "prefs", value)

    item = store.get(("users", "ann"), "prefs")

    assert item is not None
    assert value == item.value
    assert ("users", "ann") == item.namespace
    assert "prefs" == item.key
    assert item.created_at <= item.updated_at
    assert item.created_at.tzinfo is not None


def test_what_was_never_put_is_none(store: BaseStore) -> None:
    store.put(("users", "ann"), "prefs", DOC)

    assert store.get(("users", "ann"), "other") is None
    assert store.get(("users",), "prefs") is None
    assert store.get(("users", "ann", "more"), "prefs") is None
    assert store.get((), "prefs") is None


def test_a_second_put_replaces_the_whole_value(store: BaseStore) -> None:
    store.put(("docs",), "d", {"a": 1, "b": 2})
    store.put(("docs",), "d", {"a": 3})

    item = store.get(("docs",), "d")

    assert item is not None
    assert {"a": 3} == item.value
    assert 1 == len(store.search(("docs",)))


def test_values_and_keys_that_read_alike_are_not_the_same(store: BaseStore) -> None:
    for key, name in [("Doc", "Ann"), ("doc", "ann"), ("doc.", "ann."), (" doc", "ａｎｎ"), ("d\u200boc", "a\u200bnn")]:
        store.put(("docs",), key, {"name": name})

    assert ["Ann", "ann", "ann.", "ａｎｎ", "a\u200bnn"] == [i.value["name"] for i in store.search(("docs",))]
    store.put(("docs",), "doc", {"name": "ANN"})
    item = store.get(("docs",), "doc")
    assert item is not None
    assert {"name": "ANN"} == item.value


def test_one_value_may_stand_under_many_keys(store: BaseStore) -> None:
    store.put(("docs",), "a", DOC)
    store.put(("docs",), "b", DOC)
    store.delete(("docs",), "a")

    assert ["b"] == _keys(store.search(("docs",)))


def test_a_deleted_value_is_gone_and_may_be_put_again(store: BaseStore) -> None:
    store.put(("docs",), "d", DOC)
    store.delete(("docs",), "d")
    store.delete(("docs",), "never")

    assert store.get(("docs",), "d") is None
    assert [] == store.search(("docs",))
    store.put(("docs",), "d", DOC)
    item = store.get(("docs",), "d")
    assert item is not None
    assert DOC == item.value


def test_namespaces_that_no_item_may_have_are_refused(store: BaseStore) -> None:
    bad: list[tuple[str, ...]] = [(), ("the", "thing.about"), ("some", "fun", ""), ("langgraph", "foo"), ("a\0b",)]
    for namespace in bad:
        with pytest.raises(InvalidNamespaceError):
            store.put(namespace, "foo", DOC)
        with pytest.raises(InvalidNamespaceError):
            run(store.aput(namespace, "foo", DOC))


def test_the_reserved_label_is_reserved_at_the_root_of_the_public_call_only(store: BaseStore) -> None:
    async def use(namespace: tuple[str, ...]) -> None:
        item = await store.aget(namespace, "bar")
        assert item is not None
        assert item.value == DOC
        assert (await store.asearch(namespace))[0].value == DOC
        await store.adelete(namespace, "bar")
        assert await store.aget(namespace, "bar") is None

    async def both() -> None:
        await store.aput(("foo", "langgraph", "foo"), "bar", DOC)
        await use(("foo", "langgraph", "foo"))
        await store.abatch([PutOp(("langgraph", "foo"), "bar", DOC)])
        await use(("langgraph", "foo"))

    run(both())


# --- batches ----------------------------------------------------------------------------------------------------------


def test_results_stand_in_the_order_of_the_operations_and_reads_come_before_writes(store: BaseStore) -> None:
    store.put(("test", "foo"), "key1", {"data": "value1"})
    store.put(("test", "bar"), "key2", {"data": "value2"})
    ops: list[Op] = [
        GetOp(("test", "foo"), "key1"),
        PutOp(("test", "bar"), "key2", {"data": "changed"}),
        SearchOp(("test",), filter={"data": "value1"}),
        ListNamespacesOp(match_conditions=None, max_depth=None, limit=10, offset=0),
        GetOp(("test", "bar"), "key2"),
        GetOp(("test",), "key3"),
        PutOp(("test", "foo"), "key1", None),
    ]

    results = store.batch(ops)

    assert 7 == len(results)
    assert isinstance(results[0], Item)
    assert results[0].value == {"data": "value1"}
    assert results[1] is None
    assert isinstance(results[2], list)
    assert 1 == len(results[2])
    assert results[3] == [("test", "bar"), ("test", "foo")]
    assert isinstance(results[4], Item)
    assert results[4].value == {"data": "value2"}
    assert results[5] is None
    assert results[6] is None
    changed = store.get(("test", "bar"), "key2")
    assert changed is not None
    assert changed.value == {"data": "changed"}
    assert store.get(("test", "foo"), "key1") is None


def test_of_several_puts_of_one_key_the_last_counts(store: BaseStore) -> None:
    puts = [PutOp(("a",), "k", {"n": 1}), PutOp(("a",), "k", None), PutOp(("a",), "k", {"n": 2})]

    assert [None, None, None] == store.batch(puts)

    item = store.get(("a",), "k")
    assert item is not None
    assert {"n": 2} == item.value


def test_an_empty_batch_has_no_results(store: BaseStore) -> None:
    assert [] == store.batch([])
    assert [] == run(store.abatch(iter([])))


def test_what_is_no_operation_is_refused(store: BaseStore) -> None:
    with pytest.raises(Exception, match=r"(?i)unknown operation"):
        store.batch([("docs", "d")])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]


def test_batches_work_awaited(store: BaseStore) -> None:
    async def use() -> list[Result]:
        await store.abatch([PutOp(("a",), "k", {"n": 1}), PutOp(("b",), "k", {"n": 2})])
        return await store.abatch([GetOp(("b",), "k"), GetOp(("a",), "k"), SearchOp((), filter={"n": 2})])

    first, second, third = run(use())

    assert isinstance(first, Item)
    assert isinstance(second, Item)
    assert isinstance(third, list)
    assert [{"n": 2}, {"n": 1}] == [first.value, second.value]
    assert 1 == len(third)


def test_concurrent_calls_all_count(store: BaseStore) -> None:
    async def use() -> list[str]:
        await asyncio.gather(*[store.aput(("test",), f"d{i}", {"n": i}) for i in range(20)])
        await asyncio.gather(*[store.adelete(("test",), f"d{i}") for i in range(0, 20, 2)])
        await asyncio.gather(*[store.aput(("test",), f"d{i}", {"n": -i}) for i in range(1, 4)])
        return _keys(await store.asearch(("test",), limit=100))

    expected = sorted({f"d{i}" for i in range(1, 20, 2)} | {"d2"})
    assert expected == run(use())


def test_langgraphs_own_batching_wrapper_works_over_it(store: BaseStore) -> None:
    class Batched(AsyncBatchedBaseStore):
        def batch(self, ops: Iterable[Op]) -> list[Result]:
            return store.batch(ops)

        async def abatch(self, ops: Iterable[Op]) -> list[Result]:
            return store.batch(ops)

    async def use() -> tuple[list[Item | None], list[list[SearchItem]]]:
        batched = Batched()
        await asyncio.gather(batched.aput(("test",), "k", {"v": 1}), batched.aput(("test",), "k", {"v": 2}))
        await batched.aput(("test",), "other", {"v": 3})
        got = await asyncio.gather(*[batched.aget(("test",), key) for key in ("k", "k", "other")])
        found = await asyncio.gather(*[batched.asearch(("test",), filter={"v": 2}) for _ in range(2)])
        return list(got), list(found)

    got, found = run(use())

    assert [{"v": 2}, {"v": 2}, {"v": 3}] == [item.value for item in got if item is not None]
    assert found[0] == found[1]
    assert [{"v": 2}] == [item.value for item in found[0]]


# --- search -----------------------------------------------------------------------------------------------------------

PRODUCTS = [
    ("doc1", {"text": "red apple", "color": "red", "score": 4.5, "meta": {"tags": ["a", "b"], "level": 1}}),
    ("doc2", {"text": "red car", "color": "red", "score": 3.0, "meta": {"tags": ["a"], "level": 2}}),
    ("doc3", {"text": "green apple", "color": "green", "score": 4.0, "meta": {"tags": [], "level": 3}}),
    ("doc4", {"text": "blue car", "color": "blue", "score": 3.5, "meta": {"tags": ["b", "a"], "level": 4}}),
]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({}, ["doc1", "doc2", "doc3", "doc4"]),
        (None, ["doc1", "doc2", "doc3", "doc4"]),
        ({"color": "red"}, ["doc1", "doc2"]),
        ({"color": {"$eq": "red"}}, ["doc1", "doc2"]),
        ({"color": {"$ne": "red"}}, ["doc3", "doc4"]),
        ({"score": {"$gt": 3.5}}, ["doc1", "doc3"]),
        ({"score": {"$gte": 3.5}}, ["doc1", "doc3", "doc4"]),
        ({"score": {"$lt": 3.5}}, ["doc2"]),
        ({"score": {"$lte": 3.5}}, ["doc2", "doc4"]),
        ({"score": {"$gt": 3.0, "$lt": 4.5}}, ["doc3", "doc4"]),
        ({"score": {"$gt": "3.5"}}, ["doc1", "doc3"]),
        ({"score": {"$gte": 4.0}, "color": "green"}, ["doc3"]),
        ({"meta": {"level": 2}}, ["doc2"]),
        ({"meta": {"level": {"$gte": 3}}}, ["doc3", "doc4"]),
        ({"meta": {"level": {"$gte": 2}, "tags": ["b", "a"]}}, ["doc4"]),
        ({"meta": {"tags": ["a", {"$ne": "a"}]}}, ["doc1"]),
        ({"meta": {"$ne": {"tags": ["a"], "level": 2}}}, ["doc1", "doc3", "doc4"]),
        ({"meta": "a"}, []),
        ({"color": {"name": "red"}}, []),
        ({"missing": "red"}, []),
        ({"missing": None}, ["doc1", "doc2", "doc3", "doc4"]),
        ({"missing": {"$ne": 1}}, ["doc1", "doc2", "doc3", "doc4"]),
    ],
)
def test_filters_find_what_the_reference_finds(
    store: BaseStore, wanted: dict[str, Any] | None, expected: list[str]
) -> None:
    for key, value in PRODUCTS:
        store.put(("test",), key, value)

    assert expected == _keys(store.search(("test",), filter=wanted))


def test_an_operator_that_there_is_not_is_refused(store: BaseStore) -> None:
    store.put(("test",), "doc1", {"score": 1})

    with pytest.raises(Exception, match=r"(?i)unsupported operator"):
        store.search(("test",), filter={"score": {"$regex": "1"}})


def test_pages_do_not_overlap_and_miss_nothing(store: BaseStore) -> None:
    for i in range(7):
        store.put(("test",), f"doc{i}", {"n": i})

    pages = [store.search(("test",), limit=3, offset=offset) for offset in (0, 3, 6, 9)]

    assert [3, 3, 1, 0] == [len(page) for page in pages]
    assert [f"doc{i}" for i in range(7)] == [item.key for page in pages for item in page]
    assert [] == store.search(("test",), limit=0)


def test_a_search_without_a_query_has_no_scores(store: BaseStore) -> None:
    store.put(("test",), "doc1", {"text": "test document"})

    for query in (None, ""):
        [found] = store.search(("test",), query=query)
        assert isinstance(found, SearchItem)
        assert found.score is None


def test_prefixes_are_compared_label_by_label(store: BaseStore) -> None:
    for namespace in [("a",), ("a", "b"), ("ab",), ("a", "bc"), ("b", "a")]:
        store.put(namespace, "k", {"at": "/".join(namespace)})

    assert ["a", "a/b", "a/bc"] == sorted(i.value["at"] for i in store.search(("a",)))
    assert ["a/b"] == [i.value["at"] for i in store.search(("a", "b"))]
    assert 5 == len(store.search(()))
    assert [] == store.search(("a", "b", "c"))


# --- namespaces -------------------------------------------------------------------------------------------------------

TREE = [
    ("a", "b", "c"),
    ("a", "b", "d", "e"),
    ("a", "b", "d", "i"),
    ("a", "b", "f"),
    ("a", "c", "f"),
    ("b", "a", "f"),
    ("users", "123"),
    ("users", "456", "settings"),
    ("admin", "users", "789"),
]


def test_namespaces_are_listed_by_prefix_suffix_wildcard_depth_and_page(store: BaseStore) -> None:
    _fill(store, TREE)
    listed = store.list_namespaces

    assert sorted(TREE) == listed()
    assert TREE[:4] == listed(prefix=("a", "b"))
    assert TREE[3:6] == listed(suffix=("f",))
    assert TREE[3:5] == listed(prefix=("a",), suffix=("f",))
    assert [("a", "b", "c"), ("a", "b", "d"), ("a", "b", "f")] == listed(prefix=("a", "b"), max_depth=3)
    assert TREE[:2] == listed(prefix=("a", "b"), limit=2)
    assert TREE[2:4] == listed(prefix=("a", "b"), offset=2)
    assert TREE[3:5] == listed(prefix=("a", "*", "f"))
    assert TREE[3:6] == listed(suffix=("*", "f"))
    assert [] == listed(prefix=("nonexistent",))
    assert [] == listed(prefix=("us",))
    assert [("users", "123")] == listed(prefix=("users", "123"))
    assert [("users", "123"), ("users", "456", "settings")] == listed(prefix=("users", "*"))
    assert [] == listed(prefix=("*", "users"), suffix=("*", "settings"))
    assert [("a",), ("admin",), ("b",), ("users",)] == listed(max_depth=1)


def test_listing_pages_cover_all(store: BaseStore) -> None:
    _fill(store, [("namespace", f"sub_{i:02d}") for i in range(12)])

    found = [store.list_namespaces(prefix=("namespace",), limit=5, offset=offset) for offset in (0, 5, 10)]

    assert [("namespace", f"sub_{i:02d}") for i in range(12)] == [n for page in found for n in page]


def test_an_empty_store_lists_nothing(store: BaseStore) -> None:
    assert [] == store.list_namespaces()
    assert [] == run(store.alist_namespaces())


def test_a_match_that_is_neither_prefix_nor_suffix_is_refused(store: BaseStore) -> None:
    _fill(store, TREE)
    condition = MatchCondition("infix", ("a",))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

    with pytest.raises(Exception, match="infix"):
        store.batch([ListNamespacesOp(match_conditions=(condition,))])
