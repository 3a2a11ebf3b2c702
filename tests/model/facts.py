"""What a model keeps of a history: records, what befell them, refused values, signatures; all of it plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

FOREVER: Final = 1 << 70
"""Later than any instant and any sequence number."""
NEVER: Final = FOREVER + 1
EXTERNAL, AGENT, USER, SIGNED = range(4)

About = tuple[str, str]


class Speaker(NamedTuple):
    """Who speaks: the actor, where the words come from, and the rank that this gives."""

    actor: str
    origin: str
    rank: int


class Happening(NamedTuple):
    """What befell a record: `until` bounds a retirement, `by` is a successor's id."""

    seq: int
    what: str
    until: int = FOREVER
    by: str = ""


@dataclass(eq=False)
class Said:
    """One record as it was written. Intervals are half-open; a record without `about` stands for itself alone."""

    id: str
    seq: int
    scope: str
    speaker: Speaker
    rank: int
    text: str
    about: About | None
    value: str | None
    many: bool
    since: int
    until: int
    conditional: bool = False
    source: str | None = None
    parents: tuple[str, ...] = ()
    supersedes: str | None = None
    pending: bool = False
    recorded: int = 0
    happenings: list[Happening] = field(default_factory=list)
    erased: bool = False
    erased_seq: int = FOREVER

    @property
    def is_apart(self) -> bool:
        """Tell whether it is quarantined and was not released since."""
        moves = [h.what for h in self.happenings if h.what in ("quarantined", "released")]
        return moves[-1:] == ["quarantined"]

    def covers(self, instant: int) -> bool:
        """Tell whether the stated interval holds the instant."""
        return self.since <= instant < self.until

    def admitted(self, known: int) -> int:
        """Return the sequence number from which it counts, NEVER while it waits for a person."""
        approvals = [h.seq for h in self.happenings if h.what == "approved" and h.seq <= known]
        return min(approvals, default=NEVER) if self.pending else self.seq

    def has_lapsed(self, valid: int, known: int) -> bool:
        """Tell whether it waited for thirty days in vain."""
        return self.admitted(known) == NEVER and self.recorded + 30 * 86_400_000_000 <= valid

    def may_change(self, other: Said) -> bool:
        """Tell whether the record's origin has authority over another's."""
        return outranks(self.speaker.origin, self.rank, other)


@dataclass
class Refused:
    """A value that may not come back. `what` is ("text", text), ("value", about, value) or ("key", about)."""

    what: tuple[object, ...]
    scope: str
    forgotten: bool
    everyone: bool
    rank: int
    event: str
    lifted: bool = False

    def stops(self, what: tuple[object, ...], scope: str, rank: int) -> bool:
        """Tell whether it stops a write of that rank in that scope."""
        if self.lifted or what != self.what or not lies_in(scope, self.scope):
            return False
        if self.forgotten:
            return self.everyone or rank <= self.rank
        return rank < self.rank


@dataclass
class Linking:
    """A link, and when it was known to hold."""

    scope: str
    start: str
    end: str
    type: str
    seq: int
    since: int
    ended: int = NEVER


@dataclass
class Yes:
    """A signed confirmation of one action by one agent in one scope."""

    id: str
    scope: str
    agent: str
    argument: str
    uses: int
    signed: int
    expires: int
    spent: int = 0
    revoked: bool = False


@dataclass
class Never:
    """A prohibition of one action, in its scope and below."""

    id: str
    scope: str
    argument: str
    ended: bool = False


def outranks(origin: str, rank: int, other: Said) -> bool:
    """Tell whether an origin of some rank may change a record: an external one only what came from itself."""
    if rank == EXTERNAL and other.rank == EXTERNAL:
        return origin == other.speaker.origin
    return rank >= other.rank


def lies_in(inner: str, outer: str) -> bool:
    """Tell whether a scope is another or lies below it, segment by segment."""
    one, two = inner.split("/"), outer.split("/")
    return one[: len(two)] == two
