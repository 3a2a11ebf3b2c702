"""What a session reaches: its own scope, and those that `reads=` lists."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import cast

import msgspec

from muniment.events import STORE_SCOPE, covers, parse_scope
from muniment.gate import check_list


class Subtree(msgspec.Struct, frozen=True):
    """A scope and all below it, in `reads=`: the explicit exception to reading exactly what is named."""

    scope: str

    def __post_init__(self) -> None:
        parse_scope(self.scope)


Reads = Sequence[str | Subtree]


class Reach(msgspec.Struct, frozen=True):
    """A session's own scope and those that it reads, as a question about a scope's name."""

    scope: str
    reads: tuple[str | Subtree, ...]

    def __call__(self, scope: str) -> bool:
        """Tell whether something in a scope bears on what the session reads."""
        if scope in (self.scope, STORE_SCOPE):
            return True
        return any(covers(r.scope, scope) if isinstance(r, Subtree) else r == scope for r in self.reads)


def check_reads(reads: Reads) -> tuple[str | Subtree, ...]:
    """Return the scopes that a session may read beside its own, each checked."""
    checked = check_list(cast("Sequence[str]", reads), "reads")
    return tuple(r if isinstance(r, Subtree) else parse_scope(r) for r in cast("Sequence[str | Subtree]", checked))


def expand_reads(scope: str, reads: Sequence[str | Subtree], known: Collection[str]) -> list[str]:
    """Return the scopes to read, each once: the session's own, those listed, and those below a `Subtree`."""
    found = {scope: None}
    for read in reads:
        if isinstance(read, Subtree):
            found.update({s: None for s in sorted(known) if s and covers(read.scope, s)})
        else:
            found[read] = None
    return list(found)
