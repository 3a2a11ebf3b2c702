"""What `import muniment` gives, loaded when it is first asked for: numpy and the engine come with it."""

from muniment.events import (
    Conflict,
    Corrupt,
    InvalidInput,
    Kind,
    LinkType,
    MunimentError,
    Provenance,
    Rank,
    Refused,
    Status,
    Unavailable,
    all_codes,
)
from muniment.gate import (
    Action,
    Free,
    KeyFile,
    OneOf,
    PathPrefix,
    Pattern,
    Policy,
    Range,
    Signed,
    Signer,
    Use,
)
from muniment.projections import PairModel, load_pair_model

from ._answers import (
    BatchReceipt,
    BeliefView,
    Briefing,
    Change,
    Contradiction,
    Decision,
    ErasureReceipt,
    EvidenceView,
    Hit,
    LinkView,
    ProposalView,
    RebuildReport,
    Receipt,
    Record,
    Refusal,
    Revision,
    Verification,
)
from ._auditing import Audit, AuditedEvidence, AuditedSignature
from ._context import WEAK, Context
from ._explaining import DecisionCiting, DecisionExplanation, LifeStep, MemoryExplanation
from ._guarded import guarded
from ._import_run import ImportReport, RefusedTurn, SkippedTurn
from ._importing import import_file
from ._operator import Operator, TombstoneView, Trace
from ._reach import Subtree
from ._recalling import Hits
from ._receipts import Proof, check_proof
from ._replayed import PastSession, PastStore
from ._session import Session
from ._signing import describe_request, sign_request
from ._store import Store
from ._store import open_store as open  # noqa: A004  # `muniment.open` is the door's name
from ._user import UserSession
from ._version import VERSION as __version__  # noqa: N811  # the name that tools look for
from ._witness import Checkpoint

__all__ = [
    "WEAK",
    "Action",
    "Audit",
    "AuditedEvidence",
    "AuditedSignature",
    "BatchReceipt",
    "BeliefView",
    "Briefing",
    "Change",
    "Checkpoint",
    "Conflict",
    "Context",
    "Contradiction",
    "Corrupt",
    "Decision",
    "DecisionCiting",
    "DecisionExplanation",
    "ErasureReceipt",
    "EvidenceView",
    "Free",
    "Hit",
    "Hits",
    "ImportReport",
    "InvalidInput",
    "KeyFile",
    "Kind",
    "LifeStep",
    "LinkType",
    "LinkView",
    "MemoryExplanation",
    "MunimentError",
    "OneOf",
    "Operator",
    "PairModel",
    "PastSession",
    "PastStore",
    "PathPrefix",
    "Pattern",
    "Policy",
    "Proof",
    "ProposalView",
    "Provenance",
    "Range",
    "Rank",
    "RebuildReport",
    "Receipt",
    "Record",
    "Refusal",
    "Refused",
    "RefusedTurn",
    "Revision",
    "Session",
    "Signed",
    "Signer",
    "SkippedTurn",
    "Status",
    "Store",
    "Subtree",
    "TombstoneView",
    "Trace",
    "Unavailable",
    "Use",
    "UserSession",
    "Verification",
    "__version__",
    "all_codes",
    "check_proof",
    "describe_request",
    "guarded",
    "import_file",
    "load_pair_model",
    "open",
    "sign_request",
]
