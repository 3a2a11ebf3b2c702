"""
A small memory in plain Python: `Sound` passes every step, `Leaky` fails exactly those whose leaks are switched on.

It shows what the suite asks, and that every step can fail. A leak is named after its step. It is a plain fault of the
kind that the step is about (`FAULTS`), and is there in the scopes of that step only: so one switched-on leak must make
one step fail, and a step that fails beside it, or one that does not fail, is a fault of the suite.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from . import _negative_case
from ._adapter import Case, Entry, Fact, Item, Key, Refused
from ._clock import days_ago
from ._faults import FAULTS
from ._reference_core import Core
from ._reference_state import Record, ranked


class Sound(Core):
    """The reference without a leak."""

    name = "reference (sound)"
    version = "1"
    fence = ("<memories>", "</memories>")
    views = ("list", "by key")
    stores = ("list", "by key", "everything")
    write_paths = ("single", "batch", "feed")

    # --- writing ------------------------------------------------------------------------------------------------------

    def remember(
        self, text: str, *, scope: str, by: str = "user", key: Key | None = None, value: str | None = None,
        source: str | None = None, derived_from: Sequence[str] = (), valid_from: datetime | None = None,
        valid_to: datetime | None = None, claim: str | None = None,
    ) -> str:  # fmt: skip
        """Store a text; a keyed one takes the place of what its speaker may change."""
        if claim == "user" and self._leak("claim_is_believed", scope):
            by = "user"
        self._check_tombstones(text, scope, key, value, by)
        record = self._add(text, scope, by, key, value, source, tuple(derived_from), valid_from, valid_to)
        if key is not None:
            self._displace(record)
        if self._leak("write_lags", scope):
            self._state.hidden = {record.id}  # until the next write
        self._note(scope, "remember", record.id, text)
        return record.id

    def supersede(
        self, id: str, text: str, *, scope: str, by: str = "user", key: Key | None = None,  # noqa: A002
        value: str | None = None, valid_from: datetime | None = None,
    ) -> str:  # fmt: skip
        """Put a statement in the place of another, or of what has taken that one's place since."""
        old = self._record(id, scope, crosses="ids_cross")
        self._check_rank(old, by)
        self._check_tombstones(text, scope, key, value, by)
        record = self._add(text, scope, by, key or old.key, value, None, (), valid_from, None)
        for other in self._held(scope):
            if other.id == old.id or (old.key is not None and other.key == old.key and other is not record):
                other.closed, other.status = record.seq, "superseded"
        old.closed, old.status, record.replaces = record.seq, "superseded", old.id
        self._note(scope, "supersede", record.id, text)
        return record.id

    def retire(self, id: str, *, scope: str, by: str = "user") -> None:  # noqa: A002
        """Withdraw a statement; its value is kept out from then on."""
        record = self._record(id, scope)
        self._check_rank(record, by)
        record.status = "retired"
        self._bury(record)
        if self._leak("retire_revives_previous", scope) and record.replaces:
            self._state.records[record.replaces].status = "active"
        self._note(scope, "retire", id, "")

    def reject(self, id: str, *, scope: str) -> str:  # noqa: A002
        """Reject a value: the record goes, a digest of the value stays."""
        record = self._record(id, scope)
        self._erase(record)
        tombstone = self._bury(record)
        self._note(scope, "reject", id, "")
        return tombstone.id

    def lift(self, receipt: str, *, scope: str) -> None:
        """Allow a rejected value again."""
        for tombstone in self._state.tombstones:
            if tombstone.id == receipt:
                tombstone.lifted = True
        if not self._leak("lift_is_silent", scope):
            self._note(scope, "lift", receipt, "")

    def forget(self, id: str, *, scope: str, by: str = "user") -> None:  # noqa: A002
        """Delete a memory and what derives from it."""
        if id not in self._state.records and self._leak("unknown_forget_is_ok", scope):
            return
        record = self._record(id, scope, crosses="ids_cross")
        self._check_rank(record, by)
        if record.shared and self._leak("shared_not_deleted", scope):
            record.shared.clear()
            return
        for derived in self._derived(record, by):
            self._erase(derived)
        self._erase(record)
        self._bury(record)
        if self._leak("forget_lags", scope):
            self._state.records[id] = record
        quote = record.text if self._leak("audit_quotes", scope) else ""
        if self._leak("audit_rewritten", scope):
            self._state.log = [one for one in self._state.log if one[1].target != id]
        self._note(scope, "forget", id, quote)

    def feed(self, facts: Sequence[Fact], *, scope: str) -> None:
        """Take what is not refused, as a document."""
        refused = [fact for fact in facts if not self._feed_one(fact, scope)]
        if refused and self._leak("feed_drops_all", scope):
            for record in [one for one in self._held(scope) if one.text in {fact.text for fact in facts}]:
                del self._state.records[record.id]

    def _feed_one(self, fact: Fact, scope: str) -> bool:
        if self._leak("feed_bypasses", scope):
            self._add(fact.text, scope, "document", fact.key, fact.value, fact.source, (), None, None)
            return True
        try:
            self.remember(fact.text, scope=scope, by="document", key=fact.key, value=fact.value, source=fact.source)
        except Refused:
            return False
        return True

    def write_by(self, path: str, text: str, *, scope: str, key: Key | None = None, value: str | None = None) -> None:
        """Write by one of the ways in; all of them end in the same place."""
        if path == "batch" and self._leak("one_path_bypasses", scope):
            self._displace(self._add(text, scope, "user", key, value, None, (), None, None))
            return
        self.remember(text, scope=scope, by="document" if path == "feed" else "agent", key=key, value=value)

    def share(self, id: str, *, scope: str, to: str) -> None:  # noqa: A002
        """Let another scope read one memory."""
        record = self._record(id, scope)
        record.shared.add(to)
        if self._leak("share_reaches_all", scope):
            record.shared.add(f"{scope.rpartition('/')[0]}/third")
        if self._leak("share_keeps_copy", scope):
            self._state.copies.append((to, record.text))
        self._note(scope, "share", id, "")

    # --- reading ------------------------------------------------------------------------------------------------------

    def recall(self, query: str, *, scope: str, k: int = 10) -> list[Item]:
        """Return what shares words with the query, the most first."""
        found = self._answers(query, scope)
        if self._leak("k_ignored", scope):
            return found
        if self._leak("k_before_filter", scope):
            gone = ranked(query, [Item(one.id, one.text) for one in self._state.attic if one.scope == scope])
            return found[: max(0, k - len(gone))]
        return found[:k]

    def _answers(self, query: str, scope: str) -> list[Item]:
        state = self._state
        held, everywhere = self._held(scope), list(state.records.values())
        here = [one for one in everywhere if one.scope == scope]
        if self._leak("scope_filter_off", scope):
            held = [one for one in everywhere if one.status == "active"]
        if self._leak("scope_by_prefix", scope):
            held = [one for one in everywhere if one.status == "active" and one.scope.startswith(scope)]
        if self._leak("withheld_is_recalled", scope):
            held += [one for one in here if one.status in ("doubted", "refused")]
        if self._leak("old_is_answered", scope):
            held += [one for one in here if one.status in ("superseded", "retired")]
        found = [Item(one.id, one.text) for one in held if one.id not in state.hidden]
        found += [Item("copy", text) for to, text in state.copies if to == scope]
        return ranked(query, found)

    def recall_as(self, query: str, *, scope: str, asked: str) -> list[Item]:
        """Read the scope that the caller is bound to, whatever it asks for."""
        if asked != scope and not self._leak("asked_scope_wins", scope):
            raise Refused("a caller reads its own scope")
        return self.recall(query, scope=asked)

    def context(self, query: str, *, scope: str) -> str:
        """Return the memories, one a line, angle brackets escaped."""
        texts = [item.text for item in self.recall(query, scope=scope)]
        if self._leak("old_in_context", scope):
            gone = [one for one in self._state.records.values() if one.scope == scope and one.status != "active"]
            texts += [one.text for one in gone]
        if self._leak("no_fence", scope):
            return "\n".join(texts)
        if not self._leak("fence_not_escaped", scope):
            texts = [repr(text).replace("<", "\\x3c").replace(">", "\\x3e").strip("'\"") for text in texts]
        return "\n".join(("<memories>", *texts, "</memories>"))

    def get(self, id: str, *, scope: str) -> str | None:  # noqa: A002
        """Return the text of an id of this scope."""
        record = self._state.records.get(id)
        if record is None or (record.scope != scope and not self._leak("get_crosses", scope)):
            return None
        return record.text[:10] if self._leak("get_truncates", scope) else record.text

    def current(self, key: Key, *, scope: str, valid_at: datetime | None = None, known_at: object = None) -> list[str]:
        """Return the last statement, of those known then, that covers the instant."""
        if self._leak("known_at_ignored", scope):
            known_at = None
        seq = known_at if isinstance(known_at, int) else self._state.seq
        instant = valid_at or days_ago(0)
        found: list[Record] = []
        for one in self._state.records.values():
            if one.scope != scope or one.key != key or one.seq > seq or one.status in ("disputed", "retired"):
                continue
            begins, ends = one.valid_from or days_ago(10_000), one.valid_to
            if begins <= instant and (ends is None or instant < ends):
                found.append(one)
        return [found[-1].text] if found else []

    def now(self) -> object:
        """Return the number of the last write."""
        return self._state.seq

    def history(self, id: str, *, scope: str) -> list[str]:  # noqa: A002
        """Follow what a record took the place of."""
        record: Record | None = self._record(id, scope)
        texts: list[str] = []
        while record is not None:
            texts.append(record.text)
            record = None if record.replaces is None else self._state.records.get(record.replaces)
        if self._leak("history_lost", scope):
            return texts[:1] if len(texts) > 1 else []
        return texts[::-1]

    def source_of(self, id: str, *, scope: str) -> str | None:  # noqa: A002
        """Return the source as written."""
        return None if self._leak("source_lost", scope) else self._record(id, scope).source

    def look(self, where: str, *, scope: str) -> list[str]:
        """Return what one of the views or stores shows."""
        state = self._state
        records = [one for one in state.records.values() if one.scope == scope]
        if self._leak("view_crosses", scope):
            records = list(state.records.values())
        if where != "everything" and not self._leak("view_is_stale", scope):
            records = [one for one in records if one.status == "active"]
        if where == "by key":
            records = [one for one in records if one.key is not None]
            if self._leak("store_keeps_deleted", scope):
                records += [one for one in state.attic if one.scope == scope]
        return [one.text for one in records]

    # --- upkeep -------------------------------------------------------------------------------------------------------

    def jobs(self, *, days: int = 0) -> None:
        """Do nothing: there is nothing to keep up, unless a leak says so."""
        state = self._state
        for record in list(state.records.values()):
            if self._leak("jobs_prune_kept", record.scope):
                del state.records[record.id]
            if self._leak("jobs_merge_scopes", record.scope) and record.scope.endswith("other"):
                record.shared.add(f"{record.scope.rpartition('/')[0]}/home")
        for record in state.attic:
            if self._leak("jobs_revive", record.scope):
                state.records[record.id] = record
        for tombstone in state.tombstones:
            if days and self._leak("tombstones_expire", tombstone.scope):
                tombstone.lifted = True

    def reindex(self) -> None:
        """Do nothing: recall reads the records, unless a leak says so."""
        for record in list(self._state.records.values()):
            if self._leak("reindex_loses", record.scope) and record.key is not None:
                del self._state.records[record.id]
            if self._leak("reindex_revives", record.scope) and record.status == "superseded":
                record.status = "active"

    def reopen(self) -> None:
        """Write everything out and read it back."""
        self._state = pickle.loads(pickle.dumps(self._state))
        for record in self._state.attic:
            if self._leak("restart_revives", record.scope):
                self._state.records[record.id] = record
        for tombstone in self._state.tombstones:
            if self._leak("tombstones_not_saved", tombstone.scope):
                tombstone.lifted = True

    # --- oversight ----------------------------------------------------------------------------------------------------

    def audit(self, *, scope: str) -> list[Entry]:
        """Return the log of one scope."""
        return [entry for where, entry in self._state.log if where == scope]

    def tombstones(self, *, scope: str) -> list[str]:
        """Return the digests of one scope."""
        return [f"{sorted(one.digests)} {one.note}" for one in self._state.tombstones if one.scope == scope]

    def status(self, id: str, *, scope: str) -> str:  # noqa: A002
        """Return the record's status."""
        return self._record(id, scope).status

    def withhold(self, id: str, *, scope: str) -> None:  # noqa: A002
        """Set a record apart."""
        self._record(id, scope).status = "doubted"
        self._note(scope, "withhold", id, "")

    def propose(self, text: str, *, scope: str, key: Key | None = None, value: str | None = None) -> str:
        """Write something that waits."""
        record = self._add(text, scope, "agent", key, value, None, (), None, None)
        record.status = "pending"
        self._note(scope, "propose", record.id, text)
        return record.id

    def waiting(self, *, scope: str) -> list[Item]:
        """Return what waits."""
        return [Item(one.id, one.text) for one in self._state.records.values()
                if one.scope == scope and one.status == "pending"]  # fmt: skip

    def review(self, id: str, *, approve: bool, scope: str) -> None:  # noqa: A002
        """Approve or refuse what waits."""
        self._record(id, scope).status = "active" if approve else "refused"
        self._note(scope, "review", id, "")

    def grant(self, action: str, *, scope: str) -> str:
        """Allow an action."""
        name = f"grant-{len(self._state.grants)}"
        self._state.grants[name] = (scope, action)
        return name

    def revoke(self, grant: str, *, scope: str) -> None:
        """Take a grant back."""
        if not self._leak("revoked_grant_counts", scope):
            self._state.grants.pop(grant, None)

    def may(self, action: str, *, evidence: Sequence[str], scope: str) -> bool:
        """Allow what is granted, whatever any text says."""
        del evidence
        return (scope, action) in self._state.grants.values()

    def restore(self, id: str, *, scope: str) -> None:  # noqa: A002
        """State again what a record took the place of."""
        record = self._record(id, scope)
        if record.replaces is None:
            raise Refused("it took nothing's place")
        before = self._state.records[record.replaces]
        record.status, record.closed = "superseded", self._state.seq
        again = self._add(before.text, scope, before.by, before.key, before.value, before.source, (), None, None)
        again.replaces = id
        if not self._leak("restore_unrecorded", scope):
            self._note(scope, "restore", again.id, before.text)

    def negative_case(self) -> Case:
        """Name the case that is committed beside this file."""
        name = "nothing_forgotten_is_recalled" if not self.leaks or "mark.negative_eval" not in self.leaks else "a wish"
        return Case(Path(_negative_case.__file__), name)

    def run_case(self, name: str) -> bool:
        """Run the case on a memory of this class."""
        case = getattr(_negative_case, name, None)
        return callable(case) and bool(case(Sound(self.folder)))


def leaky(*steps: str) -> type[Sound]:
    """
    Return the reference with the leaks of some steps switched on.

    Raises:
        ValueError: a name is no leak; the error lists them.
    """
    unknown = [step for step in steps if step not in FAULTS]
    if unknown:
        raise ValueError(f"no leak `{unknown[0]}`; there are {', '.join(FAULTS)}")
    return type("Leaky", (Sound,), {"name": "reference (leaky)", "leaks": frozenset(steps)})


PLANTED = (
    "mark.tombstone",
    "deletion.06_gone_after_feed",
    "deletion.09_gone_from_derived_stores",
    "deletion.13_gone_from_share",
    "contradiction.replacement.C_durable",
    "contradiction.polarity.B_prompt",
    "tombstone.spelling_look_alike",
    "scope.caller_cannot_widen",
    "evidence.copy_in_another_scope",
    "prompt.fence_cannot_be_closed",
)
"""The leaks that `Leaky` has, unless the environment names others in AGENT_MEMORY_ATLAS_LEAKS, with commas between."""

Leaky = leaky(*(os.environ.get("AGENT_MEMORY_ATLAS_LEAKS") or ",".join(PLANTED)).split(","))
