"""What counts as the same value, and what the keyed digests are made of."""

from __future__ import annotations

import copy
import datetime
import itertools
import pickle
import re
import sys
import unicodedata
from decimal import Decimal
from pathlib import Path

import pytest
from blake3 import blake3
from hypothesis import example, given, settings
from hypothesis import strategies as st

from muniment.events._errors import BadArgument, BadText, BlankContent
from muniment.events._normal import NORMAL_FORM, Value, ValueKeys, check_text, is_blank, normal_form

ALL_CODE_POINTS = range(sys.maxunicode + 1)
ANY_TEXT = st.text(st.characters())  # lone surrogates too
# Where the rules meet: stops, digits of all sorts, marks, look-alikes, invisible characters, separators.
TRICKY_TEXT = st.text(
    "abcehopxyKMTz ВНСавсежшίαεοντυσςμΩωΆўїёйաօու\t.!,?。।'’−-+^_:0157,٣५½²₂①⁻㍘"
    "\u200d\u0301\u0308\u0345\u0327\u00adßİıſK"
    "\u2028\u00a0\u2800ﾞカ가ᅡᄀ\u1160\u0f73\ud800",
    max_size=12,
)
TEXT = ANY_TEXT | TRICKY_TEXT
WORDS = st.text("abcdefg xyz", min_size=1).filter(lambda text: not is_blank(text))
SECRET = bytes(range(32))
KEYS = ValueKeys(SECRET)
DOC = Path(__file__).parents[2] / "docs" / "equality.md"


# --- The table of the documentation -----------------------------------------------------------------------------------


def rows_of(section: str) -> list[tuple[str, str]]:
    body = DOC.read_text(encoding="utf-8").split(f"\n## {section}\n")[1].split("\n## ")[0]
    rows = [line for line in body.splitlines() if line.startswith("|")][2:]
    found = [re.fullmatch(r"\| `([^`]+)` \| `([^`]+)` \| [^|]+ \|", row) for row in rows]
    assert [row for row, match in zip(rows, found, strict=True) if match is None] == []
    return [(match[1], match[2]) for match in found if match is not None]


def parse_cell(cell: str) -> Value:
    text = re.sub(
        r"\\(?:u([0-9a-f]{4})|U([0-9a-f]{8})|x([0-9a-f]{2})|([trn]))",
        lambda m: {"t": "\t", "r": "\r", "n": "\n"}[m[4]] if m[4] else chr(int(m[1] or m[2] or m[3], 16)),
        cell,
    )
    kind, _, rest = text.partition(":")
    if text == "None":
        return None
    match kind:
        case "int":
            return int(rest)
        case "float":
            return float(rest)
        case "bool":
            return {"True": True, "False": False}[rest]
        case "date":
            return datetime.date.fromisoformat(rest)
        case "datetime":
            return datetime.datetime.fromisoformat(rest)
        case _:
            return text


@pytest.mark.parametrize(("one", "other"), rows_of("The same"))
def test_i06_what_the_table_calls_the_same_is_the_same(one: str, other: str) -> None:
    assert one != other
    assert normal_form(parse_cell(one)) == normal_form(parse_cell(other))


@pytest.mark.parametrize(("one", "other"), rows_of("Not the same"))
def test_what_the_table_calls_distinct_is_distinct(one: str, other: str) -> None:
    assert normal_form(parse_cell(one)) != normal_form(parse_cell(other))


def test_the_table_says_that_a_paraphrase_is_not_caught() -> None:
    assert "a paraphrase is not caught" in DOC.read_text(encoding="utf-8")


# --- The form itself --------------------------------------------------------------------------------------------------


@given(TEXT)
@example("\u0345\u0301")
@example("Γx")
@example("0001-01-01T00:00+05:00")
def test_normalising_twice_changes_nothing(text: str) -> None:
    once = normal_form(text)
    assert once == normal_form(once)


