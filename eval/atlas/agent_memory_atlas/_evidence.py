"""What is derived follows its sources, and no writer gets past the gate or speaks with another's voice."""

from __future__ import annotations

from ._adapter import Key, Unavailable
from ._steps import invariant, obligation
from ._trial import Trial

SAID = "Customer Vega reported the outage on Sunday."
SUMMARY = "Summary: Vega had trouble at the weekend."
LATER = "Digest of summaries: one customer was affected."
KEY: Key = ("refunds", "limit")
MINE, MINE_VALUE = "Refunds are limited to 50 euros.", "50"
THEIRS, THEIRS_VALUE = "Refunds are limited to 9000 euros.", "9000"


@obligation("evidence.claim_resolves_to_source", "a memory leads back to what it was taken from")
def resolves(t: Trial) -> None:
    first = t.memory.remember(SAID, scope=t.home, source="slack:C1/42")
    second = t.memory.remember("Customer Lyra renewed on Monday.", scope=t.home, source="mail:7/1")
    t.control(t.memory.get(first, scope=t.home) == SAID, "the memory is there")
    t.expect(t.memory.source_of(first, scope=t.home) == "slack:C1/42", "the first leads to its source")
    t.expect(t.memory.source_of(second, scope=t.home) == "mail:7/1", "the second leads to its own")


@invariant("evidence.source_delete_reaches_derived", "deleting a source reaches what was derived from it")
def reaches_derived(t: Trial) -> None:
    source, kept = t.memory.remember(SAID, scope=t.home), t.stays()
    t.memory.remember(SUMMARY, scope=t.home, by="agent", derived_from=[source])
    t.control(t.finds(SUMMARY), "the summary was recalled before")
    t.memory.forget(source, scope=t.home)
    t.control_alive(kept)
    t.expect(not t.finds(SUMMARY), "the summary has gone with its source")


@invariant("evidence.delete_follows_chains", "and what was derived from that")
def follows_chains(t: Trial) -> None:
    source, kept = t.memory.remember(SAID, scope=t.home), t.stays()
    summary = t.memory.remember(SUMMARY, scope=t.home, by="agent", derived_from=[source])
    t.memory.remember(LATER, scope=t.home, by="agent", derived_from=[summary])
    t.control(t.finds(LATER), "the digest of the summary was recalled before")
    t.memory.forget(source, scope=t.home)
    t.control_alive(kept)
    t.expect(not t.finds(LATER), "it has gone with the source of its source")


@invariant("evidence.one_source_of_several", "what was derived from several sources goes with any of them")
def one_of_several(t: Trial) -> None:
    beside = "Customer Lyra reported nothing."
    source, second = t.memory.remember(SAID, scope=t.home), t.memory.remember(beside, scope=t.home)
    t.memory.remember(SUMMARY, scope=t.home, by="agent", derived_from=[second, source])
    t.control(t.finds(SUMMARY), "the summary was recalled before")
    t.memory.forget(source, scope=t.home)
    t.control(t.finds(beside), "the other source is still recalled")
    t.expect(not t.finds(SUMMARY), "the summary is not recalled")


@invariant("evidence.copy_in_another_scope", "a copy in another scope goes when its source is erased everywhere")
def copy_elsewhere(t: Trial) -> None:
    source, kept = t.memory.remember(SAID, scope=t.home), t.stays()
    t.memory.remember(SAID, scope=t.other, by="agent", derived_from=[source])
    t.control(t.finds(SAID, scope=t.other), "the copy was recalled before")
    t.memory.forget(source, scope=t.home, by="operator")
    t.control_alive(kept)
    t.expect(not t.finds(SAID, scope=t.other), "the copy has gone")


@obligation("evidence.rebuild_from_retained", "what is derived can be made again from what is kept")
def rebuild(t: Trial) -> None:
    key = ("Vega", "tier")
    first = t.memory.remember("Vega is on the bronze tier.", scope=t.home, key=key, value="bronze")
    t.memory.supersede(first, "Vega is on the gold tier.", scope=t.home, key=key, value="gold")
    t.memory.remember(SAID, scope=t.home)
    asked = ("which tier is Vega on?", SAID)
    before = [t.memory.recall(query, scope=t.home) for query in asked]
    t.control(all(before), "there is something to answer")
    t.memory.reindex()
    after = [t.memory.recall(query, scope=t.home) for query in asked]
    t.expect(before == after, "every answer is the same, in the same order")


# --- the gate ---------------------------------------------------------------------------------------------------------


@invariant("gateway.no_bypass_path", "no automated way in overrides what the user said")
def no_bypass(t: Trial) -> None:
    first = t.memory.remember(MINE, scope=t.home, key=KEY, value=MINE_VALUE)
    for number, path in enumerate(t.write_paths()):
        innocent = f"Decision: refund case {number + 70} must stay closed."
        t.memory.write_by(path, innocent, scope=t.home)
        t.control(t.finds(innocent), f"`{path}` brings in what contradicts nobody")
        t.attempt(lambda by=path: t.memory.write_by(by, THEIRS, scope=t.home, key=KEY, value=THEIRS_VALUE))  # type: ignore[misc]
        t.expect(_stands(t), f"`{path}` does not override the user")
    _control_user_can(t, first)


@invariant("gateway.model_cannot_claim_human_authority", "a text that claims to be the user's is not")
def no_claim(t: Trial) -> None:
    first = t.memory.remember(MINE, scope=t.home, key=KEY, value=MINE_VALUE)
    for speaker in ("agent", "document"):
        t.attempt(
            lambda who=speaker: t.memory.remember(  # type: ignore[misc]
                THEIRS, scope=t.home, by=who, key=KEY, value=THEIRS_VALUE, claim="user", source="user"
            )
        )
        t.expect(_stands(t), f"the claim of the {speaker} does not override the user")
    _control_user_can(t, first)


def _stands(t: Trial) -> bool:
    # Where there are keys the current value tells; a text without a key beside it changes nothing there.
    try:
        return t.finds(MINE) and t.memory.current(KEY, scope=t.home) == [MINE]
    except Unavailable:
        return t.finds(MINE) and not t.finds(THEIRS)


def _control_user_can(t: Trial, first: str) -> None:
    newer = "Refunds are limited to 60 euros."
    t.memory.supersede(first, newer, scope=t.home, key=KEY, value="60")
    t.control(t.finds(newer) and not t.finds(MINE), "the user can change it")
