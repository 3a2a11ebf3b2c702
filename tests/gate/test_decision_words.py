"""What a forget does not look at cannot hold the value: the words are only a quicker way to the same decisions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from muniment.gate._decision_words import _hashes
from muniment.gate._holding import _is_one_of, _stands_in

# Letters that join and that do not, marks between them, and a script without spaces.
texts = st.text(alphabet="ab1 -é'京", max_size=24)


@given(texts.filter(bool), texts, texts)
def test_a_text_that_holds_a_value_has_all_its_words(form: str, before: str, after: str) -> None:
    said = before + form + after
    if _is_one_of(said, {form}) or _stands_in(form, said):
        assert _hashes(form) <= _hashes(said)
