"""What a forget must take beside the memory's own bytes. Each test opens all that the keys on the disk can open."""

from __future__ import annotations

from pathlib import Path

import pytest

from muniment import Action, InvalidInput, KeyFile
from muniment.events import NeedsGrant, RankTooLow
from muniment.projections import _signs, _vectors

from .stores import AGENT, RARE, SCOPE, SECRET, Letters, ann, create_store, open_store, readable, vector_of


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def key(path: Path) -> KeyFile:
    return create_store(path)


# --- vectors and snapshots --------------------------------------------------------------------------------------------


def test_a_vector_made_before_the_forget_is_not_saved_after_it(path: Path, key: KeyFile) -> None:
    """It would be sealed under what took the destroyed key's place, and that key is on the disk."""
    with open_store(path) as store:
        agent = store.session(scope=SCOPE, actor=AGENT)
        receipt = agent.remember(SECRET)
        agent.remember("of no concern")
        assert agent.recall("quinquagenarian")[0].dense_score is not None
        agent.forget(receipt.id, reason="asked")

    assert [] == readable(path, vector_of(SECRET))
    assert readable(path, vector_of("of no concern"))


def test_another_process_saves_no_vector_of_what_was_forgotten(path: Path, key: KeyFile) -> None:
    with open_store(path) as other, open_store(path) as store:
        agent = store.session(scope=SCOPE, actor=AGENT)
        receipt = agent.remember(SECRET)
        assert 1 == len(other.session(scope=SCOPE, actor=AGENT).recall("quinquagenarian"))
        agent.forget(receipt.id, reason="asked")
        other.session(scope=SCOPE, actor=AGENT).remember("a write, for which it takes the lock")

    assert [] == readable(path, vector_of(SECRET), RARE)


