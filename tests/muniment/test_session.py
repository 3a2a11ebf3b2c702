"""A session that is lowered stays the same speaker."""

from __future__ import annotations

from tests.worlds import AGENT, EXTERNAL, World


def test_what_was_recalled_before_a_voice_was_lowered_is_still_traced(world: World) -> None:
    """Otherwise a value laundered through `via` would not be in the blast radius of where it came from."""
    world.speaker(EXTERNAL).remember("Invoices go to bank X.")
    agent = world.speaker(AGENT)
    (poisoned,) = agent.recall("where do invoices go?")
    written = agent.via("web:elsewhere.example").remember("Pay bank X.")

    assert [written.id] == [record.id for record in world.store.operator().trace(poisoned.id).recalled_before]
