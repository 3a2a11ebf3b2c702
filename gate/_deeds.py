"""Admission of deeds on what is there: retire, forget, link, quarantine. Each returns the event to write."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from muniment.events import (
    AlreadyDone,
    BadArgument,
    BadTime,
    DerivedRecords,
    Draft,
    Forgotten,
    Id,
    Linked,
    Moment,
    NotFound,
    Proposed,
    Quarantined,
    Rank,
    RankTooLow,
    Released,
    Requested,
    Retired,
    Status,
    TombstoneEntry,
    Unlinked,
    ValueKeys,
    covers,
    format_id,
    format_instant,
    new_id,
)
from muniment.projections import FAR_FUTURE, LATEST, Memory, Projections, is_quarantined, retired_from

from ._admission import Admission, words_draft
from ._handles import Handle
from ._holding import Holding, decision_words, find_holding, repeats, words_of
from ._requests import current_form

OPERATOR: Final = "operator"
_LATER: Final = "a later instant; without `valid_to` it ends now, also where it has not begun"


class Erasing(msgspec.Struct, frozen=True, kw_only=True):
    """What a forget would take: asked-for records and those of the same value, and what derives from them."""

    asked: tuple[Memory, ...]
    derived: tuple[Memory, ...]
    elsewhere: tuple[Memory, ...]
    """Derived records of scopes that the caller has no authority in; they are left alone, and named."""
    stays: tuple[Memory, ...] = ()
    """Records above the caller that say the same as a derived one; they are left alone, and named."""
    keys: tuple[bytes, ...] = ()
    """The belief keys of what was named, and of what gives its value or text."""

    @property
    def all(self) -> tuple[Memory, ...]:
        """Every record that is erased."""
        return (*self.asked, *self.derived)


class Deeds:
    """The checks of deeds, over the projections of one process."""

    def __init__(self, state: Projections, admission: Admission, values: ValueKeys) -> None:
        self._state, self._admission, self._values = state, admission, values
        self._decision_words = decision_words(state)

    # --- retire, link -------------------------------------------------------------------------------------------------

    def retire(
        self, handle: Handle, identity: Id, at: Moment, *, reason: str, valid_to: int | None, imported: bool = False
    ) -> Draft:
        """
        Return the event that ends a memory's validity now, or at `valid_to`.

        With `imported` that may be where its validity begins, of what is said never to have held, or after the end
        that was stated, of what was withdrawn later.

        Raises:
            NotFound, RankTooLow. BadTime: it would end before it begins, or as it does.
            AlreadyDone: it is retired, or ends by then in any case.
        """
        memory = self._admission.own(identity, handle)
        standing = self._state.standing(memory, valid_at=at.recorded_at)
        if standing.status in (Status.ERASED, Status.RETIRED, Status.REJECTED):
            raise AlreadyDone(id=format_id(identity), status=standing.status.value)
        self._admission.check_rank(handle, handle.rank, memory, "retire")
        begins = memory.envelope.valid_from
        if valid_to is not None and valid_to <= begins and not (imported and valid_to == begins):
            detail = f"it is not after {format_instant(begins)}, when the memory begins"
            raise BadTime(given=format_instant(valid_to), detail=detail, hint=_LATER)
        hint = "its end stands, and can only be made earlier"
        if valid_to is not None and (ended := retired_from(memory, LATEST)) <= valid_to:
            raise AlreadyDone(id=format_id(identity), status=f"retired from {format_instant(ended)} on", hint=hint)
        if valid_to is not None and memory.valid_until <= valid_to and not imported:
            stated = format_instant(memory.valid_until)
            raise AlreadyDone(id=format_id(identity), status=f"said to end at {stated}", hint=hint)
        envelope = Retired(
            scope=handle.scope,
            actor=handle.actor,
            origin=handle.origin,
            rank=handle.rank,
            principal=handle.principal,
            target=identity,
            valid_to=valid_to,
            tombstones=self.tombstones_of([memory]) if valid_to is None else (),
        )
        return words_draft(envelope, at, reason, slot=memory.slot)

    def link(self, handle: Handle, start: Id, end: Id, link: str, at: Moment) -> Draft:
        """Return the event that links one of the scope's memories to another that the handle can see."""
        self._admission.own(start, handle)
        self._admission.visible(end, handle)
        return self.link_new(handle, start, end, link, at)

    def link_new(self, handle: Handle, start: Id, end: Id, link: str, at: Moment) -> Draft:
        """Return the event that links a memory of the same batch to one that the caller has looked up."""
        envelope = Linked(
            scope=handle.scope, actor=handle.actor, origin=handle.origin, rank=handle.rank, principal=handle.principal,
            start=start, end=end, link=link, valid_from=at.recorded_at,
        )  # fmt: skip
        return Draft(id=new_id(at.recorded_at), envelope=envelope)

    def propose(
        self, handle: Handle, start: Id, end: Memory, link: str, at: Moment, *, score: float, reason: str
    ) -> Draft:
        """Return the event that proposes a link from a memory that is being written to one of the same scope."""
        self._admission.own(end.id, handle)
        envelope = Proposed(
            scope=handle.scope, actor=handle.actor, origin=handle.origin, rank=handle.rank, principal=handle.principal,
            start=start, end=end.id, link=link, score=score,
        )  # fmt: skip
        # Under the key of what it is about: the new memory's own key is not made yet.
        return words_draft(envelope, at, reason, slot=words_slot(end))

    def unlink(self, handle: Handle, start: Id, end: Id, link: str, at: Moment) -> Draft:
        """Return the event that ends a link; it needs rank over the memory that it starts from."""
        memory = self._admission.own(start, handle)
        self._admission.check_rank(handle, handle.rank, memory, "unlink")
        found = [
            item
            for item in self._state.register.links_at.get(start, [])
            if (item.start, item.end, item.type) == (start, end, link) and item.ended_seq == FAR_FUTURE
        ]
        if not found:
            raise NotFound(id=f"{format_id(start)} {link} {format_id(end)}")
        envelope = Unlinked(
            scope=handle.scope, actor=handle.actor, origin=handle.origin, rank=handle.rank, principal=handle.principal,
            start=start, end=end, link=link,
        )  # fmt: skip
        return Draft(id=new_id(at.recorded_at), envelope=envelope)

    # --- forget -------------------------------------------------------------------------------------------------------

    def erasing(self, handle: Handle | None, identities: Sequence[Id]) -> Erasing:
        """
        Return what forgetting these ids takes. Without a handle the operator asks, who sees every scope.

        Raises:
            NotFound: an id cannot be seen. AlreadyDone: all of it was erased before.
        """
        asked: dict[bytes, Memory] = {}
        erased: list[Id] = []
        seen = set[tuple[str, bytes | None]]()
        for identity in identities:
            memory = self._find(handle, identity)
            if memory.erasure is not None:
                erased.append(identity)
                continue
            asked |= self._equals([memory], seen)
        if erased and not asked:
            raise AlreadyDone(id=format_id(erased[0]), status="erased", hint="its receipt says when and why")
        return self._with_derived(handle, asked)

    def erasing_value(self, handle: Handle, text: str, about: tuple[str, str] | None) -> Erasing:
        """Return what forgetting a value takes: the records of the scope that hold it, as text or as value."""
        asked: dict[bytes, Memory] = {}
        text_key = self._values.text_key(text)
        for memory in self._state.register.texts.get((handle.scope, text_key), ()):
            if memory.erasure is None:
                asked[memory.id] = memory
        for (scope, belief_key), statements in self._state.register.keys.items():
            if scope != handle.scope or (about is not None and belief_key != self._values.belief_key(*about)):
                continue
            value_key = self._values.value_key(belief_key, text)
            for memory in statements:
                if memory.envelope.value_key == value_key and memory.erasure is None:
                    asked[memory.id] = memory
        return self._with_derived(handle, asked)

    def forget(
        self,
        handle: Handle | None,
        erasing: Erasing,
        at: Moment,
        *,
        scope: str,
        reason: str,
        cascade: bool,
        block_key: bool = False,
        extra: Sequence[TombstoneEntry] = (),
        texts: Sequence[str] = (),
    ) -> Draft:
        """
        Return the event that erases and prevents; the caller's rank must reach everything it takes.

        `texts` are values that are forgotten though perhaps no memory holds them.

        Raises:
            DerivedRecords: `cascade=False`, and other memories derive from these.
            RankTooLow: a record is above the handle.
            BadArgument: the reason repeats what is forgotten, or a key is to be blocked and there is none.
        """
        if erasing.derived and not cascade:
            raise DerivedRecords(count=len(erasing.derived), ids=[format_id(m.id) for m in erasing.derived])
        if block_key and not erasing.keys:
            raise BadArgument(argument="block", detail="none of these states the value of a key")
        if handle is not None:
            for memory in erasing.all:
                self.check_may_forget(handle, memory)
        self.check_reason(reason, erasing.all, texts)
        holding = self.holding(handle, erasing, scope, texts)
        tombstones = list(dict.fromkeys((*self.tombstones_of(erasing.all), *extra)))
        tombstones += [("key", key, key, current_form()) for key in erasing.keys if block_key]
        rank = Rank.SIGNED if handle is None else handle.rank
        envelope = Forgotten(
            scope=scope,
            actor=OPERATOR if handle is None else handle.actor,
            origin=OPERATOR if handle is None else handle.origin,
            rank=rank,
            principal=None if handle is None else handle.principal,
            targets=tuple((memory.id, memory.slot) for memory in erasing.all),
            tombstones=tuple(dict.fromkeys(tombstones)),
            everyone=handle is None or handle.rank >= Rank.USER,
            reason=reason,
            key_epoch=at.key_epoch,
            other_slots=holding.slots,
            kept=holding.kept,
            elsewhere=tuple(memory.id for memory in erasing.elsewhere),
        )
        return Draft(id=new_id(at.recorded_at), envelope=envelope)

    def holding(self, handle: Handle | None, erasing: Erasing, scope: str, texts: Sequence[str] = ()) -> Holding:
        """Return the decisions and confirmations that would go with the value, and what holds it and would stay."""
        found = find_holding(self._state, self._decision_words, handle, erasing.all, scope, texts)
        kept = dict.fromkeys((*(memory.id for memory in erasing.stays), *found.kept))
        return Holding(slots=found.slots, kept=tuple(kept))

    def check_reason(self, reason: str, memories: Iterable[Memory], texts: Sequence[str] = ()) -> None:
        """Raise BadArgument when a reason that outlives the memories repeats what they say."""
        if any(repeats(text, reason) for text in texts):
            raise BadArgument(argument="reason", detail="it repeats what is to be forgotten")
        for memory in memories:
            body = self._state.read_memory(memory.place)
            if body is not None and any(repeats(text, reason) for text in words_of(body)):
                raise BadArgument(argument="reason", detail="it repeats what is to be forgotten")

    def request_erasure(self, handle: Handle, erasing: Erasing, at: Moment, reason: str) -> Draft:
        """Return the event by which an agent asks for what it may not do itself."""
        envelope = Requested(
            scope=handle.scope, actor=handle.actor, origin=handle.origin, rank=handle.rank, principal=handle.principal,
            verb="forget", targets=tuple(memory.id for memory in erasing.all),
        )  # fmt: skip
        # Under the key of what it asks about, which it may well quote.
        return words_draft(envelope, at, reason, slot=erasing.all[0].slot if erasing.all else None)

    def waiting_requests(self, handle: Handle, erasing: Erasing) -> list[bytes]:
        """Return the requests in which this actor has asked for just this already, and nobody has answered."""
        targets = tuple(memory.id for memory in erasing.all)
        return [
            request.id
            for request in self._state.register.requests.values()
            if (request.scope, request.actor, request.verb) == (handle.scope, handle.actor, "forget")
            and request.decided_seq == FAR_FUTURE
            and request.targets == targets
        ]

    def check_may_forget(self, handle: Handle, memory: Memory) -> None:
        """Raise RankTooLow when the handle may not erase the memory: an agent only its own and external records."""
        self._admission.check_rank(handle, handle.rank, memory, "forget")
        if handle.rank == Rank.AGENT == memory.envelope.rank and memory.envelope.actor != handle.actor:
            raise RankTooLow(actual="agent", verb="forget", needed="its own author", id=format_id(memory.id))

    def _equals(self, memories: Iterable[Memory], seen: set[tuple[str, bytes | None]]) -> dict[bytes, Memory]:
        """
        Return the unerased records of the memories' scopes that give the value or the text of one of them.

        What was looked for before is in `seen`, and not looked for again: a value may have been told very often.
        """
        register, found = self._state.register, list[Memory]()
        for memory in memories:
            scope, envelope = memory.scope, memory.envelope
            text, value = (scope, envelope.text_key), (scope, envelope.value_key)
            if text not in seen:
                found += register.texts.get((scope, envelope.text_key), ())
            if envelope.belief_key is not None and value not in seen:
                statements = register.keys.get((scope, envelope.belief_key), ())
                found += [m for m in statements if m.envelope.value_key == envelope.value_key]
                seen.add(value)
            seen.add(text)
        return {m.id: m for m in found if m.erasure is None}

    def tombstones_of(self, memories: Iterable[Memory]) -> tuple[TombstoneEntry, ...]:
        """Return the values of memories as tombstones: the whole text, and the value under its key."""
        entries: dict[TombstoneEntry, None] = {}
        for memory in memories:
            envelope = memory.envelope
            entries["text", envelope.text_key, None, envelope.form] = None
            if envelope.belief_key is not None and envelope.value_key is not None:
                entries["value", envelope.value_key, envelope.belief_key, envelope.form] = None
        return tuple(entries)

    def _with_derived(self, handle: Handle | None, named: dict[bytes, Memory]) -> Erasing:
        # What is refused from now on does not stay beside it: neither under other words of the same value, nor under
        # another key with the same words, nor as what happens to say the same as something derived.
        seen = set[tuple[str, bytes | None]]()
        asked = dict(named)
        while more := {i: m for i, m in self._equals(asked.values(), seen).items() if i not in asked}:
            asked |= more
        derived, elsewhere, stays = dict[bytes, Memory](), dict[bytes, Memory](), dict[bytes, Memory]()
        edge = dict(asked)
        while edge:
            here: dict[bytes, Memory] = {}
            for memory in self._state.register.descendants(edge):
                if memory.erasure is None and memory.id not in asked and memory.id not in derived:
                    reached = handle is None or covers(handle.scope, memory.scope)
                    (here if reached else elsewhere)[memory.id] = memory
            derived |= here
            equal: dict[bytes, Memory] = {}
            for identity, memory in self._equals((edge | here).values(), seen).items():
                if identity not in asked and identity not in derived:
                    (equal if self._may_forget(handle, memory) else stays)[identity] = memory
            asked |= equal
            edge = here | equal
        return Erasing(
            asked=tuple(sorted(asked.values(), key=lambda m: m.seq)),
            derived=tuple(sorted(derived.values(), key=lambda m: m.seq)),
            elsewhere=tuple(elsewhere.values()),
            stays=tuple(memory for identity, memory in stays.items() if identity not in derived),
            keys=tuple(
                dict.fromkeys(m.envelope.belief_key for m in named.values() if m.envelope.belief_key is not None)
            ),
        )

    def _may_forget(self, handle: Handle | None, memory: Memory) -> bool:
        if handle is None:
            return True
        try:
            self.check_may_forget(handle, memory)
        except RankTooLow:
            return False
        return True

    def _find(self, handle: Handle | None, identity: Id) -> Memory:
        if handle is not None:
            return self._admission.own(identity, handle)
        memory = self._state.register.memories.get(identity)
        if memory is None:
            raise NotFound(id=format_id(identity))
        return memory

    # --- quarantine ---------------------------------------------------------------------------------------------------

    def quarantine(self, identities: Sequence[Id], at: Moment, *, scope: str, reason: str, release: bool) -> Draft:
        """
        Return the one reversible event by which the operator sets memories apart, or puts them back.

        Raises:
            NotFound: an id names nothing. BadArgument: the reason, which outlives each of several, repeats one of them.
            AlreadyDone: each of them is set apart already, or none is.
        """
        memories = [self._find(None, identity) for identity in identities]
        self._check_moves(memories, release=release)
        self.check_reason(reason, memories if len(memories) > 1 else ())
        kind = Released if release else Quarantined
        envelope = kind(
            scope=scope, actor=OPERATOR, origin=OPERATOR, rank=Rank.EXTERNAL, targets=tuple(dict.fromkeys(identities))
        )
        return words_draft(envelope, at, reason, slot=words_slot(memories[0]) if len(memories) == 1 else None)

    def _check_moves(self, memories: Sequence[Memory], *, release: bool) -> None:
        # Of an erased one nothing is left to set apart, and its stub is no evidence in any case.
        if any(m.erasure is None and is_quarantined(m, LATEST) == release for m in memories):
            return
        first = memories[0]
        done = "erased" if first.erasure is not None else "released" if release else "quarantined"
        raise AlreadyDone(id=format_id(first.id), status=done)


def words_slot(memory: Memory) -> int | None:
    """Return the key under which words about a memory are sealed, so that they die with it; None once it is erased."""
    return memory.slot if memory.erasure is None else None
