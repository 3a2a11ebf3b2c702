"""Every deed of a person and of the operator takes a command id: the first receipt again, or a conflict."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

import muniment
from muniment import Action, ErasureReceipt, KeyFile, Operator, Receipt, Session
from muniment.errors import AlreadyDone, CommandConflict, EnrolDenied, Tombstoned
from tests.worlds import SCOPE, World

Answer = Receipt | ErasureReceipt
EMAIL = Action("email.send", {"to": "ann@example.org"})


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "m")
    world.speaker("agent:planner").remember("what is there")
    yield world
    world.store.close()


def key(world: World, name: str) -> KeyFile:
    """Return a key by name, made when it is first asked for."""
    path = world.path.with_name(f"{name}.key")
    return KeyFile(path) if path.exists() else KeyFile.create(path)


def put_back(world: World) -> str:
    """Put an older copy of the log back, from before something was erased."""
    erased = world.speaker("agent:planner").remember("erased since")
    log, kept = world.path / "log", world.path.with_name("kept")
    shutil.copytree(log, kept)
    world.speaker("agent:planner").forget(erased.id, reason="asked")
    world.store.close()
    shutil.rmtree(log)
    kept.rename(log)
    world.store = world.open_again()
    return erased.id


def with_recovery(world: World) -> str:
    """Enroll a recovery key for ann."""
    return world.store.enroll("user:ann", key(world, "recovery").public_key, scopes=("acme",), recovery=True).id


def memory(world: World) -> str:
    return world.speaker("agent:planner").list()[0].id


DEEDS: dict[str, tuple[Callable[[World], str], Callable[[World, str, str, str], Answer]]] = {
    "confirm": (lambda w: "", lambda w, i, words, c: w.ann().confirm(EMAIL, agent=f"agent:{words}", command_id=c)),
    "prohibit": (lambda w: "", lambda w, i, words, c: w.ann().prohibit(EMAIL, reason=words, command_id=c)),
    "prohibit, unsigned": (
        lambda w: "",
        lambda w, i, words, c: w.store.user_session(scope=SCOPE, principal="user:ann").prohibit(
            EMAIL, reason=words, command_id=c
        ),
    ),
    "revoke": (
        lambda w: w.ann().confirm(EMAIL, agent="agent:planner").id,
        lambda w, i, words, c: w.ann().revoke(i, reason=words, command_id=c),
    ),
    "unprohibit": (
        lambda w: w.ann().prohibit(EMAIL, reason="never").id,
        lambda w, i, words, c: w.ann().unprohibit(i, reason=words, command_id=c),
    ),
    "review": (memory, lambda w, i, words, c: w.ann().review(i, approve=False, reason=words, command_id=c)),
    "lift": (
        lambda w: str(w.ann().forget_value("a value").id),
        lambda w, i, words, c: w.ann().lift(i, reason=words, command_id=c),
    ),
    "forget_value": (lambda w: "", lambda w, i, words, c: w.ann().forget_value("a value", reason=words, command_id=c)),
    "forget_scope": (lambda w: "", lambda w, i, words, c: w.ann().forget_scope(reason=words, command_id=c)),
    "operator's quarantine": (
        memory, lambda w, i, words, c: w.store.operator().quarantine([i], reason=words, command_id=c)
    ),
    "operator's release": (
        lambda w: (w.store.operator().quarantine([memory(w)], reason="bad"), memory(w))[1],
        lambda w, i, words, c: w.store.operator().release([i], reason=words, command_id=c),
    ),
    "operator's forget": (memory, lambda w, i, words, c: w.store.operator().forget(i, reason=words, command_id=c)),
    "operator's forget_value": (
        lambda w: "",
        lambda w, i, words, c: w.store.operator().forget_value("a value", scope=SCOPE, reason=words, command_id=c),
    ),
    "enroll": (
        lambda w: "",
        lambda w, i, words, c: w.store.enroll("user:ben", key(w, words).public_key, scopes=("acme",), command_id=c),
    ),
    "enroll, at a terminal": (
        lambda w: "",
        lambda w, i, words, c: w.store.enroll_by(
            "user:ben", key(w, words).public_key, scopes=("acme",), by="terminal", command_id=c
        ),
    ),
    "recover": (
        with_recovery,
        lambda w, i, words, c: w.store.recover(
            "user:ann", lost=w.key.public_key, public_key=key(w, words).public_key, signer=key(w, "recovery"),
            command_id=c,
        ),
    ),
    "operator's accept_rollback": (
        put_back, lambda w, i, words, c: w.store.operator().accept_rollback(reason=words, command_id=c)
    ),
    "operator's forget_scope": (
        lambda w: "", lambda w, i, words, c: w.store.operator().forget_scope(SCOPE, reason=words, command_id=c)
    ),
}  # fmt: skip


@pytest.mark.parametrize(("prepare", "deed"), DEEDS.values(), ids=DEEDS)
def test_a_command_is_carried_out_once_also_by_another_handle_and_later(
    world: World, prepare: Callable[[World], str], deed: Callable[[World, str, str, str], Answer]
) -> None:
    named = prepare(world)
    first = deed(world, named, "first", "one")
    head = world.store.head.seq
    world.clock.advance(90)
    again = deed(world, named, "first", "one")
    assert (False, True) == (first.repeated, again.repeated)
    if isinstance(first, ErasureReceipt) and isinstance(again, ErasureReceipt) and not again.asked:
        first = msgspec.structs.replace(first, asked=())  # which memories a forgotten scope held nobody can tell
    assert first == msgspec.structs.replace(again, repeated=False)
    world.reopen()
    assert (first.id, True) == ((later := deed(world, named, "first", "one")).id, later.repeated)
    assert head == world.store.head.seq


@pytest.mark.parametrize("who", ["agent", "operator"])
def test_i12_a_forget_of_several_names_those_that_were_erased_before(world: World, who: str) -> None:
    agent = world.speaker("agent:planner")
    eraser: Session | Operator = agent if who == "agent" else world.store.operator()
    gone, live, later = (agent.remember(text).id for text in ("gone", "live", "later"))
    assert () == eraser.forget(gone, reason="x").already

    dry = eraser.forget(gone, live, reason="asked", dry_run=True)
    receipt = eraser.forget(gone, live, gone, reason="asked", command_id="both")
    agent.forget(later, reason="x")
    again = eraser.forget(gone, live, gone, reason="asked", command_id="both")

    assert ((live,), (gone,)) == (dry.asked, dry.already)
    assert ((live,), (gone,), (live,)) == (receipt.asked, receipt.already, receipt.erased)
    assert receipt == msgspec.structs.replace(again, repeated=False)
    with pytest.raises(AlreadyDone):
        eraser.forget(gone, live, reason="asked")


def test_the_receipt_of_a_deed_says_what_was_done(world: World) -> None:
    agent, ann, op = world.speaker("agent:planner"), world.ann(), world.store.operator()
    first, second = agent.remember("first").id, agent.remember("second").id
    confirmed = ann.confirm(EMAIL, agent="agent:planner")

    assert "confirmed" == confirmed.status
    assert "linked" == agent.link(first, "relates", second).status
    assert "unlinked" == agent.unlink(first, "relates", second).status
    assert "quarantined" == op.quarantine([first], reason="bad").status
    assert "released" == op.release([first], reason="good").status
    assert "reviewed" == ann.review(first, approve=False, reason="wrong").status
    assert "retired" == agent.retire(second, reason="over").status
    assert "revoked" == ann.revoke(confirmed.id, reason="no").status


@pytest.mark.parametrize(("prepare", "deed"), DEEDS.values(), ids=DEEDS)
def test_a_command_with_another_payload_is_a_conflict(
    world: World, prepare: Callable[[World], str], deed: Callable[[World, str, str, str], Answer]
) -> None:
    named = prepare(world)
    deed(world, named, "first", "one")
    with pytest.raises(CommandConflict, match="command `one` was used at"):
        deed(world, named, "second", "one")


def test_a_command_of_the_user_is_another_in_another_scope(world: World) -> None:
    here = world.ann().confirm(EMAIL, agent="agent:planner", command_id="one")
    below = world.ann("acme/apollo/below").confirm(EMAIL, agent="agent:planner", command_id="one")
    assert here.id != below.id


def test_a_key_is_rotated_once_for_a_command(world: World) -> None:
    ann = world.ann()
    first = ann.rotate(key(world, "new").public_key, command_id="one")
    head = world.store.head.seq
    again = ann.rotate(key(world, "new").public_key, command_id="one")
    assert (first.id, False, True, head) == (again.id, first.repeated, again.repeated, world.store.head.seq)
    with pytest.raises(CommandConflict, match="command `one` was used at"):
        ann.rotate(key(world, "other").public_key, command_id="one")
    with pytest.raises(CommandConflict, match="command `one` was used at"):
        ann.rotate(key(world, "new").public_key, scopes=("acme/apollo",), command_id="one")


def test_a_retry_gains_no_authority(world: World) -> None:
    """Only what was done already comes back; anything else needs what it needed before."""
    world.reopen()
    with pytest.raises(EnrolDenied):
        world.store.enroll("user:ben", key(world, "new").public_key, scopes=("acme",), command_id="one")
    with pytest.raises(AlreadyDone):
        world.store.operator().accept_rollback(reason="there was none", command_id="one")


SAID = "The launch is on 12 March."
OTHER = "The launch is on 2 April."
WAYS: dict[str, Callable[[Session, str, str], Receipt]] = {
    "remember": lambda mem, text, c: mem.remember(text, command_id=c),
    "remember_many": lambda mem, text, c: mem.remember_many([{"content": text}], command_id=c)[0],
    "revise": lambda mem, text, c: mem.revise(text, command_id=c).receipt,
}


@pytest.mark.parametrize("write", WAYS.values(), ids=WAYS)
def test_a_write_that_repeats_a_value_keeps_its_command_id(
    world: World, write: Callable[[Session, str, str], Receipt]
) -> None:
    mem = world.speaker("agent:planner")
    first = mem.remember(SAID)
    written = len(mem.list())
    repeated = write(mem, SAID, "one")
    head = world.store.head.seq
    world.reopen()
    mem = world.speaker("agent:planner")
    again = write(mem, SAID, "one")
    with pytest.raises(CommandConflict, match=f"command `one(/0)?` was used at {first.seq} with another payload"):
        write(mem, OTHER, "one")

    # Once, and never as a memory of its own.
    assert [(first.id, first.seq, True)] * 2 == [(r.id, r.seq, r.repeated) for r in (repeated, again)]
    assert (written, head) == (len(mem.list()), world.store.head.seq)
    assert 0 == world.store.stats()["refusals"]
    assert world.store.rebuild().ok


def test_a_batch_with_more_items_or_fewer_under_its_command_id_is_a_conflict(world: World) -> None:
    agent = world.speaker("agent:planner")
    items = [{"content": "what is there"}, {"content": "a"}, {"content": "b"}]
    first = agent.remember_many(items, command_id="batch")
    head = world.store.head.seq

    for other in (items[:2], items[:1], [*items, {"content": "c"}], [*items[:2], {"content": "c"}]):
        with pytest.raises(CommandConflict):
            agent.remember_many(other, command_id="batch")
    assert head == world.store.head.seq
    again = agent.remember_many(items, command_id="batch")
    assert [(one.id, True) for one in first] == [(one.id, one.repeated) for one in again]


def test_a_batch_of_which_some_was_refused_is_taken_up_under_its_command_id(world: World) -> None:
    agent = world.speaker("agent:planner")
    items = [{"content": "a"}, {"content": " "}, {"content": "b"}]
    first = agent.remember_many(items, on_refusal="skip", command_id="batch")

    again = agent.remember_many(items, on_refusal="skip", command_id="batch")

    assert [1] == [one.index for one in again.refused]
    assert [(one.id, True) for one in first] == [(one.id, one.repeated) for one in again]
    with pytest.raises(CommandConflict):
        agent.remember_many(items[:2], on_refusal="skip", command_id="batch")


def test_a_refused_item_is_judged_again_under_its_command_id_as_a_refused_write_is(world: World) -> None:
    """No receipt was given for it, and what refused it can be lifted: then the same command completes what it began."""
    agent, secret = world.speaker("agent:planner"), "The code is 1234."
    forgotten = agent.forget(agent.remember(secret).id, reason="asked")
    items = [{"content": "a"}, {"content": secret}, {"content": "b"}]

    def send() -> tuple[list[tuple[str, bool]], list[tuple[int, str]]]:
        found = agent.remember_many(items, on_refusal="skip", command_id="batch")
        return [(one.id, one.repeated) for one in found], [(one.index, one.error) for one in found.refused]

    (first, refused), before = send(), world.store.head.seq
    with pytest.raises(Tombstoned):
        agent.remember(secret, command_id="single")
    assert ([(identity, True) for identity, _ in first], refused) == send()
    assert [(1, "tombstoned")] == refused
    assert before + 2 == world.store.head.seq  # each attempt at what is refused is counted, and nothing else is written

    world.ann().lift(str(forgotten.id), reason="it may be said")
    (one, taken_up, two), none = send()
    assert ([(identity, True) for identity, _ in first], False, []) == ([one, two], taken_up[1], none)
    assert secret == agent.get(taken_up[0]).content
    assert not agent.remember(secret, source="elsewhere", command_id="single").repeated

    head = world.store.head.seq
    assert ([one, (taken_up[0], True), two], []) == send()
    assert head == world.store.head.seq


def test_a_repeat_without_a_command_id_writes_nothing(world: World) -> None:
    mem = world.speaker("agent:planner")
    mem.remember(SAID)
    head = world.store.head.seq
    mem.remember(SAID)
    assert head == world.store.head.seq


def test_a_retry_of_a_repeat_whose_value_was_forgotten_since_is_refused(world: World) -> None:
    mem = world.speaker("agent:planner")
    first = mem.remember(SAID)
    mem.remember(SAID, command_id="one")
    forgotten = mem.forget(first.id, reason="asked")
    world.ann().lift(str(forgotten.id), reason="it may be said")
    with pytest.raises(Tombstoned):
        mem.remember(SAID, command_id="one")


def test_two_items_of_a_batch_under_one_command_id_conflict_also_where_the_first_repeats(world: World) -> None:
    mem = world.speaker("agent:planner")
    mem.remember(SAID)
    items = [{"content": SAID, "command_id": "one"}, {"content": OTHER, "command_id": "one"}]
    with pytest.raises(CommandConflict):
        mem.remember_many(items)
    mem.remember_many([{"content": OTHER}, {"content": OTHER, "command_id": "two"}])
    with pytest.raises(CommandConflict):
        mem.remember(SAID, command_id="two")


def test_what_was_repeated_is_an_event_that_names_the_memory_and_not_the_value(world: World) -> None:
    mem = world.speaker("agent:planner")
    first = mem.remember(SAID)
    mem.remember(SAID, command_id="one")
    [row] = world.store.sql("SELECT type, actor, target FROM events ORDER BY seq DESC LIMIT 1")[1]
    assert ("refused", "agent:planner", first.id) == row
    with muniment.open(world.path, read_only=True, model="none", clock=world.clock) as other:
        assert other.digests() == world.store.digests()
