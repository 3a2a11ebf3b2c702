"""Roots of the log's tree at earlier sizes, computed from the log itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from muniment.events import CompactRange, Head, Log


class Roots:
    """Folds chain hashes, and keeps the root at each size that is asked for."""

    def __init__(self, sizes: Iterable[int], start: CompactRange | None = None) -> None:
        self._range = start or CompactRange()
        self._left = sorted({size for size in sizes if size >= self._range.size}, reverse=True)
        self.found: dict[int, bytes] = {}
        self._keep()

    def extend(self, chain: Sequence[bytes]) -> None:
        """Take in the chain hashes of the next events."""
        while self._left and self._left[-1] <= self._range.size + len(chain):
            count = self._left[-1] - self._range.size
            self._range.extend(chain[:count])
            chain = chain[count:]
            self._keep()
        if self._left:
            self._range.extend(chain)

    def _keep(self) -> None:
        while self._left and self._left[-1] == self._range.size:
            self.found[self._left.pop()] = self._range.root()


def roots_at(log: Log, sizes: Iterable[int], start: tuple[Head, CompactRange] | None = None) -> dict[int, bytes]:
    """
    Return the root at each size that the log reaches, reading it from its first event, or from a known place.

    Stops at damage, and leaves that in the log.
    """
    wanted = sorted(set(sizes))
    roots = Roots(wanted)
    if start is not None and wanted and wanted[0] >= start[0].seq and log.resume(start[0]):
        roots = Roots(wanted, start[1].copy())
    for located in log.read_new():
        roots.extend(located.frame.chain)
        if wanted and log.head.seq >= wanted[-1]:
            break
    return roots.found
