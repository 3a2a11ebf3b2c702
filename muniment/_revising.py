"""Writing a memory together with what it may contradict: proposals, links, and supersessions where asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from muniment.events import (
    BadArgument,
    Draft,
    Id,
    LinkType,
    Moment,
    RankTooLow,
    Refused,
    format_id,
)
from muniment.gate import Batch, Existing, MemoryRequest
from muniment.projections import LIVE, PROPOSED_FROM, Memory, PairModel, judge

from ._answers import Contradiction
from ._engine import Engine

ACTS: Final = ("off", "propose", "link", "supersede")
MODEL_FROM: Final = 0.5
"""The score of a user's own model from which a pair is proposed, unless the caller names another."""
CANDIDATES: Final = 16
"""How many of the nearest earlier memories are compared."""
_MODEL_SAYS: Final = "the given model says so"


class Found(NamedTuple):
    """An earlier memory that the new text may contradict."""

    id: bytes
    score: float
    reasons: tuple[str, ...]


class _Near(NamedTuple):
    id: bytes
    content: str
    cosine: float


def check_act(act: str) -> None:
    """Raise BadArgument for what cannot be done about a contradiction."""
    if act not in ACTS:
        raise BadArgument(argument="act", detail=f"expected one of {', '.join(ACTS)}, got `{act}`")


def find_contradicted(
    engine: Engine, request: MemoryRequest, model: PairModel | None, least: float | None
) -> tuple[list[Found], list[str]]:
    """
    Return the live memories of the request's scope that it may contradict, the likeliest first, and notes.

    The caller does not hold the mutex: models may have to work.
    """
    scope, text = request.handle.scope, request.body.content
    with engine.mutex:
        engine.refresh()
    vector = engine.dense.text_vector(text, [scope])
    if vector is None:
        return [], ["not compared with what was said before: there are no vectors"]
    with engine.mutex:
        engine.refresh()
        near = _nearest(engine, request, vector)
    found = [Found(each.id, *judge(each.content, text, each.cosine)) for each in near]
    if model is None:
        bound = PROPOSED_FROM if least is None else least
        found = [each for each in found if each.score >= bound and each.reasons]
    else:
        bound = MODEL_FROM if least is None else least
        scores = model.scores([(each.content, text) for each in near]) if near else []
        found = [Found(f.id, float(s), (*f.reasons, _MODEL_SAYS)) for f, s in zip(found, scores, strict=True)]
        found = [each for each in found if each.score >= bound]
    return sorted(found, key=lambda each: (-each.score, each.id)), []


def _nearest(engine: Engine, request: MemoryRequest, vector: NDArray[np.float32]) -> list[_Near]:
    state, scope = engine.state, request.handle.scope
    state.recall.absorb([scope])
    partition = state.recall.partition(scope)
    if partition is None or partition.vectors is None:
        return []
    upto = len(partition.rows)
    live = state.beliefs.mask(scope, valid_at=engine.now(), known=state.seq, statuses=LIVE)
    rows, cosines = partition.vectors.search(vector, allowed=live, upto=upto, k=CANDIDATES)
    found: list[_Near] = []
    for row, cosine in zip(rows.tolist(), cosines.tolist(), strict=True):
        memory = partition.rows[row]
        body = state.read_memory(memory.place)
        # Another value of the same key needs no guess: it is a revision.
        if body is None or (request.belief_key is not None and memory.envelope.belief_key == request.belief_key):
            continue
        found.append(_Near(memory.id, body.content, cosine))
    return found


class Revising:
    """One memory on its way into the log, with what it may contradict."""

    def __init__(self, engine: Engine, request: MemoryRequest, found: Sequence[Found], act: str) -> None:
        self._engine, self._request, self._found, self._act = engine, request, found, act
        self.outcome: Draft | Existing | None = None
        self.contradicts: list[Contradiction] = []
        self.refused: Refused | None = None

    def plan(self, at: Moment) -> list[Draft]:
        """Return the memory and what goes with it, as one batch; what is no longer live is passed over."""
        self.contradicts, self.refused = [], None
        admission, handle = self._engine.admission, self._request.handle
        try:
            self.outcome = admission.admit_memory(self._request, at, Batch(at))
        except Refused as error:
            self.refused = error
            counted = admission.refusal(handle, "remember", error, at)
            return [] if counted is None else [counted]
        if isinstance(self.outcome, Existing):
            return [] if self.outcome.note is None else [self.outcome.note]
        there = [(each, self._live(each, at)) for each in self._found]
        standing = [(each, memory) for each, memory in there if memory is not None]
        superseded = None
        if self._act == "supersede":
            self.outcome, superseded = self._supersede(self.outcome, standing, at)
        drafts = [self.outcome]
        for each, memory in standing:
            drafts += self._proposed(each, memory, self.outcome.id, at)
            linked = self._act != "propose"
            self.contradicts.append(
                Contradiction(
                    id=format_id(each.id),
                    score=round(each.score, 4),
                    reasons=each.reasons,
                    linked=linked,
                    superseded=each.id == superseded,
                )
            )
        return drafts

    def _live(self, found: Found, at: Moment) -> Memory | None:
        memory = self._engine.state.register.memories.get(found.id)
        if memory is None or memory.erasure is not None:
            return None
        return memory if self._engine.state.is_live(memory, valid_at=at.recorded_at) else None

    def _supersede(
        self, draft: Draft, standing: Sequence[tuple[Found, Memory]], at: Moment
    ) -> tuple[Draft, bytes | None]:
        """Return the draft, or it as successor of the likeliest unkeyed memory that the speaker may change."""
        for each, memory in standing:
            if memory.envelope.belief_key is not None:
                continue
            request = msgspec.structs.replace(self._request, supersedes=each.id)
            try:
                successor = self._engine.admission.admit_memory(request, at, Batch(at))
            except RankTooLow:
                continue
            if isinstance(successor, Draft):
                return successor, each.id
        return draft, None

    def _proposed(self, found: Found, memory: Memory, new: Id, at: Moment) -> list[Draft]:
        deeds, handle, link = self._engine.deeds, self._request.handle, LinkType.CONTRADICTS
        reason = "; ".join(found.reasons)
        drafts = [deeds.propose(handle, new, memory, link, at, score=found.score, reason=reason)]
        if self._act != "propose":
            drafts.append(deeds.link_new(handle, new, Id(memory.id), link, at))
        return drafts
