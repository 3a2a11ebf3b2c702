"""
The anchor: the newest checkpoint of a log, in a file that is kept where the log's attacker does not reach.

    unsigned                                      or the log's verifier key, NAME+ID+KEY
    muniment/<log id, 32 hexadecimal digits>      from here on a checkpoint: its text, or the note when it is signed
    <number of events>
    <root>

    — muniment/<log id> <signature>

From the second line on it is what any C2SP tool reads. The key is taken from the anchor itself: it was right when the
anchor was made, and whoever can write the file can write anything into it. An attacker who cannot write it cannot
make the log sign for him either, unless he has the log key.

Beside it, `ANCHOR.older` holds the sizes and roots of earlier ones, `SIZE ROOT` a line. They only help to say where a
log parts from the anchor: without the file, or with lines that make no sense, nothing is accepted that was not before.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from muniment.events import (
    AnchorMismatch,
    BadArgument,
    BadNote,
    Tip,
    VerifierKey,
    format_verifier_key,
    open_reading,
    parse_checkpoint,
    parse_note,
    parse_verifier_key,
    read_file,
    verify_note,
)

UNSIGNED: Final = "unsigned"
_MAX_BYTES: Final = 1 << 16


class Anchor(NamedTuple):
    """A checkpoint that was read, and the key that its signature was verified with; None for an unsigned head."""

    tip: Tip
    key: VerifierKey | None
    text: str


def format_anchor(checkpoint: str, key: VerifierKey | None) -> str:
    """Return the text of an anchor file."""
    return f"{UNSIGNED if key is None else format_verifier_key(key)}\n{checkpoint}"


def parse_anchor(data: bytes, key: VerifierKey | None = None) -> Anchor:
    """
    Return the anchor, its signature verified; also of a bare checkpoint, which is taken as signed when `key` is given.

    Raises:
        BadNote: it is neither, or the signature does not hold.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadNote("an anchor is UTF-8") from error
    first, _, rest = text.partition("\n")
    if first == UNSIGNED:
        return Anchor(parse_checkpoint(rest), None, rest)
    if "+" in first:
        named = parse_verifier_key(first)
        if key is not None and key != named:
            raise BadNote(f"it names key {first}, not {format_verifier_key(key)}")
        return _verified(rest, named)
    return _verified(text, key)


def read_anchor(path: Path, key: VerifierKey | None = None) -> Anchor | None:
    """
    Return the anchor in a file, or None when there is no such file.

    Raises:
        AnchorMismatch: the file holds no anchor, or its signature does not hold.
        BadArgument: it cannot be read.
    """
    try:
        with open_reading(path) as file:
            data = file.read(_MAX_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadArgument(argument="anchor", detail=f"`{path}` cannot be read: {error.strerror}") from error
    try:
        return parse_anchor(data, key)
    except BadNote as error:
        raise AnchorMismatch(
            verdict="not comparable", size="unknown", detail=f"`{path.name}` is refused: {error}"
        ) from error


def older_path(anchor: Path) -> Path:
    """Return where the earlier checkpoints of an anchor are kept."""
    return anchor.with_name(f"{anchor.name}.older")


def format_older(tips: Iterable[Tip]) -> str:
    """Return the text of the file beside the anchor, the oldest checkpoint first."""
    return "".join(f"{tip.size} {base64.b64encode(tip.root).decode()}\n" for tip in sorted(tips, key=_size))


def read_older(anchor: Path, origin: str) -> list[Tip]:
    """Return the earlier checkpoints that are kept beside an anchor, as far as they can be read."""
    try:
        lines = read_file(older_path(anchor)).decode("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    found: list[Tip] = []
    for line in lines:
        with contextlib.suppress(BadNote):
            found.append(parse_checkpoint(f"{origin}\n" + line.replace(" ", "\n", 1) + "\n"))
    return found


def _size(tip: Tip) -> int:
    return tip.size


def _verified(text: str, key: VerifierKey | None) -> Anchor:
    if "\n\n" not in text:
        if key is not None:
            raise BadNote("it is an unsigned head")
        return Anchor(parse_checkpoint(text), None, text)
    note = parse_note(text.encode())
    if key is None:
        # Its signature says nothing to somebody without a key: it counts as unsigned.
        return Anchor(parse_checkpoint(note.text), None, text)
    return Anchor(parse_checkpoint(verify_note(note, key)), key, text)
