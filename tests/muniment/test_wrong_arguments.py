"""What a caller who runs no type checker may pass by mistake: refused by name, before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, NamedTuple

import pytest

import muniment
from muniment import Action, InvalidInput, Session, Store, UserSession
from muniment.gate import format_signed
from tests.worlds import SCOPE, World

EMAIL = Action("email.send", {"to": "ann@example.org"})
NUMBER: Any = 5
NOTHING: Any = None
BYTES: Any = b"/tmp/m"
MAPPING: Any = {}


class Doors(NamedTuple):
    """Every handle; a mistake is what no type checker would let through, so they are typed as anything."""

    store: Any
    agent: Any
    ann: Any
    op: Any
    past: Any
    key: Any
    note: Any


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    world = World(tmp_path_factory.mktemp("wrong") / "m")
    agent: Session = world.speaker("agent:planner")
    note = agent.remember("a note", about=("a", "b"), metadata={"n": 1})
    ann: UserSession = world.ann()
    store: Store = world.store
    yield Doors(store, agent, ann, store.operator(), store.replay(to="HEAD").session(scope=SCOPE), world.key, note.id)
    store.close()


MISTAKES: dict[str, Callable[[Doors], object]] = {
    "a query that is a number": lambda d: d.agent.recall(5),
    "where that is a text": lambda d: d.agent.recall("note", where="n"),
    "a pair without an order": lambda d: d.agent.remember("x", about={"a", "b"}),
    "beliefs about a number": lambda d: d.agent.beliefs(3),
    "beliefs about numbers": lambda d: d.agent.beliefs((3, 4)),
    "a parent that is a number": lambda d: d.agent.remember("x", derived_from=[3]),
    "a value that is a list": lambda d: d.agent.remember("x", about=("a", "v"), value=[1, 2]),
    "a value that is an object": lambda d: d.agent.remember("x", about=("a", "v"), value={"a": 1}),
    "a value that is bytes": lambda d: d.agent.supersede(d.note, "x", value=b"x"),
    "a cascade in words": lambda d: d.agent.forget(d.note, reason="old", cascade="false"),
    "a dry run in words": lambda d: d.agent.decide(EMAIL, dry_run="false"),
    "SQL that is no Unicode": lambda d: d.agent.sql("SELECT '\ud800'"),
    "no items": lambda d: d.agent.remember_many(None),
    "items that are texts": lambda d: d.agent.remember_many(["x"]),
    "one item without its list": lambda d: d.agent.remember_many({"content": "x"}),
    "an action's bare name": lambda d: d.agent.decide("email.send"),
    "an action's bare name in the past": lambda d: d.past.decide("email.send"),
    "a bare name confirmed": lambda d: d.ann.confirm("email.send", agent="agent:planner"),
    "a bare name prohibited": lambda d: d.ann.prohibit("email.send", reason="never"),
    "seconds as a number": lambda d: d.ann.confirm(EMAIL, agent="agent:planner", expires_in=3600),
    "no expiry": lambda d: d.ann.confirm(EMAIL, agent="agent:planner", expires_in=None),
    "an expiry in digits of another script": lambda d: d.ann.confirm(
        EMAIL, agent="agent:planner", expires_in="\uff11h"
    ),
    "a number left out in digits of another script": lambda d: d.store.replay(to="HEAD", without=["seq=\uff11"]),
    "numbers left out up to a raised one": lambda d: d.store.replay(to="HEAD", without=["seq=1..\u00b2"]),
    "no time at all": lambda d: d.ann.confirm(EMAIL, agent="agent:planner", expires_in=timedelta(0)),
    "uses as a text": lambda d: d.ann.confirm(EMAIL, agent="agent:planner", uses="1"),
    "uses as a truth value": lambda d: d.ann.confirm(EMAIL, agent="agent:planner", uses=True),
    "half a use": lambda d: d.ann.confirm(EMAIL, agent="agent:planner", uses=1.5),
    "an agent that nobody can be": lambda d: d.ann.confirm(EMAIL, agent="planner"),
    "an agent without a name": lambda d: d.ann.confirm(EMAIL, agent="agent:"),
    "no path": lambda _: muniment.open(NOTHING),
    "a path that is a number": lambda _: muniment.open(NUMBER, create=True),
    "a path in bytes": lambda _: muniment.open(BYTES),
    "a path with a NUL": lambda _: muniment.open("a\0b", create=True),
    "a path with half a character": lambda _: muniment.open("a\ud800b", create=True),
    "a path with too long a name": lambda _: muniment.open("n" * 300, create=True),
    "an anchor that is a number": lambda d: muniment.open(d.store.path, anchor=NUMBER),
    "an anchor with a NUL": lambda d: d.store.verify(anchor="\0"),
    "an anchor to verify by that is a list": lambda d: d.store.verify(anchor=[]),
    "a verifier key that is a number": lambda d: d.store.verify(key=NUMBER),
    "a policy that is a mapping": lambda d: muniment.open(d.store.path, policy=MAPPING),
    "a policy with a NUL": lambda d: muniment.open(d.store.path, policy="\0"),
    "a model that is a number": lambda d: muniment.open(d.store.path, model=NUMBER),
    "a key file that is nothing": lambda _: muniment.KeyFile(NOTHING),
    "a key file with a NUL": lambda _: muniment.KeyFile("\0"),
    "an import of nothing": lambda d: d.store.import_file(None, scope=SCOPE),
    "an import of too long a name": lambda d: d.store.import_file("n" * 300, scope=SCOPE),
    "an export to a path": lambda d: d.store.export(SCOPE, "export.jsonl"),
    "a signer that is a path": lambda d: d.store.user_session(scope=SCOPE, principal="user:ann", signer="ann.key"),
    "a lost key in hexadecimal": lambda d: d.store.recover(
        principal="user:ann", lost="ab" * 32, public_key=d.key.public_key, signer=d.key
    ),
    "nothing signed": lambda d: d.store.submit(None),
    "a request that is a number": lambda d: d.ann.confirm_request(5),
    "a signed request that is a number": lambda d: muniment.sign_request(NUMBER, principal="user:ann", signer=d.key),
    "a described request that is a number": lambda d: muniment.describe_request(NUMBER, principal="user:ann"),
    "a verdict in words": lambda d: d.ann.review(d.note, approve="no", reason="wrong"),
    "an edited text that is a number": lambda d: d.ann.review(d.note, approve=True, reason="nearly", edit=5),
    "a key that is a number": lambda d: d.store.enroll("user:bob", 5, scopes=("acme",)),
    "a recovery key in words": lambda d: d.store.enroll("user:bob", d.key.public_key, scopes=("acme",), recovery="no"),
    "a name that is blank": lambda d: d.store.session(scope=SCOPE, actor="agent: "),
    "an origin of a session that is a number": lambda d: d.store.session(scope=SCOPE, origin=3),
    "the operator's origin that is a number": lambda d: d.op.ids_of_origin(3),
    "an actor that is a number": lambda d: d.store.session(scope=SCOPE, actor=3),
    "a principal that is a number": lambda d: d.store.user_session(scope=SCOPE, principal=3),
    "an origin that is a number": lambda d: d.agent.via(3),
    "an id that is a number": lambda d: d.agent.get(3),
    "the operator's id that is a number": lambda d: d.op.trace(3),
    "an explained number": lambda d: d.store.explain(3),
    "one id without its list": lambda d: d.op.quarantine("abc", reason="bad"),
    "no id to erase": lambda d: d.op.forget(reason="bad"),
    "a blank value forgotten": lambda d: d.ann.forget_value(" "),
    "a number forgotten": lambda d: d.op.forget_value(3, scope=SCOPE),
    "a value with NUL forgotten": lambda d: d.ann.forget_value("a\0b"),
    "one exclusion without its list": lambda d: d.store.replay(to="HEAD", without="origin=web:*"),
    "an exclusion that is a number": lambda d: d.store.replay(to="HEAD", without=[3]),
    "one scope to enroll for without its list": lambda d: d.store.enroll("user:bob", bytes(range(32)), scopes="acme"),
    "one scope to rotate for without its list": lambda d: d.ann.rotate(bytes(range(32)), scopes="acme"),
    "an interval that ends before it starts": lambda d: d.agent.recall("note", since="2026-02-01", until="2026-01-01"),
}


@pytest.mark.parametrize("call", MISTAKES.values(), ids=MISTAKES)
def test_i12_a_mistake_is_refused_by_name_and_writes_nothing(doors: Doors, call: Callable[[Doors], object]) -> None:
    before = doors.store.head
    with pytest.raises(InvalidInput):
        call(doors)
    assert before == doors.store.head


NO_IDS = ("zz", "z" * 32, "../../etc", "A" * 32, "abc", "ff", "00" * 16, "f" * 32)


@pytest.mark.parametrize("cited", NO_IDS)
@pytest.mark.parametrize("door", ["agent", "past"])
def test_i12_evidence_that_names_nothing_is_judged_by_the_name_that_it_was_given(
    doors: Doors, door: str, cited: str
) -> None:
    decision = getattr(doors, door).decide(EMAIL, evidence=[cited, doors.note, cited], dry_run=True)
    assert [(cited, "not_found")] == [(item.id, item.verdict) for item in decision.excluded]
    assert (doors.note,) == decision.supporting


def test_i12_each_of_several_that_name_nothing_is_named_and_a_retry_says_the_same(doors: Doors) -> None:
    asked = {"evidence": NO_IDS, "command_id": "cites nothing"}
    first, again = doors.agent.decide(EMAIL, **asked), doors.agent.decide(EMAIL, **asked)
    assert sorted(NO_IDS) == sorted(item.id for item in first.excluded)
    assert (first.id, first.excluded, True) == (again.id, again.excluded, again.repeated)


def test_what_is_no_memory_s_id_is_not_written_as_one(doors: Doors) -> None:
    """Among the ids a text that names nothing would outlive every forget, and padded it would be another's."""
    decision = doors.agent.decide(EMAIL, evidence=["zz", "abc", "e" * 32])
    ((evidence,),) = doors.store.sql(f"SELECT evidence FROM decisions WHERE id = '{decision.id}'")[1]
    assert [{"id": "e" * 32, "verdict": "not_found"}] == evidence