def test_every_code_point_is_at_its_fixed_point_after_one_round_and_blank_only_if_nothing_is_left() -> None:
    """With the next test, this is why one round of folding is enough for every text."""
    moved: list[int] = []
    unclear: list[int] = []
    for code in ALL_CODE_POINTS:
        once = normal_form(chr(code))
        if once not in ("", chr(code)) and once != normal_form(once):
            moved.append(code)
        if is_blank(chr(code)) != (once == ""):
            unclear.append(code)
    assert moved == []
    assert unclear == []


def test_composing_fixed_points_gives_a_fixed_point() -> None:
    moved: list[int] = []
    for code in ALL_CODE_POINTS:
        parts = unicodedata.decomposition(chr(code)).split()
        if not parts or parts[0].startswith("<") or not unicodedata.is_normalized("NFC", chr(code)):
            continue
        pieces = [chr(int(part, 16)) for part in parts]
        if all(folded_is(piece) for piece in pieces) and not folded_is(chr(code)):
            moved.append(code)
    assert moved == []


def folded_is(text: str) -> bool:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()) == text


@given(TEXT, st.sampled_from(["NFC", "NFD"]))
def test_canonical_spelling_makes_no_difference(text: str, form: str) -> None:
    spelled = unicodedata.normalize("NFD" if form == "NFD" else "NFC", text)
    # U+2126 and its like are canonically other characters; what NFKC makes of both is one.
    assert normal_form(text) == normal_form(spelled)


@given(WORDS)
def test_case_white_space_and_stops_make_no_difference(text: str) -> None:
    shouted = text.upper().replace(" ", " \t")
    assert normal_form(text) == normal_form("\u00a0" + shouted + "。\n")


@given(WORDS, st.sampled_from("\u200b\u200c\u200d\u2060\ufeff\u00ad\u202e\u2066\ufe0f\U000e0041\u034f\x07\x7f"))
def test_an_invisible_character_anywhere_makes_no_difference(text: str, invisible: str) -> None:
    assert normal_form(text) == normal_form(invisible + invisible.join(text) + invisible)


def test_digit_signs_after_a_digit_never_become_part_of_its_number() -> None:
    run_together: list[str] = []
    for code in ALL_CODE_POINTS:
        sign = chr(code)
        if unicodedata.category(sign) in ("Nd", "Cs"):
            continue
        plain = unicodedata.normalize("NFKC", sign)
        if plain != sign and plain[0].isdecimal() and normal_form(f"x 5{sign}") == normal_form(f"x 5{plain}"):
            run_together.append(sign)
    assert run_together == []


@settings(max_examples=30)
@given(st.text("\u0301\u0327\u0f73\uff9e\u0345", min_size=1, max_size=40), st.sampled_from("がάξ"))
def test_a_long_run_of_marks_has_the_form_that_unicode_gives_it(marks: str, base: str) -> None:
    text = base + marks * (1100 // len(marks) + 1)
    assert unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()) == normal_form(text)


@pytest.mark.parametrize(
    "unit", ["\u0301\u0327", "\u0f73", "\uff9e\u0301", ".!", "1,", "5①", "aж", "a\u200b", "٣", " \u2003", "-"]
)
def test_a_hostile_megabyte_ends(unit: str) -> None:
    """Sorting the first of these by insertion, as CPython does, would take the better part of an hour."""
    text = "a" + unit * (1_000_000 // len(unit.encode()))
    assert normal_form(text) == normal_form(normal_form(text))


def test_an_unknown_form_is_refused() -> None:
    for call in (normal_form, KEYS.text_key):
        with pytest.raises(BadArgument, match=r"^argument `form`: expected 1, got 2$"):
            call("red", form=NORMAL_FORM + 1)


# --- Look-alikes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spelled", "meant"),
    [
        ("\u0410pple", "apple"),  # Cyrillic
        ("g\u03bf\u03bfgle", "google"),  # Greek
        ("\u0578\u0585rmal", "normal"),  # Armenian
        ("p\u0430ss\u03c1ort", "passport"),  # two scripts at once
        ("\u0440\u0430\u0443\u0440\u0430l", "paypal"),  # only the l is Latin
        ("CAFÉ au l\u0430it", "café au lait"),
        ("z\u0451bra", "zëbra"),  # composed, and then taken apart
        ("МОСКВ\u0041", "москва"),
        ("Киї\u0076 — K\u0438їв", "киїv — київ"),  # v is no look-alike of в: the first word has no one script
    ],
)
def test_i06_a_look_alike_in_a_mixed_word_is_folded(spelled: str, meant: str) -> None:
    assert normal_form(spelled) == normal_form(meant)


