"""The protocol of the side by side: what is lacking is unavailable, only the product's own call is timed."""

from __future__ import annotations

import json
import math
import re
import socket
import sys
from pathlib import Path

import numpy as np
import pytest

from eval.peers import _protocol
from eval.peers._bench import disk_bytes, spread
from eval.peers._client import Peer
from eval.peers._erased import leavings, secret_memories, still_readable
from eval.peers._install import Environment, adapter_of
from eval.peers._muniment import Adapter as Muniment
from eval.peers._protocol import ADAPTERS, Given, Hit, Memory, format_request, parse_request, words_vector
from eval.peers._texts import Texts
from eval.peers._worker import answer, refuse_network

VERBS = re.findall(r"^    (\w+)\(", _protocol.__doc__ or "", re.MULTILINE)


class Shelf(_protocol.Adapter):
    """The least that a product can be: a list."""

    name = "shelf"

    def open(self) -> None:
        """Make it anew."""
        self.kept: list[str] = []

    def close(self) -> None:
        """Nothing to do."""

    def remember(self, memory: Memory) -> str:
        """Put it at the end; what is empty is refused."""
        if not memory.text:
            raise _protocol.Refused("empty")
        with self.timed():
            self.kept.append(memory.text)
        return str(len(self.kept))

    def recall(self, text: str, vector: bytes, k: int, scope: str | None = None) -> list[Hit]:
        """Return what has the text in it."""
        del vector, scope
        return [Hit(str(n), kept) for n, kept in enumerate(self.kept, 1) if text in kept][:k]


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    made = Shelf()
    made.setup(tmp_path / "shelf")
    return made


@pytest.fixture
def muniment_adapter(tmp_path: Path) -> Muniment:
    made = Muniment()
    made.setup(tmp_path / "muniment", words=True)
    return made


def texts() -> Texts:
    vectors = np.eye(4, 384, dtype=np.float32)
    return Texts([f"the turn number {n} of a talk" for n in range(4)], vectors, ["which turn?"], vectors[:1])


# --- the protocol -----------------------------------------------------------------------------------------------------


def test_a_request_comes_back_as_it_was_asked() -> None:
    memory = Memory(
        "Zoë said \n so", b"\x00\x01\x80\x3f", "acme", ("launch", "date"), "12", "user", "fact", ("a",), 4.5
    )
    line = format_request("supersede", {"id": "7", "memory": memory})

    assert 1 == line.count("\n")
    assert ("supersede", {"id": "7", "memory": memory}) == parse_request(line)
    assert ("remember_many", {"memories": [memory]}) == parse_request(
        format_request("remember_many", {"memories": [memory]})
    )


@pytest.mark.parametrize("verb", ["supersede", "retire", "forget", "as_of", "guard", "prohibit", "settle", "history"])
def test_what_a_product_lacks_is_unavailable_and_no_answer(shelf: Shelf, verb: str) -> None:
    asked: dict[str, dict[str, object]] = {
        "supersede": {"id": "1", "memory": Memory("x")},
        "retire": {"id": "1", "reason": "x"},
        "forget": {"id": "1"},
        "as_of": {"instant": 1.0, "text": "x", "vector": b"", "k": 1},
        "guard": {"action": {"name": "x"}, "use": "answer"},
        "prohibit": {"action": {"name": "x"}},
        "history": {"id": "1"},
    }
    told = answer(shelf, verb, asked.get(verb, {}))

    assert {"unavailable", "ns"} == told.keys()
    assert f"shelf has no `{verb}`" == told["unavailable"]


def test_a_refusal_and_a_failure_are_told_apart(shelf: Shelf) -> None:
    assert "empty" == answer(shelf, "remember", {"memory": Memory("")})["refused"]
    assert "TypeError" in str(answer(shelf, "remember", {"nothing": 1})["error"])


def test_only_the_product_s_own_call_is_timed(shelf: Shelf) -> None:
    answer(shelf, "remember", {"memory": Memory("a text")})
    assert shelf.ns > 0
    assert 0 == answer(shelf, "recall", {"text": "a", "vector": b"", "k": 3})["ns"]


