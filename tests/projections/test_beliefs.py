"""What may be offered at a point, for a whole scope at once, is what each memory's own status at that point says."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.events import Status
from muniment.projections import (
    LATEST,
    LIVE,
    PENDING_TERM,
    Beliefs,
    Memory,
    PlainSections,
    Projections,
    Register,
    Standing,
    is_listed,
)
from muniment.projections._resolve import Resolution, resolve, resolve_each
from tests.projections.histories import STEP, History

SCOPES = ("s", "t")
AUTHORS = ("agent:a", "agent:b")
STATUSES = (
    LIVE,
    frozenset({Status.ACTIVE}),
    frozenset({Status.PENDING}),
    frozenset(Status),
    LIVE | {Status.SUPERSEDED},
)
_FIELDS = st.fixed_dictionaries(
    {
        "scope": st.sampled_from(SCOPES),
        "origin": st.sampled_from(AUTHORS),
        "rank": st.integers(0, 2),
        "about": st.sampled_from((None, "k", "k", "l")),
        "value": st.sampled_from(("red", "blue")),
        "many": st.sampled_from((False, False, True)),
        "valid_from": st.sampled_from(range(0, 13 * STEP, STEP)),
        "valid_to": st.sampled_from((None, None, 90, 150)),
        "conditional": st.booleans(),
        "pending": st.sampled_from((False, False, True)),
    }
)
_NUMBER = st.integers(0, 30)


def _instant(term: int, steps: int, early: int) -> int:
    return term + steps * STEP - early


_INSTANTS = st.builds(_instant, st.sampled_from((*(0,) * 9, PENDING_TERM)), st.integers(0, 30), st.integers(0, 1))
_STEPS = st.lists(
    st.tuples(st.just("remember"), _FIELDS, _NUMBER)
    | st.tuples(st.just("supersede"), _FIELDS, _NUMBER)
    | st.tuples(
        st.sampled_from(("retire", "end", "approve", "reject", "quarantine", "release", "forget")), st.none(), _NUMBER
    )
    | st.tuples(st.sampled_from(("ask", "save", "close")), st.none(), _NUMBER),
    min_size=4,
    max_size=24,
)


def _perform(history: History, verb: str, fields: dict[str, object] | None, number: int) -> None:
    memories = history.memories
    if verb == "remember":
        history.remember(f"text {number}", **fields or {})  # type: ignore[arg-type]  # by name
    elif verb == "ask":
        for scope in SCOPES:
            history.state.beliefs.mask(scope, valid_at=number * STEP, known=LATEST)
    elif verb == "save":
        _save(history, now=number * STEP)
    elif verb == "close":
        if number < 3:
            history.forget(*(m for m in memories if m.scope == "t"), close="t")
    elif memories:
        target = memories[number % len(memories)]
        if verb == "supersede":
            history.remember("instead", **{**(fields or {}), "scope": target.scope}, supersedes=target)  # type: ignore[arg-type]  # by name
        elif verb == "forget":
            history.forget(target)
        else:
            _change(history, verb, number)


def _change(history: History, verb: str, number: int) -> None:
    target = history.memories[number % len(history.memories)]
    if verb == "retire":
        history.retire(target)
    elif verb == "end":
        history.retire(target, valid_to=number * STEP)
    elif verb in ("approve", "reject"):
        history.review(target, approve=verb == "approve")
    else:
        history.set_apart(target, release=verb == "release")


def _save(history: History, *, now: int) -> None:
    saved = PlainSections(history.state.sections(now))
    history.state = Projections(
        lambda event: history.bodies.get(event.seq), lambda place: history.bodies.get(place.offset)
    )
    history.state.load(saved, ())
    history.state.tree.seq = history.state.seq


def _by_asking(
    state: Projections, scope: str, *, valid_at: int, known: int, statuses: Collection[Status], author: str | None
) -> list[bool]:
    found: list[bool] = []
    for memory in state.register.rows.get(scope, ()):
        if memory.seq > known:
            found.append(False)
            continue
        standing = state.beliefs.standing(memory, valid_at=valid_at, known=known)
        status, holds = standing.status, standing.holds
        history = status not in LIVE and not LIVE.issuperset(statuses)
        is_asked = status in statuses and memory.erasure is None and is_listed(memory, status, author)
        found.append(is_asked and (holds or history))
    return found


@given(
    steps=_STEPS,
    points=st.lists(
        st.tuples(_INSTANTS, st.integers(0, 9), st.sampled_from(STATUSES), st.booleans()),
        min_size=6,
        max_size=12,
    ),
)
@settings(max_examples=100, deadline=None)
def test_a_scope_asked_at_once_is_each_of_its_memories_asked(
    steps: list[tuple[str, dict[str, object] | None, int]],
    points: list[tuple[int, int, Collection[Status], bool]],
) -> None:
    history = History()
    asked = iter(points * (len(steps) // len(points) + 1))
    valid_at, seq, statuses, steady = points[0]
    for step in steps:
        _perform(history, *step)
        if steady:
            # What is kept of a point is right at the same point later, whatever happened.
            _compare(history, valid_at, seq or LATEST, statuses, own=False)
        else:
            valid_at, back, statuses, own = next(asked)
            _compare(history, valid_at, _before(history, back), statuses, own=own)
    for valid_at, _, statuses, own in points:
        for back in range(9):
            _compare(history, valid_at, _before(history, back), statuses, own=own)


def _before(history: History, back: int) -> int:
    return history.state.seq - back if back else LATEST


def _compare(history: History, valid_at: int, known: int, statuses: Collection[Status], *, own: bool) -> None:
    author = AUTHORS[0] if own else None
    for scope in SCOPES:
        expected = _by_asking(history.state, scope, valid_at=valid_at, known=known, statuses=statuses, author=author)
        mask = history.state.beliefs.mask(scope, valid_at=valid_at, known=known, statuses=statuses, author=author)
        assert expected == mask.tolist(), (scope, valid_at, known, statuses)


_ONE_VOICE = st.fixed_dictionaries(
    {
        "origin": st.sampled_from((*AUTHORS[:1] * 9, AUTHORS[1])),
        "about": st.just("k"),
        "value": st.sampled_from(("red", "blue")),
        "valid_from": st.sampled_from(range(0, 13 * STEP, STEP)),
        "valid_to": st.sampled_from((None, None, 90, 150)),
        "many": st.sampled_from((*(False,) * 9, True)),
    }
)


@given(
    steps=st.lists(
        st.tuples(st.sampled_from((*("remember",) * 6, "supersede", "retire", "forget")), _ONE_VOICE, _NUMBER),
        min_size=2,
        max_size=10,
    )
)
@settings(max_examples=150, deadline=None)
def test_what_one_voice_says_again_and_again_is_resolved_as_statement_by_statement(
    steps: list[tuple[str, dict[str, object] | None, int]],
) -> None:
    history = History()
    for step in steps:
        _perform(history, *step)
    register = history.state.register
    for statements in (register.statements(memory) for memory in history.memories):
        for valid_at in range(0, 16 * STEP, STEP):
            for known in (*range(1, history.state.seq + 1), LATEST):
                one, other = list[bytes](), list[bytes]()
                lookup = register.memories.get
                quick = resolve(statements, valid_at=valid_at, known=known, lookup=lookup, held=one)
                slow = resolve_each(statements, valid_at=valid_at, known=known, lookup=lookup, held=other)
                assert (slow, other) == (quick, one)


def test_a_status_that_is_told_again_and_again_is_not_resolved_statement_by_statement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    history = History()
    last = [history.remember(f"text {number}", about="k", value=f"v{number}") for number in range(50)][-1]

    def no_more(*_: object, **__: object) -> Resolution:
        raise AssertionError("each statement was weighed")

    monkeypatch.setattr("muniment.projections._resolve.resolve_each", no_more)
    assert last == history.state.beliefs.resolution(last, valid_at=1_000, known=LATEST).current


def test_an_approved_successor_takes_the_place_of_what_it_supersedes() -> None:
    history = History()
    first = history.remember("tea")
    second = history.remember("coffee", supersedes=first, pending=True)
    beliefs = history.state.beliefs
    while_it_waited = beliefs.mask("s", valid_at=100, known=LATEST, statuses=LIVE).tolist()

    history.review(second, approve=True)

    assert [True, False] == while_it_waited
    assert [False, True] == beliefs.mask("s", valid_at=100, known=LATEST, statuses=LIVE).tolist()


def test_what_an_approval_ended_is_live_to_who_did_not_know_of_it() -> None:
    history = History()
    first = history.remember("tea")
    second = history.remember("coffee", supersedes=first, pending=True)
    history.review(second, approve=True)
    history.remember("milk")
    beliefs = history.state.beliefs

    for known, expected in ((1, [True, False, False]), (2, [True, False, False]), (3, [False, True, False])):
        assert expected == beliefs.mask("s", valid_at=100, known=known).tolist()


def test_an_end_that_is_to_come_ends_at_its_instant_whatever_was_known_last() -> None:
    history = History()
    history.retire(history.remember("tea"), valid_to=200)
    beliefs = history.state.beliefs
    assert [True] == beliefs.mask("s", valid_at=100, known=LATEST).tolist()
    history.remember("milk")

    for valid_at, expected in ((199, [True, False]), (200, [False, False])):
        assert expected == beliefs.mask("s", valid_at=valid_at, known=2).tolist()


class _Counted(Beliefs):
    """Beliefs that note which memories are asked one by one."""

    def __init__(self, register: Register) -> None:
        super().__init__(register)
        self.asked: list[int] = []

    def _standing(self, memory: Memory, valid_at: int, known: int, memo: dict[bytes, Resolution]) -> Standing:
        self.asked.append(memory.seq)
        return super()._standing(memory, valid_at, known, memo)


def test_a_scope_is_not_asked_row_by_row() -> None:
    """What nothing happened to is read from columns at every point; the rest is asked where the point matters to it."""
    history = History()
    for n in range(40):
        history.remember(f"text {n}", valid_from=n, about="k" if n < 2 else f"k{n}" if n % 2 else None, value=str(n))
    history.retire(history.memories[-1])
    beliefs = _Counted(history.state.register)
    beliefs.mask("s", valid_at=1000, known=LATEST)
    beliefs.asked.clear()

    for statuses in STATUSES:
        for valid_at in (1000, 900):
            beliefs.mask("s", valid_at=valid_at, known=LATEST, statuses=statuses)
    assert [] == beliefs.asked
    beliefs.mask("s", valid_at=900, known=1, statuses=frozenset(Status))
    beliefs.mask("s", valid_at=0, known=LATEST, statuses=frozenset(Status))
    beliefs.mask("s", valid_at=0, known=LATEST)

    assert [1, 1, 2, 40] == beliefs.asked
