"""
The laws of two times, over the register and beliefs alone: what one statement may change, and where.

Of the laws in the literature those about rectangles and coalescing are missing: nothing here keeps either.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.events import MAX_INSTANT, parse_instant, to_datetime
from muniment.projections import FAR_FUTURE, LATEST, Memory
from tests.projections.histories import History

INSTANTS = range(-1, 13)


class Statement(NamedTuple):
    """What is said of a key over an interval, and by whom."""

    key: str
    value: str
    since: int
    until: int | None
    origin: str = "agent:a"


_intervals = st.tuples(st.integers(0, 9), st.one_of(st.none(), st.integers(1, 6))).map(
    lambda pair: (pair[0], None if pair[1] is None else pair[0] + pair[1])
)
_statements = st.builds(
    lambda key, value, interval, origin: Statement(key, value, *interval, origin),
    st.sampled_from(("k", "l")),
    st.sampled_from(("red", "blue", "green")),
    _intervals,
    st.sampled_from(("agent:a", "agent:b")),
)
_histories = st.lists(_statements, max_size=7)


def _said(history: History, statement: Statement) -> Memory:
    key, value, since, until, origin = statement
    return history.remember(value, about=key, value=value, valid_from=since, valid_to=until, origin=origin)


def _made(statements: list[Statement]) -> History:
    history = History()
    for statement in statements:
        _said(history, statement)
    return history


def _values(
    history: History, *, known: int = LATEST, keys: tuple[str, ...] = ("k", "l")
) -> dict[tuple[str, int], list[str]]:
    """Return the value of each key at each instant, with the values that it displaced at equal rank."""
    found: dict[tuple[str, int], list[str]] = {}
    for key in keys:
        for instant in INSTANTS:
            beliefs = history.state.beliefs.at_key("s", key.encode(), valid_at=instant, known=known)
            found[key, instant] = [
                text
                for belief in beliefs
                for memory in (belief.memory, *belief.conflicts)
                if (text := (memory.envelope.value_key or b"").decode())
            ]
    return found


@given(_histories, _statements)
def test_what_was_known_before_an_event_stays_as_it_was(before: list[Statement], added: Statement) -> None:
    history = _made(before)
    seqs = range(len(before) + 1)
    then = [_values(history, known=seq) for seq in seqs]

    _said(history, added)

    assert then == [_values(history, known=seq) for seq in seqs]


@given(_histories, _statements)
def test_outside_its_interval_a_statement_changes_nothing(before: list[Statement], added: Statement) -> None:
    history = _made(before)
    then = _values(history)

    _said(history, added)

    for place, values in _values(history).items():
        if _is_in(place, added):
            assert added.value == values[0]
        else:
            assert then[place] == values


@given(_histories)
def test_what_was_known_at_a_position_is_what_a_log_cut_there_says(statements: list[Statement]) -> None:
    whole = _made(statements)

    for seq in range(len(statements) + 1):
        assert _values(_made(statements[:seq])) == _values(whole, known=seq)


@given(_histories)
def test_statements_of_different_keys_commute(statements: list[Statement]) -> None:
    apart = [s for s in statements if s.key == "k"] + [s for s in statements if s.key == "l"]

    assert _values(_made(statements)) == _values(_made(apart))


@given(_histories, _statements, st.sampled_from(("red", "blue", "green")))
def test_the_last_of_two_statements_over_one_interval_is_the_value(
    before: list[Statement], first: Statement, value: str
) -> None:
    both = _made([*before, first, first._replace(value=value)])
    last = _made([*before, first._replace(value=value)])

    # Only the value: in between, an actor may have spoken again, whose earlier word is no conflict any more.
    assert [values[:1] for values in _values(last).values()] == [values[:1] for values in _values(both).values()]


@given(_histories, _statements, st.integers(1, 8))
def test_a_statement_split_in_two_says_the_same(before: list[Statement], added: Statement, at: int) -> None:
    middle = added.since + at
    if added.until is not None and middle >= added.until:
        return
    halves = [added._replace(until=middle), added._replace(since=middle)]

    assert _values(_made([*before, added])) == _values(_made([*before, *halves]))


@given(_histories, _statements)
def test_what_is_retired_leaves_a_hole_that_history_still_fills_and_a_statement_closes(
    before: list[Statement], added: Statement
) -> None:
    history = _made(before)
    memory = _said(history, added)
    then = _values(history)
    history.retire(memory, valid_to=added.since)

    now = _values(history)
    assert then == _values(history, known=memory.seq)
    for instant in INSTANTS:
        assert (now[added.key, instant] == []) is (memory.covers(instant) or then[added.key, instant] == [])
    _said(history, added)
    assert all(added.value == values[0] for place, values in _values(history).items() if _is_in(place, added))


@given(_statements)
def test_an_interval_begins_at_its_start_and_ends_before_its_end(statement: Statement) -> None:
    values = _values(_made([statement]))

    for instant in INSTANTS:
        place = (statement.key, instant)
        assert ([statement.value] if _is_in(place, statement) else []) == values[place]


def test_what_has_no_end_holds_at_the_last_instant_there_is() -> None:
    history = _made([Statement("k", "red", 0, None)])

    assert history.state.beliefs.at_key("s", b"k", valid_at=MAX_INSTANT, known=LATEST)


@given(_histories, st.integers(0, 6))
def test_what_is_forgotten_is_gone_from_every_point_and_nothing_else_is(statements: list[Statement], at: int) -> None:
    history = _made(statements)
    if not statements:
        return
    target = history.memories[at % len(statements)]
    seqs = range(1, len(statements) + 1)
    then = [_values(history, known=seq) for seq in seqs]

    history.forget(target)

    for seq in seqs:
        for instant in INSTANTS:
            for belief in history.state.beliefs.keys(["s"], valid_at=instant, known=seq):
                assert target.id not in {m.id for m in (belief.memory, *belief.disputes, *belief.conflicts)}
        other = "l" if target.envelope.belief_key == b"k" else "k"
        now = _values(history, known=seq, keys=(other,))
        assert now == {place: values for place, values in then[seq - 1].items() if place in now}
    assert len(statements) == len(history.memories)


@given(st.lists(st.integers(-(10**15), 10**15), min_size=1, max_size=8), st.integers(-14 * 60, 14 * 60))
@settings(max_examples=50)
def test_an_instant_is_the_same_through_any_zone(offsets: list[int], minutes: int) -> None:
    zone = timezone(timedelta(minutes=minutes))
    for micros in (*offsets, 0):
        moment = to_datetime(micros)
        assert micros == parse_instant(moment) == parse_instant(moment.astimezone(zone))
        assert micros == parse_instant(moment.astimezone(zone).isoformat())
    for edge in (datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)):
        assert edge == to_datetime(parse_instant(edge))


def _is_in(place: tuple[str, int], statement: Statement) -> bool:
    key, instant = place
    return key == statement.key and statement.since <= instant < (
        FAR_FUTURE if statement.until is None else statement.until
    )
