"""The turn before and the turn after, in the same conversation."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from muniment.events import MemoryBody, format_data
from muniment.projections._marks import ASKS, NAMES_A_TIME, USER, marks_of, spoken_by, thread_of
from muniment.projections._threads import NOBODY, Threads

names = st.lists(st.sampled_from([None, "a", "b"]), max_size=20)


def links(threads: Threads) -> list[tuple[int, int]]:
    rows = np.arange(threads.rows, dtype=np.int64)
    return list(zip(threads.before(rows).tolist(), threads.after(rows).tolist(), strict=True))


def extend(threads: Threads, found: list[str | None]) -> None:
    start = threads.rows
    threads.extend(len(found), [(start + row, name) for row, name in enumerate(found) if name is not None])


def made(found: list[str | None]) -> Threads:
    threads = Threads()
    extend(threads, found)
    return threads


def body(content: str = "hello", *, source: str | None = None, **metadata: str) -> MemoryBody:
    told = format_data(dict(metadata), what="metadata") if metadata else None
    return MemoryBody(content=content, source=source, metadata=told)


@given(names, st.sets(st.integers(0, 19)), names)
def test_an_erased_row_leaves_its_neighbours_as_if_it_had_been_in_no_conversation(
    first: list[str | None], erased: set[int], later: list[str | None]
) -> None:
    threads = made(first)
    for row in erased:
        if row < len(first):
            threads.erase(row)
    extend(threads, later)

    without = [None if row in erased else name for row, name in enumerate(first)]
    assert links(made(without + later)) == links(threads)


@given(names, names)
def test_the_turns_before_do_not_depend_on_what_came_later(first: list[str | None], later: list[str | None]) -> None:
    assert [b for b, _ in links(made(first))] == [b for b, _ in links(made(first + later))][: len(first)]


def test_interleaved_conversations_are_kept_apart() -> None:
    assert [(NOBODY, 2), (NOBODY, 3), (0, NOBODY), (1, NOBODY), (NOBODY, NOBODY)] == links(
        made(["a", "b", "a", "b", None])
    )


def test_a_conversation_is_named_by_the_metadata_or_by_the_source_before_its_last_slash() -> None:
    assert "C1\nmorning" == thread_of(body(source="x/1", conversation="C1", session="morning"))
    assert "C1" == thread_of(body(conversation="C1"))
    assert "slack:C1" == thread_of(body(source="slack:C1/42"))
    assert None is thread_of(body(source="handbook"))
    assert None is thread_of(body())


def test_a_turn_is_marked_by_who_speaks_and_what_it_does() -> None:
    assert [spoken_by("ann"), spoken_by("lee"), ASKS] == marks_of(body("Ann Lee: shall we go?"))
    assert [spoken_by("ann"), USER, NAMES_A_TIME] == marks_of(body("I left yesterday", speaker="Ann", role="user"))
    assert [] == marks_of(body("note: nothing of the kind"))


@given(names, st.sets(st.integers(0, 19)), names)
def test_rows_of_one_conversation_share_a_label_whatever_was_erased(
    first: list[str | None], erased: set[int], later: list[str | None]
) -> None:
    threads = made(first)
    for row in erased:
        if row < len(first):
            threads.erase(row)
    extend(threads, later)

    named = first + later
    labels = threads.labels(np.arange(len(named), dtype=np.int64)).tolist()
    there = [row for row in range(len(named)) if row not in erased or row >= len(first)]
    for a in there:
        for b in there:
            same = a == b or (named[a] is not None and named[a] == named[b])
            assert same == (labels[a] == labels[b])
