"""What any format version wrote is read for ever: golden stores, opened by today's program."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import muniment
from muniment.events import FORMAT, EventType
from tests.worlds import SCOPE

from .asked import FOLDER, answers, digests_of, format_answers, opened, unpack

VERSIONS = sorted(int(re.sub(r"\D", "", path.name)) for path in FOLDER.glob("format-*.tar"))


def _bytes(path: Path) -> dict[str, bytes]:
    return {str(p.relative_to(path)): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()}


def test_there_is_a_golden_store_of_every_format_version() -> None:
    assert list(range(1, FORMAT + 1)) == VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
def test_a_golden_store_answers_what_it_answered_and_reading_changes_no_byte(version: int, tmp_path: Path) -> None:
    path = unpack(version, tmp_path)
    before = _bytes(path)
    with opened(path, read_only=True) as store:
        assert store.verify().ok
        assert (FOLDER / f"format-{version}.json").read_text() == format_answers(answers(store))
    assert before == _bytes(path)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_golden_store_goes_on(version: int, tmp_path: Path) -> None:
    path = unpack(version, tmp_path)
    with opened(path) as store:
        head = store.head.seq
        session = store.session(scope=SCOPE, actor="agent:planner")
        receipt = session.remember("Said by a newer program.")
        assert store.head.seq > head
        with pytest.raises(muniment.Refused):
            session.remember("ERASED, and then an  older log was put back")
        session.forget(receipt.id, reason="asked to")
        assert store.rebuild().ok
    with opened(path) as store:
        assert store.verify().ok
        assert "erased" == store.session(scope=SCOPE, actor="agent:planner").get(receipt.id).status


@pytest.mark.parametrize("version", VERSIONS)
def test_i11_a_golden_store_has_the_same_digests_on_every_machine_and_python(version: int, tmp_path: Path) -> None:
    with opened(unpack(version, tmp_path), read_only=True) as store:
        found = digests_of(store)
    stated = json.loads((FOLDER / f"format-{version}.digests.json").read_text())
    # Another version of a projection gives others: then `python -m tests.golden.make` states them anew.
    assert stated == found


def test_the_golden_store_holds_every_type_of_event(tmp_path: Path) -> None:
    with opened(unpack(FORMAT, tmp_path), read_only=True) as store:
        found = {row[0] for row in store.sql("SELECT DISTINCT type FROM events")[1]}
    assert {kind.name.lower() for kind in EventType} == found
