"""Time travel and maintenance: replay to a moment, verify, explain, trace, diff, rebuild."""

from ._past import Leaves, fold
from ._roots import roots_at
from ._verify import Report, orphan_bytes, verify_log

__all__ = ["Leaves", "Report", "fold", "orphan_bytes", "roots_at", "verify_log"]
