"""Every deed of a person and of the operator takes a command id: the first receipt again, or a conflict."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from muniment import Action, ErasureReceipt, Receipt
from muniment.errors import CommandConflict
from tests.worlds import SCOPE, World

Answer = Receipt | ErasureReceipt
EMAIL = Action("email.send", {"to": "ann@example.org"})


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "m")
    world.speaker("agent:planner").remember("what is there")
    yield world
    world.store.close()


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
    assert (first.id, first.seq, False, True) == (again.id, again.seq, first.repeated, again.repeated)
    world.reopen()
    assert (first.id, True) == ((later := deed(world, named, "first", "one")).id, later.repeated)
    assert head == world.store.head.seq


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
