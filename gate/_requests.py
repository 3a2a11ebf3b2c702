"""What a caller asks to be written, checked for everything that needs no state: text, times, data, secrets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Final, TypeAlias, TypedDict, cast

import msgspec

from muniment.events import (
    NORMAL_FORM,
    BadArgument,
    BadValue,
    Id,
    Instant,
    Kind,
    LinkType,
    MemoryBody,
    Provenance,
    ProvenanceAboveCeiling,
    SecretFound,
    ValueKeys,
    check_interval,
    check_text,
    format_data,
    parse_data,
    parse_id,
    parse_instant,
)

from ._actions import Action
from ._handles import Handle
from ._masking import mask_action, refuse_secrets
from ._secrets import SecretScanner, mask

_MAX_LABEL: Final = 500
_MAX_LIST: Final = 1_000
_NOT_MASKED: Final = "remove it, since metadata is never masked, or exempt the rule if it is wrong"
Value: TypeAlias = str | int | float | bool | date | datetime | None


class MemoryFields(TypedDict, total=False):
    """What a caller may say of a memory beside its content."""

    kind: str | None
    about: tuple[str, str] | None
    value: Value
    many: bool
    provenance: str
    importance: float | None
    applies_when: str | None
    valid_from: Instant | None
    valid_to: Instant | None
    source: str | None
    derived_from: Sequence[str]
    links: Sequence[tuple[str, str]]
    metadata: Mapping[str, object] | None
    tags: Sequence[str]
    command_id: str | None
    supersedes: str | None
    reason: str | None


class MemoryRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A memory that may be written, once its text, times, data and secrets were found good."""

    handle: Handle
    body: MemoryBody
    kind: str | None
    provenance: Provenance
    valid_from: int | None
    valid_to: int | None
    text_key: bytes
    belief_key: bytes | None
    value_key: bytes | None
    many: bool
    source_key: bytes | None
    importance: float | None
    derived_from: tuple[Id, ...]
    links: tuple[tuple[str, bytes], ...]
    command_id: str | None
    payload_key: bytes
    supersedes: Id | None = None
    recalled: tuple[bytes, ...] = ()


