"""The user's session: what a person says, signs, forbids, forgets and allows again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TypedDict, cast

import msgspec

from muniment.events import (
    NORMAL_FORM,
    STORE_SCOPE,
    ActionBody,
    AlreadyDone,
    BadArgument,
    Draft,
    Forgotten,
    Moment,
    NotFound,
    Prohibited,
    Rank,
    RankTooLow,
    Revoked,
    ScopeDenied,
    ScopeUnknown,
    SignatureInvalid,
    TombstoneEntry,
    check_text,
    covers,
    format_id,
    new_id,
    parse_id,
)
from muniment.gate import (
    OPERATOR,
    Action,
    Confirm,
    Erasing,
    Handle,
    Lift,
    MemoryRequest,
    Prohibit,
    Review,
    Revoke,
    Signed,
    SignedRemember,
    Signer,
    Statement,
    Unprohibit,
    check_about,
    check_action,
    check_actor,
    check_flag,
    check_signer,
    format_action,
    format_signed,
    sign,
    words_draft,
)
from muniment.projections import FAR_FUTURE, LATEST, Command, Memory

from ._answers import ErasureReceipt, Receipt, Record
from ._deciding import ConfirmationRequest
from ._durations import parse_duration
from ._engine import Engine
from ._erasing import dry_receipt, erasure_receipt, repeated_erasure
from ._keys import nonce_of
from ._once import append_once
from ._reach import Reads
from ._session import Session
from ._signing import request_given, sign_request
from ._submit import Submitter, replace_key, submit_command
from ._telemetry import traced
from ._writing import with_command


class _Said(TypedDict):
    """What every signed statement says."""

    store: str
    principal: str
    signed_at: int
    nonce: str


class _Speaker(TypedDict):
    """What every envelope takes from its speaker."""

    scope: str
    actor: str
    origin: str
    rank: int
    principal: str | None


class UserSession(Session):
    """
    A session in which a person speaks.

    With a signer, everything it says has the rank of a signature. Without one it is the host's transcript of the
    user's words: it can tighten (revoke, prohibit, forget), and not loosen.
    """

    def __init__(self, engine: Engine, handle: Handle, reads: Reads, signer: Signer | None) -> None:
        super().__init__(engine, handle, reads)
        self._signer = signer

    # --- signatures ---------------------------------------------------------------------------------------------------

    def confirm(
        self,
        action: Action,
        *,
        agent: str,
        uses: int | None = 1,
        expires_in: str | timedelta = "1h",
        command_id: str | None = None,
    ) -> Receipt:
        """
        Sign that an agent may take one bound action in this scope, some number of times, until it expires.

        Every argument of the call must be equal to, constrained by, or declared free by `action`.
        """
        check_action(action)
        check_actor(agent)
        common = self._common(command_id)
        return self._say(
            Confirm(
                **common, scope=self.scope, agent=agent, action=action, uses=uses,
                expires_at=common["signed_at"] + parse_duration(expires_in),
            ),
            command_id,
        )  # fmt: skip

    def confirm_request(
        self, request: str | ConfirmationRequest, *, uses: int | None = 1, expires_in: str | timedelta = "1h"
    ) -> Receipt:
        """
        Sign what a denied decision asked for in `d.request`; read it first: `muniment confirm` shows it.

        Raises:
            ScopeDenied: it was asked for in another scope than this session's. What `sign_request` gave for that one
                goes to `store.submit`.
        """
        asked = request_given(request)
        if asked.scope != self.scope:
            raise ScopeDenied(who=self._principal(), scope=asked.scope, hint="open the user's session in that scope")
        signed = self.sign_request(request, uses=uses, expires_in=expires_in)
        return Submitter(self._engine).submit(signed)

    def sign_request(
        self, request: str | ConfirmationRequest, *, uses: int | None = 1, expires_in: str | timedelta = "1h"
    ) -> Signed:
        """Return the signed confirmation that a request asks for, without submitting it."""
        return sign_request(
            request, principal=self._principal(), signer=self._require_signer(), uses=uses, expires_in=expires_in,
            now=self._engine.options.clock(),
        )  # fmt: skip

    def prohibit(self, action: Action, *, reason: str, command_id: str | None = None) -> Receipt:
        """Veto an action in this scope and below, whoever confirms it. `Pattern` in it matches more than literally."""
        words = self._words(reason)
        self._engine.preparer.check_signed(check_action(action))
        if self._signer is not None:
            return self._say(
                Prohibit(**self._common(command_id), scope=self.scope, action=action, reason=words), command_id
            )
        body = ActionBody(action=format_action(action), reason=words)
        return self._deed(
            "prohibit",
            ("prohibit", format_action(action), words),
            command_id,
            lambda at: Draft(id=new_id(at.recorded_at), envelope=Prohibited(**self._envelope()), body=body),
        )

    def revoke(self, id: str, *, reason: str, command_id: str | None = None) -> Receipt:  # noqa: A002
        """Take a confirmation back."""
        words, target = self._words(reason), parse_id(id)
        if self._signer is not None:
            return self._say(Revoke(**self._common(command_id), scope=self.scope, id=id, reason=words), command_id)

        def plan(at: Moment) -> Draft:
            found = self._engine.state.register.confirmations.get(target)
            if found is None or found.scope != self.scope:
                raise NotFound(id=id)
            if found.revoked_seq < FAR_FUTURE:
                raise AlreadyDone(id=id, status="revoked")
            # Under the confirmation's key: the words of why may name what was confirmed, and go with it.
            slot = found.slot if found.erasure is None else None
            return words_draft(Revoked(**self._envelope(), target=target), at, words, slot=slot)

        return self._deed("revoke", ("revoke", target, words), command_id, plan)

    def unprohibit(self, id: str, *, reason: str, command_id: str | None = None) -> Receipt:  # noqa: A002
        """Sign that a prohibition no longer holds."""
        common = self._common(command_id)
        return self._say(Unprohibit(**common, scope=self.scope, id=id, reason=self._words(reason)), command_id)

    def review(
        self,
        id: str,  # noqa: A002
        *,
        approve: bool,
        reason: str,
        edit: str | None = None,
        command_id: str | None = None,
    ) -> Receipt:
        """
        Sign a verdict on what is pending, disputed or asked to be erased. Approval never raises a rank.

        With `edit` what was proposed is approved as history, and superseded by that text, which is the user's own.
        """
        check_flag(approve, "approve")
        if edit is not None:
            check_text(edit, what="edit")
        statement = Review(
            **self._common(command_id), scope=self.scope, id=id, approve=approve, reason=self._words(reason), edit=edit
        )
        return self._say(statement, command_id)

    def lift(self, id: str, *, reason: str, command_id: str | None = None) -> Receipt:  # noqa: A002
        """Sign that a forgotten value may be stated again; `id` is the erasure receipt's. Nothing comes back."""
        common = self._common(command_id)
        return self._say(Lift(**common, scope=self.scope, id=id, reason=self._words(reason)), command_id)

    def rotate(
        self, public_key: bytes, *, scopes: Sequence[str] | None = None, command_id: str | None = None
    ) -> Receipt:
        """
        Sign that another key speaks for this principal from now on in place of this session's, for no more scopes.

        What the old key confirmed stays confirmed; a key that was stolen is replaced by `store.recover`. A retry is
        this session's, or `muniment rotate`: the old key opens no other once it was replaced.
        """
        return replace_key(
            self._engine, self._principal(), self._require_signer(), public_key, scopes=scopes, command_id=command_id
        )

    def pending(self) -> list[Record]:
        """Return what waits for a person: pending and disputed memories."""
        return self.list(status=("pending", "disputed"))

    # --- forgetting by value and by scope -----------------------------------------------------------------------------

    @traced("forget_value", "delete_memory")
    def forget_value(
        self,
        text: str,
        *,
        reason: str = "asked by the user",
        about: tuple[str, str] | None = None,
        dry_run: bool = False,
        command_id: str | None = None,
    ) -> ErasureReceipt:
        """
        Erase every memory of this scope that says this text, or gives this value, and refuse it from now on.

        It is refused also when no memory holds it.
        """
        words = self._words(reason)
        check_text(text, what="text")
        about = None if about is None else check_about(about)
        engine, values = self._engine, self._engine.values

        def extra() -> Sequence[TombstoneEntry]:
            entries: list[TombstoneEntry] = [("text", values.text_key(text), None, NORMAL_FORM)]
            if about is not None:
                key = values.belief_key(*about)
                entries.append(("value", values.value_key(key, text), key, NORMAL_FORM))
            return entries

        def find() -> Erasing:
            return engine.deeds.erasing_value(self._handle(), text, about)

        payload = ("forget_value", text, about, words)
        self._engine.preparer.command_id(command_id)
        return self._forget(
            find, words, payload, dry_run=dry_run, cascade=True, command_id=command_id, extra=extra, texts=(text,)
        )

    @traced("forget_scope", "delete_memory")
    def forget_scope(
        self, *, reason: str = "asked by the user", dry_run: bool = False, command_id: str | None = None
    ) -> ErasureReceipt:
        """
        Destroy every key of this scope, envelopes too, and close it until the user lifts that.

        Raises:
            ScopeUnknown: nothing was ever written here. AlreadyDone: it was forgotten before.
            RankTooLow: it holds a prohibition, and this session does not sign, or a memory of more authority.
            BadArgument: the reason repeats what one of its memories says.
        """
        words = self._words(reason)
        engine = self._engine
        engine.preparer.command_id(command_id)
        with engine.mutex:
            engine.refresh()
            # The scope's own commands go with it: this one is kept where the forget itself is.
            speaker = msgspec.structs.replace(self._speaker, scope=STORE_SCOPE)
            key = engine.values.payload_key(f"forget_scope\0{self.scope}\0{words}".encode())
            repeat = engine.admission.repeat_of_command(speaker, command_id, key)
            if repeat is not None:
                return self._closed(repeated_erasure(engine, repeat, self.scope), words)
            closing = engine.state.register.closing(self.scope, LATEST)
            if closing is not None:
                hint = "its tombstone says when and why: `muniment tombstones`"
                raise AlreadyDone(id=format_id(closing[2]), status="forgotten", hint=hint)
            if self.scope not in engine.state.register.scopes:
                raise ScopeUnknown(scope=self.scope)
            rows = [m for m in engine.state.register.rows.get(self.scope, []) if m.erasure is None]
            if dry_run:
                erasing = Erasing(asked=tuple(rows), derived=(), elsewhere=self._derived_elsewhere(rows))
                return dry_receipt(erasing, self.scope, self.actor, words)

            def plan(at: Moment) -> list[Draft]:
                live = [m for m in engine.state.register.rows.get(self.scope, []) if m.erasure is None]
                for memory in live:
                    engine.deeds.check_may_forget(self._speaker, memory)
                self._check_vetoes_may_go()
                engine.deeds.check_reason(words, live)
                left = [memory.id for memory in self._derived_elsewhere(live)]
                fields = self._envelope()
                fields["scope"] = STORE_SCOPE
                slots = engine.slots_of_scope(self.scope)
                envelope = Forgotten(
                    **fields, targets=(), tombstones=(), everyone=True, reason=words, key_epoch=at.key_epoch,
                    other_slots=tuple(sorted(slots)), closed_scope=self.scope, elsewhere=tuple(left),
                )  # fmt: skip
                return [with_command(Draft(id=new_id(at.recorded_at), envelope=envelope), command_id, key)]

            done = append_once(engine, speaker, command_id, key, plan)
            if isinstance(done, Command):
                return self._closed(repeated_erasure(engine, done, self.scope), words)
            if done is None:
                raise AssertionError("a forget wrote nothing")
            event = done.events[0]
            forgotten = cast("Forgotten", event.envelope)
            receipt = erasure_receipt(engine.state, event.header.id, self.scope, forgotten=forgotten)
            return self._closed(receipt, words, tuple(format_id(memory.id) for memory in rows))

    def _closed(self, receipt: ErasureReceipt, words: str, asked: tuple[str, ...] = ()) -> ErasureReceipt:
        return msgspec.structs.replace(receipt, scope=self.scope, reason=words, asked=asked)

    def _derived_elsewhere(self, memories: Sequence[Memory]) -> tuple[Memory, ...]:
        found = self._engine.state.register.descendants([memory.id for memory in memories])
        return tuple(m for m in found if m.scope != self.scope and m.erasure is None)

    def _check_vetoes_may_go(self) -> None:
        # A veto reaches the scopes below, which stay open: to drop it with its scope is loosening, and is signed.
        vetoes = [p for p in self._engine.state.register.live_prohibitions(self.scope, LATEST) if p.scope == self.scope]
        if vetoes and (self._speaker.rank < Rank.SIGNED or self._speaker.principal is None):
            signs = self._speaker.rank >= Rank.SIGNED
            raise RankTooLow(
                actual=OPERATOR if signs else self._speaker.rank.name.lower(), verb="forget", needed="signed",
                id=format_id(vetoes[0].id),
                hint="the scope holds a prohibition: the user ends it with `muniment unprohibit`, or forgets it by key",
            )  # fmt: skip

    # --- helpers ------------------------------------------------------------------------------------------------------

    def _signed(self, request: MemoryRequest) -> MemoryRequest:
        if self._signer is None:
            return request
        statement = SignedRemember(**self._common(), scope=self.scope, digest=request.payload_key.hex())
        line = format_signed(sign(statement, self._signer)).encode()
        return msgspec.structs.replace(request, body=msgspec.structs.replace(request.body, signed=line))

    def _say(self, statement: Statement, command_id: str | None) -> Receipt:
        return submit_command(self._engine, sign(statement, self._require_signer()), command_id)

    def _require_signer(self) -> Signer:
        if self._signer is None:
            raise SignatureInvalid(
                detail="loosening needs the user's signature, and this session has no signer",
                hint="open it with `signer=`, or sign elsewhere and call `store.submit`",
            )
        return self._signer

    def _principal(self) -> str:
        if self._speaker.principal is None:
            raise SignatureInvalid(detail="this session speaks for no principal")
        return self._speaker.principal

    def _common(self, command_id: str | None = None) -> _Said:
        self._require_signer()
        engine = self._engine
        engine.preparer.command_id(command_id)
        return {
            "store": self._engine.files.store_id.hex(),
            "principal": self._principal(),
            # The wall clock as it is: a confirmation fails where the clock stands before its signing.
            "signed_at": self._engine.options.clock(),
            "nonce": nonce_of(engine, self.scope, self._principal(), command_id),
        }

    def _envelope(self) -> _Speaker:
        speaker = self._speaker
        return {
            "scope": speaker.scope,
            "actor": speaker.actor,
            "origin": speaker.origin,
            "rank": int(speaker.rank),
            "principal": speaker.principal,
        }


def check_principal(engine: Engine, principal: str, scope: str, signer: Signer) -> None:
    """
    Check that a key may speak for a principal in a scope.

    Raises:
        ScopeDenied: it is not enrolled for that principal, or not for that scope.
    """
    check_signer(signer, "signer")
    enrolment = engine.state.register.enrolment(principal, bytes(signer.public_key), LATEST)
    if enrolment is None or enrolment.recovery or not any(covers(outer, scope) for outer in enrolment.scopes):
        raise ScopeDenied(who=principal, scope=scope, hint="enroll the key for this scope: `muniment enroll`")


def check_user(principal: str) -> None:
    """Raise BadArgument unless the principal is written `user:NAME`."""
    check_text(principal, what="principal")
    if not principal.startswith("user:") or not principal[5:].strip():
        raise BadArgument(argument="principal", detail=f"expected `user:NAME`, got `{principal}`")


def user_handle(scope: str, principal: str | None, *, signed: bool) -> Handle:
    """Return the handle of a user's session."""
    actor = principal or "user"
    return Handle(
        scope=scope,
        reads=(),
        actor=actor,
        origin=actor if signed else "user",
        rank=Rank.SIGNED if signed else Rank.USER,
        principal=principal,
    )
