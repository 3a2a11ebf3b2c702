"""The bodies that were read last for their vectors, so that their words are taken in without opening them again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from muniment.events import Location, MemoryBody

ReadBody = Callable[[Location], MemoryBody | None]
_KEPT: Final = 8


class Bodies:
    """
    Reads memories' bodies, and keeps a few of them until they are read again.

    The owner calls `forget` with every forget, whatever it erases: nothing that is kept outlives one.
    """

    def __init__(self, read_body: ReadBody) -> None:
        self._read_body, self._kept = read_body, dict[Location, MemoryBody]()

    def read(self, place: Location) -> MemoryBody | None:
        """Return a body that was not erased, as far as its owner knows, and keep it; None when its key is gone."""
        body = self._read_body(place)
        if body is not None:
            if len(self._kept) == _KEPT:
                self._kept.clear()
            self._kept[place] = body
        return body

    def read_again(self, place: Location) -> MemoryBody | None:
        """Return a body, which is kept no longer."""
        return self._kept.pop(place, None) or self._read_body(place)

    def forget(self) -> None:
        """Keep none."""
        self._kept.clear()
