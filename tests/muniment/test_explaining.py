"""Why something is as it is, and a decision that is asked again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import muniment
from muniment import Action, DecisionExplanation, MemoryExplanation

CALL = Action("email.send", {"to": "ann@example.org"})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[muniment.Store]:
    with muniment.open(tmp_path / "store", create=True, model="none") as opened:
        yield opened


def _decision(store: muniment.Store, identity: str | None) -> DecisionExplanation:
    found = store.explain(str(identity))
    assert isinstance(found, DecisionExplanation)
    return found


def _memory(store: muniment.Store, identity: str) -> MemoryExplanation:
    found = store.explain(identity)
    assert isinstance(found, MemoryExplanation)
    return found


def test_a_life_says_who_when_and_why(store: muniment.Store) -> None:
    mem = store.session(scope="acme", actor="agent:a")
    first = mem.remember("The launch is on 12 March.", about=("launch", "date"))
    second = mem.supersede(first.id, "The launch is on 2 April.", reason="moved")
    mem.retire(second.id, reason="cancelled")

    steps = [(step.what, step.actor, step.reason, step.by) for step in _memory(store, first.id).steps]
    assert [("remembered", "agent:a", None, None), ("superseded", "agent:a", "moved", second.id)] == steps
    assert ["remembered", "retired"] == [step.what for step in _memory(store, second.id).steps]
    assert "cancelled" == _memory(store, second.id).steps[1].reason


def test_a_value_that_a_keyed_write_displaced_says_by_what(store: muniment.Store) -> None:
    mem = store.session(scope="acme", actor="agent:a")
    red = mem.remember("The car is red.", about=("car", "colour"))
    blue = mem.remember("The car is blue.", about=("car", "colour"))

    assert [("remembered", None), ("superseded", blue.id)] == [(s.what, s.by) for s in _memory(store, red.id).steps]


def test_a_forgotten_memory_has_a_life_without_words(store: muniment.Store) -> None:
    mem = store.session(scope="acme", actor="agent:a")
    written = mem.remember("The code is 1234.")
    mem.forget(written.id, reason="asked")

    found = _memory(store, written.id)
    assert ["remembered", "forgotten"] == [step.what for step in found.steps]
    assert (None, "asked") == (found.record.content, found.steps[1].reason)


def test_a_decision_is_asked_again_on_the_state_just_before_it(store: muniment.Store) -> None:
    mem = store.session(scope="acme", actor="agent:a", reads=("user/ann",))
    other = store.session(scope="user/ann", actor="agent:a").remember("Ann's address is ann@example.org.")
    cited = mem.remember("Write to Ann.")
    decision = mem.decide(CALL, evidence=[cited.id, other.id])
    mem.retire(cited.id, reason="done")

    found = _decision(store, decision.id)

    assert ("same", False) == (found.outcome, found.policy_changed)
    assert found.again is not None
    assert found.now is not None
    assert (decision.supporting, (other.id,)) == (found.again.supporting, found.now.supporting)


def test_a_spent_confirmation_still_explains_the_decision_that_spent_it(tmp_path: Path) -> None:
    key = muniment.KeyFile.create(tmp_path / "key")
    with muniment.open(tmp_path / "store", create=True, model="none") as store:
        store.enroll("user:ann", key.public_key, scopes=("acme",))
        user = store.user_session(scope="acme", principal="user:ann", signer=key)
        user.confirm(CALL, agent="agent:a")
        decision = store.session(scope="acme", actor="agent:a").decide(CALL)
        assert decision.allowed

        found = _decision(store, decision.id)

    assert "same" == found.outcome
    assert (True, False) == (found.again and found.again.allowed, found.now and found.now.allowed)


def test_a_decision_that_leaned_on_erased_content_is_shown_as_recorded(store: muniment.Store) -> None:
    mem = store.session(scope="acme", actor="agent:a")
    cited = mem.remember("Write to Ann.")
    decision = mem.decide(CALL, evidence=[cited.id])
    mem.forget(cited.id, reason="asked")

    found = _decision(store, decision.id)

    assert ("not_redecidable", None) == (found.outcome, found.again)
    assert decision.reasons == found.recorded.reasons


def test_explaining_nothing_is_not_found(store: muniment.Store) -> None:
    with pytest.raises(muniment.InvalidInput, match="nothing with id `ffff`"):
        store.explain("ffff")
