"""I8: no call reads or writes without a scope; scopes are compared by segments and carried into every hop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import muniment
from muniment import Action, Record, Session, Subtree
from tests.asking import EVERY_STATUS
from tests.strategies import scopes
from tests.worlds import AGENT, World

MakeWorld = Callable[[], World]
ALL = ("a", "a/b", "ab", "a/bc", "a/b/c", "b")
WORD = "beetroot"


def _filled(make_world: MakeWorld) -> tuple[World, dict[str, list[str]]]:
    """Return a world in which every scope holds the same words, keys and links as every other."""
    world, ids = make_world(), {}
    for scope in ALL:
        agent = world.store.session(scope=scope, actor=AGENT)
        first = agent.remember(f"{WORD} soup of {scope}", about=(WORD, "dish"), tags=[WORD], metadata={"at": scope})
        second = agent.remember(f"{WORD} salad of {scope}", derived_from=[first.id], kind="constraint")
        agent.link(second.id, "relates", first.id)
        ids[scope] = [first.id, second.id]
    return world, ids


READS: Mapping[str, Callable[[Session], Iterable[Record]]] = {
    "recall": lambda s: s.recall(WORD, k=100),
    "recall of all statuses": lambda s: s.recall(WORD, k=100, status=EVERY_STATUS),
    "recall by tag": lambda s: s.recall(WORD, k=100, tags=[WORD]),
    "recall in the past": lambda s: s.recall(WORD, k=100, known_at="2999-01-01"),
    "beliefs": lambda s: s.beliefs(),
    "belief": lambda s: s.beliefs(about=(WORD, "dish")),
    "list": lambda s: s.list(),
    "history": lambda s: [r for m in s.list() for r in s.history(m.id)],
    "diff": lambda s: [c.new for c in s.diff(0) if c.new is not None],
    "briefing": lambda s: s.briefing().constraints,
}


@given(scope=scopes, reads=st.lists(scopes, max_size=2), verb=st.sampled_from(sorted(READS)))
@settings(max_examples=80, deadline=None)
def test_i08_a_session_reads_its_scope_and_those_it_lists_and_no_other(
    make_world: MakeWorld, scope: str, reads: list[str], verb: str
) -> None:
    world, _ = _filled(make_world)
    session = world.store.session(scope=scope, actor=AGENT, reads=reads)

    assert {scope, *reads} == {record.scope for record in READS[verb](session)}


@given(scope=scopes, other=scopes)
@settings(max_examples=40, deadline=None)
def test_i08_an_id_of_another_scope_is_as_if_it_did_not_exist(make_world: MakeWorld, scope: str, other: str) -> None:
    world, ids = _filled(make_world)
    foreign = ids[other][1] if other != scope else "0" * 32
    session = world.store.session(scope=scope, actor=AGENT)
    own = ids[scope][0]
    before = world.store.operator().get(foreign) if other != scope else None
    deeds: list[Callable[[str], object]] = [
        session.get,
        session.history,
        session.links,
        lambda i: session.list(after=i),
        lambda i: session.supersede(i, "mine now"),
        lambda i: session.retire(i, reason="over"),
        lambda i: session.forget(i, reason="away"),
        lambda i: session.forget(i, reason="away", dry_run=True),
        lambda i: session.link(own, "relates", i),
        lambda i: session.link(i, "relates", own),
        lambda i: session.unlink(i, "relates", own),
        lambda i: session.remember("so", derived_from=[i]),
        lambda i: session.remember("so", links=[("relates", i)]),
        lambda i: session.get(i[:16]),
    ]
    for deed in deeds:
        with pytest.raises(muniment.InvalidInput) as error:
            deed(foreign)
        assert "not_found" == error.value.code
        assert (
            str(error.value).replace(foreign, "ID").replace(foreign[:16], "ID")
            == "nothing with id `ID` can be seen from here"
        )
    decided = session.decide(Action("plan"), use="planning", evidence=[foreign], dry_run=True)
    assert ["not_found"] == [item.verdict for item in decided.excluded]
    if before is not None:
        assert before == world.store.operator().get(foreign)


def test_i08_reads_is_for_reading_and_not_for_writing(world: World) -> None:
    other = world.speaker(AGENT, "acme/zeus").remember("of zeus", about=("it", "is"))
    session = world.speaker(AGENT, reads=("acme/zeus",))
    assert "of zeus" == session.get(other.id).content

    for deed in (
        lambda: session.supersede(other.id, "mine"),
        lambda: session.retire(other.id, reason="over"),
        lambda: session.forget(other.id, reason="away"),
    ):
        with pytest.raises(muniment.InvalidInput, match="nothing with id"):
            deed()
    mine = session.remember("of apollo", about=("it", "is"))
    assert "acme/apollo" == session.get(mine.id).scope
    assert "active" == world.speaker(AGENT, "acme/zeus").get(other.id).status


@pytest.mark.parametrize("scope", ["acme", "acme/zeus", "acme/apollo/below"])
def test_i08_a_user_signs_no_request_of_another_scope_than_the_sessions(world: World, scope: str) -> None:
    denied = world.speaker(AGENT).decide(Action("email.send", {"to": "bob"}))

    with pytest.raises(muniment.Refused) as refused:
        world.ann(scope).confirm_request(denied.request or "")

    assert ("scope_denied", "acme/apollo") == (refused.value.code, refused.value.facts["scope"])
    assert not world.speaker(AGENT).decide(Action("email.send", {"to": "bob"})).allowed
    world.ann().confirm_request(denied.request or "")
    assert world.speaker(AGENT).decide(Action("email.send", {"to": "bob"})).allowed


def test_i08_the_same_value_elsewhere_is_neither_merged_nor_superseded(world: World) -> None:
    first = world.speaker(AGENT, "acme/zeus").remember("monday", about=("launch", "day"))

    second = world.speaker(AGENT, reads=("acme/zeus",)).remember("monday", about=("launch", "day"))
    third = world.speaker(AGENT).remember("friday", about=("launch", "day"))

    assert not second.repeated
    assert 3 == len({first.id, second.id, third.id})
    zeus = world.speaker(AGENT, "acme/zeus")
    assert ["monday"] == [belief.content for belief in zeus.beliefs()]
    assert [first.id] == [record.id for record in zeus.history(first.id)]


def test_i08_links_are_followed_only_through_scopes_that_may_be_read(world: World) -> None:
    """a -> b -> c, of which b lies in a scope that the reader does not have: neither b nor c is reached."""
    hidden, seen = world.speaker(AGENT, "acme/hidden"), world.speaker(AGENT, "acme/seen")
    end = seen.remember("the end")
    bridge = world.speaker(AGENT, "acme/hidden", reads=("acme/seen",))
    middle = bridge.remember("the middle", links=[("relates", end.id)])
    linker = world.speaker(AGENT, reads=("acme/hidden", "acme/seen"))
    start = linker.remember("the start", links=[("relates", middle.id)])

    assert 2 == len(linker.links(start.id, depth=5))
    blind = world.speaker(AGENT, reads=("acme/seen",))
    assert [] == blind.links(start.id, depth=5)
    assert hidden.get(middle.id).content == "the middle"


def test_i08_a_small_scope_finds_all_of_its_own_among_many(world: World) -> None:
    """Scope is where candidates come from: five of two thousand, all of them better matches elsewhere."""
    world.speaker(AGENT, "acme/big").remember_many(
        [{"content": f"invoice invoice invoice {n}", "kind": "fact"} for n in range(2_000)]
    )
    small = world.speaker(AGENT, "acme/small")
    small.remember_many(
        [{"content": f"a long letter that speaks of an invoice once, number {n}", "kind": "fact"} for n in range(5)]
    )

    assert 5 == len(small.recall("invoice", k=5, kinds=["fact"], since="2020-01-01"))
    assert 5 == len(world.speaker(AGENT, "acme/small", reads=("acme/none",)).recall("invoice", k=50))


@given(scope=scopes)
@settings(max_examples=20, deadline=None)
def test_i08_a_subtree_is_the_scope_and_those_below_by_segment(make_world: MakeWorld, scope: str) -> None:
    world, _ = _filled(make_world)

    found = world.store.session(scope="z", actor=AGENT, reads=[Subtree(scope)]).list()

    below = {s for s in ALL if s.split("/")[: len(scope.split("/"))] == scope.split("/")}
    assert below == {record.scope for record in found}


BAD_SCOPES = (
    "", "/", "a/", "/a", "a//b", "..", "a/../b", ".", "a\\b", "a\0b", "a*", "a?", "[a]", " a", "a ", "a\u200bb",
    "x" * 300, "/".join("abcdefghijklmnopqrst"), "a\nb", "e\u0301",
)  # fmt: skip


@pytest.mark.parametrize("scope", BAD_SCOPES)
def test_i08_a_scope_that_could_be_misread_is_refused(world: World, scope: str) -> None:
    for make in (
        lambda: world.store.session(scope=scope, actor=AGENT),
        lambda: world.store.session(scope="acme", actor=AGENT, reads=[scope]),
        lambda: world.store.user_session(scope=scope, principal="user:ann"),
        lambda: world.store.replay(to=1).session(scope=scope),
        lambda: Subtree(scope),
    ):
        with pytest.raises(muniment.InvalidInput) as error:
            make()
        assert "scope_malformed" == error.value.code


@pytest.mark.parametrize(
    "scope", ["CON", "nul", "\u4f60\u597d/\u043c\u0438\u0440", "a.b", "a b", "user@example.org", "%2e%2e"]
)
def test_i08_a_scope_never_becomes_a_path(world: World, scope: str) -> None:
    before = {path.name for path in world.path.rglob("*")}
    world.store.session(scope=scope, actor=AGENT).remember("stored safely")
    after = {path.name for path in world.path.rglob("*")}

    assert ["stored safely"] == [r.content for r in world.store.session(scope=scope, actor=AGENT).list()]
    assert before == after
    world.reopen()
    assert ["stored safely"] == [r.content for r in world.store.session(scope=scope, actor=AGENT).list()]


def test_i08_there_is_no_session_without_a_scope(world: World) -> None:
    with pytest.raises(TypeError, match="scope"):
        world.store.session(actor=AGENT)  # type: ignore[call-arg]  # what is to be refused
    with pytest.raises(TypeError, match="scope"):
        world.store.replay(to=1).session()  # type: ignore[call-arg]  # as above


def test_i08_a_confirmation_of_one_scope_opens_no_other(world: World) -> None:
    action = Action("email.send", {"to": "ann"})
    for scope in ("acme", "acme/apollo", "acme/apollo/crew"):
        world.ann(scope).confirm(action, agent=AGENT)
        for other in {"acme", "acme/apollo", "acme/apollo/crew", "acme/apollo2"} - {scope}:
            assert not world.speaker(AGENT, other).decide(action, dry_run=True).allowed
        assert world.speaker(AGENT, scope).decide(action).allowed


def test_i08_a_prohibition_binds_its_scope_and_those_below(world: World) -> None:
    action = Action("email.send", {"to": "ann"})
    for scope in ("acme", "acme/apollo", "acme/apollo/crew", "acme/apollo2"):
        world.ann(scope).confirm(action, agent=AGENT, uses=9)
    world.ann("acme/apollo").prohibit(action, reason="never")

    allowed = {
        scope: world.speaker(AGENT, scope).decide(action, dry_run=True).allowed
        for scope in ("acme", "acme/apollo", "acme/apollo/crew", "acme/apollo2")
    }

    assert {"acme": True, "acme/apollo": False, "acme/apollo/crew": False, "acme/apollo2": True} == allowed
