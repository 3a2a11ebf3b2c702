"""What the demo imports, asks and expects, of the shipped conversation or of a transcript of the user's own."""

from __future__ import annotations

import json
import tomllib
import unicodedata
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Final, cast

import msgspec

from muniment.events import BadArgument
from muniment.gate import Action, Policy, Use

from ._import_fields import content_of
from ._importers import Turn, detect_format, open_transcript
from ._importers._turns import as_object

SHIPPED: Final = Path(str(files("muniment") / "_demo"))
SCOPE: Final = "demo"
_READ_TURNS: Final = 2_000
_READ_BYTES: Final = 64 * 1024 * 1024
_CATEGORY_WITHOUT_ANSWER: Final = 5
_TO_FULL_WIDTH: Final = 0xFEE0


class Question(msgspec.Struct, frozen=True):
    """A question, the positions of the turns that answer it, and the answer where the demo knows it."""

    text: str
    positions: tuple[str, ...]
    answer: str | None


class Statement(msgspec.Struct, frozen=True):
    """A value of a belief, as it was said; `position` is that of the imported turn, or None for a turn of no file."""

    text: str
    value: str
    said_at: int
    position: str | None


class Correction(msgspec.Struct, frozen=True):
    """Two statements of one belief, and a day between them."""

    about: tuple[str, str]
    old: Statement
    new: Statement
    asked_on: str
    question: str


class Secret(msgspec.Struct, frozen=True):
    """A turn to forget. `needle` is what no hit may hold afterwards; `spellings` normalise to the turn's content."""

    position: str
    needle: str
    question: str
    reason: str
    spellings: dict[str, str]


class WebPage(msgspec.Struct, frozen=True):
    """What an agent read on the web, and the action that it asks for."""

    source: str
    text: str
    question: str
    action: Action
    weak: str


class Script(msgspec.Struct, frozen=True):
    """Everything that the demo needs to know beforehand."""

    transcript: Path
    format: str
    conversation: str
    split: bool
    user: str | None
    about: str
    questions: tuple[Question, ...]
    correction: Correction
    secret: Secret
    page: WebPage
    confirmed: Action
    unconfirmed: Action
    prohibited: Action
    prohibited_because: str
    policy: Policy
    last_said_at: int

    @property
    def scope(self) -> str:
        """The scope of the conversation that is asked about."""
        return f"{SCOPE}/{self.conversation}" if self.split else SCOPE


class _Line(msgspec.Struct):
    text: str
    line: int
    answer: str


class _Correction(msgspec.Struct):
    subject: str
    attribute: str
    old_line: int
    old_value: str
    new_line: int
    new_value: str
    asked_on: str
    question: str


class _Forget(msgspec.Struct):
    line: int
    value: str
    question: str
    reason: str
    spellings: dict[str, str]


class _Deed(msgspec.Struct):
    name: str
    use: Use
    args: dict[str, str]
    reason: str = ""

    def action(self) -> Action:
        return Action(self.name, self.args)


class _Page(msgspec.Struct):
    source: str
    text: str
    question: str
    action: _Deed


class _Facts(msgspec.Struct):
    question: list[_Line]
    correction: _Correction
    forget: _Forget
    web_page: _Page
    confirmed: _Deed
    prohibited: _Deed
    unconfirmed: _Deed

    def policy(self) -> Policy:
        deeds = (self.web_page.action, self.confirmed, self.prohibited, self.unconfirmed)
        return Policy(actions={deed.name: deed.use for deed in deeds})


def shipped_script(facts: Path | None = None) -> Script:
    """Return the script of the shipped conversation; `facts` is another facts.toml, for tests."""
    known = _read_facts(facts)
    transcript = SHIPPED / "conversation.jsonl"
    turns = _read_turns(transcript)
    return _script(
        known,
        transcript=transcript,
        turns=turns,
        shipped=turns,
        about="a bakery's owner and her assistant, January to June 2026",
        questions=tuple(Question(q.text, (str(q.line),), q.answer) for q in known.question),
        secret=Secret(
            position=str(known.forget.line),
            needle=known.forget.value,
            question=known.forget.question,
            reason=known.forget.reason,
            spellings=known.forget.spellings,
        ),
    )


