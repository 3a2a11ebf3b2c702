"""
Values and metadata: what goes in comes out equal, or is refused before any byte is written.

Accepted: None, bool, int of any size, finite float, str, bytes, date, datetime, and lists and string-keyed dicts of
these. Encoded as MessagePack; what that lacks travels as extension types:

    ext 1   datetime, ISO 8601 text (a naive one stays naive: here it is data, not an instant of ours)
    ext 2   date, ISO 8601 text
    ext 3   int outside 64 bits, decimal digits
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime
from typing import Final, TypeAlias, cast

import msgspec

from ._errors import BadValue

Scalar: TypeAlias = str | int | float | bool | bytes | date | datetime | None
Data: TypeAlias = "Scalar | list[Data] | dict[str, Data]"
"""What metadata may hold."""

_DATETIME, _DATE, _BIG_INT = 1, 2, 3
_INT_MIN, _INT_MAX = -(1 << 63), (1 << 63) - 1
_BIG_INT_BITS: Final = 14_000
"""About 4,200 digits: Python reads back no more than 4,300."""
_MAX_DEPTH: Final = 32

_encoder = msgspec.msgpack.Encoder(order="deterministic")


def format_data(data: object, *, what: str) -> bytes:
    """
    Return the canonical bytes of a value.

    Raises:
        BadValue: something in it would not come back exactly; `what` names the argument.
    """
    return _encoder.encode(_to_wire(data, what, 0))


def parse_data(packed: bytes) -> Data:
    """Return the value that `format_data` was given."""
    return cast("Data", _decoder.decode(packed))


def _to_wire(data: object, what: str, depth: int) -> object:
    if depth > _MAX_DEPTH:
        raise BadValue(what=what, detail=f"nested deeper than {_MAX_DEPTH} levels")
    if isinstance(data, list):
        return [_to_wire(item, what, depth + 1) for item in cast("list[object]", data)]
    if isinstance(data, dict):
        return _mapping_to_wire(cast("Mapping[object, object]", data), what, depth)
    return _scalar_to_wire(data, what)


def _mapping_to_wire(data: Mapping[object, object], what: str, depth: int) -> dict[str, object]:
    wire: dict[str, object] = {}
    for key, item in data.items():
        if type(key) is not str:
            raise BadValue(what=what, detail=f"key {key!r} is not text")
        _check_encodable(key, what)
        wire[key] = _to_wire(item, what, depth + 1)
    return wire


def _scalar_to_wire(data: object, what: str) -> object:
    kind = type(data)
    if data is None or kind is bool or kind is bytes:
        return data
    if kind is str:
        _check_encodable(cast("str", data), what)
        return data
    if kind is int:
        number = cast("int", data)
        if _INT_MIN <= number <= _INT_MAX:
            return number
        if number.bit_length() > _BIG_INT_BITS:
            raise BadValue(what=what, detail=f"an integer of more than {_BIG_INT_BITS} bits")
        return msgspec.msgpack.Ext(_BIG_INT, b"%d" % number)
    if kind is float:
        if not math.isfinite(cast("float", data)):
            raise BadValue(what=what, detail=f"{data} is not a finite number")
        return data
    if kind is datetime:
        return msgspec.msgpack.Ext(_DATETIME, cast("datetime", data).isoformat().encode())
    if kind is date:
        return msgspec.msgpack.Ext(_DATE, cast("date", data).isoformat().encode())
    raise BadValue(
        what=what,
        detail=f"`{kind.__name__}` is not one of None, bool, int, float, str, bytes, date, datetime, list, dict",
    )


def _check_encodable(text: str, what: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadValue(what=what, detail="text with a lone surrogate") from error


def _ext_hook(code: int, data: memoryview) -> object:
    text = bytes(data).decode()
    if code == _DATETIME:
        return datetime.fromisoformat(text)
    if code == _DATE:
        return date.fromisoformat(text)
    if code == _BIG_INT:
        return int(text)
    raise BadValue(what="stored data", detail=f"unknown extension {code}")


_decoder = msgspec.msgpack.Decoder(ext_hook=_ext_hook)
