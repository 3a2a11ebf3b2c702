"""The demo's facts are true of the demo's conversation."""

import re
import tomllib
import unicodedata
from importlib.resources import files
from pathlib import Path
from typing import cast

import pytest

from muniment._importers import Turn, detect_format, open_transcript
from muniment.events._time import parse_instant

Table = dict[str, object]

DATA = Path(str(files("muniment") / "_demo"))
CONVERSATION = DATA / "conversation.jsonl"


def load_turns() -> dict[int, Turn]:
    found = list(open_transcript(CONVERSATION).turns())
    return {int(one.position): one for one in found if isinstance(one, Turn)}


def load_facts() -> Table:
    return tomllib.loads((DATA / "facts.toml").read_text(encoding="utf-8"))


TURNS = load_turns()
FACTS = load_facts()


def table(value: object, *keys: str) -> Table:
    for key in keys:
        value = cast("Table", value)[key]
    return cast("Table", value)


def tables(key: str) -> list[Table]:
    return cast("list[Table]", FACTS[key])


def line(of: Table, key: str = "line") -> Turn:
    return TURNS[cast("int", of[key])]


def fold(text: str) -> str:
    """A coarse stand-in for the engine's normal form: enough to say that these spellings are one text."""
    visible = "".join(one for one in unicodedata.normalize("NFKC", text) if unicodedata.category(one) != "Cf")
    return " ".join(visible.casefold().split()).rstrip(".")


def test_every_line_is_a_turn_and_the_two_take_turns_in_order_of_time() -> None:
    assert detect_format(CONVERSATION) == "jsonl"
    assert sorted(TURNS) == list(range(1, len(TURNS) + 1))
    assert 70 <= len(TURNS) <= 110
    times = [cast("int", turn.said_at) for turn in TURNS.values()]
    assert times == sorted(set(times))
    assert [turn.role for turn in TURNS.values()] == ["user", "assistant"] * (len(TURNS) // 2)


@pytest.mark.parametrize("question", tables("question"), ids=lambda one: str(one["text"]))
def test_the_line_that_answers_a_question_holds_the_answer(question: Table) -> None:
    assert str(question["answer"]) in line(question).text


@pytest.mark.parametrize(
    "pair", [table(FACTS, "correction"), *tables("later_correction")], ids=lambda p: p["attribute"]
)
def test_the_user_said_the_old_value_and_later_the_new_one(pair: Table) -> None:
    old, new = line(pair, "old_line"), line(pair, "new_line")
    assert str(pair["old_value"]) in old.text
    assert str(pair["new_value"]) in new.text
    assert (old.role, new.role) == ("user", "user")
    assert cast("int", old.said_at) < cast("int", new.said_at)


def test_the_correction_was_said_after_the_day_that_is_asked_about() -> None:
    pair = table(FACTS, "correction")
    asked = parse_instant(str(pair["asked_on"]), end=True)
    assert cast("int", line(pair, "old_line").said_at) < asked < cast("int", line(pair, "new_line").said_at)


def test_what_is_to_be_forgotten_was_said_once_and_every_spelling_is_another_writing_of_it() -> None:
    forget = table(FACTS, "forget")
    text, spellings = str(forget["text"]), table(forget, "spellings")
    assert line(forget).text == text
    holders = [turn.position for turn in TURNS.values() if "900461" in re.sub(r"\D", "", fold(turn.text))]
    assert holders == [str(forget["line"])]
    assert "forget" in line(forget, "asked_at_line").text
    assert len({text, *map(str, spellings.values())}) == 1 + len(spellings) >= 4
    assert {fold(str(one)) for one in spellings.values()} == {fold(text)}


def test_what_is_confirmed_and_what_is_prohibited_are_named_in_their_lines_and_nearly_alike() -> None:
    confirmed, prohibited, unconfirmed = (table(FACTS, key) for key in ("confirmed", "prohibited", "unconfirmed"))
    assert confirmed["name"] == prohibited["name"] == unconfirmed["name"]
    assert str(table(confirmed, "args")["bucket"]) in line(confirmed).text
    assert str(table(prohibited, "args")["bucket"]) in line(prohibited).text
    assert not any(str(table(unconfirmed, "args")["bucket"]) in turn.text for turn in TURNS.values())


def test_only_the_web_page_names_the_account_that_the_payment_goes_to() -> None:
    page = table(FACTS, "web_page")
    account = str(table(page, "action", "args")["account"])
    assert account in str(page["text"])
    assert not any(account in turn.text for turn in TURNS.values())
