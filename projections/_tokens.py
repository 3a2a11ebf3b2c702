"""Text into words for the word index, in any script. Everything is plain text: there is no query syntax."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

import regex

from ._stem import stem

# Changes whenever the tokens or the marks of any text would: an index made with another one is rebuilt.
ANALYZER_ID = f"words-4/unicode-{unicodedata.unidata_version}/regex-{regex.__version__}"

MAX_TOKEN = 64  # code points; a longer run of letters is cut there, so that no blob becomes a term
MAX_QUERY_TERMS = 128  # distinct terms of a query that are looked up, the first ones
MAX_QUERY_CHARS = 8_192  # code points of a query that are read
MAX_PARTS = 6  # `a/b/c`: a longer chain is indexed by its parts only

# Scripts written without spaces: any run of characters inside a sentence can be a word.
_SPACELESS = (
    r"\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\p{Yi}\u30fc\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
    r"\p{Tai_Le}\p{New_Tai_Lue}\p{Tai_Tham}\p{Tai_Viet}\p{Javanese}\p{Balinese}"
)
_LETTERS = r"[\p{L}\p{M}\p{N}]+"
_CHAIN = regex.compile(
    # Words joined by marks that belong to names, versions, paths, addresses; `C++` and `F#`; emoji.
    rf"{_LETTERS}(?:[-'’.,/_@:&\u2010\u2011]{_LETTERS})*+(?:(?:\+{{1,2}}|\#)(?![\p{{L}}\p{{N}}]))?|\p{{Extended_Pictographic}}"
)
_PART = regex.compile(_LETTERS)
# In thousands, or as in India after the first thousand in hundreds. With points it could be a version or an address.
_GROUPED = regex.compile(r"[0-9]{1,3}(?:(?:,[0-9]{3})+|(?:,[0-9]{2})+,[0-9]{3})(?:\.[0-9]+)?")
_RUN = regex.compile(rf"(?P<spaceless>[{_SPACELESS}][{_SPACELESS}\p{{M}}]*+)|(?P<word>[^{_SPACELESS}]++)")
_INVISIBLE = regex.compile(r"[\p{Default_Ignorable_Code_Point}\u0640]+")  # and the Arabic tatweel
_OTHER_DIGIT = regex.compile(r"[^\P{Nd}0-9]")
_HAN = regex.compile(r"\p{Han}")
_HANGUL = regex.compile(r"\p{Hangul}+")
_FOLDED = regex.compile(r"[\p{Latin}\p{Greek}]")
_ARABIC = regex.compile(r"\p{Arabic}")
_HEBREW = regex.compile(r"\p{Hebrew}")
_ARABIC_FORMS = str.maketrans("أإآٱىیکةۃ", "ااااييكهه")

# Light10 (Larkey, Ballesteros and Connell, 2002): articles with their conjunctions, longest first.
_ARABIC_ARTICLES = ("وبال", "وكال", "وال", "فال", "بال", "كال", "ولل", "ال", "لل")
_ARABIC_CLITICS = "وفبكلس"
_ARABIC_ENDINGS = ("كما", "هما", "ها", "هم", "هن", "نا", "كم", "ات", "ون", "ين", "ان", "ي", "ه", "ك")
_HEBREW_CLITICS = "ושהבכלמ"


class Query(NamedTuple):
    """The terms that are looked up; `clamped` says that the question had more than that."""

    terms: tuple[str, ...]
    clamped: bool


def analyze(text: str) -> list[str]:
    """Return the terms under which a text is found, repeated as often as they occur."""
    return list(_tokens(normal(text), indexing=True))


def analyze_query(text: str) -> Query:
    """
    Return the distinct terms of a question, in order, without English stop words unless there is nothing else.

    At most `MAX_QUERY_CHARS` of the text are read and `MAX_QUERY_TERMS` terms kept.
    """
    clamped = len(text) > MAX_QUERY_CHARS
    found: dict[str, None] = {}
    stopped: dict[str, None] = {}
    for token in _tokens(normal(text[:MAX_QUERY_CHARS]), indexing=False):
        if token in found:
            continue
        if token in STOP_TERMS:
            stopped[token] = None
        elif len(found) == MAX_QUERY_TERMS:
            clamped = True
            break
        else:
            found[token] = None
    return Query(tuple(found or stopped)[:MAX_QUERY_TERMS], clamped)


def normal(text: str) -> str:
    """Return the text in the one spelling that terms are made of: NFKC, case folded, nothing invisible in it."""
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    text = _INVISIBLE.sub("", text)
    return _OTHER_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), text)


def _tokens(text: str, *, indexing: bool) -> Iterator[str]:
    for chain in _CHAIN.findall(text):
        if chain.isascii() and chain.isalnum():
            yield _ascii_word(chain)
            continue
        parts = _PART.findall(chain)
        if not parts:
            yield chain  # an emoji
            continue
        if "'" in chain or "’" in chain:
            yield from _with_apostrophes(chain.replace("’", "'"), indexing=indexing)
            continue
        for part in parts:
            yield from _part(part, indexing=indexing)
        joined = len(parts) > 1 or chain[-1] in "+#"
        if joined and len(parts) <= MAX_PARTS and len(chain) <= MAX_TOKEN:
            if "," in chain and _GROUPED.fullmatch(chain):
                # Instead of the chain: with both, the number would count twice against the words around it.
                chain = chain.replace(",", "")  # noqa: PLW2901
                if "." in chain:
                    yield chain.partition(".")[0]
            yield _fold(chain)


def _with_apostrophes(chain: str, *, indexing: bool) -> Iterator[str]:
    """`don't` is also typed `dont`; in `l'homme` and `Ann's` the word is the longer part."""
    parts = _PART.findall(chain.removesuffix("'s"))
    contraction = len(parts) == 2 and parts[0].isascii() and len(parts[1]) <= 2
    if not contraction:
        for part in parts:
            if len(part) > 2 or len(parts) == 1:
                yield from _part(part, indexing=indexing)
    if len(parts) > 1:
        yield _fold("".join(parts))[:MAX_TOKEN]


def _part(part: str, *, indexing: bool) -> Iterator[str]:
    if part.isascii():
        yield _ascii_word(part)
        return
    for run in _RUN.finditer(part):
        if run["spaceless"]:
            yield from _grams(run[0], indexing=indexing)
        elif run[0].isascii():
            yield _ascii_word(run[0])
        else:
            yield from _word(run[0], indexing=indexing)


def _ascii_word(word: str) -> str:
    if not word.isalpha() or len(word) > MAX_TOKEN:
        return word[:MAX_TOKEN]
    term = stem(word)
    # `notes` and `note` are one word, and not the stop word whose stem theirs would be: no question would ask for it.
    return f"{term}~" if term in STOP_TERMS and word not in _STOP_WORDS else term


def _word(word: str, *, indexing: bool) -> Iterator[str]:
    if _HANGUL.fullmatch(word):
        yield word[:MAX_TOKEN]
        # Particles are written onto the noun: the pairs inside find it whatever follows.
        if len(word) > 2 or (indexing and len(word) > 1):
            yield from _pairs(word, singles=indexing, pairs=len(word) > 2)
    elif _ARABIC.search(word):
        yield from _arabic(_without_marks(word).translate(_ARABIC_FORMS)[:MAX_TOKEN], indexing=indexing)
    elif _HEBREW.search(word):
        yield from _hebrew(_without_marks(word)[:MAX_TOKEN], indexing=indexing)
    else:
        folded = _fold(word)[:MAX_TOKEN]
        yield _ascii_word(folded) if folded.isascii() else folded


def _grams(run: str, *, indexing: bool) -> Iterator[str]:
    """Pairs, and for scripts that spell by sound also triples; single characters find words of one."""
    yield from _pairs(run, singles=indexing or len(run) == 1, pairs=True)
    for i in range(len(run) - 2):
        triple = run[i : i + 3]
        if not _HAN.search(triple):
            yield triple


def _pairs(run: str, *, singles: bool, pairs: bool) -> Iterator[str]:
    if singles:
        yield from run
    if pairs:
        for i in range(len(run) - 1):
            yield run[i : i + 2]


def _arabic(word: str, *, indexing: bool) -> Iterator[str]:
    """The word, and what is left of it without article, clitics and endings; a question drops the article only."""
    seen = {word: None}
    for article in _ARABIC_ARTICLES:
        if word.startswith(article) and len(word) - len(article) >= 2:
            seen[word[len(article) :]] = None
            break
    if indexing:
        for clitics in (1, 2):
            if len(word) - clitics >= 2 and all(letter in _ARABIC_CLITICS for letter in word[:clitics]):
                seen[word[clitics:]] = None
        for each in tuple(seen):
            for ending in _ARABIC_ENDINGS:
                if each.endswith(ending) and len(each) - len(ending) >= 3:
                    seen[each[: -len(ending)]] = None
                    break
    yield from seen


def _hebrew(word: str, *, indexing: bool) -> Iterator[str]:
    """The word, and what is left of it without up to three prefixed particles; a question drops one at most."""
    yield word
    least = 2 if indexing else 3
    for dropped in range(1, 4 if indexing else 2):
        if len(word) - dropped < least or word[dropped - 1] not in _HEBREW_CLITICS:
            return
        yield word[dropped:]


def _without_marks(word: str) -> str:
    # A word of marks alone keeps them: an empty term would be found in every such text.
    return "".join(c for c in unicodedata.normalize("NFD", word) if unicodedata.category(c) != "Mn") or word


def _fold(word: str) -> str:
    """`café` and `cafe`, `Καφές` and `ΚΑΦΕΣ` are one word; marks of other scripts tell words apart, and stay."""
    if word.isascii():
        return word
    if _FOLDED.search(word):
        return _without_marks(word)
    return word.replace("ё", "е")


# The stop words of Snowball's English list that carry no content in a question.
_STOP_LIST = """
i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers herself it its
itself they them their theirs themselves what which who whom this that these those am is are was were be been being
have has had having do does did doing would should could ought a an the and but if or because as until while of at by
for with about against between into through during before after above below to from up down in out on off over under
again further then once here there when where why how all any both each few more most other some such no nor not only
own same so than too very can will just
"""
_STOP_WORDS = frozenset(_STOP_LIST.split())
STOP_TERMS = frozenset(stem(word) for word in _STOP_WORDS)