def test_no_key_opens_the_signs_of_what_was_forgotten(
    path: Path, key: KeyFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (_signs, _vectors):
        monkeypatch.setattr(module, "SIGNS_FROM", 5)
    with open_store(path) as other, open_store(path) as store:
        agent, theirs = (each.session(scope=SCOPE, actor=AGENT) for each in (store, other))
        receipt = agent.remember(SECRET)
        agent.remember_many([{"content": f"of no concern {n}"} for n in range(10)])
        for each in (store, other):
            each.embed()
        store._engine.save(force=True)
        signs = _vectors._signs(Letters().embed([SECRET])).astype("<u8").tobytes()
        assert [] != [where for where in readable(path, signs) if where.startswith("signs-")]
        assert theirs.recall("quinquagenarian")

        agent.forget(receipt.id, reason="asked")
        assert [] == readable(path, signs)
        other._engine.save(force=True)
        assert [] == readable(path, signs)

    assert [] == readable(path, signs)
    with open_store(path) as store:
        assert 10 == len(store.session(scope=SCOPE, actor=AGENT).recall("concern", k=20))


def test_the_control_finds_content_terms_and_vector_before_the_forget(path: Path, key: KeyFile) -> None:
    with open_store(path) as store:
        agent = store.session(scope=SCOPE, actor=AGENT)
        agent.remember(SECRET)
        agent.recall("quinquagenarian")

    found = readable(path, RARE, vector_of(SECRET))
    assert any(where.endswith("body") for where in found)
    assert any(where.startswith("words-") for where in found)
    assert any(where.startswith("vectors-") for where in found)


def test_a_snapshot_keeps_no_confirmation_that_a_forget_took(path: Path, key: KeyFile) -> None:
    """A saved register outlives a forget: it may hold envelopes only, and what was confirmed is read from the log."""
    with open_store(path) as store:
        store.session(scope=SCOPE, actor=AGENT).remember(RARE)
        ann(store, key).confirm(Action("email.send", {"to": RARE}), agent=AGENT)
    found = readable(path, RARE)
    assert any(where.endswith("body") for where in found)
    assert not any(where.startswith("state-") for where in found)

    store = open_store(path)
    ann(store, key).forget_value(RARE, reason="asked")

    assert [] == readable(path, RARE)
    store.close()
    assert [] == readable(path, RARE)


def test_a_forgotten_scope_leaves_no_envelope_in_a_snapshot(path: Path, key: KeyFile) -> None:
    with open_store(path) as store:
        store.session(scope=SCOPE, actor="agent:distinctivename").remember(SECRET)
        store.session(scope="acme/other", actor=AGENT).remember("stays")
    assert any(where.startswith("state-") for where in readable(path, "agent:distinctivename"))

    store = open_store(path)
    ann(store, key).forget_scope(reason="the customer left")

    assert [] == readable(path, "agent:distinctivename", RARE)
    store.close()
    assert [] == readable(path, "agent:distinctivename", RARE)
    assert readable(path, "stays")


# --- decisions, confirmations, prohibitions ---------------------------------------------------------------------------


def test_decisions_and_confirmations_that_hold_the_value_inside_a_longer_text_go_too(path: Path, key: KeyFile) -> None:
    action = Action("email.send", {"body": f"Dear Ann, {SECRET}. Yours", "to": ["ann@example.org"]})
    with open_store(path) as store:
        receipt = store.session(scope=SCOPE, actor=AGENT).remember(SECRET)
        user = ann(store, key)
        user.confirm(action, agent=AGENT, uses=2)
        assert store.session(scope=SCOPE, actor=AGENT).decide(action).allowed

        erased = user.forget(receipt.id, reason="asked")

        assert () == erased.kept
        assert not store.session(scope=SCOPE, actor=AGENT).decide(action, dry_run=True).allowed
    assert [] == readable(path, RARE)


def test_decisions_of_before_an_opening_and_of_after_an_earlier_forget_go_too(path: Path, key: KeyFile) -> None:
    """What was decided is read once and then found by its words: also what came before, and what comes after."""
    with open_store(path) as store:
        store.session(scope=SCOPE, actor=AGENT).decide(Action("email.send", {"to": RARE}))
    with open_store(path) as store:
        agent = store.session(scope=SCOPE, actor=AGENT)
        agent.forget(agent.remember("of no concern").id, reason="asked")
        assert readable(path, RARE)
        agent.decide(Action("email.send", {"body": f"to {RARE}, as asked"}))

        agent.forget(agent.remember(RARE).id, reason="asked")

        assert [] == readable(path, RARE)


def test_a_short_value_takes_only_arguments_that_are_the_value(path: Path, key: KeyFile) -> None:
    with open_store(path) as store:
        agent = store.session(scope=SCOPE, actor=AGENT)
        receipt = agent.remember("the car is red", about=("car", "colour"), value="red")
        mentions = agent.decide(Action("email.send", {"body": "a red shirt, please"}))
        agent.decide(Action("paint", {"colour": "Red"}))

        agent.forget(receipt.id, reason="asked")

        assert mentions.id is not None
    assert readable(path, "a red shirt")
    assert [] == readable(path, '"Red"')


def test_a_prohibition_that_holds_the_value_stays_and_is_named(path: Path, key: KeyFile) -> None:
    """Dropping a veto lets something happen: that takes the user's signature on the veto itself."""
    with open_store(path) as store:
        receipt = store.session(scope=SCOPE, actor=AGENT).remember(RARE)
        user = ann(store, key)
        veto = user.prohibit(Action("email.send", {"to": RARE}), reason="never")

        planned = user.forget(receipt.id, reason="asked", dry_run=True)
        erased = user.forget(receipt.id, reason="asked", command_id="c1")

        assert (veto.id,) == planned.kept == erased.kept
        decision = store.session(scope=SCOPE, actor=AGENT).decide(Action("email.send", {"to": RARE}), dry_run=True)
        assert ("prohibited",) == decision.reasons
        again = user.forget(receipt.id, reason="asked", command_id="c1")
        assert (True, erased.kept) == (again.repeated, again.kept)
        assert [veto.id] == again.to_dict()["kept"]


def test_an_agent_cannot_take_a_users_confirmation_by_forgetting_a_note_that_says_the_same(
    path: Path, key: KeyFile
) -> None:
    action = Action("email.send", {"to": "ann@example.org"})
    with open_store(path) as store:
        granted = ann(store, key).confirm(action, agent=AGENT, uses=5)
        agent = store.session(scope=SCOPE, actor=AGENT)
        own = agent.decide(action)
        other = store.session(scope=SCOPE, actor="agent:other").decide(action)

        erased = agent.forget(agent.remember("ann@example.org").id, reason="a test of power")

        assert {granted.id, other.id} == set(erased.kept)
        assert own.id not in erased.kept
        assert agent.decide(action).allowed


def test_a_forget_leaves_the_confirmations_of_other_scopes(path: Path, key: KeyFile) -> None:
    action = Action("email.send", {"to": RARE})
    with open_store(path) as store:
        ann(store, key, "acme/zeus").confirm(action, agent=AGENT)

        erased = ann(store, key).forget_value(RARE, reason="asked")

        assert () == erased.kept
        assert store.session(scope="acme/zeus", actor=AGENT).decide(action).allowed


def test_a_value_that_no_memory_holds_is_forgotten_from_decisions_all_the_same(path: Path, key: KeyFile) -> None:
    with open_store(path) as store:
        store.session(scope=SCOPE, actor=AGENT).decide(Action("email.send", {"to": RARE}))
        assert readable(path, RARE)
        ann(store, key).forget_value(RARE, reason="asked")
    assert [] == readable(path, RARE)


def test_a_scope_with_a_veto_goes_only_by_signature(path: Path, key: KeyFile) -> None:
    """A veto reaches the scopes below, which stay open."""
    with open_store(path) as store:
        store.session(scope=SCOPE, actor=AGENT).remember("a note")
        ann(store, key).prohibit(Action("db.drop", {}), reason="never")

        with pytest.raises(RankTooLow):
            store.session(scope=SCOPE, actor="user").forget_scope(reason="all of it")  # type: ignore[attr-defined]  # a user's session
        ann(store, key).forget_scope(reason="all of it")


# --- words about a memory ---------------------------------------------------------------------------------------------


def test_the_words_of_a_review_a_retirement_and_a_quarantine_go_with_the_memory(path: Path, key: KeyFile) -> None:
    with open_store(path) as store:
        agent, user = store.session(scope=SCOPE, actor=AGENT), ann(store, key)
        for word, verb in (("reviewed", "review"), ("retired", "retire"), ("apart", "quarantine"), ("back", "release")):
            receipt = agent.remember(f"{SECRET} {word}")
            reason = f"because it says {RARE}"
            if verb == "review":
                user.review(receipt.id, approve=False, reason=reason)
            elif verb == "retire":
                agent.retire(receipt.id, reason=reason)
            else:
                store.operator().quarantine([receipt.id], reason=reason)
                if verb == "release":
                    store.operator().release([receipt.id], reason=reason)
            user.forget(receipt.id, reason="asked")
    assert [] == readable(path, RARE)


def test_a_quarantine_of_several_may_not_quote_one_of_them(path: Path, key: KeyFile) -> None:
    with open_store(path) as store:
        agent = store.session(scope=SCOPE, actor=AGENT)
        ids = [agent.remember(SECRET).id, agent.remember("another").id]

        with pytest.raises(InvalidInput, match="repeats what is to be forgotten"):
            store.operator().quarantine(ids, reason=f"it says: {SECRET}")
        store.operator().quarantine(ids, reason="poisoned")


def test_the_words_of_a_request_and_of_its_rejection_go_with_the_memory(path: Path, key: KeyFile) -> None:
    with open_store(path) as store:
        agent, user = store.session(scope=SCOPE, actor=AGENT), ann(store, key)
        receipt = store.session(scope=SCOPE, actor="user").remember(RARE)
        with pytest.raises(NeedsGrant) as asked:
            agent.forget(receipt.id, reason="a polite request")
        user.review(str(asked.value.facts["request"]), approve=False, reason=f"no, {RARE} stays")
        user.forget(receipt.id, reason="now")
    assert [] == readable(path, RARE)


def test_the_words_of_a_revocation_go_with_the_confirmation(path: Path, key: KeyFile) -> None:
    with open_store(path) as store:
        user, transcript = ann(store, key), store.session(scope=SCOPE, actor="user")
        user.revoke(user.confirm(Action("a", {"to": RARE}), agent=AGENT).id, reason=f"not {RARE}")
        second = user.confirm(Action("b", {"to": RARE}), agent=AGENT)
        transcript.revoke(second.id, reason=f"not {RARE} either")  # type: ignore[attr-defined]  # a user's session
        user.forget_value(RARE, reason="asked")
    assert [] == readable(path, RARE)


def test_the_reason_of_a_forget_may_not_repeat_a_value_that_no_memory_holds(path: Path, key: KeyFile) -> None:
    with open_store(path) as store, pytest.raises(InvalidInput, match="repeats what is to be forgotten"):
        ann(store, key).forget_value(RARE, reason=f"drop {RARE.upper()}.")


def test_the_reason_of_a_scopes_forget_may_not_repeat_one_of_its_memories(path: Path, key: KeyFile) -> None:
    with open_store(path) as store:
        store.session(scope=SCOPE, actor=AGENT).remember(RARE)
        with pytest.raises(InvalidInput, match="repeats what is to be forgotten"):
            ann(store, key).forget_scope(reason=f"it knew {RARE}")


def test_a_short_value_inside_a_word_of_the_reason_is_no_repetition(path: Path, key: KeyFile) -> None:
    with open_store(path) as store:
        agent = store.session(scope=SCOPE, actor=AGENT)
        receipt = agent.remember("the car's colour", about=("car", "colour"), value="red")
        with pytest.raises(InvalidInput):
            agent.forget(receipt.id, reason="it is not red")
        assert "erased" == agent.forget(receipt.id, reason="required by law").status


def test_a_successor_that_quotes_the_forgotten_is_named(path: Path, key: KeyFile) -> None:
    with open_store(path) as store:
        agent = store.session(scope=SCOPE, actor=AGENT)
        first = agent.remember(SECRET)
        second = agent.supersede(first.id, "something else", reason=f"it was: {SECRET}")

        assert (second.id,) == agent.forget(first.id, reason="asked").kept


def test_what_was_written_after_recalling_it_and_quotes_it_is_named(path: Path, key: KeyFile) -> None:
    with open_store(path) as store:
        agent = store.session(scope=SCOPE, actor=AGENT)
        first = agent.remember(SECRET)
        agent.recall("quinquagenarian")
        quoting = agent.remember(f"as I said, {SECRET}, and more")
        agent.recall("quinquagenarian")
        agent.remember("something else")

        assert (quoting.id,) == agent.forget(first.id, reason="asked").kept


def test_what_derives_from_it_in_another_scope_is_left_and_named(path: Path, key: KeyFile) -> None:
    with open_store(path) as store:
        first = store.session(scope=SCOPE, actor=AGENT).remember(SECRET)
        far = store.session(scope="acme/zeus", actor=AGENT, reads=(SCOPE,)).remember("sum", derived_from=[first.id])

        agent = store.session(scope=SCOPE, actor=AGENT)
        planned = agent.forget(first.id, reason="asked", dry_run=True)
        assert (far.id,) == planned.elsewhere == agent.forget(first.id, reason="asked").elsewhere


def test_what_derives_from_a_forgotten_scope_elsewhere_is_left_and_named(path: Path, key: KeyFile) -> None:
    with open_store(path) as store:
        first = store.session(scope=SCOPE, actor=AGENT).remember(SECRET)
        far = store.session(scope="acme/zeus", actor=AGENT, reads=(SCOPE,)).remember("sum", derived_from=[first.id])

        planned = ann(store, key).forget_scope(reason="the customer left", dry_run=True)
        assert (far.id,) == planned.elsewhere == ann(store, key).forget_scope(reason="the customer left").elsewhere
