"""Disposable views of the log: the register, beliefs, tombstones and recall, each a fold and nothing else."""

from . import _recall, _register, _tombstones
from ._beliefs import LIVE, Belief, Beliefs, Standing
from ._bundle import Projections
from ._dense import Dense
from ._embedder import Embedder, load_embedder, packaged_embedder
from ._graph import Graph
from ._graph_rows import Row, Scopes
from ._ranking import Fused, Rankable, question_of, rank, strength_of
from ._recall import Arm, Facets, Mask, Recall, indexed_text, location
from ._register import Register
from ._state import (
    FAR_FUTURE,
    LATEST,
    Command,
    Confirmation,
    DecisionRecord,
    Enrolment,
    Erasure,
    EventRow,
    Fate,
    FateKind,
    Link,
    Memory,
    Place,
    Prohibition,
    Request,
    may_change,
)
from ._tokens import ANALYZER_ID
from ._tombstones import Tombstone, Tombstones, from_ledger

PROJECTION_VERSIONS = (_register.VERSION, _tombstones.VERSION, _recall.VERSION)
"""Raised, each, whenever the same log would give another projection."""

__all__ = [
    "ANALYZER_ID",
    "FAR_FUTURE",
    "LATEST",
    "LIVE",
    "PROJECTION_VERSIONS",
    "Arm",
    "Belief",
    "Beliefs",
    "Command",
    "Confirmation",
    "DecisionRecord",
    "Dense",
    "Embedder",
    "Enrolment",
    "Erasure",
    "EventRow",
    "Facets",
    "Fate",
    "FateKind",
    "Fused",
    "Graph",
    "Link",
    "Mask",
    "Memory",
    "Place",
    "Prohibition",
    "Projections",
    "Rankable",
    "Recall",
    "Register",
    "Request",
    "Row",
    "Scopes",
    "Standing",
    "Tombstone",
    "Tombstones",
    "from_ledger",
    "indexed_text",
    "load_embedder",
    "location",
    "may_change",
    "packaged_embedder",
    "question_of",
    "rank",
    "strength_of",
]
