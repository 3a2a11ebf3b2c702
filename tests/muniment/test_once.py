"""A command is carried out once, though two processes are given it at the same moment."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest

from muniment import Action, Decision, DecisionExplanation, ErasureReceipt, MunimentError, Receipt, Store
from tests.worlds import SCOPE, World

from .test_commands import key, put_back, with_recovery

Answer = Receipt | Decision | ErasureReceipt
EMAIL = Action("email.send", {"to": "ann@example.org"})


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "m")
    yield world
    world.store.close()


def raced(world: World, call: Callable[[Store], Answer]) -> list[Answer]:
    """Return what two handles answer that both wait for the writer lock when it becomes free."""
    answers: list[Answer] = []
    errors: list[MunimentError] = []

    def run(store: Store) -> None:
        try:
            answers.append(call(store))
        except MunimentError as error:
            errors.append(error)

    with ExitStack() as stack:
        stores = [stack.enter_context(world.open_again()) for _ in range(2)]
        for store in stores:
            store.session(scope=SCOPE, actor="agent:planner").list()
        threads = [threading.Thread(target=run, args=(store,)) for store in stores]
        with world.store._engine.lock.hold():
            for thread in threads:
                thread.start()
            # A call that fails before it waits must not be waited for.
            while not (errors or all(store._engine.door._waiting for store in stores)):
                threads[0].join(0.001)
        for thread in threads:
            thread.join()
    assert [] == errors
    return answers


def test_i07_a_signature_submitted_twice_at_once_confirms_once(world: World) -> None:
    agent = world.speaker("agent:planner")
    request = agent.decide(EMAIL).request
    assert request is not None
    signed = world.ann().sign_request(request)
    first, second = raced(world, lambda store: store.submit(signed))
    assert first.id == second.id
    assert [False, True] == sorted([first.repeated, second.repeated])
    assert [True, False] == [agent.decide(EMAIL).allowed for _ in range(2)]


def test_a_retire_repeated_at_once_is_done_once(world: World) -> None:
    kept = world.speaker("agent:planner").remember("a note")

    def retire(store: Store) -> Receipt:
        session = store.session(scope=SCOPE, actor="agent:planner")
        return session.retire(kept.id, reason="over", command_id="once")

    first, second = raced(world, retire)
    assert first.id == second.id


def test_a_forget_repeated_at_once_is_done_once(world: World) -> None:
    kept = world.speaker("agent:planner").remember("a note")

    def forget(store: Store) -> ErasureReceipt:
        session = store.session(scope=SCOPE, actor="agent:planner")
        return session.forget(kept.id, reason="asked", command_id="once")

    first, second = raced(world, forget)
    assert first.id == second.id


def test_a_decision_repeated_at_once_spends_once_and_is_the_same(world: World) -> None:
    world.ann().confirm(EMAIL, agent="agent:planner", uses=2)

    def decide(store: Store) -> Decision:
        return store.session(scope=SCOPE, actor="agent:planner").decide(EMAIL, command_id="once")

    first, second = raced(world, decide)
    assert first.id == second.id
    agent = world.speaker("agent:planner")
    assert [True, False] == [agent.decide(EMAIL).allowed for _ in range(2)]


def test_one_denial_is_one_request_which_is_signed_once_however_often_it_is_shown(world: World) -> None:
    agent = world.speaker("agent:planner")
    first = agent.decide(EMAIL, command_id="once")
    world.clock.advance()
    again = agent.decide(EMAIL, command_id="once")
    explained = world.store.explain(first.id or "")

    assert first == msgspec.structs.replace(again, repeated=False)
    assert isinstance(explained, DecisionExplanation)
    assert first.request == explained.recorded.request
    confirmed = world.ann().confirm_request(first.request or "")
    repeated = world.ann().confirm_request(again.request or "")
    assert (confirmed.id, True) == (repeated.id, repeated.repeated)
    assert [True, False] == [agent.decide(EMAIL).allowed for _ in range(2)]
    assert first.request != agent.decide(EMAIL).request


KEY_DEEDS: dict[str, tuple[Callable[[World], object], Callable[[World, Store], Receipt]]] = {
    "enroll": (
        lambda w: None,
        lambda w, store: store.enroll_by(
            "user:ben", key(w, "new").public_key, scopes=("acme",), by="terminal", command_id="once"
        ),
    ),
    "rotate": (
        lambda w: None,
        lambda w, store: store.user_session(scope=SCOPE, principal="user:ann", signer=w.key).rotate(
            key(w, "new").public_key, command_id="once"
        ),
    ),
    "recover": (
        with_recovery,
        lambda w, store: store.recover(
            "user:ann", lost=w.key.public_key, public_key=key(w, "new").public_key, signer=key(w, "recovery"),
            command_id="once",
        ),
    ),
    "accept_rollback": (
        put_back, lambda w, store: store.operator().accept_rollback(reason="restored", command_id="once")
    ),
}  # fmt: skip


@pytest.mark.parametrize(("prepare", "deed"), KEY_DEEDS.values(), ids=KEY_DEEDS)
def test_a_deed_about_keys_or_the_log_repeated_at_once_is_done_once(
    world: World, prepare: Callable[[World], object], deed: Callable[[World, Store], Receipt]
) -> None:
    prepare(world)
    key(world, "new")
    first, second = raced(world, lambda store: deed(world, store))
    assert first.id == second.id
    assert [False, True] == sorted([first.repeated, second.repeated])


def test_a_repeat_at_once_keeps_its_command_once(world: World) -> None:
    kept = world.speaker("agent:planner").remember("a note")
    head = world.store.head.seq

    def repeat(store: Store) -> Receipt:
        return store.session(scope=SCOPE, actor="agent:planner").remember("a note", command_id="once")

    assert [kept.id] * 2 == [receipt.id for receipt in raced(world, repeat)]
    world.store._engine.refresh()
    notes = world.store.sql(f"SELECT target FROM events WHERE seq > {head} AND type = 'refused'")[1]
    assert [(kept.id,)] == notes
