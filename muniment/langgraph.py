"""
For LangGraph: a store for `graph.compile(store=...)`, and a tool node with the guard in front of each call.

Needs the extra: `pip install 'muniment[langgraph]'`. See docs/langgraph.md.
"""

from muniment.events import ExtraMissing

try:
    from ._langgraph._store import MunimentStore
    from ._langgraph._tools import GuardedToolNode
except ImportError as error:
    raise ExtraMissing(
        extra="langgraph", detail=str(error), hint="install it: `pip install 'muniment[langgraph]'`"
    ) from error

__all__ = ["GuardedToolNode", "MunimentStore"]