class Preparer:
    """Turns a caller's arguments into requests, for one store's value keys and secret detectors."""

    def __init__(self, values: ValueKeys, secrets: SecretScanner, *, mask_secrets: bool) -> None:
        self._values, self._secrets, self._mask = values, secrets, mask_secrets

    def memory(
        self, handle: Handle, content: str, fields: MemoryFields, *, recalled: tuple[bytes, ...] = ()
    ) -> MemoryRequest:
        """
        Return a checked request.

        Raises:
            BlankContent, BadText, BadTime, BadValue, BadArgument: an argument cannot be used as it is.
            ProvenanceAboveCeiling: the handle may not claim that sort of evidence.
            SecretFound: a text holds a credential, and the store does not mask them.
        """
        claimed = check_provenance(handle, fields.get("provenance", Provenance.OBSERVATION))
        start, end = _check_times(fields.get("valid_from"), fields.get("valid_to"))
        body = self._body(content, fields)
        text_key, belief_key, value_key = self.digests_of(body)
        kind, supersedes, command_id = fields.get("kind"), fields.get("supersedes"), fields.get("command_id")
        many, importance = fields.get("many", False), fields.get("importance")
        parents, links = fields.get("derived_from", ()), fields.get("links", ())
        request = MemoryRequest(
            handle=handle,
            body=body,
            kind=None if kind is None else check_choice(kind, Kind, "kind"),
            provenance=claimed,
            valid_from=start,
            valid_to=end,
            text_key=text_key,
            belief_key=belief_key,
            value_key=value_key,
            many=many if many is False else check_flag(many, "many"),
            source_key=None if body.source is None else self._values.source_key(body.source),
            importance=None if importance is None else _check_importance(importance),
            derived_from=() if parents == () else tuple(map(parse_id, check_list(parents, "derived_from"))),
            links=() if links == () else tuple(_links(links)),
            command_id=None if command_id is None else self.command_id(command_id),
            payload_key=b"",
            supersedes=None if supersedes is None else parse_id(supersedes),
            recalled=recalled,
        )
        if request.command_id is None and handle.principal is None:
            return request  # nothing will ask whether another request said the same
        return msgspec.structs.replace(request, payload_key=self._payload_key(request))

    def _body(self, content: str, fields: MemoryFields) -> MemoryBody:
        value, metadata, tags = fields.get("value"), fields.get("metadata"), fields.get("tags", ())
        source, applies_when, reason = fields.get("source"), fields.get("applies_when"), fields.get("reason")
        subject, attribute = _check_about(fields.get("about"), value, inherits=fields.get("supersedes") is not None)
        clean = self._clean
        return MemoryBody(
            content=clean(content, "content"),
            subject=None if subject is None else clean(subject, "subject"),
            attribute=None if attribute is None else clean(attribute, "attribute"),
            value=None if value is None else format_data(self._clean_value(value), what="value"),
            source=None if source is None else clean(source, "source"),
            tags=() if tags == () else tuple([clean(tag, "tag") for tag in check_list(tags, "tags")]),
            metadata=None if not metadata else self._metadata(metadata),
            applies_when=None if applies_when is None else clean(applies_when, "applies_when"),
            reason=None if reason is None else clean(reason, "reason"),
        )

    def digests_of(self, body: MemoryBody) -> tuple[bytes, bytes | None, bytes | None]:
        """Return the text key, belief key and value key of a body."""
        belief_key = value_key = None
        if body.subject is not None and body.attribute is not None:
            belief_key = self._values.belief_key(body.subject, body.attribute)
            value = body.content if body.value is None else cast("Value", parse_data(body.value))
            value_key = self._values.value_key(belief_key, value)
        return self._values.text_key(body.content), belief_key, value_key

    def inherit(self, request: MemoryRequest, body: MemoryBody, *, many: bool) -> MemoryRequest:
        """Return a superseding request with the subject and attribute of what it supersedes."""
        if request.body.subject is not None:
            return request
        if body.subject is None:
            if request.body.value is not None:
                raise BadArgument(argument="value", detail="what it supersedes has no `about` that it could inherit")
            return request
        joined = msgspec.structs.replace(request.body, subject=body.subject, attribute=body.attribute)
        _, belief_key, value_key = self.digests_of(joined)
        return msgspec.structs.replace(request, body=joined, many=many, belief_key=belief_key, value_key=value_key)

    def masked(self, action: Action) -> tuple[Action, bool]:
        """Return the action as it may be recorded, with its secrets masked, and whether there were any."""
        return mask_action(action, self._secrets)

    def masked_texts(self, texts: Sequence[str]) -> tuple[str, ...]:
        """Return what was cited and names nothing as it may be recorded: each once, with its secrets masked."""
        return tuple(dict.fromkeys(mask(text, self._secrets.find(text)) for text in texts))

    def check_signed(self, action: Action | None, *words: str | None) -> None:
        """Raise SecretFound, or what is wrong with a text, for what a signature would carry into the log."""
        if action is not None:
            refuse_secrets(action, self._secrets)
        for text in words:
            if text is not None:
                check_text(text, what="reason")
                hits = self._secrets.find(text)
                if hits:
                    rules = ", ".join(sorted({f"`{hit.rule}`" for hit in hits}))
                    raise SecretFound(what="a signed text", rules=rules)

    def name(self, text: str, what: str) -> str:
        """
        Return a scope, an actor, an origin or a command id; raises SecretFound when it holds a credential.

        It stands in envelopes, which outlive every forget but that of the whole scope; and a masked name is another.
        """
        hits = self._secrets.find(text)
        if hits:
            rules = ", ".join(sorted({f"`{hit.rule}`" for hit in hits}))
            raise SecretFound(what=what, rules=rules, hint="name it without the credential")
        return text

    def command_id(self, command_id: object) -> str | None:
        """Return a command id, checked; None when there is none."""
        checked = check_command_id(command_id)
        return None if checked is None else self.name(checked, "command_id")

    def words(self, text: str | None, what: str, *, required: bool = False) -> str | None:
        """Return a reason or other short text, checked like content."""
        if text is None:
            if required:
                raise BadArgument(argument=what, detail="a reason is required")
            return None
        return self._clean(text, what)

    def _payload_key(self, request: MemoryRequest) -> bytes:
        said = (
            request.body, request.kind, request.provenance, request.valid_from, request.valid_to, request.many,
            request.importance, request.derived_from, request.links, request.supersedes, request.handle.origin,
        )  # fmt: skip
        return self._values.payload_key(_encode(said))

    def _clean(self, text: object, what: str) -> str:
        if not isinstance(text, str):
            raise BadArgument(argument=what, detail=f"expected text, got {type(text).__name__}")
        check_text(text, what=what)
        return text if not self._secrets.find(text) else self.without_secrets(text, what)

    def without_secrets(self, text: str, what: str) -> str:
        """Return the text with its secrets masked; raises SecretFound where the store does not mask them."""
        hits = self._secrets.find(text)
        if not hits:
            return text
        if self._mask:
            return mask(text, hits)
        rules = ", ".join(sorted({f"`{hit.rule}`" for hit in hits}))
        raise SecretFound(what=what, rules=rules)

    def _clean_value(self, value: Value) -> Value:
        if isinstance(value, str):
            return self._clean(value, "value")
        if not isinstance(cast("object", value), (int, float, date)):
            expected = "text, a number, a truth value, a date or a datetime"
            raise BadArgument(argument="value", detail=f"expected {expected}, got {type(value).__name__}")
        return value

    def _metadata(self, metadata: Mapping[str, object]) -> bytes:
        if not isinstance(cast("object", metadata), dict):
            raise BadValue(what="metadata", detail="it is not a dict")
        packed = format_data(metadata, what="metadata")
        for text in _texts(metadata):
            hits = self._secrets.find(text)
            if hits:
                rules = ", ".join(sorted({f"`{hit.rule}`" for hit in hits}))
                raise SecretFound(what="metadata", rules=rules, hint=_NOT_MASKED)
        return packed


