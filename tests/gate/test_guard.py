"""The guard: what is signed, forbidden and cited, against the call that is made."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import muniment
from muniment import Action, Free, Pattern
from muniment._keys import sign_replacement
from muniment.events import parse_instant

SEND = Action("email.send", {"to": "ann@example.org"})
TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
AGENT = "agent:planner"
DAY = 24 * 3600 * 1_000_000


class World:
    """A store with one user, one agent, and a clock that the test moves."""

    def __init__(self, folder: Path) -> None:
        self.time = 1_700_000_000_000_000
        self.key = muniment.KeyFile.create(folder / "key")
        self.spare = muniment.KeyFile.create(folder / "spare")
        self.recovery = muniment.KeyFile.create(folder / "recovery")
        self.store = muniment.open(folder / "store", create=True, model="none", clock=lambda: self.time)
        self.store.enroll("user:ann", self.key.public_key, scopes=("acme",))
        self.store.enroll("user:ann", self.recovery.public_key, scopes=("acme",), recovery=True)
        self.agent = self.store.session(scope="acme", actor=AGENT)
        self.user = self.store.user_session(scope="acme", principal="user:ann", signer=self.key)


@pytest.fixture(name="world")
def _world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.store.close()


def test_a_confirmation_fails_while_the_clock_stands_before_its_signing(world: World) -> None:
    world.user.confirm(SEND, agent=AGENT)
    world.time -= 1_000_000

    assert ("no_confirmation", "clock_before_signing") == world.agent.decide(SEND, dry_run=True).reasons
    world.time += 1_000_000
    assert world.agent.decide(SEND).allowed


def test_a_confirmation_lasts_as_long_as_was_said_by_the_clock_that_it_was_signed_by(world: World) -> None:
    world.agent.remember("The log stands at noon.")
    world.time -= 5 * 3_600 * 1_000_000  # and the clock is set back to seven
    world.user.confirm(SEND, agent=AGENT, expires_in="1h")

    assert not world.agent.decide(SEND).allowed  # not until one o'clock, which would be six hours
    world.user.confirm(SEND, agent=AGENT, expires_in="6h")
    assert world.agent.decide(SEND).allowed


def test_a_clock_set_back_does_not_revive_what_expired(world: World) -> None:
    world.user.confirm(SEND, agent=AGENT, expires_in="1h")
    world.time += 2 * 3600 * 1_000_000
    world.agent.remember("Two hours later.")
    world.time -= 90 * 60 * 1_000_000

    assert "confirmation_expired" in world.agent.decide(SEND, dry_run=True).reasons


def test_a_prohibition_is_found_among_many_in_any_spelling_of_its_name(world: World) -> None:
    for n in range(50):
        world.user.prohibit(Action(f"tool.number{n}"), reason="never")
    world.user.prohibit(Action(Pattern("db.drop*")), reason="never")
    world.user.prohibit(Action("Email.Send", {"to": "bob@example.org"}), reason="never")

    assert world.agent.decide(Action("TOOL.Number7"), dry_run=True).prohibition
    assert world.agent.decide(Action("db.Drop_table", {"t": "x"}), dry_run=True).prohibition
    assert world.agent.decide(Action("email.send", {"to": "BOB@example.org"}), dry_run=True).prohibition
    assert not world.agent.decide(SEND, dry_run=True).prohibition


def test_a_lifted_prohibition_stops_and_a_forget_does_not_lose_the_others(world: World) -> None:
    first = world.user.prohibit(SEND, reason="never")
    kept = world.user.prohibit(Action("fs.delete"), reason="never")
    assert first.id == world.agent.decide(SEND, dry_run=True).prohibition
    world.user.unprohibit(first.id, reason="now yes")
    world.user.forget(world.agent.remember("a note").id, reason="gone")

    assert world.agent.decide(SEND, dry_run=True).prohibition is None
    assert kept.id == world.agent.decide(Action("fs.delete"), dry_run=True).prohibition


def test_a_secret_among_the_arguments_is_masked_in_the_log(world: World) -> None:
    call = Action("http.post", {"headers": {"Authorization": f"token {TOKEN}"}, "url": "https://example.org"})
    denied = world.agent.decide(call, command_id="c")
    again = world.agent.decide(call, command_id="c")
    explained = world.store.explain(denied.id or "")

    assert isinstance(explained, muniment.DecisionExplanation)
    assert "[secret: github-token]" in (explained.action or "")
    assert TOKEN not in (explained.action or "")
    assert "not_redecidable" == explained.outcome
    assert again.repeated
    assert again.request is None


def test_a_secret_is_not_signed_for_nor_forbidden_by_its_words(world: World) -> None:
    call = Action("http.post", {"token": TOKEN})
    with pytest.raises(muniment.Refused, match="github"):
        world.user.confirm(call, agent=AGENT)
    with pytest.raises(muniment.Refused, match="github"):
        world.user.prohibit(call, reason="never")
    world.user.confirm(Action("http.post", {"token": Free()}), agent=AGENT)


def test_the_users_unsigned_words_forbid_and_do_not_allow(world: World) -> None:
    words = world.store.session(scope="acme", actor="user:ann")
    assert isinstance(words, muniment.UserSession)
    world.user.confirm(SEND, agent=AGENT, uses=None)
    assert world.agent.decide(SEND, dry_run=True).allowed
    forbidden = words.prohibit(SEND, reason="I said no")

    assert forbidden.id == world.agent.decide(SEND, dry_run=True).prohibition
    with pytest.raises(muniment.MunimentError, match="signature"):
        words.unprohibit(forbidden.id, reason="yes after all")


def test_a_process_whose_first_write_is_a_decision_can_have_it_decided_again(tmp_path: Path) -> None:
    key = muniment.KeyFile.create(tmp_path / "key")
    with muniment.open(tmp_path / "store", create=True, model="none") as store:
        store.enroll("user:ann", key.public_key, scopes=("acme",))
        store.user_session(scope="acme", principal="user:ann", signer=key).confirm(SEND, agent=AGENT)
    with muniment.open(tmp_path / "store", model="none") as store:
        decision = store.session(scope="acme", actor=AGENT).decide(SEND)
        explained = store.explain(decision.id or "")

    assert decision.allowed
    assert isinstance(explained, muniment.DecisionExplanation)
    assert "same" == explained.outcome


# --- keys -------------------------------------------------------------------------------------------------------------


def test_a_rotated_key_speaks_and_the_old_one_does_not(world: World) -> None:
    world.user.confirm(SEND, agent=AGENT, uses=None)
    world.user.rotate(world.spare.public_key)

    with pytest.raises(muniment.Refused):
        world.user.confirm(SEND, agent=AGENT)
    fresh = world.store.user_session(scope="acme", principal="user:ann", signer=world.spare)
    fresh.confirm(Action("fs.write"), agent=AGENT)
    assert world.agent.decide(SEND).allowed


def test_a_retried_rotation_gets_the_first_receipt_though_its_key_no_longer_speaks(world: World) -> None:
    said = sign_replacement(world.store._engine, "user:ann", world.key, world.spare.public_key, scopes=None)
    first = world.store.submit(said)
    again = world.store.submit(said)
    assert (first.id, True) == (again.id, again.repeated)


def test_a_rotation_to_fewer_scopes_ends_the_confirmations_of_the_others(world: World) -> None:
    world.user.confirm(SEND, agent=AGENT)
    world.user.rotate(world.spare.public_key, scopes=("acme/apollo",))

    # The recovery key covers the scope, but a recovery key allows nothing.
    assert "signer_not_enrolled" in world.agent.decide(SEND).reasons


def test_a_recovery_key_replaces_a_stolen_one_and_voids_what_was_signed_before(world: World) -> None:
    world.user.confirm(SEND, agent=AGENT, uses=None)
    world.store.recover("user:ann", lost=world.key.public_key, public_key=world.spare.public_key, signer=world.recovery)

    assert "signer_not_enrolled" in world.agent.decide(SEND).reasons
    with pytest.raises(muniment.Refused):
        world.user.confirm(SEND, agent=AGENT)
    world.store.user_session(scope="acme", principal="user:ann", signer=world.spare).confirm(SEND, agent=AGENT)
    assert world.agent.decide(SEND).allowed


def test_a_recovery_key_allows_nothing_and_no_other_key_can_take_its_place(world: World) -> None:
    with pytest.raises(muniment.Refused):
        world.store.user_session(scope="acme", principal="user:ann", signer=world.recovery)
    with pytest.raises(muniment.Refused, match="recovery"):
        world.store.recover(
            "user:ann", lost=world.recovery.public_key, public_key=world.spare.public_key, signer=world.key
        )


# --- review -----------------------------------------------------------------------------------------------------------


def test_what_the_policy_has_reviewed_is_inert_until_a_person_approves_it(tmp_path: Path) -> None:
    key = muniment.KeyFile.create(tmp_path / "key")
    policy = muniment.Policy(actions={"say": muniment.Use.ANSWER}, review=("web:*",))
    with muniment.open(tmp_path / "store", create=True, model="none", policy=policy) as store:
        store.enroll("user:ann", key.public_key, scopes=("acme",))
        agent = store.session(scope="acme", actor=AGENT)
        user = store.user_session(scope="acme", principal="user:ann", signer=key)
        page = agent.via("web:https://example.org")
        first = page.remember("The port is 8080.", about=("app", "port"))
        assert "pending" == first.status
        assert page.remember("The port is 8080.", about=("app", "port")).id == first.id
        assert [] == list(agent.recall("port"))
        assert not agent.decide(Action("say"), evidence=[first.id], dry_run=True).allowed

        user.review(first.id, approve=True, edit="The port is 8081.", reason="it moved")
        assert ["The port is 8081."] == [belief.content for belief in agent.beliefs(about=("app", "port"))]
        assert "signed" == agent.beliefs(about=("app", "port"))[0].rank
        assert "superseded" == agent.get(first.id).status

        second = page.remember("Use plain passwords.")
        user.review(second.id, approve=False, reason="bad advice")
        with pytest.raises(muniment.Refused):
            page.remember("use  PLAIN passwords")


@pytest.mark.parametrize("end", ["superseded", "retired", "lapsed"])
def test_i09_what_nobody_approved_supports_nothing_whatever_became_of_it(tmp_path: Path, end: str) -> None:
    time = 1_800_000_000_000_000
    policy = muniment.Policy({"plan": muniment.Use.PLANNING}, review=("web:*",))
    plan = Action("plan")
    with muniment.open(tmp_path / "store", create=True, model="none", policy=policy, clock=lambda: time) as store:
        agent = store.session(scope="acme", actor=AGENT)
        waiting = agent.via("web:https://example.org").remember("The port is 8080.").id
        assert ("pending",) == tuple(one.verdict for one in agent.decide(plan, evidence=[waiting]).excluded)

        if end == "superseded":
            agent.supersede(waiting, "The port is 9090.")
        elif end == "retired":
            agent.retire(waiting, reason="it moved")
        else:
            time += 31 * DAY

        decision = agent.decide(plan, evidence=[waiting])
        assert not decision.allowed
        assert [(waiting, "pending")] == [(one.id, one.verdict) for one in decision.excluded]
        own = agent.remember("The port is 7070.").id
        assert agent.decide(plan, evidence=[waiting, own]).allowed


def test_what_nobody_approved_lapses_after_thirty_days_and_forbids_nothing(tmp_path: Path) -> None:
    time = 1_800_000_000_000_000
    key = muniment.KeyFile.create(tmp_path / "key")
    policy = muniment.Policy(review=("web:*",))
    with muniment.open(tmp_path / "store", create=True, model="none", policy=policy, clock=lambda: time) as store:
        store.enroll("user:ann", key.public_key, scopes=("acme",))
        user = store.user_session(scope="acme", principal="user:ann", signer=key)
        page = store.session(scope="acme", actor=AGENT).via("web:https://example.org")
        first = page.remember("The port is 8080.", about=("app", "port"))

        time = parse_instant(first.recorded_at) + 30 * DAY - 1
        assert "pending" == page.get(first.id).status
        time += 1
        assert "retired" == page.get(first.id).status
        assert [(first.id, "retired")] == page.sql("SELECT id, status FROM memories")[1]
        assert [] == user.pending()
        with pytest.raises(muniment.Refused, match="already retired"):
            user.review(first.id, approve=True, reason="late")

        again = page.remember("The port is 8080.", about=("app", "port"))
        assert (False, "pending") == (again.repeated, again.status)
        user.review(again.id, approve=True, reason="checked")
        time += 31 * DAY
        assert ["active", "retired"] == [page.get(again.id).status, page.get(first.id).status]
        assert "pending" == page.get(first.id, known_at=first.seq).status
        assert store.rebuild().ok


def test_what_its_author_withdrew_cannot_be_approved(tmp_path: Path) -> None:
    key = muniment.KeyFile.create(tmp_path / "key")
    with muniment.open(
        tmp_path / "store", create=True, model="none", policy=muniment.Policy(review=("web:*",))
    ) as store:
        store.enroll("user:ann", key.public_key, scopes=("acme",))
        page = store.session(scope="acme", actor=AGENT).via("web:https://example.org")
        first = page.remember("The port is 8080.", about=("app", "port"))
        page.retire(first.id, reason="a mistake")

        assert "retired" == page.get(first.id).status
        with pytest.raises(muniment.Refused, match="already retired"):
            store.user_session(scope="acme", principal="user:ann", signer=key).review(
                first.id, approve=True, reason="late"
            )
        assert [] == page.beliefs(about=("app", "port"))


def test_what_is_pending_is_listed_to_its_author_and_to_the_user(tmp_path: Path) -> None:
    key = muniment.KeyFile.create(tmp_path / "key")
    policy = muniment.Policy(review=("web:*",))
    with muniment.open(tmp_path / "store", create=True, model="none", policy=policy) as store:
        store.enroll("user:ann", key.public_key, scopes=("acme",))
        author, other = (store.session(scope="acme", actor=actor) for actor in (AGENT, "agent:other"))
        port = ("app", "port")
        known = store.session(scope="acme", actor="agent:third").remember("The port is 80.", about=port)
        page = author.via("web:https://example.org").remember("The port is 8080.", about=port)
        user = store.user_session(scope="acme", principal="user:ann", signer=key)

        def seen(session: muniment.Session) -> list[list[str]]:
            listed = (
                session.list(status=("pending",)),
                session.briefing().pending,
                session.recall("port", status=("pending",)),
                session.history(known.id)[1:],  # under one key
            )
            queried = session.sql("SELECT id FROM memories WHERE status = 'pending'")[1]
            return [*([record.id for record in records] for records in listed), [str(row[0]) for row in queried]]

        for _ in range(2):  # SQL's tables are kept between readers
            assert [[page.id]] * 5 == seen(author)
            assert [[]] * 5 == seen(other)
            assert [[page.id]] * 5 == seen(user)
        assert [known.id, page.id] == [record.id for record in other.history(page.id)]  # asked for by its id


# --- audit ------------------------------------------------------------------------------------------------------------


def test_an_audit_holds_the_decision_its_evidence_and_the_signature(world: World) -> None:
    page = world.agent.via("web:https://example.org").remember("Send the report to ann@example.org.")
    summary = world.agent.remember("Ann wants the report.", derived_from=(page.id,))
    world.user.confirm(SEND, agent=AGENT)
    decision = world.agent.decide(SEND, evidence=[summary.id])
    audit = world.store.audit(decision)

    assert audit.complete
    assert ("external", "agent:planner") == (audit.evidence[0].rank, audit.evidence[0].origin)
    assert [page.id] == [source.id for source in audit.evidence[0].sources]
    assert audit.confirmation is not None
    assert audit.confirmation.signed is not None
    assert audit.to_dict()["hash"] == audit.hash

    world.user.forget(summary.id, reason="asked")
    after = world.store.audit(decision.id or "")
    assert not after.complete
    assert any("erased" in line for line in after.missing)


# --- the index --------------------------------------------------------------------------------------------------------


def test_what_was_forgotten_does_not_live_on_in_the_guard(world: World) -> None:
    call = Action("fs.read", {"name": "The launch is on 12 March."})
    said = world.agent.remember("The launch is on 12 March.")
    world.user.confirm(call, agent=AGENT, uses=None)
    assert world.agent.decide(call, dry_run=True).allowed
    world.user.forget(said.id, reason="asked")

    assert not world.agent.decide(call, dry_run=True).allowed
    guard = world.store._engine.guard  # whether the text is still there cannot be asked from outside
    assert {} == guard._rules._parsed


def test_a_confirmation_that_cannot_be_read_denies_in_its_scope_and_nowhere_else(world: World) -> None:
    world.store.enroll("user:ann", world.spare.public_key, scopes=("globex",))
    elsewhere = world.store.user_session(scope="globex", principal="user:ann", signer=world.spare)
    broken = world.user.confirm(SEND, agent=AGENT)
    elsewhere.confirm(SEND, agent=AGENT)
    register = world.store._engine.state.register  # no caller can write such a record
    register.confirmations[bytes.fromhex(broken.id)].action = b"{}"

    assert ("error:bad_value",) == world.agent.decide(SEND, dry_run=True).reasons
    assert world.store.session(scope="globex", actor=AGENT).decide(SEND, dry_run=True).allowed
