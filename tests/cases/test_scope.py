"""What products of this kind got wrong about scope."""

from __future__ import annotations

import threading

import pytest

import muniment
from muniment import Subtree
from tests.asking import contents
from tests.worlds import AGENT, World


def test_two_tenants_on_many_threads_never_see_each_other(world: World) -> None:
    """One store object, forty threads; each writes and recalls in its own scope, and finds no stray."""
    strays: list[str] = []

    def work(number: int) -> None:
        scope = f"tenant{number % 2}"
        session = world.store.session(scope=scope, actor=f"agent:{number}")
        for n in range(3):
            session.remember(f"common words of {scope} {number} {n}")
            strays.extend(hit.scope for hit in session.recall("common words", k=500) if hit.scope != scope)
            strays.extend(record.scope for record in session.list(limit=500) if record.scope != scope)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [] == strays
    for number in range(2):
        assert 60 == len(world.store.session(scope=f"tenant{number}", actor=AGENT).list(limit=500))


def test_a_filter_key_that_nothing_has_is_an_error_and_not_an_unfiltered_read(world: World) -> None:
    agent = world.speaker(AGENT)
    agent.remember("of the north", metadata={"region": "north"})
    agent.remember("of the south", metadata={"region": "south"})

    with pytest.raises(muniment.InvalidInput, match="no memory here has metadata `regoin`"):
        agent.recall("of", where={"regoin": "north"})
    assert ["of the north"] == [hit.content for hit in agent.recall("of the", where={"region": "north"})]


def test_a_filter_key_of_another_scope_is_unknown_here(world: World) -> None:
    """Else the error, or its absence, would tell which keys the other scope uses."""
    world.speaker(AGENT, "acme/zeus").remember("of zeus", metadata={"hidden": 1})
    world.speaker(AGENT).remember("of apollo")

    with pytest.raises(muniment.InvalidInput, match="no memory here has metadata"):
        world.speaker(AGENT).recall("of", where={"hidden": 1})


def test_an_id_prefix_is_looked_for_only_where_one_may_read(world: World) -> None:
    """Two ids that begin alike, one of them elsewhere: the prefix is not ambiguous here."""
    own = world.speaker(AGENT).remember("of apollo")
    world.speaker(AGENT, "acme/zeus").remember("of zeus")

    for length in range(1, 32):
        assert own.id == world.speaker(AGENT).get(own.id[:length]).id


def test_names_that_begin_alike_are_different_scopes(world: World) -> None:
    for scope in ("acme", "acme2", "acme-eu", "acmeapollo", "Acme"):
        world.store.session(scope=scope, actor=AGENT).remember(f"of {scope}")

    for scope in ("acme", "acme2", "acme-eu", "acmeapollo", "Acme"):
        assert [f"of {scope}"] == contents(world.store.session(scope=scope, actor=AGENT).list())
    below = world.store.session(scope="auditor", actor=AGENT, reads=[Subtree("acme")])
    assert ["of acme"] == contents(below.list())


def test_a_scope_that_was_never_used_reads_empty(world: World) -> None:
    session = world.speaker(AGENT, "acme/new")

    assert ([], [], [], []) == (session.list(), session.recall("x"), session.beliefs(), session.diff(0))
    assert "acme/new" not in str(world.store.stats()["scopes"])


def test_a_filter_by_a_number_does_not_find_a_truth_value(world: World) -> None:
    agent = world.speaker(AGENT)
    for content, kept in (("one", 1), ("yes", True), ("word", "1")):
        agent.remember(f"a note: {content}", metadata={"n": kept})
    for asked, content in ((1, "one"), (1.0, "one"), (True, "yes"), ("1", "word")):
        assert [f"a note: {content}"] == [hit.content for hit in agent.recall("note", where={"n": asked})]