def script_for(path: Path, facts: Path | None = None) -> Script:
    """
    Return a script for a transcript of the user's own; what is asked of no turn of it is that of the shipped one.

    Raises:
        BadArgument: it is no transcript, or it holds no turn.
    """
    turns = _read_turns(path)
    first = next(iter(turns.values()), None)
    if first is None:
        raise BadArgument(argument="data", detail=f"`{path}` holds no turn")
    return _script(
        _read_facts(facts),
        transcript=path,
        turns=turns,
        shipped=_read_turns(SHIPPED / "conversation.jsonl"),
        about=f"conversation {first.conversation} of that file",
        questions=tuple(_questions_of(path, first.conversation)[:3]) or (_own_words(turns),),
        secret=_secret_of(turns),
    )


def _script(
    known: _Facts, *, transcript: Path, turns: dict[str, Turn], shipped: dict[str, Turn], about: str,
    questions: tuple[Question, ...], secret: Secret,
) -> Script:  # fmt: skip
    first = next(iter(turns.values()))
    c = known.correction
    own = turns is shipped
    page = known.web_page
    return Script(
        transcript=transcript,
        format=detect_format(transcript),
        conversation=first.conversation,
        split=not own,
        user=None if first.role != "other" else first.speaker,
        about=about,
        questions=questions,
        correction=Correction(
            about=(c.subject, c.attribute),
            old=_statement(shipped[str(c.old_line)], c.old_value, imported=own),
            new=_statement(shipped[str(c.new_line)], c.new_value, imported=own),
            asked_on=c.asked_on,
            question=c.question,
        ),
        secret=secret,
        page=WebPage(page.source, page.text, page.question, page.action.action(), "account"),
        confirmed=known.confirmed.action(),
        unconfirmed=known.unconfirmed.action(),
        prohibited=known.prohibited.action(),
        prohibited_because=known.prohibited.reason,
        policy=known.policy(),
        last_said_at=max(turn.said_at or 0 for turn in (*turns.values(), *shipped.values())),
    )


def _statement(turn: Turn, value: str, *, imported: bool) -> Statement:
    return Statement(turn.text, value, turn.said_at or 0, turn.position if imported else None)


def _read_facts(facts: Path | None) -> _Facts:
    path = SHIPPED / "facts.toml" if facts is None else facts
    try:
        return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), type=_Facts)
    except (OSError, ValueError) as error:
        raise BadArgument(argument="facts", detail=f"`{path}` cannot be used: {error}") from error


def _read_turns(path: Path) -> dict[str, Turn]:
    """Return the turns of the file's first conversation by position, at most 2,000 of them."""
    found: dict[str, Turn] = {}
    for turn in islice(open_transcript(path).turns(), _READ_TURNS):
        if isinstance(turn, Turn):
            if found and turn.conversation != next(iter(found.values())).conversation:
                break
            found[turn.position] = turn
    return found


def _questions_of(path: Path, conversation: str) -> list[Question]:
    """Return the questions that a LoCoMo file asks of a conversation with the evidence for them; else none."""
    if path.stat().st_size > _READ_BYTES:
        return []
    try:
        samples = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return []
    found: list[Question] = []
    for sample in map(as_object, _as_list(samples)):
        if sample is None or str(sample.get("sample_id")) != conversation:
            continue
        for asked in map(as_object, _as_list(sample.get("qa"))):
            if asked is None or asked.get("category") == _CATEGORY_WITHOUT_ANSWER or "answer" not in asked:
                continue
            evidence = tuple(str(one) for one in _as_list(asked.get("evidence")))
            if evidence and isinstance(text := asked.get("question"), str):
                found.append(Question(text, evidence, None))
    return found


def _as_list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else [value]


def _own_words(turns: dict[str, Turn]) -> Question:
    turn = max(turns.values(), key=lambda one: min(len(one.text), 200))
    return Question(turn.text[:400], (turn.position,), turn.text[:400])


def _secret_of(turns: dict[str, Turn]) -> Secret:
    turn = max(turns.values(), key=lambda one: len(one.text) if len(one.text) < 120 else 0)
    text = content_of(turn)
    spellings = {
        "case": text.upper() if text.upper().casefold() == text.casefold() else text.casefold(),
        "nfd": unicodedata.normalize("NFD", text),
        "zero_width": text[:3] + "\u200b" + text[3:],
        "full_width": "".join(chr(ord(c) + _TO_FULL_WIDTH) if "!" <= c <= "~" else c for c in text),
    }
    return Secret(turn.position, turn.text, turn.text, "asked for it", spellings)
