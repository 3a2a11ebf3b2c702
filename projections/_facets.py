"""Facets: what filters may ask of a row."""

from __future__ import annotations

from typing import Final

import msgspec


class Facets(msgspec.Struct, array_like=True, frozen=True):
    """What filters may ask of a row, the conversation that it is part of, and what dies with its body."""

    tags: tuple[str, ...] = ()
    metadata: bytes | None = None
    thread: str | None = None


NO_FACETS: Final = Facets()
