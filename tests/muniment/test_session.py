"""A session that is lowered stays the same speaker."""

from __future__ import annotations

from contextlib import suppress

import pytest

from muniment.events import SecretFound
from tests.worlds import AGENT, EXTERNAL, World

KEY = "AKIA" + "Q7XBM2ZLWF4KTRPD"


def test_what_was_recalled_before_a_voice_was_lowered_is_still_traced(world: World) -> None:
    """Otherwise a value laundered through `via` would not be in the blast radius of where it came from."""
    world.speaker(EXTERNAL).remember("Invoices go to bank X.")
    agent = world.speaker(AGENT)
    (poisoned,) = agent.recall("where do invoices go?")
    written = agent.via("web:elsewhere.example").remember("Pay bank X.")

    assert [written.id] == [record.id for record in world.store.operator().trace(poisoned.id).recalled_before]


@pytest.mark.parametrize("on_refusal", ["skip", "fail"])
def test_a_secret_in_a_batch_is_counted_like_every_other_refusal(world: World, on_refusal: str) -> None:
    items = [{"content": "Hello."}, {"content": f"the key is {KEY}"}]
    with suppress(SecretFound):
        refused = world.speaker(AGENT).remember_many(items, on_refusal=on_refusal).refused
        assert [(1, "secret_found")] == [(one.index, one.error) for one in refused]

    assert 1 == world.store.stats()["refusals"]
    assert int(on_refusal == "skip") == len(world.speaker(AGENT).list())