def test_hits_are_json_in_an_answer(shelf: Shelf) -> None:
    shelf.remember(Memory("a text"))
    told = answer(shelf, "recall", {"text": "text", "vector": b"", "k": 3})
    assert [{"id": "1", "text": "a text", "at": None}] == json.loads(json.dumps(told["value"]))


def test_the_lag_says_whether_the_memory_was_found(shelf: Shelf) -> None:
    found = answer(shelf, "lag", {"memory": Memory("a fresh text")})["value"]
    assert isinstance(found, dict)
    assert (True, 1) == (found["found"], found["asked"])


def test_a_vector_that_was_not_given_is_an_error_and_never_made_up() -> None:
    given = Given()
    with pytest.raises(ValueError, match="without a vector"):
        given.hand("a text", b"")
    with pytest.raises(KeyError):
        given.of("a text")
    given.words = True
    assert words_vector("a text") == given.of("a text")


def test_a_vector_of_words_is_a_unit_vector_that_case_does_not_turn() -> None:
    numbers = _protocol.floats(words_vector("The launch is on 12 March."))
    assert _protocol.DIM == len(numbers)
    assert math.isclose(1.0, sum(number * number for number in numbers), rel_tol=1e-5)
    assert words_vector("the LAUNCH is on 12 march") == words_vector("The launch is on 12 March.")


def test_a_worker_may_not_connect_elsewhere() -> None:
    with pytest.raises(ConnectionRefusedError, match=r"`10\.0\.0\.1`"):
        refuse_network("socket.connect", (None, ("10.0.0.1", 443)))
    refuse_network("socket.connect", (None, ("127.0.0.1", 9)))
    refuse_network("socket.connect", (socket.AF_UNIX, "/run/some.sock"))


@pytest.mark.parametrize("name", ADAPTERS)
def test_every_adapter_can_be_looked_at_without_its_product(name: str) -> None:
    adapter = adapter_of(name)
    assert name == adapter.name
    assert all("==" in requirement for requirement in adapter.requirements)
    assert "durability" in adapter.settings
    assert "recall" in adapter.settings
    assert set(adapter.lacks) <= set(VERBS)


def test_every_verb_of_the_docstring_is_one_of_the_adapter() -> None:
    assert len(VERBS) > 15
    assert [] == [verb for verb in VERBS if not callable(getattr(_protocol.Adapter, verb, None))]


# --- Muniment behind it -----------------------------------------------------------------------------------------------


def test_muniment_does_every_verb(muniment_adapter: Muniment) -> None:
    launch = ("launch", "date")
    first = muniment_adapter.remember(Memory("The launch is on 12 March.", about=launch, value="12 March", kind="fact"))
    before = muniment_adapter._store.session(scope="eval", actor="agent:eval").get(first).recorded_at.timestamp()
    second = muniment_adapter.supersede(first, Memory("The launch is on 2 April.", value="2 April"))
    asked = ("when is the launch?", words_vector("when is the launch?"), 3)

    assert ["The launch is on 2 April."] == [hit.text for hit in muniment_adapter.recall(*asked)]
    assert ["The launch is on 12 March."] == [hit.text for hit in muniment_adapter.as_of(before, *asked)]
    assert "The launch is on 2 April." == muniment_adapter.current(launch)
    assert ["The launch is on 12 March.", "The launch is on 2 April."] == muniment_adapter.history(second)

    act: _protocol.Action = {"name": "rm.file", "args": {"path": "/srv"}}
    assert not muniment_adapter.guard(act, "destructive_action")["allowed"]
    muniment_adapter.confirm(act)
    assert muniment_adapter.guard(act, "destructive_action")["allowed"]
    muniment_adapter.prohibit(act)
    muniment_adapter.confirm(act)
    assert ["prohibited"] == muniment_adapter.guard(act, "destructive_action")["reasons"]

    muniment_adapter.forget(second)
    with pytest.raises(_protocol.Refused, match="tombstoned"):
        muniment_adapter.remember(Memory("The launch is on 2 April.", about=launch, value="2 April"))
    muniment_adapter.close()


