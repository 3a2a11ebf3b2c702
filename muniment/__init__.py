"""
Muniment: an embedded, event-sourced memory engine for AI agents, in which a memory is evidence.

Every change is an immutable, hashed event in one append-only log; what answers questions are projections that can be
dropped and rebuilt, as of any moment; and a guard decides which memory may justify a plan, an answer or an action.
"""

# ruff: noqa: F405  # the names come from where the star imports them

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ._public import *  # noqa: F403  # named below, one by one

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

_MODULES: Final = ("aio", "errors")
"""What `import muniment` alone gives too: `except muniment.errors.Tombstoned`."""


def __getattr__(name: str) -> object:
    # An MCP client waits a second for its handshake, and the engine takes a third of one to import: so it comes with
    # the first name that is used, and `muniment mcp` answers before it uses any.
    if name in _MODULES:
        return import_module(f"muniment.{name}")
    if name not in __all__:
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
    from . import _public  # noqa: PLC0415  # as above

    globals().update({public: getattr(_public, public) for public in __all__})
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