def check_provenance(handle: Handle, provenance: str) -> Provenance:
    """Return the provenance; raises when it is unknown or above the handle's ceiling."""
    claimed = _PROVENANCE.get(provenance) if type(provenance) is str else None
    if claimed is None:
        claimed = _PROVENANCE[check_choice(provenance, Provenance, "provenance")]
    if not handle.allows(claimed):
        raise ProvenanceAboveCeiling(
            origin=handle.origin,
            ceiling=handle.ceiling.value,
            given=claimed.value,
            hint="only what a user signs is user_confirmation: see `muniment confirm`",
        )
    return claimed


def check_choice(given: object, choices: type[Kind] | type[Provenance] | type[LinkType], what: str) -> str:
    """Return one of an enumeration's words; raises BadArgument naming all of them."""
    if not isinstance(given, str) or given not in _WORDS[choices]:
        words = ", ".join(choice.value for choice in choices)
        raise BadArgument(argument=what, detail=f"expected one of {words}, got `{given}`")
    return str(given)


def check_flag(given: object, what: str) -> bool:
    """Return a truth value; raises BadArgument for anything else, `"false"` included."""
    if not isinstance(given, bool):
        raise BadArgument(argument=what, detail=f"expected true or false, got `{given}`")
    return given


def check_list(given: Sequence[str], what: str) -> Sequence[str]:
    """Return a list of texts; a single text is refused, since its letters are never meant."""
    if given == ():
        return given
    if isinstance(given, (str, bytes)) or not isinstance(cast("object", given), (list, tuple)):
        raise BadArgument(argument=what, detail="expected a list")
    if len(given) > _MAX_LIST:
        raise BadArgument(argument=what, detail=f"more than {_MAX_LIST} entries")
    return given


def check_about(about: object) -> tuple[str, str]:
    """Return (subject, attribute); raises BadArgument for what is no pair of texts in that order."""
    if not isinstance(about, (tuple, list)) or len(cast("Sequence[object]", about)) != 2:
        raise BadArgument(argument="about", detail="expected (subject, attribute)")
    subject, attribute = cast("Sequence[str]", about)
    check_text(subject, what="subject")
    check_text(attribute, what="attribute")
    return subject, attribute


def check_command_id(command_id: object) -> str | None:
    """Return a command id; raises BadArgument when it is not a short printable text."""
    if command_id is None:
        return None
    if not isinstance(command_id, str):
        raise BadArgument(argument="command_id", detail="expected text")
    check_text(command_id, what="command_id", limit=_MAX_LABEL)
    return command_id


def current_form() -> int:
    """Return the number of the normal form that new digests are made under."""
    return NORMAL_FORM


def _check_about(about: tuple[str, str] | None, value: Value, *, inherits: bool) -> tuple[str | None, str | None]:
    if about is None:
        if value is not None and not inherits:
            raise BadArgument(argument="value", detail="a value needs `about=(subject, attribute)`")
        return None, None
    return check_about(about)


def _check_times(valid_from: Instant | None, valid_to: Instant | None) -> tuple[int | None, int | None]:
    start = None if valid_from is None else parse_instant(valid_from)
    end = None if valid_to is None else parse_instant(valid_to)
    if start is not None:
        check_interval(start, end)
    return start, end


def _check_importance(importance: float | None) -> float | None:
    if importance is None:
        return None
    if isinstance(importance, bool) or not isinstance(cast("object", importance), (int, float)):
        raise BadArgument(argument="importance", detail="expected a number from 0 to 1")
    if not 0 <= importance <= 1:
        raise BadArgument(argument="importance", detail=f"expected 0 to 1, got {importance}")
    return float(importance)


def _links(links: Sequence[tuple[str, str]]) -> Iterable[tuple[str, Id]]:
    for link in check_list(cast("Sequence[str]", links), "links"):
        pair = cast("object", link)
        if not isinstance(pair, (tuple, list)) or len(cast("Sequence[object]", pair)) != 2:
            raise BadArgument(argument="links", detail="expected (type, id) pairs")
        sort, end = cast("Sequence[str]", pair)
        yield check_choice(sort, LinkType, "links"), parse_id(end)


def _texts(data: object) -> Iterable[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, list):
        for item in cast("list[object]", data):
            yield from _texts(item)
    elif isinstance(data, dict):
        for key, item in cast("dict[object, object]", data).items():
            yield from _texts(key)
            yield from _texts(item)


_WORDS: Final = {choices: frozenset(choice.value for choice in choices) for choices in (Kind, Provenance, LinkType)}
_PROVENANCE: Final = {provenance.value: provenance for provenance in Provenance}
_encode = msgspec.msgpack.Encoder(order="deterministic").encode