def test_a_word_that_two_scripts_could_write_follows_the_text() -> None:
    mixed = "c\u043e\u0440"  # one Latin letter, two Cyrillic
    assert normal_form(f"the {mixed} stands guard") == "the cop stands guard"
    assert normal_form(f"вынеси {mixed} сейчас же") == "вынеси сор сейчас же"
    assert normal_form(mixed) == "сор"


@given(st.text(st.characters(min_codepoint=0x430, max_codepoint=0x44F)))
def test_a_word_wholly_in_one_script_stays(word: str) -> None:
    assert word == normal_form(word)


# --- Numbers, dates and other typed values ----------------------------------------------------------------------------


@given(st.integers())
def test_an_integer_equals_its_text_plain_and_grouped(number: int) -> None:
    assert str(number) == normal_form(number) == normal_form(str(number)) == normal_form(f"{number:,}")


@given(st.integers(min_value=10**4300, max_value=10**4400))
def test_an_integer_of_any_length_is_exact(number: int) -> None:
    assert normal_form(number) != normal_form(number + 1)
    assert normal_form(number) == normal_form(f"{Decimal(number):,}")


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_equals_its_digits_written_out(number: float) -> None:
    form = normal_form(number)
    assert form == normal_form(form)
    assert number == float(form)


@given(st.integers() | st.booleans() | st.floats() | st.dates() | st.datetimes(timezones=st.timezones() | st.none()))
def test_the_form_of_a_typed_value_is_a_fixed_point(value: Value) -> None:
    assert normal_form(value) == normal_form(normal_form(value))


@given(st.datetimes(datetime.datetime(1, 1, 3), datetime.datetime(9999, 12, 29)), st.integers(-1439, 1439))
def test_an_instant_is_the_same_in_every_offset(naive: datetime.datetime, minutes: int) -> None:
    utc = naive.replace(tzinfo=datetime.UTC)
    local = utc.astimezone(datetime.timezone(datetime.timedelta(minutes=minutes)))
    assert len({normal_form(value) for value in (naive, utc, local, utc.isoformat(), local.isoformat(" "))}) == 1


@pytest.mark.parametrize(
    "text", ["2026-02-30T08:00", "2026-03-12T24:00", "2026-03-12T08:00:60z", "2026-03-12T08:00+25"]
)
def test_what_is_no_instant_stays_text(text: str) -> None:
    assert text.lower() == normal_form(text)


def test_the_kinds_of_values_do_not_meet_by_accident() -> None:
    day = datetime.date(2026, 3, 12)
    values: list[Value] = [None, True, False, 0, 1, 0.5, day, datetime.datetime(2026, 3, 12), "yes", "1.000"]
    for one, other in itertools.combinations(values, 2):
        assert normal_form(one) != normal_form(other)


# --- Blank and unusable text ------------------------------------------------------------------------------------------


@given(TEXT)
def test_a_text_is_blank_exactly_when_its_form_is_empty(text: str) -> None:
    assert is_blank(text) == (normal_form(text) == "")


