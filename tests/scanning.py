"""Searches every file of a store for a text, in whatever encoding somebody might have left it."""

from __future__ import annotations

import base64
from pathlib import Path


def spellings(text: str) -> dict[str, bytes]:
    """Return the bytes of a text in several encodings, by name."""
    plain = text.encode()
    found = {"utf-8": plain, "lower": text.lower().encode(), "upper": text.upper().encode()}
    found |= {name: text.encode(name) for name in ("utf-16-le", "utf-16-be", "utf-32-le")}
    found |= {"hex": plain.hex().encode(), "reversed": plain[::-1]}
    for shift in range(3):
        # Base64 of a text inside other bytes begins at one of three phases; the letters at its ends depend on those.
        found[f"base64+{shift}"] = base64.b64encode(bytes(shift) + plain)[4:-4]
    return {name: data for name, data in found.items() if len(data) >= 4}


def find_text(store: Path, *texts: str) -> list[str]:
    """Return where any of the texts stands in any encoding: `file: encoding`."""
    return [
        f"{path.relative_to(store)}: {name}"
        for path, data in _files(store)
        for text in texts
        for name, wanted in spellings(text).items()
        if wanted in data
    ]


def find_bytes(store: Path, wanted: bytes) -> list[str]:
    """Return the files that hold some bytes."""
    return [str(path.relative_to(store)) for path, data in _files(store) if wanted in data]


def _files(store: Path) -> list[tuple[Path, bytes]]:
    return [(path, path.read_bytes()) for path in sorted(store.rglob("*")) if path.is_file()]
