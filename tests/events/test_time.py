"""An instant is understood in one documented way, to the microsecond, in every zone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.events._errors import BadTime
from muniment.events._time import (
    MAX_INSTANT,
    MIN_INSTANT,
    check_interval,
    format_instant,
    parse_instant,
    to_datetime,
)

instants = st.integers(MIN_INSTANT, MAX_INSTANT)
DAY = 86_400_000_000
LAUNCH = 1_779_265_782_000_000


@given(instants)
def test_parse_inverts_format(micros: int) -> None:
    assert micros == parse_instant(format_instant(micros))
    assert micros == parse_instant(to_datetime(micros))


@given(st.integers(MIN_INSTANT + DAY, MAX_INSTANT - DAY), st.integers(-23 * 60, 23 * 60))
def test_an_instant_is_the_same_in_every_zone(micros: int, minutes: int) -> None:
    elsewhere = to_datetime(micros).astimezone(timezone(timedelta(minutes=minutes)))
    assert micros == parse_instant(elsewhere)
    assert micros == parse_instant(elsewhere.isoformat())


@given(instants)
def test_epoch_seconds_are_exact_to_the_microsecond(micros: int) -> None:
    whole, rest = divmod(micros, 1_000_000)
    if abs(whole) < 100_000_000_000 and micros >= 0:
        assert micros == parse_instant(f"@{whole}.{rest:06d}")


@pytest.mark.parametrize(
    ("given_time", "expected"),
    [
        ("2026-05-20T08:29:42", LAUNCH),
        ("2026-05-20T10:29:42+02:00", LAUNCH),
        ("2026-05-20T08:29:42Z", LAUNCH),
        ("  2026-05-20T08:29:42 ", LAUNCH),
        ("@1779265782", LAUNCH),
        ("@1779265782000", LAUNCH),
        ("@1779265782.5", LAUNCH + 500_000),
        ("@-1.5", -1_500_000),
        ("@0", 0),
        (datetime(2026, 5, 20, 8, 29, 42), LAUNCH),  # naive means UTC
        (datetime(2026, 5, 20, 8, 29, 42, tzinfo=UTC), LAUNCH),
        (date(1970, 1, 2), DAY),
        ("1970-01-02", DAY),
        ("0001-01-01", MIN_INSTANT),
        ("9999-12-31T23:59:59.999999Z", MAX_INSTANT),
    ],
)
def test_what_people_write_is_understood(given_time: str | date, expected: int) -> None:
    assert expected == parse_instant(given_time)


def test_a_date_as_an_inclusive_bound_is_the_last_microsecond_of_its_day() -> None:
    assert 2 * DAY - 1 == parse_instant("1970-01-02", end=True)
    assert 2 * DAY - 1 == parse_instant(date(1970, 1, 2), end=True)
    assert DAY == parse_instant("1970-01-02T00:00", end=True)
    assert 2 * DAY - 1 == parse_instant("1970W015", end=True)
    assert MAX_INSTANT == parse_instant("9999-12-31", end=True)


@pytest.mark.parametrize("given_time", ["9999-12-31T23:59:59-05:00", "0001-01-01T00:00:00+05:00"])
@pytest.mark.parametrize("as_given", [str, datetime.fromisoformat])
def test_an_offset_cannot_carry_an_instant_out_of_the_calendar(
    given_time: str, as_given: Callable[[str], str | datetime]
) -> None:
    """What no datetime can say could be written, and then nothing beside it could be read any more."""
    with pytest.raises(BadTime, match="outside years 1 to 9999"):
        parse_instant(as_given(given_time))


@given(instants, st.integers(-23 * 60, 23 * 60))
def test_what_is_read_in_any_zone_can_be_said_again(micros: int, minutes: int) -> None:
    elsewhere = to_datetime(micros).replace(tzinfo=timezone(timedelta(minutes=minutes)))
    try:
        read = parse_instant(elsewhere)
    except BadTime:
        read = micros - minutes * 60_000_000
        assert not MIN_INSTANT <= read <= MAX_INSTANT
        return
    assert elsewhere == to_datetime(read)


@pytest.mark.parametrize(
    "given_time",
    [
        "",
        "soon",
        "2026-13-01",
        "2026-02-30",
        "1779265782",
        "-5",
        "@",
        "@abc",
        "@1.1234567",
        "@\uff11\uff17\uff17\uff19\uff12\uff16\uff15\uff17\uff18\uff12",
        "@-\u0661",
        "@1.\u0665",
        "@1\uff17",
        "@999999999999999999",
        None,
        5,
    ],
)
def test_what_cannot_be_understood_is_refused(given_time: object) -> None:
    with pytest.raises(BadTime):
        parse_instant(given_time)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # untyped callers


@given(st.text(max_size=12))
def test_no_text_raises_anything_else(text: str) -> None:
    try:
        micros = parse_instant(text)
    except BadTime:
        return
    assert MIN_INSTANT <= micros <= MAX_INSTANT


@given(instants, instants)
def test_an_interval_is_half_open_and_not_empty(start: int, end: int) -> None:
    if start < end:
        check_interval(start, end)
    else:
        with pytest.raises(BadTime, match="the interval is empty"):
            check_interval(start, end)
    check_interval(start, None)
