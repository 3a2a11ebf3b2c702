"""The append-only log: events, their bytes, their keys, and the one door through which they are written."""

from ._codec import FORMAT, NO_SLOT, Digest, EventHeader, parse_event_header
from ._disk import Disk, check_file_system
from ._door import (
    CONTENT_CHUNK,
    Batch,
    Door,
    Event,
    Follower,
    Moment,
    Plan,
    ScopeSlots,
    ledger_entries,
)
from ._errors import *  # noqa: F403  # every error is public, and listed once, in _errors.py
from ._errors import __all__ as _errors
from ._files import StoreFiles, create_store, find_store
from ._ids import Id, format_id, is_id_prefix, new_id, parse_id
from ._keys import KeyTree, LedgerTombstone
from ._lock import WriterLock
from ._log import Head, LocatedFrame, Location, Log, TornTail
from ._model import (
    BODIES,
    ENVELOPES,
    ActionBody,
    AnyEnvelope,
    Body,
    Confirmed,
    Decided,
    Draft,
    Enrolled,
    Envelope,
    EventType,
    Forgotten,
    Kind,
    Lifted,
    Linked,
    LinkType,
    MemoryBody,
    MemoryEnvelope,
    Opened,
    Prohibited,
    Proposed,
    Provenance,
    Quarantined,
    Rank,
    RefusedWrite,
    Released,
    Remembered,
    Requested,
    Retired,
    Reviewed,
    Revoked,
    RollbackAccepted,
    Status,
    Superseded,
    TombstoneEntry,
    Unlinked,
    Unprohibited,
    WordsBody,
)
from ._normal import NORMAL_FORM, Value, ValueKeys, check_text, is_blank, normal_form
from ._scope import STORE_SCOPE, ancestors, covers, parse_scope
from ._seal import Sealer, open_blob, seal_blob
from ._time import (
    FOREVER,
    MAX_INSTANT,
    MIN_INSTANT,
    Instant,
    check_interval,
    format_instant,
    parse_instant,
    to_datetime,
    wall_clock,
)
from ._values import Data, format_data, parse_data
