"""The fixed words of the model: kinds, provenance, ranks, states, link types, and the number of each event type."""

from __future__ import annotations

from enum import IntEnum, StrEnum


class Kind(StrEnum):
    """What sort of thing a memory is."""

    NOTE = "note"
    CHAT = "chat"
    EPISODE = "episode"
    FACT = "fact"
    PREFERENCE = "preference"
    CONSTRAINT = "constraint"
    DECISION = "decision"
    COMMITMENT = "commitment"
    MISSION = "mission"
    LESSON = "lesson"
    WORKFLOW = "workflow"


class Provenance(StrEnum):
    """What sort of evidence a memory is, from weak to strong. It limits use, and never gives rank."""

    PLANNING = "planning"
    OBSERVATION = "observation"
    ACTION = "action"
    USER_CONFIRMATION = "user_confirmation"


class Rank(IntEnum):
    """How much authority an origin has."""

    EXTERNAL = 0
    AGENT = 1
    USER = 2
    SIGNED = 3


class Status(StrEnum):
    """The fate of a memory at an instant, derived by replay and never stored."""

    PENDING = "pending"
    ACTIVE = "active"
    CONDITIONAL = "conditional"
    DISPUTED = "disputed"
    SUPERSEDED = "superseded"
    RETIRED = "retired"
    REJECTED = "rejected"
    QUARANTINED = "quarantined"
    ERASED = "erased"


class LinkType(StrEnum):
    """How one memory stands to another."""

    SUPERSEDES = "supersedes"
    DERIVES_FROM = "derives-from"
    SUPPORTS = "supports"
    CONTRADICTS = "contradicts"
    ABOUT = "about"
    RELATES = "relates"


class EventType(IntEnum):
    """The number of each event type on disk."""

    OPENED = 1
    REMEMBERED = 2
    SUPERSEDED = 3
    RETIRED = 4
    FORGOTTEN = 5
    LINKED = 6
    UNLINKED = 7
    CONFIRMED = 8
    REVOKED = 9
    PROHIBITED = 10
    UNPROHIBITED = 11
    REVIEWED = 12
    LIFTED = 13
    ENROLLED = 14
    QUARANTINED = 15
    RELEASED = 16
    DECIDED = 17
    PROPOSED = 18
    REQUESTED = 19
    REFUSED = 20
    ROLLBACK_ACCEPTED = 21