def test_a_signed_line_may_stand_among_white_space(doors: Doors) -> None:
    signed = doors.ann.sign_request(doors.agent.decide(EMAIL).request)
    assert not doors.store.submit(f" {format_signed(signed)}\r\n").repeated


NAMED: dict[str, tuple[Callable[[Doors], object], str]] = {
    "a difference from nowhere": (lambda d: d.agent.diff(None), "`None` is not a usable time"),
    "a difference backwards": (lambda d: d.agent.diff(3, 1), "argument `since`: `3` is after `1`"),
    "a difference from the future": (lambda d: d.agent.diff(999), "argument `since`: expected a sequence number"),
    "a difference to the future": (lambda d: d.agent.diff(1, 999), "argument `until`: expected a sequence number"),
    "a replay to the future": (lambda d: d.store.replay(to=999), "argument `to`: expected a sequence number"),
    "what was not signed": (lambda d: d.store.submit("junk"), "argument `signed`: it is not JSON"),
    "what is no request": (lambda d: d.ann.confirm_request("junk"), "argument `request`: it does not begin"),
}


@pytest.mark.parametrize(("call", "message"), NAMED.values(), ids=NAMED)
def test_i12_a_refusal_names_the_argument_that_the_caller_wrote(
    doors: Doors, call: Callable[[Doors], object], message: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        call(doors)
    assert message in str(caught.value)


def test_replaying_to_a_memory_says_what_is_taken(doors: Doors) -> None:
    kept = doors.agent.list()[0].id
    with pytest.raises(InvalidInput) as caught:
        doors.store.replay(to=kept)
    assert "decision's id" in caught.value.hint
