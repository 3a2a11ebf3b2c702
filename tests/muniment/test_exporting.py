"""An export keeps everything that an import can give back."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import muniment
from muniment._json_values import format_value, parse_value
from muniment.events import BadValue, Data, format_data

_SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text() | st.binary() | st.dates() | st.datetimes()
    | st.datetimes(timezones=st.just(UTC))
)  # fmt: skip
_KEYS = st.text() | st.sampled_from(["$date", "$object", "$x"])
_DATA = st.recursive(_SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=4))


@given(_DATA)
def test_parsing_a_value_inverts_formatting_it(data: Data) -> None:
    line = msgspec.json.encode(format_value(data))

    # As bytes: 1, 1.0 and True are equal, and are not the same.
    assert format_data(data, what="value") == format_data(parse_value(json.loads(line)), what="value")


@pytest.mark.parametrize(
    "found", [{"$date": "x"}, {"$date": 1}, {"$other": 1}, {"$bytes": "!"}, {"$date": "2026-01-01", "b": 1}]
)
def test_what_is_never_written_is_refused(found: dict[str, object]) -> None:
    with pytest.raises(BadValue):
        parse_value(found)


def test_an_export_has_a_header_and_every_memory_that_was_not_erased(tmp_path: Path) -> None:
    file = io.StringIO()
    with muniment.open(tmp_path / "store", create=True, model="none") as store:
        mem = store.session(scope="acme", actor="agent:a")
        first = mem.remember("The launch is on 12 March.", about=("launch", "date"), value=date(2026, 3, 12))
        mem.remember("Call at noon.", metadata={"at": datetime(2026, 3, 12, 12)}, tags=("x",), derived_from=(first.id,))
        mem.forget(mem.remember("The code is 1234.").id, reason="asked")
        store.session(scope="acme/apollo", actor="agent:a").remember("elsewhere")
        assert 2 == store.export("acme", file)

    header, launch, call = (cast("dict[str, object]", json.loads(line)) for line in file.getvalue().splitlines())
    assert (1, "acme", 2) == (header["muniment_export"], header["scope"], header["memories"])
    assert (["launch", "date"], date(2026, 3, 12)) == (launch["about"], parse_value(launch["value"]))
    assert ({"at": datetime(2026, 3, 12, 12)}, [first.id]) == (parse_value(call["metadata"]), call["derived_from"])
    assert "rank" not in call


def test_a_link_that_was_made_twice_is_told_once(tmp_path: Path) -> None:
    file = io.StringIO()
    with muniment.open(tmp_path / "store", create=True, model="none") as store:
        mem = store.session(scope="acme", actor="agent:a")
        first, second = (mem.remember(text).id for text in ("The launch is on 12 March.", "Call at noon."))
        for _ in range(2):
            mem.link(first, "relates", second)
        mem.link(first, "supports", second)
        store.export("acme", file)

    told = json.loads(file.getvalue().splitlines()[1])
    assert [["relates", second], ["supports", second]] == told["links"]


def test_a_scope_never_used_is_not_exported_as_empty(tmp_path: Path) -> None:
    with (
        muniment.open(tmp_path / "store", create=True, model="none") as store,
        pytest.raises(muniment.InvalidInput, match="never used"),
    ):
        store.export("acme", io.StringIO())
