"""Several voices in one batch: what an adapter writes or withdraws at once, each record under its own origin."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, cast

from muniment.events import AlreadyDone, BadArgument, Draft, Moment, Refused, format_id, parse_data, parse_id
from muniment.gate import MemoryFields
from muniment.projections import LATEST, Memory

from ._answers import BatchReceipt, Record
from ._session import Session
from ._telemetry import spanned
from ._views import Views


class Said(NamedTuple):
    """One record of a batch, and the session that says it."""

    voice: Session
    content: str
    fields: MemoryFields


def write_together(verb: str, items: Sequence[Said], *, check: Callable[[Moment], None] | None = None) -> BatchReceipt:
    """
    Record several memories in one batch, all or nothing; the sessions are of one store and of one scope.

    `check` runs under the writer lock, after catching up, and stops the batch by raising.
    """
    keyed = any(said.fields.get("about") is not None for said in items)
    operation = "update_memory" if verb == "supersede" else "upsert_memory" if keyed else "create_memory"
    texts = [said.content for said in items]
    with spanned(verb, operation, items[0].voice, written=texts) as count:
        count(len(items))
        requests = []
        for index, (voice, content, fields) in enumerate(items):
            try:
                requests.append((index, voice._request(voice._handle(), content, fields)))
            except Refused as error:
                voice._count_refusal(verb, error)
                raise
        return items[0].voice._write_requests(verb, requests, [], skip=False, check=check)


def retire_together(items: Sequence[tuple[Session, str]], *, reason: str, keep_out: bool = True) -> list[str]:
    """
    Retire several memories in one batch, each by the session beside its id, and return the ids that were retired.

    What is retired or erased already is left out. With `keep_out=False` their validity ends, and their values may be
    said again by anybody: that something was taken back does not make it false.

    Raises:
        RankTooLow: a memory has more authority than its session; none is retired.
    """
    if not items:
        return []
    engine, scope = items[0][0]._engine, items[0][0].scope
    words = items[0][0]._words(reason)
    raised: list[Refused] = []
    done: list[str] = []

    def plan(at: Moment) -> list[Draft]:
        raised.clear()
        done.clear()
        engine.admission.check_scope(scope)
        drafts: list[Draft] = []
        for voice, identity in items:
            handle, end = voice._handle(), None if keep_out else at.recorded_at
            try:
                drafts.append(engine.deeds.retire(handle, parse_id(identity), at, reason=words, valid_to=end))
            except AlreadyDone:
                continue
            except Refused as error:
                raised.append(error)
                counted = engine.admission.refusal(handle, "retire", error, at)
                return [] if counted is None else [counted]
            done.append(identity)
        return drafts

    with spanned("retire", "update_memory", items[0][0]) as count:
        count(len(items))
        with engine.mutex:
            engine.append(plan)
        if raised:
            raise raised[0]
        # What was retired already is left out.
        count(len(done))
        return done


def forget_together(session: Session, ids: Sequence[str], *, reason: str) -> None:
    """
    Forget several memories at once.

    Raises:
        NeedsGrant: they have more authority than the session; a request was filed, and nothing was erased.
    """
    try:
        session.forget(*ids, reason=reason)
    except BadArgument as error:
        if error.facts.get("argument") != "reason":
            raise
        # A reason stays for ever, so it may not hold what is forgotten, and somebody may have said just this word.
        session.forget(*ids, reason=uuid.uuid4().hex)


def newest(session: Session, wanted: Callable[[Record], bool], limit: int | None, *, live: bool = True) -> list[Record]:
    """Return the newest records of the session's own scope that are wanted, in log order; only live ones by default."""
    engine = session._engine
    with engine.mutex:
        engine.refresh()
        at, state = session._point(None, None), engine.state
        views = Views(state)
        found: list[Record] = []
        for memory in reversed(state.register.rows.get(session.scope, ())):
            if limit is not None and len(found) >= limit:
                break
            if memory.erasure is None and (not live or state.is_live(memory, valid_at=at.valid_at)):
                record = views.record(memory, at)
                if wanted(record):
                    found.append(record)
        return found[::-1]


class Stated(NamedTuple):
    """The current value of a key with a certain attribute."""

    id: str
    subject: str
    content: str
    metadata: Mapping[str, object]


def stated(session: Session, attribute: str, known: dict[bytes, bool]) -> list[Stated]:
    """
    Return the current value of each key of the session's own scope that has the attribute, in log order.

    `known` remembers which keys have it, so that the others are read once and never again.
    """
    engine = session._engine
    with engine.mutex:
        engine.refresh()
        at, state = session._point(None, None), engine.state
        found: list[Stated] = []
        for belief in state.beliefs.keys([session.scope], valid_at=at.valid_at, known=at.known):
            memory, key = belief.memory, belief.memory.envelope.belief_key
            if key is None or not known.get(key, True) or not state.is_live(memory, valid_at=at.valid_at):
                continue
            body = state.read_memory(memory.place)
            if body is None:
                continue
            known[key] = body.attribute == attribute
            if known[key]:
                metadata = {} if body.metadata is None else cast("dict[str, object]", parse_data(body.metadata))
                found.append(Stated(format_id(memory.id), body.subject or "", body.content, metadata))
        return found


def last_said(session: Session, about: tuple[str, str]) -> str | None:
    """Return the id of what was last said of a key in the session's own scope, live or not; None if nothing was."""
    engine = session._engine
    with engine.mutex:
        engine.refresh()
        said = engine.state.register.keys.get((session.scope, engine.values.belief_key(*about)), [])
        return format_id(said[-1].id) if said else None


def holders(session: Session, about: tuple[str, str], at: Moment) -> list[Memory]:
    """Return what holds a key of the session's own scope at a moment; for a check under the writer lock."""
    state, key = session._engine.state, session._engine.values.belief_key(*about)
    found = state.beliefs.at_key(session.scope, key, valid_at=at.recorded_at, known=LATEST)
    return [belief.memory for belief in found]
