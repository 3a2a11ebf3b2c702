"""A memory and what it may contradict: proposed with reasons, linked or superseded only where that was asked for."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

import muniment
from muniment import KeyFile, Refused, Session, Store
from muniment.errors import BadArgument
from muniment.events import Opened
from tests.worlds import Clock

OLD = "My dentist appointment is on 12 March at 9."
NEW = "Actually, my dentist appointment was moved to 14 March at 9."
OTHER = "The cat eats twice a day."


class Here(NamedTuple):
    """A scope of its own in a store that several tests share: loading the model takes longest."""

    store: Store
    scope: str = "acme/apollo"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with muniment.open(tmp_path_factory.mktemp("revising") / "store", create=True) as opened:
        yield opened


@pytest.fixture
def here(shared: Store) -> Here:
    return Here(shared, f"acme/s{shared.stats()['events']}")


def agent(here: Here) -> Session:
    return here.store.session(scope=here.scope, actor="agent:planner")


def test_what_may_be_contradicted_is_proposed_with_its_score_and_reasons_and_nothing_else_happens(here: Here) -> None:
    mem = agent(here)
    old, _ = mem.remember(OLD), mem.remember(OTHER)

    revision = mem.revise(NEW)

    [found] = revision.contradicts
    assert (old.id, False, False) == (found.id, found.linked, found.superseded)
    assert {"another number or date", "a word of change"} <= set(found.reasons)
    [proposal] = mem.proposals()
    assert (revision.receipt.id, old.id, "contradicts") == (proposal.start, proposal.end, proposal.type)
    assert (found.score, "; ".join(found.reasons)) == (proposal.score, proposal.reason)
    assert [] == mem.links(old.id)
    assert "active" == mem.get(old.id).status == mem.get(revision.receipt.id).status


def test_a_link_is_made_where_it_is_asked_for(here: Here) -> None:
    mem = agent(here)
    old = mem.remember(OLD)

    new = mem.revise(NEW, act="link").receipt

    assert [(new.id, "contradicts", old.id)] == [(link.start, link.type, link.end) for link in mem.links(old.id)]
    assert "active" == mem.get(old.id).status


def test_the_likeliest_is_superseded_where_it_is_asked_for_and_rank_allows(here: Here) -> None:
    mem = agent(here)
    old = mem.remember(OLD, kind="fact")

    revision = mem.revise(NEW, act="supersede")

    assert [True] == [found.superseded for found in revision.contradicts]
    assert ("superseded", revision.receipt.id) == (mem.get(old.id).status, mem.get(old.id).superseded_by)
    assert "fact" == mem.get(revision.receipt.id).kind
    assert [revision.receipt.id] == [hit.id for hit in mem.recall("dentist appointment")]


def test_i07_an_agent_proposes_but_does_not_supersede_what_the_user_said(here: Here) -> None:
    old = here.store.session(scope=here.scope, actor="user").remember(OLD)

    revision = agent(here).revise(NEW, act="supersede")

    assert [(old.id, True, False)] == [(found.id, found.linked, found.superseded) for found in revision.contradicts]
    assert "active" == agent(here).get(old.id).status


def test_i08_another_scope_is_never_compared(here: Here) -> None:
    here.store.session(scope="acme", actor="agent:planner").remember(OLD)
    here.store.session(scope=f"{here.scope}/sub", actor="agent:planner").remember(OLD)

    reader = here.store.session(scope=here.scope, actor="agent:planner", reads=("acme",))

    assert () == reader.revise(NEW, act="supersede").contradicts
    assert [] == reader.proposals()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Ann takes 5 mg of ramipril daily.", "Ann takes 10 mg of ramipril daily."),
        ("The server runs version 1.2.3.", "The server runs version 1.2.4."),
        ("The launch is on 2026-03-12.", "The launch is on 2026-03-13."),
        ("The rent is 1,200 a month.", "The rent is 1,250 a month."),
    ],
)
def test_numbers_doses_versions_and_dates_are_never_duplicates(here: Here, old: str, new: str) -> None:
    mem = agent(here)
    first = mem.remember(old)

    revision = mem.revise(new, least=0.5)

    assert not revision.receipt.repeated
    assert [(first.id, True)] == [(f.id, "another number or date" in f.reasons) for f in revision.contradicts]
    assert {old, new} <= {hit.content for hit in mem.recall(old)}
    assert all(text in mem.context(old).text for text in (old, new))


def test_the_same_again_is_repeated_and_proposes_nothing(here: Here) -> None:
    mem = agent(here)
    first = mem.remember(NEW)
    mem.remember(OLD)

    revision = mem.revise(NEW, act="supersede")

    assert (first.id, True, ()) == (revision.receipt.id, revision.receipt.repeated, revision.contradicts)


def test_a_retried_command_gives_the_first_receipt_and_supersedes_once(here: Here) -> None:
    mem = agent(here)
    mem.remember(OLD)
    first = mem.revise(NEW, act="supersede", command_id="c1")
    head = here.store.stats()["events"]

    again = mem.revise(NEW, act="supersede", command_id="c1")

    assert (first.receipt.id, True) == (again.receipt.id, again.receipt.repeated)
    assert head == here.store.stats()["events"]


def test_a_keyed_revision_needs_no_guess(here: Here) -> None:
    mem = agent(here)
    mem.remember(OLD, about=("dentist", "appointment"))

    assert () == mem.revise(NEW, about=("dentist", "appointment"), act="supersede").contradicts


def test_what_a_tombstone_refuses_is_refused(here: Here) -> None:
    mem = agent(here)
    mem.remember(OLD)
    mem.forget(mem.remember(NEW).id, reason="asked")

    with pytest.raises(Refused) as refused:
        mem.revise(NEW, act="supersede")

    assert "tombstoned" == refused.value.code
    assert [] == mem.proposals()


class Says:
    """A model of one opinion."""

    def __init__(self, score: float) -> None:
        self.score, self.asked = score, [("", "")]

    def scores(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        self.asked = list(pairs)
        return [self.score for _ in pairs]


def test_a_users_own_model_judges_in_place_of_the_rules(here: Here) -> None:
    mem = agent(here)
    mem.remember(OTHER)
    yes, no = Says(0.9), Says(0.1)

    assert () == mem.revise("The cat eats once.", model=no).contradicts
    [found] = mem.revise("The cat eats thrice a day.", model=yes, act="propose").contradicts[:1]

    assert 0.9 == found.score
    assert "the given model says so" in found.reasons
    assert (OTHER, "The cat eats thrice a day.") in yes.asked


def test_without_vectors_nothing_is_compared_and_the_answer_says_so(tmp_path: Path) -> None:
    with muniment.open(tmp_path / "store", create=True, model="none") as store:
        agent(Here(store)).remember(OLD)
        revision = agent(Here(store)).revise(NEW)

        assert () == revision.contradicts
        assert ["no vectors"] == [note[-10:] for note in revision.notes]


def test_an_act_that_there_is_not_is_an_error(here: Here) -> None:
    with pytest.raises(BadArgument, match="propose"):
        agent(here).revise(NEW, act="delete")


def test_off_writes_what_remember_writes_and_loads_no_model(tmp_path: Path) -> None:
    clock = Clock()
    with muniment.open(tmp_path / "a", create=True, clock=clock) as store:
        agent(Here(store)).remember(OLD)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    written: list[list[bytes]] = []
    digests: list[dict[str, str]] = []
    for name, off in (("a", False), ("b", True)):
        with muniment.open(tmp_path / name, clock=clock) as store:
            if off:
                agent(Here(store)).revise(NEW, act="off", source="s/1")
            else:
                agent(Here(store)).remember(NEW, source="s/1")
            assert store._engine.dense.model_id is None
            assert [] == agent(Here(store)).proposals()
            digests.append({key: value for key, value in store.digests().items() if key == "tombstones"})
            reader = store._engine.reader()
            events = [event for batch in reader.read_new() for event in batch.events]
            # Ids and keys are random; everything else is equal to the byte.
            bodies = [(event.envelope, reader.open_body(event)) for event in events]
            written.append([msgspec.msgpack.encode(each) for each in bodies if not isinstance(each[0], Opened)])
            reader.log.close()

    assert 2 == len(written[0])
    assert written[0] == written[1]
    assert digests[0] == digests[1]


def test_i03_live_and_rebuilt_agree_on_proposals_and_a_forgotten_scope_takes_them_along(tmp_path: Path) -> None:
    with muniment.open(tmp_path / "store", create=True) as store:
        mem = agent(Here(store))
        old = mem.remember(OLD)
        mem.revise(NEW, act="link")
        before = mem.proposals()
        assert store.rebuild().ok
        assert before == mem.proposals()

        mem.forget(old.id, reason="asked")
        assert [None] == [proposal.reason for proposal in mem.proposals()]

        key = KeyFile.create(store._engine.files.path.with_name("ann.key"))
        store.enroll("user:ann", key.public_key, scopes=("acme",))
        store.user_session(scope="acme/apollo", principal="user:ann", signer=key).forget_scope(reason="asked")
        assert store.rebuild().ok


def test_i04_the_past_knows_the_proposals_of_its_time(here: Here) -> None:
    mem = agent(here)
    mem.remember(OLD)
    revision = mem.revise(NEW)
    end = here.store.stats()["events"]
    assert isinstance(end, int)

    assert [] == mem.proposals(known_at=revision.receipt.seq - 1)
    assert mem.proposals() == here.store.replay(to=end).session(scope=here.scope).proposals()
    assert mem.proposals(revision.receipt.id) == mem.proposals()
