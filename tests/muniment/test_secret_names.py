"""No credential enters an envelope, which outlives every forget, by way of a name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import muniment
from muniment import Action, Session
from muniment.errors import SecretFound
from tests.worlds import SCOPE, World

SECRET = "AKIAIOSFODNN7EXAMPLE"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("names") / "m")
    yield world
    world.store.close()


NAMES: dict[str, Callable[[World, Session, str], object]] = {
    "origin": lambda w, s, kept: s.via(f"web:https://shop.example/?key={SECRET}").remember("a page"),
    "host's origin": lambda w, s, kept: w.store.session(scope=SCOPE, actor="agent:x", origin=f"web:{SECRET}"),
    "actor": lambda w, s, kept: w.store.session(scope=SCOPE, actor=f"agent:{SECRET}"),
    "scope": lambda w, s, kept: w.store.session(scope=f"acme/{SECRET}", actor="agent:x"),
    "remember": lambda w, s, kept: s.remember("a note", command_id=SECRET),
    "remember_many": lambda w, s, kept: s.remember_many([{"content": "a note"}], command_id=SECRET),
    "supersede": lambda w, s, kept: s.supersede(kept, "another", command_id=SECRET),
    "retire": lambda w, s, kept: s.retire(kept, reason="over", command_id=SECRET),
    "forget": lambda w, s, kept: s.forget(kept, reason="asked", command_id=SECRET),
    "decide": lambda w, s, kept: s.decide(Action("email.send"), command_id=SECRET),
}


@pytest.mark.parametrize("call", NAMES.values(), ids=NAMES)
def test_i05_a_name_that_holds_a_credential_is_refused(
    world: World, call: Callable[[World, Session, str], object]
) -> None:
    agent = world.speaker("agent:planner")
    kept = agent.remember("what is there").id
    with pytest.raises(SecretFound) as caught:
        call(world, agent, kept)
    assert SECRET not in str(caught.value)
    assert "active" == agent.get(kept).status
    assert [] == [hit for hit in agent.list() if hit.content in ("a page", "a note", "another")]


def test_a_store_that_masks_is_not_told_to_mask_what_it_does_not(tmp_path: Path) -> None:
    with muniment.open(tmp_path / "m", create=True, model="none", secrets="mask") as store:
        with pytest.raises(SecretFound) as caught:
            store.session(scope=SCOPE, actor="agent:x").remember("a note", metadata={"key": SECRET})
        assert "metadata is never masked" in caught.value.hint
