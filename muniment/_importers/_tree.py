"""The current path through a conversation whose messages were edited or made again."""

from __future__ import annotations

from collections.abc import Mapping


def path_to(leaf: str | None, parents: Mapping[str, str | None]) -> list[str]:
    """Return the ids from the root down to the leaf; a circle ends it, and so does a parent that is not there."""
    path: list[str] = []
    seen: set[str] = set()
    at = leaf
    while at is not None and at in parents and at not in seen:
        seen.add(at)
        path.append(at)
        at = parents[at]
    return path[::-1]


def last_leaf(parents: Mapping[str, str | None]) -> str | None:
    """Return the last id in file order that is nobody's parent, for files that do not say where they stand."""
    inner = set(parents.values())
    return next((one for one in reversed(list(parents)) if one not in inner), None)
