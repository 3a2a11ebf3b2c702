"""A cursor over JSON too large to hold: it walks into arrays and objects, and decodes only the values asked for."""

from __future__ import annotations

import codecs
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO

from ._turns import MAX_VALUE_BYTES

_CHUNK = 1024 * 1024
# A number cut by the end of the buffer still decodes, to another number ("1." gives 1). The longest tail that a
# number can leave undecided is "e+", so a value that ends this close to the end is decoded again with more text.
_UNDECIDED_TAIL = 8
_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


class Malformed(Exception):
    """The file is not JSON at `position` (in characters)."""

    def __init__(self, position: int, why: str) -> None:
        super().__init__(why)
        self.position = position
        self.why = why


class JsonCursor:
    """
    Reads forward only, from a file opened in binary mode.

    `members` and `elements` stop before each value: the caller takes exactly one with `value`, `skip`, `members` or
    `elements` before going on. Lone surrogates come through as they are written, so that the caller can name them.
    """

    def __init__(self, file: BinaryIO, on_read: Callable[[int], None]) -> None:
        self._file = file
        self._on_read = on_read
        self._decode = codecs.getincrementaldecoder("utf-8-sig")()
        self._text = ""
        self._at = 0
        self._dropped = 0
        self._ended = False

    @property
    def position(self) -> int:
        """How many characters were taken so far."""
        return self._dropped + self._at

    def peek(self) -> str:
        """Return the next character that is not white space, or `""` at the end of the file."""
        while True:
            self._at = _end_of_space(self._text, self._at)
            if self._at < len(self._text):
                return self._text[self._at]
            if self._ended:
                return ""
            self._fill(_CHUNK)

    def value(self) -> object:
        """Decode the next value whole."""
        self.peek()
        while True:
            try:
                value, end = self._decode_here()
            except (ValueError, RecursionError) as error:
                if self._ended or isinstance(error, RecursionError):
                    raise self._malformed("not a JSON value, or cut short") from error
            else:
                if self._ended or len(self._text) - end > _UNDECIDED_TAIL:
                    self._at = end
                    return value
            if len(self._text) - self._at > MAX_VALUE_BYTES:
                raise self._malformed("a single value is too long, or is not JSON")
            # Doubling keeps a long value linear: every retry decodes from its start.
            self._fill(max(_CHUNK, len(self._text) - self._at))

    def members(self) -> Iterator[str]:
        """Yield the keys of the object that comes next."""
        self._take("{")
        if self.peek() == "}":
            self._take("}")
            return
        while True:
            key = self.value()
            if not isinstance(key, str):
                raise self._malformed("an object's key is not a string")
            self._take(":")
            yield key
            if self._closed_by("}"):
                return

    def elements(self) -> Iterator[int]:
        """Yield the index of each element of the array that comes next."""
        self._take("[")
        if self.peek() == "]":
            self._take("]")
            return
        index = 0
        while True:
            yield index
            index += 1
            if self._closed_by("]"):
                return

    def skip(self, depth: int = 3) -> None:
        """Pass over the next value; one larger than the buffer is walked through, `depth` levels down."""
        opening = self.peek()
        if not depth or opening not in {"{", "["}:
            self.value()
        elif not self._skip_in_buffer():
            for _ in self.members() if opening == "{" else self.elements():
                self.skip(depth - 1)

    def _skip_in_buffer(self) -> bool:
        try:  # unlike a number, an array or an object cannot decode to another one when it is cut
            _, end = self._decode_here()
        except (ValueError, RecursionError):
            return False
        self._at = end
        return True

    def _decode_here(self) -> tuple[object, int]:
        return _DECODER.raw_decode(self._text, self._at)

    def _take(self, wanted: str) -> None:
        if self.peek() != wanted:
            raise self._malformed(f"expected `{wanted}`")
        self._at += 1

    def _closed_by(self, closing: str) -> bool:
        if self.peek() == closing:
            self._at += 1
            return True
        self._take(",")
        return False

    def _fill(self, size: int) -> None:
        try:
            data = self._file.read(size)
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise self._malformed("the archive is damaged here") from error
        self._on_read(len(data))
        self._ended = not data
        try:
            more = self._decode.decode(data, final=self._ended)
        except UnicodeDecodeError as error:
            raise self._malformed("not UTF-8") from error
        self._dropped += self._at
        self._text = self._text[self._at :] + more
        self._at = 0

    def _malformed(self, why: str) -> Malformed:
        return Malformed(self.position, why)


def _end_of_space(text: str, start: int) -> int:
    match = _SPACE.match(text, start)
    return match.end() if match else start