def test_muniment_keeps_scopes_apart_and_finds_all_again_when_reopened(muniment_adapter: Muniment) -> None:
    ids = muniment_adapter.remember_many([Memory(f"a note about pear number {n}", scope="acme") for n in range(3)])
    assert "store.embed(): 3 vectors" == muniment_adapter.settle()
    muniment_adapter.reopen()
    asked = ("pear", words_vector("pear"), 5)

    assert 3 == len(set(ids)) == len(muniment_adapter.recall(*asked, "acme"))
    assert [] == muniment_adapter.recall(*asked, "globex")
    muniment_adapter.close()


def test_what_muniment_forgot_is_in_nothing_that_its_keys_open(muniment_adapter: Muniment, tmp_path: Path) -> None:
    secrets = secret_memories(texts())[:2]
    ids = [muniment_adapter.remember(memory) for memory in secrets]
    muniment_adapter.settle()
    # The control: sealed, so the files say nothing, and the keys beside them say all.
    assert {} == still_readable(tmp_path / "muniment", b"", secrets)
    assert {0, 1} == set(
        still_readable(tmp_path / "muniment", muniment_adapter.readable(tmp_path / "muniment"), secrets)
    )

    muniment_adapter.forget(ids[0])
    left = still_readable(tmp_path / "muniment", muniment_adapter.readable(tmp_path / "muniment"), secrets)
    assert {1} == set(left)
    muniment_adapter.close()


def test_a_worker_answers_by_lines_in_a_process_of_its_own(tmp_path: Path) -> None:
    with Peer("muniment", Environment(Path(sys.executable), ())) as peer:
        peer.must("setup", folder=tmp_path / "store", words=True)
        kept = peer.must("remember", memory=Memory("a note about pears"))
        found = peer.must("find", memory=Memory("a note about pears"))
        lacking = peer.call("clean_up")
        peer.must("close")

    assert kept.ns > 0
    assert isinstance(found.value, dict)
    assert found.value["found"] is True
    assert not lacking.ok
    assert str(lacking.unavailable).startswith("nothing is left")


# --- what is measured -------------------------------------------------------------------------------------------------


def test_a_memory_by_number_does_not_depend_on_the_batch_that_it_came_in() -> None:
    made = texts()
    assert made.memories(3, 9)[2] == made.memories(5, 6)[0]
    assert 12 == len({memory.text for memory in made.memories(0, 12)})
    assert 12 == len({memory.vector for memory in made.memories(0, 12)})


def test_the_scanner_finds_a_text_a_word_and_a_vector_that_were_planted(tmp_path: Path) -> None:
    secrets = secret_memories(texts())
    word = secrets[1].text.split()[1]
    (tmp_path / "log").write_bytes(b"\0" * 999 + secrets[0].text.encode() + b"\0" * 99)
    (tmp_path / "index").write_bytes(b"x" * 77 + word.upper().lower().encode() + secrets[2].vector)
    found = still_readable(tmp_path, secrets[3].text.encode("utf-16-le"), secrets)

    assert {
        0: ["text in log"],
        1: ["text in index"],
        2: ["vector in index"],
        3: ["text in what the keys open"],
    } == found


def test_a_control_that_missed_one_gives_no_figure() -> None:
    everything = {number: ["text in log"] for number in range(10)}
    assert {"left": 1, "left_where": ["text in log"]} == leavings("left", {4: ["text in log"]}, everything)
    del everything[9]
    assert {"left": None} == leavings("left", {}, everything)


def test_figures_are_medians_and_whole_blocks(tmp_path: Path) -> None:
    assert {"recall_p50_us": 2.0, "recall_p99_us": 9.0, "recalls": 3} == spread("recall", [9.0, 1.0, 2.0])
    (tmp_path / "one").write_bytes(b"x")
    assert 4096 == disk_bytes(tmp_path)
