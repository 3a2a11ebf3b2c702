"""Which keys the beginning of a JSON file has, and how deep; it may be cut anywhere."""

from __future__ import annotations

import re
from typing import Final

_TOKEN: Final = re.compile(r'"((?:[^"\\]|\\.)*)"(\s*:)?|[\[\]{}]', re.DOTALL)
DEPTH: Final = 3


def keys_by_depth(text: str) -> list[dict[str, int]]:
    """
    Return, for each depth from 1, the keys of objects there, with how often each was seen.

    Depth counts the arrays and objects around a key, its own object included: the keys of `{...}` are at 1, those of
    `[{...}]` at 2, and those of `{"results": [{...}]}` at 3. A key inside a string is none.
    """
    found: list[dict[str, int]] = [{} for _ in range(DEPTH)]
    depth = 0
    for token in _TOKEN.finditer(text):
        opened = token[0]
        if opened in "[{":
            depth += 1
        elif opened in "]}":
            depth -= 1
        elif token[2] and 1 <= depth <= DEPTH:
            keys = found[depth - 1]
            keys[token[1]] = keys.get(token[1], 0) + 1
    return found
