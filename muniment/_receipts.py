"""
Receipts for third parties: proof that one event is in a log, for somebody who has neither the log nor its keys.

One JSON object:

    receipt      "muniment receipt v1"
    id, type, seq, recorded_at, hash      what the event's bytes say in clear, to be read; checked against them
    event        base64 of the event's bytes: sealed, so that they show neither words nor values
    before       the chain hash before it: BLAKE3(0x00 || before || event) is its own, and that is the tree's record
    path         base64 of the audit path from there to the root
    checkpoint   the log's head, as a note when the log signs; its second line is the tree's size, its third the root
    erased       of a forget: ids, scope, by, reason, recorded_at, seq; never the value. The event itself is sealed, so
                 this is the log's word, and `statement` is where it gives it:
    statement    a text of three lines, as a note when the log signs:

        muniment/<log id> erasure
        <the event's chain hash>
        <`erased` as one line of JSON, keys sorted>
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias, cast

from muniment.events import (
    BadArgument,
    BadNote,
    BadProof,
    Digest,
    EventType,
    Forgotten,
    LocatedFrame,
    NotFound,
    ProofInvalid,
    VerifierKey,
    chain_hash,
    check_record,
    format_id,
    format_instant,
    format_note,
    format_verifier_key,
    is_id_prefix,
    parse_checkpoint,
    parse_event_header,
    parse_note,
    parse_verifier_key,
    prove_record,
    read_records,
    sign_note,
    verify_note,
)

from ._answers import Answer
from ._engine import Engine

Json: TypeAlias = dict[str, object]

_FORMAT: Final = "muniment receipt v1"
_FIELDS: Final = {
    "receipt", "id", "type", "seq", "recorded_at", "hash", "event", "before", "path", "checkpoint",
}  # fmt: skip
_ERASURE_FIELDS: Final = {"erased", "statement"}


class Proof(Answer, frozen=True, kw_only=True):
    """
    What a receipt proves: this event is number `seq` of the log `origin`, whose first `size` events have this root.

    `signed_by` is the verifier key that vouches for the root, and for what was erased. Without it the root is only as
    good as where else you know it from: compare it with a checkpoint that you have. `unproven` says what is left open.
    """

    id: str
    type: str
    seq: int
    recorded_at: str
    hash: str
    origin: str
    size: int
    root: str
    signed_by: str | None
    erased: Json | None
    unproven: tuple[str, ...]


def prove(engine: Engine, event: str) -> Json:
    """
    Return the receipt of an event, by its id or a unique prefix: a memory's, a decision's, a forget's, any.

    Reads the whole log. Writes a checkpoint of the head, unless the store was opened for reading.

    Raises:
        NotFound: no event has that id. BadArgument: several ids begin so.
    """
    if not is_id_prefix(event):
        raise NotFound(id=event)
    with engine.mutex:
        checkpoint = engine.checkpoint()
        records, located, index = _find(engine, event, checkpoint.size)
        frame = located.frame
        at = frame.first_seq + index - 1
        raw = frame.events[index]
        header = parse_event_header(raw)
        receipt: Json = {
            "receipt": _FORMAT,
            "id": format_id(header.id),
            "type": EventType(header.type).name.lower(),
            "seq": header.seq,
            "recorded_at": format_instant(header.recorded_at),
            "hash": records[at].hex(),
            "event": _base64(raw),
            "before": (records[at - 1] if at else engine.log.start.chain).hex(),
            "path": [_base64(one) for one in prove_record(len(records), at, read_records(records))],
            "checkpoint": checkpoint.note,
        }
        envelope = engine.sealer.open_envelope(header, raw)
        if isinstance(envelope, Forgotten):
            erased = _erased(envelope, header.recorded_at, header.seq)
            text = _statement(checkpoint.origin, records[at].hex(), erased)
            receipt["erased"] = erased
            receipt["statement"] = text if engine.options.log_key is None else (
                format_note(sign_note(text, checkpoint.origin, engine.options.log_key)).decode()
            )  # fmt: skip
        return receipt


def check_proof(receipt: str | bytes | Mapping[str, object], verifier_key: str | None = None) -> Proof:
    """
    Return what a receipt proves. Pure: needs neither the log nor a store.

    With `verifier_key`, as text, the checkpoint and the statement must be signed by it.

    Raises:
        ProofInvalid: it proves nothing, or says something that its own bytes do not.
    """
    try:
        key = None if verifier_key is None else parse_verifier_key(verifier_key.strip())
    except BadNote as error:
        raise BadArgument(argument="verifier_key", detail=str(error)) from error
    fields = _fields(receipt)
    try:
        return _check(fields, key)
    except (BadNote, BadProof, ValueError, TypeError) as error:
        raise ProofInvalid(detail=str(error)) from error


def _check(fields: Json, key: VerifierKey | None) -> Proof:
    raw, before = _unbase64(fields["event"]), bytes.fromhex(_text(fields["before"]))
    if len(before) != 32 or before.hex() != fields["before"]:
        raise ValueError("`before` is not a chain hash")
    header = parse_event_header(raw)
    digest = chain_hash(Digest(before), raw)
    tip = parse_checkpoint(_signed_text(_text(fields["checkpoint"]), key))
    path = [_unbase64(one) for one in _list(fields["path"])]
    check_record(path, tip.size, tip.root, header.seq - 1, digest)
    said = {
        "id": format_id(header.id),
        "type": EventType(header.type).name.lower(),
        "seq": header.seq,
        "recorded_at": format_instant(header.recorded_at),
        "hash": digest.hex(),
    }
    for name, value in said.items():
        if fields[name] != value or type(fields[name]) is not type(value):
            raise ValueError(f"expected `{name}` {value}, got {fields[name]!r}")
    unproven = [] if key is not None else ["who vouches for the root: no verifier key was given"]
    erased = _check_erased(fields, header.type, tip.origin, digest.hex(), key, unproven)
    return Proof(
        id=str(said["id"]), type=str(said["type"]), seq=header.seq, recorded_at=str(said["recorded_at"]),
        hash=digest.hex(), origin=tip.origin, size=tip.size, root=tip.root.hex(),
        signed_by=None if key is None else format_verifier_key(key), erased=erased, unproven=tuple(unproven),
    )  # fmt: skip


def _check_erased(
    fields: Json, kind: int, origin: str, digest: str, key: VerifierKey | None, unproven: list[str]
) -> Json | None:
    if "erased" not in fields:
        return None
    if kind != EventType.FORGOTTEN:
        raise ValueError("only a forget has `erased`")
    erased = fields["erased"]
    if not isinstance(erased, dict):
        raise ValueError("`erased` is not an object")
    found = cast("Json", erased)
    if (found.get("seq"), found.get("recorded_at")) != (fields["seq"], fields["recorded_at"]):
        raise ValueError("`erased` tells of another place or time than the event")
    if _signed_text(_text(fields["statement"]), key) != _statement(origin, digest, found):
        raise ValueError("the statement is about something else than `erased` says")
    if key is None:
        unproven.append("who vouches for what was erased: the event itself is sealed")
    return found


def _find(engine: Engine, event: str, size: int) -> tuple[list[bytes], LocatedFrame, int]:
    records: list[bytes] = []
    found: list[tuple[LocatedFrame, int]] = []
    log = engine.reader().log
    try:
        for located in log.read_new():
            if len(records) >= size:
                break
            for index, raw in enumerate(located.frame.events):
                if format_id(parse_event_header(raw).id).startswith(event):
                    found.append((located, index))
            records.extend(located.frame.chain)
    finally:
        log.close()
    if not found:
        raise NotFound(id=event)
    if len(found) > 1:
        raise BadArgument(argument="id", detail=f"`{event}` begins {len(found)} ids: type more of it")
    return records, *found[0]


def _erased(envelope: Forgotten, recorded_at: int, seq: int) -> Json:
    return {
        "ids": [format_id(target) for target, _ in envelope.targets],
        "scope": envelope.scope,
        "by": envelope.principal or envelope.actor,
        "reason": envelope.reason,
        "recorded_at": format_instant(recorded_at),
        "seq": seq,
    }


def _statement(origin: str, digest: str, erased: Json) -> str:
    return f"{origin} erasure\n{digest}\n{json.dumps(erased, sort_keys=True, separators=(',', ':'))}\n"


def _signed_text(text: str, key: VerifierKey | None) -> str:
    """Return the text of a note or of an unsigned one; with a key only what it signed."""
    if key is not None:
        return verify_note(parse_note(text.encode()), key)
    return parse_note(text.encode()).text if "\n\n" in text else text


def _fields(receipt: str | bytes | Mapping[str, object]) -> Json:
    if isinstance(receipt, Mapping):
        found = dict(receipt)
    else:
        try:
            data: object = json.loads(receipt)
        except (ValueError, RecursionError) as error:
            raise ProofInvalid(detail=f"it is not JSON: {error}") from error
        if not isinstance(data, dict):
            raise ProofInvalid(detail="it is not a JSON object")
        found = cast("Json", data)
    if found.get("receipt") != _FORMAT:
        raise ProofInvalid(detail=f"it is not a `{_FORMAT}`")
    # A field that nobody checks would be read as if it had been proven.
    if set(found) not in (_FIELDS, _FIELDS | _ERASURE_FIELDS):
        odd = sorted(set(found) ^ _FIELDS - _ERASURE_FIELDS)
        raise ProofInvalid(detail=f"fields are missing, or not of a receipt: {', '.join(map(str, odd))}")
    return found


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _unbase64(value: object) -> bytes:
    try:
        data = base64.b64decode(_text(value), validate=True)
    except binascii.Error as error:
        raise ValueError(f"not base64: {error}") from error
    if _base64(data) != value:
        raise ValueError("not the one base64 of its bytes")
    return data


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected text, got {type(value).__name__}")
    return value


def _list(value: object) -> Sequence[object]:
    if not isinstance(value, list):
        raise ValueError(f"expected a list, got {type(value).__name__}")
    return cast("list[object]", value)
