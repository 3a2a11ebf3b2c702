"""What counts as a word, in every script."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.projections._stem import stem
from muniment.projections._tokens import (
    MAX_QUERY_CHARS,
    MAX_QUERY_TERMS,
    MAX_TOKEN,
    analyze,
    analyze_query,
)


def finds(query: str, text: str) -> bool:
    terms = analyze_query(query).terms
    return bool(terms) and set(terms) <= set(analyze(text))


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("咖啡", "我昨天在公司楼下喝了咖啡然后开会"),
        ("茶", "他每天下午喝茶看书"),
        ("コーヒー", "私は毎朝コーヒーを飲みます"),
        ("ひらがな", "子どもはひらがなを習った"),
        ("커피", "저는 아침마다 커피를 마십니다"),
        ("책", "어제 책을 샀어요"),
        ("кофе", "Утром он всегда пьёт кофе без сахара"),
        ("КОФЕ", "Утром он всегда пьёт кофе без сахара"),
        ("καφές", "Το πρωί πίνει καφές χωρίς ζάχαρη"),
        ("ΚΑΦΕΣ", "Το πρωί πίνει καφές χωρίς ζάχαρη"),
        ("كتاب", "قرأت والكتاب في يدي"),
        ("كتاب", "كتب عن ذلك بكتابه الأخير"),
        ("בית", "חזרתי ושהבית היה ריק"),
        ("กาแฟ", "ฉันชอบดื่มกาแฟทุกเช้า"),
        ("ກາເຟ", "ຂ້ອຍມັກດື່ມກາເຟທຸກເຊົ້າ"),
        ("កាហ្វេ", "ខ្ញុំចូលចិត្តផឹកកាហ្វេរាល់ព្រឹក"),
        ("ကော်ဖီ", "ကျွန်တော်မနက်တိုင်းကော်ဖီသောက်တယ်"),
        ("दिल्ली", "मैं पिछले साल दिल्ली में रहता था"),
        ("café", "We met at the cafe on the corner"),
        ("homme", "Il parle de l'homme au chapeau"),
        ("٣٥", "room 35"),
    ],
)
def test_a_word_inside_a_sentence_of_any_script_is_found(word: str, sentence: str) -> None:
    assert finds(word, sentence)


@pytest.mark.parametrize(("asked", "text"), [("الكتاب", "وضع كتاب على الطاولة"), ("הבית", "קניתי בית חדש")])
def test_a_word_asked_for_with_its_article_is_found_without(asked: str, text: str) -> None:
    assert set(analyze_query(asked).terms) & set(analyze(text))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("don't", "They don't deploy on Fridays"),
        ("dont", "They don’t deploy on Fridays"),
        ("pre-edit", "the pre-edit hook"),
        ("a/b", "an a/b test"),
        ("C++", "written in C++."),
        ("F#", "or in F#, perhaps"),
        ("20.04", "Ubuntu 20.04 is old"),
        ("NEAR", "the shop near the river"),
        ('"river', "the shop near the river"),
        ("shop*", "the shop near the river"),
        ("(shop", "the shop near the river"),
        ("ann@example.org", "write to ann@example.org"),
        ("example", "write to ann@example.org"),
        ("snake_case", "use snake_case there"),
        ("👍", "that was good 👍"),
        ("ＡＢＣ１２", "abc12"),
    ],
)
def test_marks_are_plain_text(query: str, text: str) -> None:
    assert finds(query, text)


@pytest.mark.parametrize("query", ["", " ", "(", "*", '"', "\u200b"])
def test_what_holds_no_word_has_no_terms(query: str) -> None:
    assert analyze_query(query).terms == ()


@pytest.mark.parametrize(
    ("grouped", "joined"),
    [
        ("1,234,567", "1234567"),
        ("$12,500", "12500"),
        ("1,234.50", "1234.50"),
        ("1,234.50", "1234"),
        ("12,34,567", "1234567"),
        ("١,٢٣٤", "1234"),
        ("1\uff0c234\uff0c567", "1234567"),
    ],
)
def test_a_number_is_found_with_and_without_its_groups(grouped: str, joined: str) -> None:
    for asked, said in ((grouped, joined), (joined, grouped)):
        assert set(analyze_query(f"who got {asked}?").terms).intersection(analyze(f"They paid {said} for it.")), asked
    assert joined in analyze(f"They paid {grouped} for it.")


@pytest.mark.parametrize(
    "listed", ["1,2,3", "12,3456", "1234,567", "1,234a", "v1,234", "1,234,56", "2026-03-01", "1.234.567"]
)
def test_what_is_no_grouped_number_is_not_joined(listed: str) -> None:
    assert "".join(char for char in listed if char.isalnum()) not in analyze(listed)


def test_c_and_c_plus_plus_are_told_apart_by_the_longer_one() -> None:
    assert not finds("C++", "written in C")
    assert finds("C", "written in C++")


@given(st.text(max_size=60))
def test_composed_and_decomposed_text_give_the_same_terms(text: str) -> None:
    assert analyze(unicodedata.normalize("NFC", text)) == analyze(unicodedata.normalize("NFD", text))


@given(st.text(max_size=60))
def test_a_text_has_every_term_that_it_asks_for(text: str) -> None:
    assert set(analyze_query(text).terms) <= set(analyze(text))


@given(st.text(max_size=200))
def test_a_term_has_no_white_space_and_a_bounded_length(text: str) -> None:
    assert all(token and len(token) <= MAX_TOKEN and not any(map(str.isspace, token)) for token in analyze(text))


def test_stop_words_are_asked_for_only_when_there_is_nothing_else() -> None:
    assert analyze_query("when is the launch").terms == ("launch",)
    assert analyze_query("to be or not to be").terms == ("to", "be", "or", "not")


def test_a_long_query_is_clamped_and_says_so() -> None:
    query = analyze_query(" ".join(f"word{i}" for i in range(40_000)))
    assert query.clamped
    assert len(query.terms) == MAX_QUERY_TERMS
    assert analyze_query("x " * MAX_QUERY_CHARS).clamped
    assert not analyze_query("when do we launch?").clamped


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("live", "lives", "lived", "living"), "liv"),
        (("run", "runs", "running"), "run"),
        (("study", "studies", "studied", "studying"), "studi"),
        (("class", "classes"), "class"),
        (("go", "going"), "go"),
        (("use", "uses", "used", "using"), "use"),
        (("agree", "agreed", "agrees", "agreeing"), "agre"),
        (("bus",), "bus"),
        (("sing",), "sing"),
        (("need",), "need"),
    ],
)
def test_forms_of_an_english_word_share_a_stem(words: tuple[str, ...], expected: str) -> None:
    assert {expected} == {stem(word) for word in words}


@pytest.mark.parametrize("word", ["note", "theme", "other", "can", "while", "own"])
def test_a_word_whose_stem_is_a_stop_word_s_is_asked_for_all_the_same(word: str) -> None:
    """`note` is stemmed to `not`: dropped as that, a question after notes would ask for nothing."""
    plural = f"{word}s"

    assert analyze_query(f"page {plural}").terms == ("pag", *analyze_query(plural).terms)
    assert set(analyze_query(plural).terms) <= set(analyze(f"three {plural}"))
