"""A session that is lowered stays the same speaker."""

from __future__ import annotations

from contextlib import suppress

import pytest

import muniment
from muniment.events import RankTooLow, SecretFound
from tests.worlds import AGENT, EXTERNAL, SCOPE, USER, World

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


def test_i12_what_cannot_be_stored_is_left_out_of_a_batch_and_reported_like_what_is_refused(world: World) -> None:
    agent = world.speaker(AGENT)
    gone = agent.remember("gone")
    agent.forget(gone.id, reason="asked to")
    agent.remember("there", command_id="used")
    items: list[dict[str, object]] = [
        {"content": "first"}, {"content": "\u200b"}, {"content": "a\0b"}, {"content": "Gone."},
        {"content": "when?", "valid_from": "soon"}, {"content": "whose?", "derived_from": ["0" * 32]},
        {"content": "other", "command_id": "used"}, {"content": "what", "metadata": {"f": float("nan")}},
        {"content": "last"},
    ]  # fmt: skip

    written = agent.remember_many(items, on_refusal="skip")

    codes = ["blank_content", "bad_text", "tombstoned", "bad_time", "not_found", "command_conflict", "bad_value"]
    assert list(enumerate(codes, 1)) == [(one.index, one.error) for one in written.refused]
    assert ["there", "first", "last"] == [record.content for record in agent.list()]
    for item in items[1:8]:
        with pytest.raises(muniment.MunimentError):
            agent.remember_many([{"content": "alone"}, item])
    assert ["there", "first", "last"] == [record.content for record in agent.list()]
    with pytest.raises(muniment.InvalidInput, match="unknown field"):
        agent.remember_many([{"content": "x", "tag": "y"}], on_refusal="skip")


@pytest.mark.parametrize(
    ("origin", "actor", "said_by", "rank"),
    [
        (None, "agent:unnamed", "agent:unnamed", "agent"),
        ("web:https://x.example", "agent:unnamed", "web:https://x.example", "external"),
        ("agent:other", "agent:unnamed", "agent:other", "agent"),
        ("user", "user", "user", "user"),
    ],
)
def test_i07_leaving_the_speaker_out_gives_no_authority(
    world: World, origin: str | None, actor: str, said_by: str, rank: str
) -> None:
    said = world.speaker(USER).remember("I like tea.")
    mem = world.store.session(scope=SCOPE, origin=origin)
    record = mem.get(mem.remember("I like coffee.").id)

    assert (actor, said_by, rank) == (record.actor, record.origin, record.rank)
    if origin != "user":
        with pytest.raises(RankTooLow):
            mem.supersede(said.id, "I hate tea.")
