"""Time travel and maintenance: replay to a moment, verify, explain, trace, diff, rebuild."""

from ._past import Leaves, fold, follow_erasures
from ._verify import Report, orphan_bytes, verify_log

__all__ = ["Leaves", "Report", "fold", "follow_erasures", "orphan_bytes", "verify_log"]
