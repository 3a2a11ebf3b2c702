"""Time travel and maintenance: replay to a moment, verify, explain, trace, diff, rebuild."""

from ._explain import Life, Step, life_of
from ._past import Leaves, fold, follow_erasures
from ._roots import roots_at
from ._verify import Report, orphan_bytes, verify_log

__all__ = [
    "Leaves",
    "Life",
    "Report",
    "Step",
    "fold",
    "follow_erasures",
    "life_of",
    "orphan_bytes",
    "roots_at",
    "verify_log",
]
