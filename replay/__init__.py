"""Time travel and maintenance: replay to a moment, verify, explain, trace, diff, rebuild."""

from ._bench import Bench, Held
from ._explain import Life, Step, life_of
from ._past import Leaves, fold, follow_erasures
from ._rebuild import PROJECTIONS, Progress, Rebuild, RebuildPlan, plan_rebuild
from ._roots import roots_at
from ._verify import Report, orphan_bytes, verify_log

__all__ = [
    "PROJECTIONS",
    "Bench",
    "Held",
    "Leaves",
    "Life",
    "Progress",
    "Rebuild",
    "RebuildPlan",
    "Report",
    "Step",
    "fold",
    "follow_erasures",
    "life_of",
    "orphan_bytes",
    "plan_rebuild",
    "roots_at",
    "verify_log",
]
