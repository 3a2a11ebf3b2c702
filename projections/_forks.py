"""
What a forked child keeps of its parent for ever: things of libraries that at their end wait for the parent's threads.

A DuckDB connection that was inherited crashes when it is closed; an onnxruntime session never comes back. What
onnxruntime does when the process ends is beyond reach: there a child that inherited a model that was used hangs, unless
it ends as those of `multiprocessing` do, by `os._exit`.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from typing import Final

_own: Final[weakref.WeakSet[object]] = weakref.WeakSet()


def keep_in_children(thing: object) -> None:
    """See to it that a child that is forked while the thing is there never lets go of it."""
    _own.add(thing)


def is_own(thing: object) -> bool:
    """Tell whether it was made in this process, and `let_go` was not called."""
    return thing in _own


def let_go(thing: object) -> None:
    """Learn that a thing of this process is about to end."""
    _own.discard(thing)


def _keep() -> None:
    for thing in list(_own):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
    _own.clear()


os.register_at_fork(after_in_child=_keep)