@pytest.mark.parametrize(
    "text", ["", " ", "\n\t", "\u200b\u2060", "\u00ad", "\u3164", "\u2800", "\ufe0f", "\x1b", "\U000e0041"]
)
def test_blank_text_is_refused_as_such(text: str) -> None:
    with pytest.raises(BlankContent, match=r"^content has no visible character$"):
        check_text(text, what="content")


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("a\0b", "NUL at character 1"),
        ("ab\ud800", "lone surrogate at character 2"),
        ("a" * 11, "at most 10 bytes of UTF-8, got more than 10"),
        ("é" * 6, "at most 10 bytes of UTF-8, got 12"),
    ],
)
def test_text_that_would_not_come_back_is_refused_without_showing_it(text: str, detail: str) -> None:
    with pytest.raises(BadText) as caught:
        check_text(text, what="reason", limit=10)
    assert f"reason cannot be stored: {detail}" == str(caught.value)
    assert caught.value.__cause__ is None
    assert text not in repr(caught.value.facts)


@pytest.mark.parametrize("text", ["a", "é" * 5, "a\n\tb", "😀", "."])
def test_text_with_something_to_see_passes(text: str) -> None:
    check_text(text, what="content", limit=10)


# --- Keyed digests ----------------------------------------------------------------------------------------------------


def keyed(data: bytes) -> bytes:
    return blake3(data, key=SECRET).digest(length=16)


def test_each_key_is_made_of_the_bytes_that_its_docstring_states() -> None:
    belief = keyed(b"belief\0" + b"\0\0\0\4acme" + b"\0\0\0\4date")
    assert keyed(b"text\0the car is red") == KEYS.text_key("The car is red.")
    assert belief == KEYS.belief_key(" ACME", "Date")
    assert keyed(b"value\0" + belief + b"1000") == KEYS.value_key(belief, 1000)
    assert keyed(b"source\0caf\xc3\xa9#4") == KEYS.source_key("cafe\u0301#4")
    assert blake3(b"payload\0\1\2", key=SECRET).digest() == KEYS.payload_key(b"\1\2")


def test_domains_and_fields_never_run_into_each_other() -> None:
    belief = KEYS.belief_key("ab", "c")
    keys = [belief, KEYS.belief_key("a", "bc"), KEYS.belief_key("c", "ab"), KEYS.text_key("x"), KEYS.source_key("x")]
    keys += [KEYS.payload_key(b"x"), KEYS.value_key(belief, "x"), KEYS.value_key(KEYS.belief_key("a", "bc"), "x")]
    assert len(keys) == len(set(keys))


def test_a_source_is_compared_exactly_but_for_composition() -> None:
    assert KEYS.source_key("slack:C1/42") != KEYS.source_key("slack:c1/42")
    assert KEYS.source_key("slack:C1/42") != KEYS.source_key("slack:C1/42 ")
    assert KEYS.source_key("\u2460") != KEYS.source_key("1")


@settings(max_examples=30)
@given(st.text("\u0301\u0327\u0f73\u2460\u212b", min_size=1, max_size=40))
def test_a_source_with_a_long_run_of_marks_is_in_nfc(marks: str) -> None:
    source = "a" + marks * (1100 // len(marks) + 1)
    assert keyed(b"source\0" + unicodedata.normalize("NFC", source).encode()) == KEYS.source_key(source)


def test_another_secret_gives_other_keys() -> None:
    assert KEYS.text_key("red") != ValueKeys(bytes(32)).text_key("red")


@given(TEXT)
def test_every_text_has_a_key(text: str) -> None:
    assert 16 == len(KEYS.text_key(text)) == len(KEYS.source_key(text))


def test_the_secret_is_not_shown_pickled_or_copied() -> None:
    assert repr(KEYS) == "ValueKeys(...)"
    for leak in (pickle.dumps, copy.copy, vars):
        with pytest.raises(TypeError):
            leak(KEYS)


def test_a_secret_or_a_belief_key_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(BadArgument, match=r"^argument `secret`: expected 32 bytes, got 31$"):
        ValueKeys(bytes(31))
    with pytest.raises(BadArgument, match=r"^argument `belief_key`: expected 16 bytes, got 15$"):
        KEYS.value_key(bytes(15), "red")
