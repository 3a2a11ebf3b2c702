"""What the public calls return: frozen values with ids as text and times as aware UTC datetimes."""

from __future__ import annotations

import base64
from datetime import date, datetime
from typing import TypeAlias, cast

import msgspec

from muniment.events import Data, format_instant, parse_instant

About: TypeAlias = tuple[str, str]


class Answer(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Something that was asked for."""

    def to_dict(self) -> dict[str, object]:
        """Return the answer as JSON-ready data: times as ISO 8601 with `Z`, bytes as base64."""
        return cast("dict[str, object]", jsonable(msgspec.structs.asdict(self)))


class Receipt(Answer, frozen=True, kw_only=True):
    """
    Proof that something is in the log. `repeated` when it was there before, and nothing was written.

    `status` is that of the memory that was written, else what was done: `retired`, `confirmed`, `quarantined`.
    """

    id: str
    seq: int
    recorded_at: datetime
    hash: str
    status: str
    repeated: bool = False


class Refusal(Answer, frozen=True, kw_only=True):
    """One item of a batch that was not admitted, and why."""

    index: int
    error: str
    message: str
    hint: str


class BatchReceipt(list[Receipt]):
    """The receipts of one batch, in the order of its items, and what was refused of it."""

    def __init__(self, receipts: list[Receipt], refused: list[Refusal]) -> None:
        super().__init__(receipts)
        self.refused = refused


class ErasureReceipt(Answer, frozen=True, kw_only=True):
    """
    What a forget erased, without the value. With `dry_run` what it would erase.

    `derived` were erased because they derive from `asked`; `elsewhere` derive from them in scopes beyond the caller's,
    and were left. `already` were named too, and had been erased before. `kept` are the ids of records that hold the
    value and stay: every prohibition, what has more authority than the one who forgot (a user's confirmation, another
    agent's decision), and memories that quote it and took its place or were written after recalling it.
    """

    id: str | None
    seq: int | None
    recorded_at: datetime | None
    hash: str | None
    status: str
    scope: str
    by: str
    reason: str | None
    asked: tuple[str, ...]
    derived: tuple[str, ...]
    elsewhere: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    already: tuple[str, ...] = ()
    tombstones: int = 0
    dry_run: bool = False
    repeated: bool = False

    @property
    def erased(self) -> tuple[str, ...]:
        """Every id that was erased."""
        return (*self.asked, *self.derived)


class Contradiction(Answer, frozen=True, kw_only=True):
    """An earlier memory that a new one may contradict: how likely, why, and what was done about it."""

    id: str
    score: float
    reasons: tuple[str, ...]
    linked: bool
    superseded: bool


class Revision(Answer, frozen=True, kw_only=True):
    """The receipt of a memory, what it may contradict, the likeliest first, and notes on what was not compared."""

    receipt: Receipt
    contradicts: tuple[Contradiction, ...]
    notes: tuple[str, ...]


class ProposalView(Answer, frozen=True, kw_only=True):
    """A relation between two memories that was proposed. `reason` is None once the earlier one was forgotten."""

    id: str
    seq: int
    recorded_at: datetime
    actor: str
    start: str
    end: str
    type: str
    score: float
    reason: str | None


class Record(Answer, frozen=True, kw_only=True):
    """
    A memory as it stands at an instant. Of an erased one only the stub is left: content and words are None.

    So it is of one whose bytes were damaged, in a store that was opened for reading; `unreadable` says where.
    """

    id: str
    content: str | None
    status: str
    kind: str
    about: About | None
    value: Data
    origin: str
    rank: str
    provenance: str
    source: str | None
    tags: tuple[str, ...]
    metadata: dict[str, Data]
    valid_from: datetime
    valid_to: datetime | None
    recorded_at: datetime
    seq: int
    scope: str
    actor: str
    importance: float | None
    applies_when: str | None
    reason: str | None
    derived_from: tuple[str, ...]
    supersedes: str | None
    superseded_by: str | None
    many: bool
    erased_at: datetime | None = None
    erased_by: str | None = None
    erased_why: str | None = None
    unreadable: str | None = None


class Hit(Record, frozen=True, kw_only=True):
    """
    A memory that was recalled, with the parts of its score and its rank in each arm, counted from 1.

    `word_score` is its BM25 score, `dense_score` its cosine, `near_score` what its conversation adds.
    Each arm brings its best, at least 40, and ranks those: the rank is None of what something else brought.
    """

    score: float
    word_score: float | None
    dense_score: float | None
    word_rank: int | None
    dense_rank: int | None
    near_score: float
    why: str


class BeliefView(Record, frozen=True, kw_only=True):
    """The value of a key, with what disputes it and what of equal rank it displaced."""

    disputes: tuple[Record, ...]
    conflicts: tuple[Record, ...]


class LinkView(Answer, frozen=True, kw_only=True):
    """A typed link that holds at the instant asked about."""

    start: str
    end: str
    type: str
    depth: int
    valid_from: datetime
    valid_to: datetime | None
    recorded_at: datetime


class EvidenceView(Answer, frozen=True, kw_only=True):
    """One cited memory, and what the guard made of it. What names no memory stands as it was typed: `not_found`."""

    id: str
    verdict: str


class Decision(Answer, frozen=True, kw_only=True):
    """
    The guard's verdict. `id` is None for a dry run and for uses that are not recorded.

    `request` is what a user can sign so that the same action is allowed next time: see `muniment confirm`.
    """

    allowed: bool
    use: str
    reasons: tuple[str, ...]
    supporting: tuple[str, ...]
    excluded: tuple[EvidenceView, ...]
    needed: tuple[str, ...]
    request: str | None
    id: str | None
    seq: int | None
    recorded_at: datetime | None
    confirmation: str | None
    prohibition: str | None
    policy: str
    at_seq: int
    decided_at: datetime
    repeated: bool = False


class Change(Answer, frozen=True, kw_only=True):
    """
    One difference between two moments: added, revised, retired or forgotten.

    Of what ended in another way `change` says how: `expired`, or the status that it has now, such as `quarantined`.
    """

    change: str
    id: str
    about: About | None
    old: Record | None
    new: Record | None


class Briefing(Answer, frozen=True, kw_only=True):
    """What a session should start with."""

    scope: str
    beliefs: tuple[BeliefView, ...]
    constraints: tuple[Record, ...]
    commitments: tuple[Record, ...]
    disputed: tuple[Record, ...]
    pending: tuple[Record, ...]


class Verification(Answer, frozen=True, kw_only=True):
    """
    What `verify` checked and found. `findings` name the first bad event; `unchecked` says what it could not tell.

    `anchor` is None without one; else `extends`, `truncated`, `forked`, `foreign` or `not comparable`.
    """

    ok: bool
    events: int
    head: str
    findings: tuple[str, ...]
    unchecked: tuple[str, ...]
    anchor: str | None = None


class RebuildReport(Answer, frozen=True, kw_only=True):
    """
    What a rebuild did, or a check found: digests of the live projections and of the new ones, which must be equal.

    `start` is `origin`, `partial` (the rest of a rebuild that was interrupted) or `snapshot`, `resumed_after` the last
    event that was not folded again, and `embedded` how many vectors were made.
    """

    ok: bool
    events: int
    seconds: float
    before: dict[str, str]
    after: dict[str, str]
    projections: tuple[str, ...] = ()
    start: str = "origin"
    resumed_after: int = 0
    embedded: int = 0


def jsonable(value: object) -> object:
    """Return data that JSON can carry."""
    if isinstance(value, datetime):
        return format_instant(parse_instant(value))
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, msgspec.Struct):
        return jsonable(msgspec.structs.asdict(value))
    if isinstance(value, dict):
        return {str(key): jsonable(item) for key, item in cast("dict[object, object]", value).items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in cast("list[object]", value)]
    return value
