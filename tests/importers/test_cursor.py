"""The cursor reads what json.loads reads, however the file is cut into chunks."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment._importers import _cursor
from muniment._importers._cursor import JsonCursor, Malformed

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def cursor_over(data: bytes) -> JsonCursor:
    return JsonCursor(io.BytesIO(data), lambda _: None)


def walk(cursor: JsonCursor) -> object:
    if cursor.peek() == "[":
        return [walk(cursor) for _ in cursor.elements()]
    if cursor.peek() == "{":
        return {key: walk(cursor) for key in cursor.members()}
    return cursor.value()


@given(VALUES, st.integers(1, 9), st.booleans(), st.sampled_from([None, 1]))
def test_walking_equals_decoding_for_every_chunk_size(
    value: object, chunk: int, ascii_only: bool, indent: int | None
) -> None:
    data = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_cursor, "_CHUNK", chunk)
        assert value == walk(cursor_over(data))
        whole = cursor_over(data)
        assert value == whole.value()
        assert whole.peek() == ""
        after = cursor_over(b"[" + data + b", 7]")
        elements = after.elements()
        next(elements)
        after.skip()
        next(elements)
        assert after.value() == 7


def test_a_number_cut_by_a_chunk_is_read_whole() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_cursor, "_CHUNK", 2)
        assert walk(cursor_over(b"[1.25e+10,12345]")) == [1.25e10, 12345]


@pytest.mark.parametrize(
    "data", [b"", b"[", b"[1", b"[1,", b"[1 2]", b'{"a"', b'{"a" 1}', b"{1:2}", b"[tru]", b'["\xff"]']
)
def test_what_is_not_json_is_malformed_at_a_position(data: bytes) -> None:
    with pytest.raises(Malformed) as caught:
        walk(cursor_over(data))
    assert 0 <= caught.value.position <= len(data)


def test_deep_nesting_is_malformed_and_not_a_crash() -> None:
    with pytest.raises(Malformed):
        cursor_over(b"[" * 200_000).value()


def test_an_endless_value_is_given_up_and_not_held() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_cursor, "_CHUNK", 64)
        patch.setattr(_cursor, "MAX_VALUE_BYTES", 1024)
        file = io.BytesIO(b'["' + b"a" * 1_000_000)
        with pytest.raises(Malformed):
            walk(JsonCursor(file, lambda _: None))
        assert file.tell() < 10_000
