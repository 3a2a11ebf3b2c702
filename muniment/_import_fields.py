"""What a turn becomes: the content and the fields of a memory."""

from __future__ import annotations

from typing import Final, NamedTuple, cast

from muniment.events import to_datetime
from muniment.gate import MemoryFields, MemoryRequest, Value

from ._importers import Note, Turn

# A speaker of this name is a role of the format and not somebody: "user: ..." would say nothing to search.
_ROLES: Final = frozenset({"", "user", "assistant", "human", "system", "developer", "tool"})


class Item(NamedTuple):
    """A turn that may be written."""

    turn: Turn
    where: str
    request: MemoryRequest
    spoken: bytes
    """The key of what was said, without the speaker's name."""
    links: tuple[tuple[str, str], ...]
    masked: bool


def content_of(turn: Turn) -> str:
    """Return what is remembered of a turn: its words, after the speaker's name where there is one."""
    # Who spoke is half of what a question asks about, and search reads the content.
    return turn.text if turn.speaker in _ROLES else f"{turn.speaker}: {turn.text}"


def fields_of(turn: Turn, name: str) -> MemoryFields:
    """Return what is remembered beside the words; what names other turns is left out."""
    fields: MemoryFields = {
        "source": f"{name}:{turn.conversation}/{turn.position}",
        "valid_from": None if turn.said_at is None else to_datetime(turn.said_at),
    }
    if turn.note is not None:
        return fields | _fields_of_note(turn.note)
    told = {
        "speaker": turn.speaker, "role": turn.role, "session": turn.session, "conversation": turn.conversation,
        "via": turn.via, **turn.told,
    }  # fmt: skip
    return fields | MemoryFields(kind="chat", metadata={key: said for key, said in told.items() if said})


def _fields_of_note(note: Note) -> MemoryFields:
    fields: MemoryFields = {
        "kind": note.kind,
        "about": note.about,
        "value": cast("Value", note.value),
        "many": note.many,
        "provenance": note.provenance,
        "importance": note.importance,
        "applies_when": note.applies_when,
        "valid_to": None if note.valid_to is None else to_datetime(note.valid_to),
        "tags": note.tags,
        "metadata": note.metadata,
        "reason": note.reason,
    }
    if note.command is not None:
        fields |= {"source": note.source, "command_id": note.command}
    return fields
