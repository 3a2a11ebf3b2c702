"""A store of any size, made quickly through the door: words from a fixed vocabulary, in proportions that are stated."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from muniment._engine import Engine, Options
from muniment._version import VERSION
from muniment.events import (
    Decided,
    Draft,
    Envelope,
    Linked,
    MemoryBody,
    Moment,
    Quarantined,
    Rank,
    Remembered,
    Retired,
    Superseded,
    WordsBody,
    create_store,
    new_id,
)
from muniment.events._disk import Disk

SCOPES: Final = ("acme/main", "acme/side", "acme/side/deep", "globex")
"""Three quarters of the events are of the first."""
_BATCH: Final = 1_000
_SECOND: Final = 1_000_000
_MINUTE: Final = 60 * _SECOND
_VOCABULARY: Final = 20_000


class Maker:
    """Drafts of a made-up life: notes, keyed facts, supersessions, retirements, links, decisions, quarantines."""

    def __init__(self, engine: Engine, seed: int) -> None:
        self._engine, self._random = engine, random.Random(seed)
        self._values = engine.values
        self._words = [f"{_syllables(number)}" for number in range(_VOCABULARY)]
        self._recent: dict[str, list[bytes]] = {scope: [] for scope in SCOPES}
        self._count = 0

    def fill(self, n: int) -> Iterator[int]:
        """Append events until there are `n`, in batches, yielding how many there are after each."""
        while self._engine.head.seq < n:
            size = min(_BATCH, n - self._engine.head.seq)
            self._engine.append(lambda at, size=size: [self._draft(at) for _ in range(size)])  # type: ignore[misc]  # the default binds the loop's size
            yield self._engine.head.seq

    def text(self) -> str:
        """Return a sentence of eight to twenty words, of which few are common and most are rare."""
        drawn = self._random
        count = drawn.randint(8, 20)
        return " ".join(self._words[int(_VOCABULARY ** drawn.random()) - 1] for _ in range(count))

    def keyed(self, number: int) -> tuple[str, str]:
        """Return the subject and attribute of key `number`."""
        return f"subject {number // 4}", f"attribute {number % 4}"

    def _draft(self, at: Moment) -> Draft:
        drawn = self._random
        scope = SCOPES[0] if drawn.random() < 0.75 else drawn.choice(SCOPES[1:])
        recent = self._recent[scope]
        dice = drawn.random()
        self._count += 1
        if dice < 0.90 or len(recent) < 8:
            return self._memory(scope, at, keyed=dice < 0.18, after=None)
        identity = recent[drawn.randrange(len(recent))]
        if dice < 0.93:
            return self._memory(scope, at, keyed=False, after=identity)
        if dice < 0.95:
            return self._plain(Retired, scope, at, target=identity, tombstones=(), body=False)
        if dice < 0.97:
            other = recent[drawn.randrange(len(recent))]
            return self._plain(
                Linked, scope, at, start=identity, end=other, link="relates", valid_from=at.recorded_at, body=False
            )
        if dice < 0.99:
            return self._plain(
                Decided, scope, at, use="external", allowed=False, reasons=("no_evidence",),
                evidence=((identity, "supports"),), confirmation=None, prohibition=None, policy="0" * 16,
                at_seq=at.first_seq - 1, decided_at=at.recorded_at, body=False,
            )  # fmt: skip
        return self._plain(Quarantined, scope, at, targets=(identity,), body=False)

    def _memory(self, scope: str, at: Moment, *, keyed: bool, after: bytes | None) -> Draft:
        drawn, values = self._random, self._values
        recent = self._recent[scope]
        content = self.text()
        subject = attribute = None
        belief_key = value_key = None
        if keyed:
            subject, attribute = self.keyed(drawn.randrange(max(1, self._count // 16)))
            belief_key = values.belief_key(subject, attribute)
            value_key = values.value_key(belief_key, content)
        kind = Remembered if after is None else Superseded
        envelope = kind(
            scope=scope,
            actor="agent:maker" if drawn.random() < 0.5 else "user",
            origin="agent:maker" if drawn.random() < 0.5 else "user",
            rank=Rank.USER,
            command_id=f"maker-{self._count}" if drawn.random() < 0.5 else None,
            payload_key=values.payload_key(content.encode()),
            kind="fact" if keyed else "note",
            provenance="observation",
            valid_from=at.recorded_at,
            valid_to=at.recorded_at + 3600 * _SECOND if drawn.random() < 0.02 else None,
            text_key=values.text_key(content),
            form=1,
            belief_key=belief_key,
            value_key=value_key,
            derived_from=(drawn.choice(recent),) if recent and drawn.random() < 0.1 else (),
            recalled=tuple({drawn.choice(recent) for _ in range(4)}) if recent and drawn.random() < 0.1 else (),
            supersedes=after,
        )
        identity = new_id(at.recorded_at)
        recent.append(identity)
        if len(recent) > 512:
            del recent[:256]
        tags = ("maker",) if drawn.random() < 0.1 else ()
        body = MemoryBody(content=content, subject=subject, attribute=attribute, tags=tags)
        return Draft(id=identity, envelope=envelope, body=body)

    def _plain(self, kind: type[Envelope], scope: str, at: Moment, *, body: bool, **fields: object) -> Draft:
        envelope = kind(scope=scope, actor="user", origin="user", rank=int(Rank.USER), **fields)  # type: ignore[arg-type]  # by kind
        return Draft(id=new_id(at.recorded_at), envelope=envelope, body=WordsBody(reason="made up") if body else None)


def make_store(path: Path, n: int, *, until: int, seed: int = 1) -> Engine:
    """Return the open engine of a new store with `n` events in it, a thousand a minute, the last ones at `until`."""
    start = until - (n // _BATCH + 2) * _MINUTE
    ticks = iter(range(start, until + 100 * n * _MINUTE, _MINUTE))
    options = Options(clock=lambda: min(next(ticks), until))
    engine = Engine(create_store(path, Disk(), start), options, VERSION)
    for _ in Maker(engine, seed).fill(n):
        pass
    return engine


def _syllables(number: int) -> str:
    consonants, vowels = "bdfgklmnprstvz", "aeiou"
    parts: list[str] = []
    number += 70
    while number:
        number, rest = divmod(number, 70)
        parts.append(consonants[rest // 5] + vowels[rest % 5])
    return "".join(parts)
