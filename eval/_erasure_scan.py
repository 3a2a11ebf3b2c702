"""
Searches raw bytes for anything that a forget must have destroyed, in whatever encoding somebody might have left it.

Text is looked for as UTF-8, UTF-16 in both byte orders, hexadecimal and base64 in its three alignments; bytes (vectors,
keys) as they are, in hexadecimal and in base64. Of what is longer than a piece, the beginning, the middle and the end
are looked for, so that a part is found too. Compressed blocks are inflated wherever a magic number begins one: zlib,
gzip, bzip2, xz, and, where their programs are installed, zstd and lz4 frames.
"""

from __future__ import annotations

import base64
import bz2
import lzma
import shutil
import subprocess
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

PIECES: Final = 3
"""In how many places a long needle is looked for: its beginning, its middle and its end."""
_PIECE: Final = 24
_SHORTEST: Final = 8
_CHUNK: Final = 1 << 20
_OVERLAP: Final = 64 << 10
_INFLATED: Final = 8 << 20
_ZLIB_MAGICS: Final = (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
_WORD: Final = np.dtype("<u8")


class Needle(NamedTuple):
    """Bytes that must not be there: what they are of (`kind`), whose, and in which encoding."""

    kind: str
    label: str
    encoding: str
    pattern: bytes


class Hit(NamedTuple):
    """A needle that was found, and where."""

    needle: Needle
    where: str
    offset: int


def text_needles(kind: str, label: str, text: str) -> list[Needle]:
    """Return the needles of a text."""
    found: list[Needle] = []
    for part in _pieces(text.encode()):
        spelled = part.decode(errors="ignore")
        found += _byte_needles(kind, label, spelled.encode(), "utf-8")
        found += [Needle(kind, label, name, spelled.encode(name)) for name in ("utf-16-le", "utf-16-be")]
    return [needle for needle in found if len(needle.pattern) >= _SHORTEST]


def byte_needles(kind: str, label: str, data: bytes) -> list[Needle]:
    """Return the needles of some bytes."""
    return [needle for part in _pieces(data) for needle in _byte_needles(kind, label, part, "raw")]


def vector_needles(label: str, vector: NDArray[np.float32]) -> list[Needle]:
    """Return the needles of a vector: as float32, as float16, and as int8 in the two usual scales."""
    largest = float(np.abs(vector).max()) or 1.0
    forms = {
        "vector-f32": vector.astype("<f4"),
        "vector-f16": vector.astype("<f2"),
        "vector-i8-unit": np.round(vector * 127).astype(np.int8),
        "vector-i8-max": np.round(vector * (127 / largest)).astype(np.int8),
    }
    return [needle for kind, form in forms.items() for needle in byte_needles(kind, label, form.tobytes())]


class Scanner:
    """Finds many needles at once: eight bytes of each against every offset, then the whole."""

    def __init__(self, needles: Iterable[Needle]) -> None:
        self._by_prefix: dict[int, list[Needle]] = defaultdict(list)
        for needle in needles:
            self._by_prefix[int.from_bytes(needle.pattern[:8], "little")].append(needle)
        self._prefixes = np.array(sorted(self._by_prefix), dtype=_WORD)
        self._begins = np.zeros(1 << 24, dtype=np.bool_)
        self._begins[(self._prefixes & np.uint64(0xFFFFFF)).astype(np.int64)] = True
        self.bytes_scanned = 0
        self.blocks_inflated = 0

    def scan_tree(self, directory: Path) -> list[Hit]:
        """Scan every file below a directory, names included."""
        hits: list[Hit] = []
        for path in sorted(directory.rglob("*")):
            hits += self.scan(str(path.relative_to(directory)).encode().ljust(16, b"\0"), f"name of {path.name}")
            if path.is_file() and not path.is_symlink():
                hits += self.scan_file(path, str(path.relative_to(directory)))
        return hits

    def scan_file(self, path: Path, name: str) -> list[Hit]:
        """Scan a file or a block device."""
        hits: list[Hit] = []
        with path.open("rb") as file:
            at, before = 0, b""
            while chunk := file.read(_CHUNK):
                if chunk.count(0) < len(chunk):
                    # What was in the overlap is found twice, by its offset once.
                    hits += self.scan(before + chunk, name, base=at - len(before))
                at += len(chunk)
                before = chunk[-_OVERLAP:]
                self.bytes_scanned += len(chunk)
        return sorted({(hit.offset, hit.needle.pattern, hit.where): hit for hit in hits}.values(), key=_by_offset)

    def scan(self, data: bytes, where: str, *, base: int = 0, inflate: bool = True) -> list[Hit]:
        """Scan some bytes."""
        hits = [Hit(needle, where, base + at) for at, needle in self._matches(data)]
        if inflate:
            for at, codec, plain in _inflated(data):
                self.blocks_inflated += 1
                hits += self.scan(plain, f"{where} inflated by {codec} at {base + at}", inflate=False)
        return hits

    def _matches(self, data: bytes) -> Iterator[tuple[int, Needle]]:
        if len(data) < _SHORTEST or not len(self._prefixes):
            return
        raw = np.frombuffer(data, dtype=np.uint8)
        for shift in range(8):
            count = (len(raw) - shift) // 8
            if count <= 0:
                continue
            words = raw[shift : shift + count * 8].view(_WORD)
            likely = np.flatnonzero(self._begins[(words & np.uint64(0xFFFFFF)).astype(np.int64)])
            found = words[likely]
            nearest = np.minimum(np.searchsorted(self._prefixes, found), len(self._prefixes) - 1)
            for index in likely[self._prefixes[nearest] == found].tolist():
                at = index * 8 + shift
                for needle in self._by_prefix[int.from_bytes(data[at : at + 8], "little")]:
                    if data.startswith(needle.pattern, at):
                        yield at, needle


def compressors() -> dict[str, Callable[[bytes], bytes]]:
    """Return the codecs that are here, by name: what a control is compressed with."""
    found: dict[str, Callable[[bytes], bytes]] = {
        "zlib": zlib.compress,
        "gzip": lambda data: zlib.compress(data, wbits=31),
        "bz2": bz2.compress,
        "xz": lzma.compress,
    }
    for program in ("zstd", "lz4"):
        if shutil.which(program):
            found[program] = partial(_piped, [program, "-c", "-q"])
    return found


def _inflated(data: bytes) -> Iterator[tuple[int, str, bytes]]:
    for magic in _ZLIB_MAGICS:
        yield from _tried(data, magic, "zlib", _unzlib(15))
    yield from _tried(data, b"\x1f\x8b\x08", "gzip", _unzlib(31))
    yield from _tried(data, b"BZh", "bz2", lambda rest: bz2.BZ2Decompressor().decompress(rest, _INFLATED))
    yield from _tried(data, b"\xfd7zXZ\0", "xz", lambda rest: lzma.LZMADecompressor().decompress(rest, _INFLATED))
    for magic, program in ((b"\x28\xb5\x2f\xfd", "zstd"), (b"\x04\x22\x4d\x18", "lz4")):
        if shutil.which(program):
            yield from _tried(data, magic, program, partial(_piped, [program, "-dcq"]))


def _tried(
    data: bytes, magic: bytes, codec: str, inflate: Callable[[bytes], bytes]
) -> Iterator[tuple[int, str, bytes]]:
    at = data.find(magic)
    while at != -1:
        try:
            plain = inflate(data[at:])
        except (zlib.error, lzma.LZMAError, OSError, ValueError, EOFError):
            plain = b""
        if len(plain) >= _SHORTEST:
            yield at, codec, plain
        at = data.find(magic, at + 1)


def _unzlib(wbits: int) -> Callable[[bytes], bytes]:
    # A decompressor, so that what follows the block, or its being cut short, does not matter.
    return lambda rest: zlib.decompressobj(wbits).decompress(rest, _INFLATED)


def _piped(command: list[str], data: bytes) -> bytes:
    return subprocess.run(command, input=data, capture_output=True, check=False).stdout


def _pieces(data: bytes) -> list[bytes]:
    if len(data) <= _PIECE:
        return [data]
    middle = len(data) // 2
    return [data[:_PIECE], data[middle : middle + _PIECE], data[-_PIECE:]]


def _byte_needles(kind: str, label: str, data: bytes, name: str) -> list[Needle]:
    found = [Needle(kind, label, name, data)]
    found += [Needle(kind, label, "hex", data.hex().encode()), Needle(kind, label, "HEX", data.hex().upper().encode())]
    for shift in range(3):
        # The letters at both ends also depend on the neighbours: only those between are certain.
        letters = base64.b64encode(bytes(shift) + data)
        inside = letters[(shift * 8 + 5) // 6 : (shift + len(data)) * 8 // 6]
        found.append(Needle(kind, label, f"base64+{shift}", inside))
    return found


def _by_offset(hit: Hit) -> int:
    return hit.offset
