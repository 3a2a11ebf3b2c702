"""The graph agrees with the register and with its reader, at every point of both times, over random histories."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import cast

from hypothesis import given, settings
from hypothesis import strategies as st

from muniment._reach import Reach
from muniment._reading import Reading, Source
from muniment.events import to_datetime
from muniment.projections import LATEST, Graph, Memory, Projections

from .histories import STEP, History

INSTANTS = st.integers(0, 8).map(lambda n: n * STEP)


@dataclass(frozen=True)
class Step:
    """One thing that happens; `a`, `b` and `c` choose among the memories there are."""

    verb: str
    a: int
    b: int
    c: int
    scope: str
    rank: int
    origin: str
    about: str | None
    value: str | None
    many: bool
    conditional: bool
    pending: bool
    start: int
    until: int | None


STEPS = st.builds(
    Step,
    verb=st.sampled_from(["remember"] * 6 + ["supersede", "derive"] * 2)
    | st.sampled_from(["retire", "approve", "reject", "apart", "release", "forget", "link", "unlink"]),
    a=st.integers(0, 20),
    b=st.integers(0, 20),
    c=st.integers(0, 2),
    scope=st.sampled_from(["s", "s", "t"]),
    rank=st.integers(0, 3),
    origin=st.sampled_from(["web:a", "web:b"]),
    about=st.sampled_from(["k", "k", "k", "l", None]),
    value=st.sampled_from(["1", "2", None]),
    many=st.sampled_from([False, False, False, True]),
    conditional=st.booleans(),
    pending=st.sampled_from([False, False, True]),
    start=INSTANTS,
    until=st.none() | INSTANTS,
)
HISTORIES = st.lists(STEPS, min_size=1, max_size=25)


def play(history: History, step: Step) -> None:
    """Append what the step says, if it can be."""
    memories = history.memories
    until = None if step.until is None or step.until <= step.start else step.until
    if step.verb in ("remember", "supersede", "derive") or not memories:
        there = [m for m in memories if m.scope == step.scope]
        target = there[step.a % len(there)] if there else None
        history.remember(
            f"text {step.a}", scope=step.scope, rank=step.rank, origin=step.origin, about=step.about, value=step.value,
            many=step.many, conditional=step.conditional, pending=step.pending, valid_from=step.start, valid_to=until,
            supersedes=target if step.verb == "supersede" else None,
            derived_from=[memories[step.b % len(memories)]] if step.verb == "derive" and memories else (),
            links=[("about", memories[step.c % len(memories)])] if step.c and memories else (),
        )  # fmt: skip
        return
    one, other = memories[step.a % len(memories)], memories[step.b % len(memories)]
    kind = ("supports", "relates", "derives-from")[step.c]
    match step.verb:
        case "retire":
            history.retire(one, step.until)
        case "approve" | "reject":
            history.review(one, approve=step.verb == "approve")
        case "apart" | "release":
            history.set_apart(one, release=step.verb == "release")
        case "forget":
            history.forget(one)
        case "link":
            history.link(one, other, kind, step.start, until)
        case _:
            history.unlink(one, other, kind)


def seen(history: History, scopes: frozenset[str], known: int) -> list[Memory]:
    return [m for m in history.memories if m.scope in scopes and m.seq <= known]


@settings(max_examples=40, deadline=None)
@given(steps=HISTORIES, cuts=st.lists(st.integers(1, 25), max_size=3), data=st.data())
def test_i04_sql_agrees_with_the_register_at_every_point(
    steps: list[Step], cuts: list[int], data: st.DataObject
) -> None:
    """Filled in one go or in several, in one scope or both, now or in the past."""
    history = History()
    graph = Graph(history.state)
    scopes = data.draw(st.sampled_from([frozenset({"s"}), frozenset({"s", "t"})]))
    for number, step in enumerate(steps, 1):
        play(history, step)
        if number not in cuts and number != len(steps):
            continue
        points = data.draw(st.lists(st.tuples(INSTANTS, st.integers(0, history.state.seq)), min_size=1, max_size=3))
        for valid_at, known in (*points, (8 * STEP, LATEST)):
            beliefs = history.state.beliefs
            standings = [
                (m.id.hex(), beliefs.standing(m, valid_at=valid_at, known=known)) for m in seen(history, scopes, known)
            ]
            expected = [(identity, standing.status, standing.holds) for identity, standing in standings]
            _, rows = graph.query(
                "SELECT id, status, holds FROM (SELECT id, status, holds, seq FROM memories "
                "UNION ALL SELECT id, status, false, seq FROM stubs) ORDER BY seq",
                valid_at=valid_at, known=known, scopes=scopes,
            )  # fmt: skip
            assert expected == rows

            current = [b.memory.id for b in beliefs.keys(scopes, valid_at=valid_at, known=known)]
            assert current == graph.beliefs_as_of(valid_at=valid_at, known=known, scopes=scopes)
    graph.close()


class Shown:
    """What a reader needs of a source in order to follow links."""

    def __init__(self, state: Projections) -> None:
        self.state = state

    def now(self) -> int:
        return 0

    def answering(self, reach: Reach) -> Shown:
        return self

    def refresh(self) -> None: ...


@settings(max_examples=40, deadline=None)
@given(steps=HISTORIES, data=st.data())
def test_i08_neighbourhood_agrees_with_the_reader_at_every_hop(steps: list[Step], data: st.DataObject) -> None:
    history = History()
    linking = [replace(s, verb="link") if i % 2 else s for i, s in enumerate(steps)]
    for step in (*steps, *linking):
        play(history, step)
    scopes = data.draw(st.sampled_from([("s",), ("s", "t"), ("t",)]))
    known = data.draw(st.integers(1, history.state.seq))
    valid_at, depth = data.draw(INSTANTS), data.draw(st.integers(1, 4))
    reader = Reading(cast("Source", Shown(history.state)), threading.RLock(), scopes[0], scopes[1:])
    graph = Graph(history.state)
    for memory in seen(history, frozenset(scopes), known)[:4]:
        expected = [
            (v.start, v.end, v.type, v.depth, v.valid_from, v.valid_to, v.recorded_at)
            for v in reader.links(memory.id.hex(), depth=depth, valid_at=to_datetime(valid_at), known_at=known)
        ]
        rows = graph.neighbourhood(memory.id, depth=depth, valid_at=valid_at, known=known, scopes=frozenset(scopes))
        assert len(expected) == len(rows)
        assert set(expected) == set(rows)
    graph.close()
