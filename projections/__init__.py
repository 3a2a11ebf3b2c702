"""Disposable views of the log: the register, beliefs, tombstones and recall, each a fold and nothing else."""

from ._anew import VectorsAnew
from ._beliefs import Belief, Beliefs, BeliefsAt, is_listed
from ._bundle import Projections, same_condition, spans, without_collection
from ._contradictions import PROPOSED_FROM, judge
from ._dense import Dense
from ._embedder import Embedder, load_embedder, packaged_embedder
from ._facets import Facets
from ._graph import Graph
from ._graph_rows import Row, Scopes
from ._lookups import ById
from ._pair_model import PairModel, load_pair_model
from ._ranking import Fused, Rankable, question_of, rank
from ._recall import Mask, NothingSaved, Partition, Recall, WordsDigest
from ._register import Register
from ._resolve import Lookup, admitted_seq, breakpoints, is_quarantined, resolve, retired_from, superseded_by
from ._sections import Buffer, PlainSections, Repairing, SealedSections, Sections, write_sections
from ._segments import Fragment, indexed_text
from ._shapes import kind_number
from ._snapshots import PROJECTION_VERSIONS, Made, Snapshots, fingerprints
from ._standings import LIVE, Standing
from ._state import (
    FAR_FUTURE,
    LATEST,
    PENDING_TERM,
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
    Prohibition,
    Proposal,
    Request,
    may_change,
)
from ._tokens import ANALYZER_ID, MAX_QUERY_CHARS, MAX_QUERY_TERMS
from ._tombstones import Tombstone, Tombstones, from_ledger
from ._tree import Tree
from ._vector_file import remove_unfinished_vectors

__all__ = [
    "ANALYZER_ID",
    "FAR_FUTURE",
    "LATEST",
    "LIVE",
    "MAX_QUERY_CHARS",
    "MAX_QUERY_TERMS",
    "PENDING_TERM",
    "PROJECTION_VERSIONS",
    "PROPOSED_FROM",
    "Belief",
    "Beliefs",
    "BeliefsAt",
    "Buffer",
    "ById",
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
    "Fragment",
    "Fused",
    "Graph",
    "Link",
    "Lookup",
    "Made",
    "Mask",
    "Memory",
    "NothingSaved",
    "PairModel",
    "Partition",
    "PlainSections",
    "Prohibition",
    "Projections",
    "Proposal",
    "Rankable",
    "Recall",
    "Register",
    "Repairing",
    "Request",
    "Row",
    "Scopes",
    "SealedSections",
    "Sections",
    "Snapshots",
    "Standing",
    "Tombstone",
    "Tombstones",
    "Tree",
    "VectorsAnew",
    "WordsDigest",
    "admitted_seq",
    "breakpoints",
    "fingerprints",
    "from_ledger",
    "indexed_text",
    "is_listed",
    "is_quarantined",
    "judge",
    "kind_number",
    "load_embedder",
    "load_pair_model",
    "may_change",
    "packaged_embedder",
    "question_of",
    "rank",
    "remove_unfinished_vectors",
    "resolve",
    "retired_from",
    "same_condition",
    "spans",
    "superseded_by",
    "without_collection",
    "write_sections",
]
