"""
The normal form: the one rule by which two values count as the same, and the keyed digests made of it.

Repeats, tombstones and supersession compare nothing but these. docs/equality.md lists what is the same and what is not.
"""

from __future__ import annotations

import datetime
import math
import re
import unicodedata
from decimal import Decimal
from typing import Final, Literal, cast

from blake3 import blake3

from ._errors import BadArgument, BadText, BlankContent
from ._lookalikes import fold_lookalikes

MAX_TEXT_BYTES: Final = 4_194_304  # of UTF-8, in one text
NORMAL_FORM: Final = 1
Value = str | int | float | bool | datetime.date | datetime.datetime | None

# Default_Ignorable_Code_Point (Unicode 14), the interlinear annotation controls, the musical null notehead, and the
# control characters that are not white space. Format characters that show (Arabic number signs, Egyptian joiners) stay.
_INVISIBLE_CLASS: Final = (
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d159"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_INVISIBLE: Final = re.compile(f"[{_INVISIBLE_CLASS}]+")
_VISIBLE: Final = re.compile(rf"[^\s\u2800{_INVISIBLE_CLASS}]")
_ASCII_CONTROLS: Final = dict.fromkeys((*range(0x09), *range(0x0E, 0x1C), 0x7F))

# Signs that NFKC turns into digits: raised, lowered, and fractions, circled and dated ones.
_RAISED: Final = "\u00b2\u00b3\u00b9\u2070\u2074-\u2079"
_LOWERED: Final = "\u2080-\u2089"
_ENCLOSED: Final = (
    "\u00bc-\u00be\u2150-\u215f\u2189\u2460-\u2473\u2488-\u249b\u24ea\u3251-\u325f\u32b1-\u32cb\u3358-\u3370"
    "\u33e0-\u33fe\U0001f100-\U0001f10a"
)
_DIGIT_SIGN: Final = re.compile(f"[{_RAISED}{_LOWERED}{_ENCLOSED}]")
_BEFORE_RAISED: Final = re.compile(rf"(?<=\d)(?=[\u207a\u207b]?[{_RAISED}])")
_BEFORE_LOWERED: Final = re.compile(rf"(?<=\d)(?=[{_LOWERED}])")
_BESIDE_SIGN: Final = re.compile(rf"(?<=[\d{_ENCLOSED}])(?=[{_ENCLOSED}])|(?<=[{_RAISED}{_LOWERED}{_ENCLOSED}])(?=\d)")

# Long runs of what may be combining marks once decomposed. Halfwidth voicing marks are letters to `\w`.
_MARK_RUN: Final = re.compile("(?:[^\\w\\s\x00-\x7f]|[\uff9e\uff9f]){32,}")
_SHORT: Final = 1024
_FOREIGN_DIGITS: Final = re.compile(r"[^\D0-9]+")
_TYPOGRAPHY: Final = tuple(zip("‘’‛“”‟‐−\u2800", "'''\"\"\"-- ", strict=True))

_LETTER: Final = re.compile(r"[^\W\d_]")
# Not `?` and not `;` (which is also the Greek question mark): a question does not state what it asks.
_STOPS: Final = frozenset(".!,。、।॥۔،։።။។")
# After these a full stop is a path, a pattern or an argument (`git add .`, `cd a/..`), not the end of a sentence.
_NOT_A_SENTENCE: Final = frozenset(" /\\:*=")

_NUMBER: Final = re.compile(r"(-?)([1-9]\d*+|0|[1-9]\d{0,2}(?:,\d{3})++)(?:\.(\d++))?", re.ASCII)
_INSTANT: Final = re.compile(
    r"\d{4}-\d\d-\d\d[t ](?:[01]\d|2[0-3]):\d\d(?::\d\d(?:\.\d{1,6})?)?(?:z|[+-]\d\d(?::?\d\d)?)?", re.ASCII
)
_LONGEST_INSTANT: Final = 32


def normal_form(value: Value, *, form: int = NORMAL_FORM) -> str:
    """
    Return the text that all spellings of `value` share: `normal_form(a) == normal_form(b)` is what "same value" means.

    Normalising twice changes nothing. The result is for comparing, never for showing. It is empty for None and for
    blank text only. Text that is wholly a number or an instant equals that number or instant; naive instants are UTC.
    """
    if form != NORMAL_FORM:
        raise BadArgument(argument="form", detail=f"expected {NORMAL_FORM}, got {form}")
    if isinstance(value, str):
        return _text_form(value)
    return "" if value is None else _typed_form(value)


def is_blank(text: str) -> bool:
    """Return whether `text` has nothing that can be seen: it is empty, or white space, controls and invisible signs."""
    return _VISIBLE.search(text) is None


def without_invisible(text: str) -> str:
    """Return the text without the controls and invisible signs in it, each of which goes wherever it stands."""
    return text.translate(_ASCII_CONTROLS) if text.isascii() else _INVISIBLE.sub("", text)


def check_text(text: str, *, what: str, limit: int = MAX_TEXT_BYTES) -> None:
    """
    Refuse a text that could not be stored and given back exactly, or that says nothing; `what` names it in the error.

    Raises BadArgument for what is no text; BadText for a NUL, a lone surrogate, or more than `limit` bytes of UTF-8;
    BlankContent for blank text.
    """
    if type(text) is not str and not isinstance(cast("object", text), str):
        raise BadArgument(argument=what, detail=f"expected text, got {type(text).__name__}")
    if len(text) > limit:
        raise BadText(what=what, detail=f"at most {limit} bytes of UTF-8, got more than {limit}")
    if (nul := text.find("\0")) >= 0:
        raise BadText(what=what, detail=f"NUL at character {nul}")
    try:
        size = len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError as error:
        # Without the cause: it carries the whole text.
        raise BadText(what=what, detail=f"lone surrogate at character {error.start}") from None
    if size > limit:
        raise BadText(what=what, detail=f"at most {limit} bytes of UTF-8, got {size}")
    if _VISIBLE.search(text) is None:
        raise BlankContent(what=what)


class ValueKeys:
    """
    Keyed digests of values: equal for equal normal forms, and saying nothing to whoever lacks the secret.

    Every key is the first 16 bytes of BLAKE3 in keyed mode. Its input starts with a domain name and a NUL; no name is
    the beginning of another. Text is UTF-8, a lone surrogate as its three bytes. `u32(x)` is the length of x in bytes,
    four bytes, most significant first. The number of the form is no part of the input: it is kept beside the key.
    """

    __slots__ = ("_secret",)

    def __init__(self, secret: bytes) -> None:
        if len(secret) != 32:
            raise BadArgument(argument="secret", detail=f"expected 32 bytes, got {len(secret)}")
        self._secret = bytes(secret)

    def __repr__(self) -> str:
        return "ValueKeys(...)"

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("the value secret is never pickled or copied")

    def text_key(self, content: str, *, form: int = NORMAL_FORM) -> bytes:
        """Return the key of a whole text. Input: `text` 00, normal form of the content."""
        return self._digest(b"text\0" + _bytes(normal_form(content, form=form)))

    def belief_key(self, subject: str, attribute: str, *, form: int = NORMAL_FORM) -> bytes:
        """
        Return the key of what a belief is about. Input: `belief` 00, u32(s), s, u32(a), a.

        s and a are the normal forms of subject and attribute.
        """
        return self._digest(
            b"belief\0" + _field(normal_form(subject, form=form)) + _field(normal_form(attribute, form=form))
        )

    def value_key(self, belief_key: bytes, value: Value, *, form: int = NORMAL_FORM) -> bytes:
        """Return the key of a belief's value. Input: `value` 00, 16 bytes of belief key, normal form of the value."""
        if len(belief_key) != 16:
            raise BadArgument(argument="belief_key", detail=f"expected 16 bytes, got {len(belief_key)}")
        return self._digest(b"value\0" + belief_key + _bytes(normal_form(value, form=form)))

    def source_key(self, source: str) -> bytes:
        """Return the key of a source, which is compared exactly. Input: `source` 00, NFC of the source."""
        return self._digest(b"source\0" + _bytes(unicodedata.normalize("NFC", _sort_marks(source, "NFD"))))

    def payload_key(self, payload: bytes) -> bytes:
        """Return the key of a command's payload, 32 bytes, since users sign it. Input: `payload` 00, the payload."""
        return self._digest(b"payload\0" + payload, length=32)

    def _digest(self, data: bytes, length: int = 16) -> bytes:
        return blake3(data, key=self._secret).digest(length=length)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _field(text: str) -> bytes:
    data = _bytes(text)
    return len(data).to_bytes(4, "big") + data


def _typed_form(value: float | datetime.date) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            # Through Decimal: str(int) refuses more than 4300 digits.
            return str(value) if -(10**18) < value < 10**18 else str(Decimal(value))
        case float():
            return _number_form(f"{Decimal(repr(value)):f}") if math.isfinite(value) else repr(value)
        case datetime.datetime():
            return _instant_form(value)
        case datetime.date():
            return value.isoformat()


def _text_form(text: str) -> str:
    if not text.isascii():
        text = " ".join(fold_lookalikes(_fold(text)).split())
    elif not text.isprintable() or "  " in text:
        text = " ".join(without_invisible(text).lower().split())
    else:
        text = text.lower().strip(" ")
    text = _drop_stops(text)
    # Both start so; looking at one character spares most texts two patterns.
    if text[:1] not in "-0123456789":
        return text
    if len(text) <= _LONGEST_INSTANT and _INSTANT.fullmatch(text):
        try:
            return _instant_form(datetime.datetime.fromisoformat(text.upper()))
        except ValueError:
            return text
    return text if " " in text else _number_form(text)


def _fold(text: str) -> str:
    """
    Return the Unicode toNFKC_Casefold of `text`, with digits of every script and typographic quotes made ASCII.

    One round is a fixed point: it leaves every character in a form that a second round would not change, and composing
    such characters gives none that it would. The tests check both over all of Unicode.
    """
    text = without_invisible(text)
    if _DIGIT_SIGN.search(text):
        text = _keep_apart(text)
    text = unicodedata.normalize("NFKC", _sort_marks(text, "NFKD")).casefold()
    text = unicodedata.normalize("NFKC", text)
    text = _FOREIGN_DIGITS.sub(lambda run: "".join([str(unicodedata.decimal(digit)) for digit in run[0]]), text)
    for sign, plain in _TYPOGRAPHY:
        text = text.replace(sign, plain)
    return text


def _keep_apart(text: str) -> str:
    """Return `text` with raised, lowered and enclosed digits kept from running into others: 10³ mg is not 103 mg."""
    text = _BEFORE_RAISED.sub("^", text)
    text = _BEFORE_LOWERED.sub("_", text)
    return _BESIDE_SIGN.sub(" ", text)


def _sort_marks(text: str, decomposition: Literal["NFD", "NFKD"]) -> str:
    """
    Return an equivalent text that normalises in linear time.

    CPython sorts combining marks by insertion: a hostile megabyte of them, unsorted, would hold the writer for an hour.
    """

    def sort(run: re.Match[str]) -> str:
        out: list[str] = []
        marks: list[str] = []
        for char in "".join(unicodedata.normalize(decomposition, char) for char in run[0]):
            if unicodedata.combining(char):
                marks.append(char)
                continue
            out += sorted(marks, key=unicodedata.combining)
            marks.clear()
            out.append(char)
        return "".join(out + sorted(marks, key=unicodedata.combining))

    return text if len(text) <= _SHORT else _MARK_RUN.sub(sort, text)


def _drop_stops(text: str) -> str:
    """Return `text` without the stops and commas at its end; text that is nothing else is returned whole."""
    if text[-1:] not in _STOPS:
        return text
    if text[-1:] == "." and text[-2:-1].isalnum():
        return text[:-1]  # as most sentences end
    end = len(text)
    # `5!` is 120: only words exclaim.
    stops = _STOPS if _LETTER.search(text) else _STOPS - {"!"}
    while end and (text[end - 1] in stops or (text[end - 1] == " " and end < len(text))):
        if text[end - 1] != ".":
            end -= 1
            continue
        start = end
        while start and text[start - 1] == ".":
            start -= 1
        if not start or text[start - 1] in _NOT_A_SENTENCE:
            break
        end = start
    return text[:end] or text


def _number_form(text: str) -> str:
    """
    Return `text` without the commas between thousands, and without a fraction of nothing but zeros.

    What is not a number, or may be something else, comes back as it is: `007` and `1.10` may be identifiers, and
    `1.000` is a thousand to some and one to others.
    """
    found = _NUMBER.fullmatch(text)
    if found is None:
        return text
    sign, whole, fraction = found.groups()
    if fraction and not fraction.strip("0"):
        if len(fraction) == 3 and whole != "0" and len(whole) <= 3:
            return text
        fraction = ""
    whole = whole.replace(",", "")
    if fraction:
        return f"{sign}{whole}.{fraction}"
    return whole if whole == "0" else sign + whole


def _instant_form(instant: datetime.datetime) -> str:
    """Return the instant as `2026-03-12t08:30:00z`, with six digits of a second where it has a fraction."""
    if instant.utcoffset() is None:
        instant = instant.replace(tzinfo=datetime.UTC)
    try:
        instant = instant.astimezone(datetime.UTC)
    except OverflowError:
        # Within a day of the calendar's ends there is no such UTC time; it equals its own spelling only.
        return instant.isoformat().lower()
    return instant.isoformat().lower().replace("+00:00", "z")
