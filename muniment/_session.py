"""A session: one speaker in one scope, made by host code. It reads, writes, and asks the guard."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import cast

import msgspec

from muniment.events import (
    BadArgument,
    Draft,
    Forgotten,
    Instant,
    InvalidInput,
    LinkType,
    Moment,
    NeedsGrant,
    RankTooLow,
    Refused,
    format_id,
    parse_id,
    parse_instant,
)
from muniment.gate import (
    Action,
    Erasing,
    MemoryFields,
    MemoryRequest,
    Use,
    Value,
    check_action,
    check_choice,
    check_flag,
    format_action,
)
from muniment.projections import Command, PairModel

from ._answers import BatchReceipt, Decision, ErasureReceipt, Receipt, Revision
from ._deciding import Said, check_cited, decided_draft, decision_of, name_unknown, question_of, recorded_decision
from ._erasing import check_forget, dry_receipt, erasure_receipt, name_erased_before, repeated_erasure
from ._once import append_once
from ._revising import check_act
from ._telemetry import traced
from ._writing import Unfit, Writing, fields_of_item, with_command

Planned = Callable[[Moment], Draft]


class Session(Writing):
    """Reads and writes as one speaker. Safe to use from several threads."""

    def via(self, origin: str) -> Session:
        """
        Return the same session for something that reached it from elsewhere, such as `web:https://...`.

        Raises:
            RankTooLow: the origin is not below this session's. SecretFound: it holds a credential.
        """
        speaker = self._speaker.via(origin)
        self._engine.preparer.name(origin, "origin")
        lowered = Session(self._engine, speaker, self._reads)
        # What was recalled just before may be where it came from: lowering a voice does not make it forget.
        lowered._recalled = self._recalled
        return lowered

    # --- memories -----------------------------------------------------------------------------------------------------

    @traced("remember", "create_memory")
    def remember(
        self,
        content: str,
        *,
        kind: str = "note",
        about: tuple[str, str] | None = None,
        value: Value = None,
        many: bool = False,
        provenance: str = "observation",
        importance: float | None = None,
        applies_when: str | None = None,
        valid_from: Instant | None = None,
        valid_to: Instant | None = None,
        source: str | None = None,
        derived_from: Sequence[str] = (),
        links: Sequence[tuple[str, str]] = (),
        metadata: Mapping[str, object] | None = None,
        tags: Sequence[str] = (),
        command_id: str | None = None,
    ) -> Receipt:
        """
        Record a memory, durably, and return its receipt.

        With `about=(subject, attribute)` it states the value of a key, and supersedes what its rank may change over
        its own valid interval; what it may not change it disputes. Valid time starts now unless said otherwise. What a
        live record says already, of all that interval, under that condition or under none, from the same origin, source
        and position, is not written again: `repeated`.

        Raises:
            InvalidInput: an argument cannot be stored exactly.
            Refused: a tombstone, a secret, a rank or a ceiling is in the way.
            CommandConflict: the command id was used with another payload.
        """
        fields: MemoryFields = {
            "kind": kind, "about": about, "value": value, "many": many, "provenance": provenance,
            "importance": importance, "applies_when": applies_when, "valid_from": valid_from, "valid_to": valid_to,
            "source": source, "derived_from": derived_from, "links": links, "metadata": metadata, "tags": tags,
            "command_id": command_id,
        }  # fmt: skip
        return self._write_memory("remember", content, fields)

    @traced("remember_many", "create_memory")
    def remember_many(
        self, items: Sequence[Mapping[str, object]], *, on_refusal: str = "fail", command_id: str | None = None
    ) -> BatchReceipt:
        """
        Record several memories in one batch: one lock, one fsync, all or nothing.

        Each item is a mapping of `remember`'s arguments. With `on_refusal="skip"` what is not admitted, a text that
        cannot be stored included, is left out and listed in `.refused`; otherwise the first refusal refuses the batch.
        `command_id` names item n `ID/n`, and each is carried out once; with more items or fewer, it is a conflict. Of
        what was refused nothing is kept under it, as in `remember`: sent again, it is judged again, and counted or
        written as that comes out. What was written is not written again.
        """
        if on_refusal not in ("fail", "skip"):
            raise BadArgument(argument="on_refusal", detail=f"expected fail or skip, got `{on_refusal}`")
        self._engine.preparer.command_id(command_id)
        unfit: list[tuple[int, Unfit]] = []
        requests: list[tuple[int, MemoryRequest]] = []
        handle = self._handle()
        if not isinstance(cast("object", items), Iterable):
            raise BadArgument(argument="items", detail="expected a list of mappings")
        items = list(items)
        for index, item in enumerate(items):
            content, fields = fields_of_item(item, index, command_id)
            try:
                requests.append((index, self._request(handle, content, fields)))
            except (Refused, InvalidInput) as error:
                if on_refusal == "fail":
                    self._count_refusal("remember", error)
                    raise
                unfit.append((index, error))
        skip = on_refusal == "skip"

        def check(_: Moment) -> None:
            if command_id is not None:
                self._check_same_batch(handle, command_id, len(items), skip=skip)

        return self._write_requests("remember", requests, unfit, skip=skip, check=check)

    @traced("supersede", "update_memory")
    def supersede(
        self,
        id: str,  # noqa: A002
        content: str,
        *,
        reason: str | None = None,
        kind: str | None = None,
        about: tuple[str, str] | None = None,
        value: Value = None,
        many: bool = False,
        provenance: str = "observation",
        importance: float | None = None,
        applies_when: str | None = None,
        valid_from: Instant | None = None,
        valid_to: Instant | None = None,
        source: str | None = None,
        derived_from: Sequence[str] = (),
        links: Sequence[tuple[str, str]] = (),
        metadata: Mapping[str, object] | None = None,
        tags: Sequence[str] = (),
        command_id: str | None = None,
    ) -> Receipt:
        """
        Record a memory in the place of another, over the new one's valid interval; kind and `about` are inherited.

        Raises:
            NotFound: no such memory in this scope. AlreadyDone: it is not current; the error names the successor.
            RankTooLow: it has more authority than this session.
        """
        fields: MemoryFields = {
            "kind": kind, "about": about, "value": value, "many": many, "provenance": provenance,
            "importance": importance, "applies_when": applies_when, "valid_from": valid_from, "valid_to": valid_to,
            "source": source, "derived_from": derived_from, "links": links, "metadata": metadata, "tags": tags,
            "command_id": command_id, "supersedes": self._full_id(id), "reason": reason,
        }  # fmt: skip
        return self._write_memory("supersede", content, fields)

    @traced("revise", "create_memory")
    def revise(
        self,
        content: str,
        *,
        act: str = "propose",
        least: float | None = None,
        model: PairModel | None = None,
        kind: str | None = None,
        about: tuple[str, str] | None = None,
        value: Value = None,
        many: bool = False,
        provenance: str = "observation",
        importance: float | None = None,
        applies_when: str | None = None,
        valid_from: Instant | None = None,
        valid_to: Instant | None = None,
        source: str | None = None,
        derived_from: Sequence[str] = (),
        links: Sequence[tuple[str, str]] = (),
        metadata: Mapping[str, object] | None = None,
        tags: Sequence[str] = (),
        command_id: str | None = None,
    ) -> Revision:
        """
        Record a memory as `remember` does, and what it may contradict of what this scope holds, in one batch.

        `act` says what is done about it: `propose` (an event with score and reasons), `link` (a `contradicts` link
        too), `supersede` (the likeliest unkeyed one that this session may change is superseded too), or `off`. From
        which score a pair counts is `least`; `model` judges pairs in place of the rules, see `load_pair_model`. It
        errs: see eval/RESULTS.md.

        Raises:
            What `remember` raises.
        """
        check_act(act)
        fields: MemoryFields = {
            "kind": kind, "about": about, "value": value, "many": many, "provenance": provenance,
            "importance": importance, "applies_when": applies_when, "valid_from": valid_from, "valid_to": valid_to,
            "source": source, "derived_from": derived_from, "links": links, "metadata": metadata, "tags": tags,
            "command_id": command_id,
        }  # fmt: skip
        if act == "off":
            return Revision(receipt=self._write_memory("remember", content, fields), contradicts=(), notes=())
        return self._revise(content, fields, act, least, model)

    @traced("retire", "update_memory")
    def retire(
        self,
        id: str,  # noqa: A002
        *,
        reason: str,
        valid_to: Instant | None = None,
        command_id: str | None = None,
    ) -> Receipt:
        """
        End a memory's validity now, or at `valid_to`; it stays in history. Its value is refused to lower ranks.

        Raises:
            NotFound, RankTooLow. BadTime: `valid_to` is not after its beginning.
            AlreadyDone: it is retired, or ends by `valid_to` in any case.
        """
        end = None if valid_to is None else parse_instant(valid_to)
        words = self._words(reason)
        target = parse_id(self._full_id(id))
        return self._deed(
            "retire",
            ("retire", target, words, end),
            command_id,
            lambda at: self._engine.deeds.retire(self._handle(), target, at, reason=words, valid_to=end),
        )

    def link(self, start: str, type: str, end: str, *, command_id: str | None = None) -> Receipt:  # noqa: A002
        """Link one of the scope's memories to another that can be seen; see `LinkType` for the types."""
        link = check_choice(type, LinkType, "type")
        first, second = parse_id(self._full_id(start)), parse_id(self._full_id(end))
        return self._deed(
            "link",
            ("link", first, link, second),
            command_id,
            lambda at: self._engine.deeds.link(self._handle(), first, second, link, at),
        )

    def unlink(self, start: str, type: str, end: str, *, command_id: str | None = None) -> Receipt:  # noqa: A002
        """End a link; it stays in history."""
        link = check_choice(type, LinkType, "type")
        first, second = parse_id(self._full_id(start)), parse_id(self._full_id(end))
        return self._deed(
            "unlink",
            ("unlink", first, link, second),
            command_id,
            lambda at: self._engine.deeds.unlink(self._handle(), first, second, link, at),
        )

    # --- forget -------------------------------------------------------------------------------------------------------

    @traced("forget", "delete_memory")
    def forget(
        self,
        *ids: str,
        reason: str,
        cascade: bool = True,
        dry_run: bool = False,
        block: str = "value",
        command_id: str | None = None,
    ) -> ErasureReceipt:
        """
        Erase memories, all that have the same value in this scope, and all that derive from them; and keep them out.

        When this returns no file of the store holds the content, its key, its vector or its terms. `block="key"`
        refuses every new value of the belief key. What is above this session's rank becomes a request to the user.

        Raises:
            NotFound, DerivedRecords. AlreadyDone: all of them were erased before; some are told in the receipt.
            NeedsGrant: a request was filed, nothing was erased.
        """
        check_forget(cascade, dry_run, block)
        if not ids:
            raise BadArgument(argument="ids", detail="name at least one memory")
        words = self._words(reason)
        targets = [parse_id(self._full_id(i)) for i in ids]
        self._engine.preparer.command_id(command_id)

        def find() -> Erasing:
            return self._engine.deeds.erasing(self._handle(), targets)

        payload = ("forget", *targets, words, cascade, block)
        with self._engine.mutex:
            receipt = self._forget(
                find, words, payload, dry_run=dry_run, cascade=cascade, block_key=block == "key", command_id=command_id
            )
            return name_erased_before(self._engine.state, receipt, targets)

    def _forget(
        self,
        find: Callable[[], Erasing],
        reason: str,
        payload: tuple[object, ...],
        *,
        dry_run: bool,
        cascade: bool,
        block_key: bool = False,
        command_id: str | None = None,
        extra: Callable[[], Sequence[tuple[str, bytes, bytes | None, int]]] = tuple,
        texts: Sequence[str] = (),
    ) -> ErasureReceipt:
        engine, handle = self._engine, self._handle()
        with engine.mutex:
            engine.refresh()
            if dry_run:
                erasing = find()
                kept = engine.deeds.holding(handle, erasing, handle.scope, texts).kept
                return dry_receipt(erasing, handle.scope, handle.actor, reason, kept=kept)
            key = engine.values.payload_key(_encode(payload))
            repeat = engine.admission.repeat_of_command(handle, command_id, key)
            if repeat is not None:
                return repeated_erasure(engine, repeat, handle.scope)
            filed: list[RankTooLow] = []
            waiting: list[bytes] = []

            def plan(at: Moment) -> list[Draft]:
                filed.clear()
                waiting.clear()
                engine.admission.check_scope(handle.scope)
                erasing = find()
                try:
                    draft = engine.deeds.forget(
                        handle, erasing, at, scope=handle.scope, reason=reason, cascade=cascade, block_key=block_key,
                        extra=extra(), texts=texts,
                    )  # fmt: skip
                except RankTooLow as error:
                    filed.append(error)
                    waiting.extend(engine.deeds.waiting_requests(handle, erasing))
                    return [] if waiting else [engine.deeds.request_erasure(handle, erasing, at, reason)]
                return [with_command(draft, command_id, key)]

            done = append_once(engine, handle, command_id, key, plan)
            if isinstance(done, Command):
                return repeated_erasure(engine, done, handle.scope)
            if filed and waiting:
                raise NeedsGrant(request=format_id(waiting[0])) from filed[0]
            if done is None:
                raise AssertionError("a forget wrote nothing")
            event = done.events[0]
            if filed:
                raise NeedsGrant(request=format_id(event.header.id)) from filed[0]
            forgotten = cast("Forgotten", event.envelope)
            return erasure_receipt(engine.state, event.header.id, handle.scope, forgotten=forgotten)

    # --- the guard ----------------------------------------------------------------------------------------------------

    @traced("decide", "decide")
    def decide(
        self,
        action: Action,
        *,
        use: str | None = None,
        evidence: Sequence[str] = (),
        dry_run: bool = False,
        command_id: str | None = None,
    ) -> Decision:
        """
        Decide whether the cited memories and the user's signatures may justify an action. A denial is an answer.

        The host's policy says what use the action's name has; `use` can only raise it. The guard finds confirmations
        itself. An allowed external or destructive action spends its confirmation in the same append as the decision;
        the same `command_id` gives the same decision. `dry_run=True` neither spends nor writes.
        """
        check_action(action)
        check_flag(dry_run, "dry_run")
        asked = None if use is None else use_named(use)
        self._engine.preparer.command_id(command_id)
        cited = check_cited(evidence)
        engine = self._engine
        with engine.mutex:
            engine.refresh()
            handle = self._handle()
            key = engine.values.payload_key(_encode(("decide", format_action(action), asked, cited)))
            repeat = engine.admission.repeat_of_command(handle, command_id, key)
            if repeat is not None:
                return self._recorded(repeat, cited)
            engine.admission.check_scope(handle.scope)
            ids, unknown = self._cited_ids(cited, engine.state.seq)
            question = question_of(handle, action, asked, ids, engine.options.clock(), engine.state.seq)
            verdict = engine.guard.decide(question)
            if dry_run or verdict.use in (Use.PLANNING, Use.ANSWER):
                return name_unknown(decision_of(verdict, question, engine.files.store_id, None), unknown)

            def plan(at: Moment) -> list[Draft]:
                # Decided again under the lock, after catching up: another process may have spent the confirmation.
                engine.admission.check_scope(handle.scope)
                now = question_of(handle, action, asked, ids, engine.options.clock(), engine.state.seq)
                said = Said(*engine.preparer.masked(action), engine.preparer.masked_texts(unknown))
                return [decided_draft(engine.guard.decide(now), handle, at, said, command_id, key)]

            done = append_once(engine, handle, command_id, key, plan)
            if isinstance(done, Command):
                return self._recorded(done, cited)
            if done is None:
                raise AssertionError("a decision wrote nothing")
            record = engine.state.register.decisions[done.events[0].header.id]
            return recorded_decision(engine.state, record, question, engine.files.store_id, unknown)

    def _recorded(self, command: Command, cited: Sequence[str]) -> Decision:
        record = self._engine.state.register.decisions[command.id]
        _, unknown = self._cited_ids(cited, record.at_seq)
        decision = recorded_decision(self._engine.state, record, None, self._engine.files.store_id, unknown)
        return msgspec.structs.replace(decision, repeated=True)


def use_named(use: str) -> Use:
    """Return a use by its name; raises BadArgument naming all of them."""
    words = [u.value for u in Use]
    if use not in words:
        raise BadArgument(argument="use", detail=f"expected one of {', '.join(words)}, got `{use}`")
    return Use(use)


_encode = msgspec.msgpack.Encoder(order="deterministic").encode
