"""I12: every refusal is typed, with a stable code, the ids concerned and what would have been needed; none leaks."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import muniment
from muniment import Action, MunimentError, Session
from tests.strategies import words
from tests.worlds import AGENT, EXTERNAL, SCOPE, SIGNED, USER, World

MakeWorld = Callable[[], World]
Attempt = Callable[[World], object]


def _retire_the_users(world: World) -> object:
    return world.speaker(AGENT).retire(world.speaker(USER).remember("the user's word").id, reason="over")


def _forget_the_users(world: World) -> object:
    return world.speaker(AGENT).forget(world.speaker(USER).remember("the user's word").id, reason="over")


def _forget_another_agents(world: World) -> object:
    return world.speaker(AGENT).forget(world.speaker("agent:b").remember("b's word").id, reason="over")


def _say_what_was_forgotten(world: World) -> object:
    world.ann().forget_value("a lost word", reason="asked")
    return world.speaker(AGENT).remember("a lost word")


def _say_what_was_retired(world: World) -> object:
    world.ann().retire(world.ann().remember("an old word").id, reason="over")
    return world.speaker(AGENT).remember("an old word")


def _write_where_all_was_forgotten(world: World) -> object:
    world.speaker(AGENT).remember("a word")
    world.ann().forget_scope(reason="the customer left")
    return world.speaker(AGENT).remember("another word")


def _retire_twice(world: World) -> object:
    receipt = world.speaker(AGENT).remember("a word")
    world.speaker(AGENT).retire(receipt.id, reason="over")
    return world.speaker(AGENT).retire(receipt.id, reason="over")


def _supersede_twice(world: World) -> object:
    receipt = world.speaker(AGENT).remember("a word")
    world.speaker(AGENT).supersede(receipt.id, "a better word")
    return world.speaker(AGENT).supersede(receipt.id, "the best word")


def _forget_twice(world: World) -> object:
    receipt = world.speaker(AGENT).remember("a word")
    world.speaker(AGENT).forget(receipt.id, reason="asked")
    return world.speaker(AGENT).forget(receipt.id, reason="asked")


def _forget_without_what_derives(world: World) -> object:
    receipt = world.speaker(AGENT).remember("a word")
    world.speaker(AGENT).remember("from it", derived_from=[receipt.id])
    return world.speaker(AGENT).forget(receipt.id, reason="asked", cascade=False)


def _derive_from_what_was_forgotten(world: World) -> object:
    receipt = world.speaker(AGENT).remember("a word")
    world.speaker(AGENT).forget(receipt.id, reason="asked")
    return world.speaker(AGENT).remember("from it", derived_from=[receipt.id])


def _other_payload(world: World) -> object:
    world.speaker(AGENT).remember("a word", command_id="c1")
    return world.speaker(AGENT).remember("another word", command_id="c1")


def _unsigned_lift(world: World) -> object:
    receipt = world.ann().forget_value("a lost word", reason="asked")
    return world.store.user_session(scope=SCOPE, principal="user:ann").lift(receipt.id or "", reason="back")


def _lift_twice(world: World) -> object:
    receipt = world.ann().forget_value("a lost word", reason="asked")
    world.ann().lift(receipt.id or "", reason="back")
    return world.ann().lift(receipt.id or "", reason="back")


def _a_token() -> str:
    return "my token is ghp_" + "Zx9Qw3" * 6


REFUSALS: Mapping[str, tuple[Attempt, str]] = {
    "retire the user's": (_retire_the_users, "rank_too_low"),
    "forget the user's": (_forget_the_users, "needs_grant"),
    "forget another agent's": (_forget_another_agents, "needs_grant"),
    "speak as the user": (lambda w: w.speaker(AGENT).via("user"), "rank_too_low"),
    "claim a confirmation": (
        lambda w: w.speaker(AGENT).remember("yes", provenance="user_confirmation"), "provenance_above_ceiling",
    ),
    "forgotten": (_say_what_was_forgotten, "tombstoned"),
    "retired": (_say_what_was_retired, "retired_value"),
    "closed scope": (_write_where_all_was_forgotten, "scope_closed"),
    "retire twice": (_retire_twice, "already_done"),
    "supersede twice": (_supersede_twice, "already_done"),
    "forget twice": (_forget_twice, "already_done"),
    "no cascade": (_forget_without_what_derives, "derived_records"),
    "derive from the forgotten": (_derive_from_what_was_forgotten, "already_done"),
    "other payload": (_other_payload, "command_conflict"),
    "unsigned lift": (_unsigned_lift, "signature_invalid"),
    "lift twice": (_lift_twice, "already_done"),
    "secret": (lambda w: w.speaker(AGENT).remember(_a_token()), "secret_found"),
    "foreign scope": (
        lambda w: w.store.user_session(scope="other", principal="user:ann", signer=w.key), "scope_denied",
    ),
    "no such id": (lambda w: w.speaker(AGENT).get("0" * 32), "not_found"),
    "no id at all": (lambda w: w.speaker(AGENT).get("what"), "not_found"),
    "scope never used": (lambda w: w.ann("acme/never").forget_scope(reason="over"), "scope_unknown"),
    "blank": (lambda w: w.speaker(AGENT).remember("\u200b \n"), "blank_content"),
    "NUL": (lambda w: w.speaker(AGENT).remember("a\0b"), "bad_text"),
    "surrogate": (lambda w: w.speaker(AGENT).remember("a\ud800"), "bad_text"),
    "time": (lambda w: w.speaker(AGENT).remember("x", valid_from="soon"), "bad_time"),
    "empty interval": (
        lambda w: w.speaker(AGENT).remember("x", valid_from="2026-01-02", valid_to="2026-01-01"), "bad_time",
    ),
    "metadata": (lambda w: w.speaker(AGENT).remember("x", metadata={"a": {1, 2}}), "bad_value"),
    "kind": (lambda w: w.speaker(AGENT).remember("x", kind="rumour"), "bad_argument"),
    "k": (lambda w: w.speaker(AGENT).recall("x", k=0), "bad_argument"),
    "unknown filter key": (lambda w: w.speaker(AGENT).recall("x", where={"nobody": 1}), "bad_argument"),
    "unknown status": (lambda w: w.speaker(AGENT).recall("x", status=("fresh",)), "bad_argument"),
    "one text as list": (lambda w: w.speaker(AGENT).recall("x", tags="tag"), "bad_argument"),
    "unknown field": (lambda w: w.speaker(AGENT).remember_many([{"content": "x", "knd": "fact"}]), "bad_argument"),
    "no reason": (lambda w: w.speaker(AGENT).retire(w.speaker(AGENT).remember("x").id, reason=""), "blank_content"),
    "scope": (lambda w: w.store.session(scope="a/../b", actor=AGENT), "scope_malformed"),
    "actor": (lambda w: w.store.session(scope="a", actor="root"), "bad_argument"),
    "nothing there": (lambda w: muniment.open(w.path.with_name("nowhere"), model="none"), "store_missing"),
    "files of another kind": (
        lambda w: muniment.open(w.path.parent, create=True, model="none"), "bad_argument",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_i12_a_refusal_has_a_code_the_facts_and_what_would_have_been_needed(world: World, name: str) -> None:
    attempt, code = REFUSALS[name]

    with pytest.raises(MunimentError) as raised:
        attempt(world)

    error = raised.value
    assert code == error.code
    assert type(error) is muniment.all_codes()[code]
    assert str(error)
    assert error.facts
    assert error.hint
    assert code == json.loads(json.dumps(error.to_dict(), default=str))["error"]
    again = pickle.loads(pickle.dumps(error))
    assert (type(error), str(error), error.hint) == (type(again), str(again), again.hint)


def test_i12_every_error_class_hints_at_what_would_have_been_needed() -> None:
    groups = {"error", "invalid_input", "refused", "conflict", "corrupt", "unavailable"}

    assert not [code for code, kind in muniment.all_codes().items() if code not in groups and not kind.hint]


@pytest.mark.parametrize(
    ("name", "fact"),
    [("retire the user's", "id"), ("forgotten", "id"), ("retired", "id"), ("supersede twice", "successor"),
     ("forget the user's", "request"), ("other payload", "first_seq"), ("no cascade", "ids"), ("closed scope", "id")],
)  # fmt: skip
def test_i12_a_refusal_names_the_ids_concerned(world: World, name: str, fact: str) -> None:
    with pytest.raises(MunimentError) as raised:
        REFUSALS[name][0](world)

    assert raised.value.facts.get(fact)


def test_i12_superseding_what_is_not_current_names_the_one_that_is(world: World) -> None:
    agent = world.speaker(AGENT)
    first = agent.remember("one")
    second = agent.supersede(first.id, "two")
    third = agent.supersede(second.id, "three")

    with pytest.raises(muniment.Refused) as raised:
        agent.supersede(first.id, "four")

    assert third.id == raised.value.facts["successor"]
    assert third.id in raised.value.hint


def test_i12_a_denied_decision_says_why_and_what_is_needed(world: World) -> None:
    decision = world.speaker(AGENT).decide(Action("db.drop", {"name": "staging"}))

    assert not decision.allowed
    assert ("no_confirmation",) == decision.reasons
    assert any(AGENT in text and SCOPE in text for text in decision.needed)
    assert decision.request
    world.ann().confirm_request(decision.request)
    assert world.speaker(AGENT).decide(Action("db.drop", {"name": "staging"})).allowed


def test_i12_each_item_of_evidence_that_was_dropped_is_named_with_its_reason(world: World) -> None:
    gone = world.speaker(AGENT).remember("gone")
    world.speaker(AGENT).forget(gone.id, reason="asked")

    decision = world.speaker(AGENT).decide(Action("x"), evidence=[gone.id, "f" * 32])

    assert [(gone.id, "erased"), ("f" * 32, "not_found")] == [(item.id, item.verdict) for item in decision.excluded]


# --- no content of another scope --------------------------------------------------------------------------------------


def _attempts(session: Session, foreign: str, said: str, subject: str) -> list[Callable[[], object]]:
    """Return calls that a session of another scope may try on a memory and its words; each of them may be refused."""
    return [
        lambda: session.get(foreign),
        lambda: session.get(foreign[:12]),
        lambda: session.history(foreign),
        lambda: session.links(foreign),
        lambda: session.supersede(foreign, "mine"),
        lambda: session.retire(foreign, reason="over"),
        lambda: session.forget(foreign, reason="over"),
        lambda: session.remember("so", derived_from=[foreign]),
        lambda: session.remember(said),
        lambda: session.remember(said, about=(subject, "is"), command_id="c1"),
        lambda: session.remember("another", about=(subject, "is"), command_id="c1"),
        lambda: session.decide(Action(f"send.{AGENT[6:]}", {"to": "x"}), evidence=[foreign]),
        lambda: session.recall("x", where={"key": "x"}),
        lambda: session.list(after=foreign),
    ]


def _error_of(attempt: Callable[[], object]) -> MunimentError | None:
    try:
        attempt()
    except MunimentError as error:
        return error
    return None


def _everything_in(error: BaseException | None) -> str:
    said = ""
    while error is not None:
        said += f"{error} {error.args} "
        if isinstance(error, MunimentError):
            said += f"{error.hint} {error.facts} {error.to_dict()} "
        error = error.__cause__ or error.__context__
    return said.lower()


@given(
    content=st.lists(words, min_size=2, max_size=5, unique=True),
    subject=words,
    how=st.sampled_from(("keep", "forget", "retire")),
)
@settings(max_examples=50, deadline=None)
def test_i12_no_error_shows_content_of_another_scope(
    make_world: MakeWorld, content: list[str], subject: str, how: str
) -> None:
    world = make_world()
    marked = [f"zq{word}zq" for word in content]
    said, about = " ".join(marked), f"zq{subject}zq"
    other = world.speaker(SIGNED, "acme/zeus")
    receipt = other.remember(said, about=(about, "is"), tags=marked, metadata={"zqkeyzq": said}, source=said)
    other.remember(f"derived of {said}", derived_from=[receipt.id])
    if how == "forget":
        other.forget(receipt.id, reason="asked")
    elif how == "retire":
        other.retire(receipt.id, reason="over")

    for who in (EXTERNAL, AGENT, USER):
        for attempt in _attempts(world.speaker(who), receipt.id, said, about):
            assert "zq" not in _everything_in(_error_of(attempt))


@given(content=st.lists(words, min_size=2, max_size=5, unique=True), route=st.integers(0, 5))
@settings(max_examples=40, deadline=None)
def test_i12_no_error_repeats_the_content_that_it_refuses(
    make_world: MakeWorld, content: list[str], route: int
) -> None:
    """An error goes where logs go; what was forgotten, or held a secret, must not go there with it."""
    world = make_world()
    said = " ".join(f"zq{word}zq" for word in content)
    world.ann().forget_value(said, reason="asked")
    agent = world.speaker(AGENT)
    first = agent.remember("a note")
    attempts: list[Callable[[], object]] = [
        lambda: agent.remember(said),
        lambda: agent.supersede(first.id, said.upper()),
        lambda: agent.remember_many([{"content": said}]),
        lambda: agent.remember(f"{said} ghp_{'Zx9Qw3' * 6}"),
        lambda: agent.remember(said + "\0"),
        lambda: agent.remember(said, provenance="user_confirmation"),
    ]

    with pytest.raises(MunimentError) as raised:
        attempts[route]()

    assert "zq" not in _everything_in(raised.value)


def test_i12_an_unknown_argument_is_an_error_and_not_ignored(world: World) -> None:
    with pytest.raises(TypeError, match="unexpected keyword"):
        world.speaker(AGENT).recall("x", scope="acme/zeus")  # type: ignore[call-arg]  # what is to be refused
    with pytest.raises(TypeError, match="unexpected keyword"):
        world.speaker(AGENT).remember("x", rank="signed")  # type: ignore[call-arg]  # as above


def test_i12_a_newer_store_is_refused_untouched_and_says_what_to_do(world: World) -> None:
    world.store.close()
    toml = world.path / "muniment.toml"
    text = toml.read_text(encoding="utf-8")
    toml.write_text(text.replace("format = ", "format = 9"), encoding="utf-8")
    before = {path: path.read_bytes() for path in world.path.rglob("*") if path.is_file()}

    with pytest.raises(muniment.Unavailable) as raised:
        muniment.open(world.path, model="none")

    assert "store_newer" == raised.value.code
    assert "newer muniment" in raised.value.hint
    assert before == {path: path.read_bytes() for path in world.path.rglob("*") if path.is_file()}
    toml.write_text(text, encoding="utf-8")
    world.store = world.open_again()
