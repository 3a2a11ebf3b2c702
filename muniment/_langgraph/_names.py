"""
Namespaces as scopes and keys as belief keys, spelled so that no two of them meet.

A label is a segment of a scope. Letters, digits and `-_@+=~,:;` stand for themselves, all else is `%XX` for each byte
of its UTF-8:

    ("users", "ann/1")   acme/graph/users/ann%2F1

Keys of beliefs are compared in their normal form, which folds case among other things. So everything but small ASCII
letters, digits, `-` and `_` is `%xx` in a key:

    "Doc 1"              langgraph/%44oc%201
"""

from __future__ import annotations

import re
import string
import unicodedata
from typing import Final

from muniment.events import BadText, parse_scope

Namespace = tuple[str, ...]

_ATTRIBUTE: Final = "item"
_IN_LABELS: Final = frozenset(string.ascii_letters + string.digits + "-_@+=~,:;")
_IN_KEYS: Final = frozenset(string.ascii_lowercase + string.digits + "-_")
_FILLERS: Final = frozenset("\u115f\u1160")  # letters by category that nobody sees
_QUOTED: Final = re.compile("((?:%[0-9A-F]{2})+)")


def format_namespace(root: str, namespace: Namespace) -> str:
    """
    Return the scope of a namespace below a root.

    Raises:
        ScopeMalformed: it has more segments, or longer ones, than a scope may have.
    """
    return parse_scope("/".join((root, *map(_format_label, namespace))))


def parse_namespace(root: str, scope: str) -> Namespace | None:
    """Return the namespace that a scope spells below a root; None for any other scope, and for the root itself."""
    if not scope.startswith(root + "/"):
        return None
    try:
        labels = tuple(_parse_label(segment) for segment in scope[len(root) + 1 :].split("/"))
    except UnicodeDecodeError:
        return None
    # A host may use scopes below the root for other things, in spellings that are none of ours.
    return labels if "/".join((root, *map(_format_label, labels))) == scope else None


def about_key(key: str) -> tuple[str, str]:
    """Return the subject and attribute under which an item is remembered."""
    return "langgraph/" + "".join(c if c in _IN_KEYS else _quoted(c, "key").lower() for c in key), _ATTRIBUTE


def _format_label(label: str) -> str:
    shown = "".join(c if c in _IN_LABELS or _is_letter(c) else _quoted(c, "namespace") for c in label)
    if unicodedata.normalize("NFKC", shown) == shown:
        return shown
    return "".join(c if c in _IN_LABELS else _quoted(c, "namespace") for c in label)


def _is_letter(character: str) -> bool:
    return not character.isascii() and character.isalnum() and character not in _FILLERS


def _parse_label(segment: str) -> str:
    parts = _QUOTED.split(segment)
    return "".join(bytes.fromhex(p.replace("%", "")).decode() if p.startswith("%") else p for p in parts)


def _quoted(character: str, what: str) -> str:
    try:
        return "".join(f"%{byte:02X}" for byte in character.encode())
    except UnicodeEncodeError:
        raise BadText(what=what, detail="a lone surrogate") from None
