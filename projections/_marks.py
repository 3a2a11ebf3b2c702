"""
What else a question may ask of a memory than its words: who speaks, whether it asks, names a time, or depends on a
condition.

Marks stand in the word index as terms that no text can hold, so that a forget takes them out with the words, and the
past knows those of its own time.
"""

from __future__ import annotations

from typing import Final, cast

import regex

from muniment.events import MemoryBody, parse_data

from ._tokens import analyze_query

ASKS: Final = "\x01asks"
NAMES_A_TIME: Final = "\x01time"
USER: Final = "\x01user"
CONDITIONAL: Final = "\x01when"

MAX_SPEAKER: Final = 64
# `Ann: ...` and `Ann Lee: ...`, as importers and most transcripts write who speaks.
_SPEAKER = regex.compile(r"\s*(\p{Lu}[\p{L}\p{M}\p{N}.'’-]*(?: \p{Lu}[\p{L}\p{M}\p{N}.'’-]*){0,2}): ")
_ASKS = regex.compile(r"[?？؟][\s)\]\"'”’]*$")
_TIME = regex.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|ago|recently|last|next|(?:mon|tues|wednes|thurs|fri|satur|sun)day|"
    r"weeks?|months?|years?|january|february|march|april|may|june|july|august|september|october|november|december|"
    r"\d{4}-\d{2}-\d{2})\b",
    regex.IGNORECASE,
)


def spoken_by(term: str) -> str:
    """Return the mark of a memory whose speaker's name holds the term."""
    return f"\x01by:{term}"


def marks_of(body: MemoryBody) -> list[str]:
    """Return the marks of a memory, each once."""
    told, content = _told(body), body.content
    speaker = told.get("speaker")
    if not isinstance(speaker, str):
        match = _SPEAKER.match(content) if ": " in content else None
        speaker = match[1] if match else ""
    found = [spoken_by(term) for term in analyze_query(speaker[:MAX_SPEAKER]).terms] if speaker else []
    if told.get("role") == "user":
        found.append(USER)
    # Most texts have no question mark, which is told sooner than by a pattern.
    if ("?" in content or "？" in content or "؟" in content) and _ASKS.search(content):
        found.append(ASKS)
    if _TIME.search(content):
        found.append(NAMES_A_TIME)
    if body.applies_when is not None:
        found.append(CONDITIONAL)
    return found


def thread_of(body: MemoryBody) -> str | None:
    """
    Return which conversation a memory is part of, or None: then no memory is its neighbour.

    It is what the metadata call `conversation`, and `session` where there is one; otherwise the part of the source
    before its last slash, as in `slack:C1/42`.
    """
    told = _told(body)
    conversation = told.get("conversation")
    if isinstance(conversation, str):
        session = told.get("session")
        return f"{conversation}\n{session}" if isinstance(session, str) else conversation
    if body.source is None or "/" not in body.source:
        return None
    return body.source.rpartition("/")[0]


def _told(body: MemoryBody) -> dict[str, object]:
    return {} if body.metadata is None else cast("dict[str, object]", parse_data(body.metadata))
