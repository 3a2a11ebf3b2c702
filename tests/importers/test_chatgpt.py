"""ChatGPT's tree of messages: one path through it is the conversation."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from muniment._importers import Skipped, Turn
from muniment._importers._chatgpt import ChatGptTranscript
from tests.importers.fixtures import DATA, archive

Node = dict[str, object]


def said(key: str, parent: str | None, text: str, role: str = "user", **more: object) -> Node:
    message = {"author": {"role": role}, "content": {"content_type": "text", "parts": [text]}, **more}
    return {"id": key, "parent": parent, "children": [], "message": message}


def read(tmp_path: Path, *nodes: Node, branches: bool = False, **more: object) -> list[Turn | Skipped]:
    path = tmp_path / "conversations.json"
    mapping = {str(node["id"]): node for node in nodes}
    path.write_text(json.dumps([{"title": "t", "id": "c", "mapping": mapping, **more}]), encoding="utf-8")
    return [one for one in ChatGptTranscript(path, branches=branches).turns() if isinstance(one, Turn | Skipped)]


def texts(found: list[Turn | Skipped]) -> list[str]:
    return [one.text for one in found if isinstance(one, Turn)]


def codes(found: list[Turn | Skipped]) -> dict[str, str]:
    return {one.where: one.code for one in found if isinstance(one, Skipped)}


FORK = (said("a", None, "one"), said("b", "a", "two"), said("c", "a", "three"), said("d", "c", "four"))


def test_the_current_path_is_the_conversation_and_the_rest_is_reported(tmp_path: Path) -> None:
    assert ["one", "two"] == texts(found := read(tmp_path, *FORK, current_node="b"))
    assert {"c/c": "other_branch", "c/d": "other_branch"} == codes(found)
    assert ["one", "three", "four"] == texts(read(tmp_path, *FORK, current_node="d"))


def test_other_branches_come_when_asked_for_and_say_that_they_are(tmp_path: Path) -> None:
    found = read(tmp_path, *FORK, branches=True, current_node="b")
    assert ["one", "two", "three", "four"] == texts(found)
    assert [None, None, "other", "other"] == [one.told.get("branch") for one in found if isinstance(one, Turn)]


@pytest.mark.parametrize("current", [None, 7, "gone"])
def test_without_a_current_node_the_last_leaf_ends_the_path(tmp_path: Path, current: object) -> None:
    assert ["one", "three", "four"] == texts(read(tmp_path, *FORK, current_node=current))


def test_a_tree_that_goes_in_a_circle_is_read_once(tmp_path: Path) -> None:
    ring = (said("a", "b", "one"), said("b", "a", "two"))
    assert ["one", "two"] == texts(read(tmp_path, *ring, current_node="b"))


def test_a_tools_words_are_the_tools_and_the_systems_are_left_out(tmp_path: Path) -> None:
    tool = said("b", "a", "42", "tool", author={"role": "tool", "name": "python"})
    found = read(
        tmp_path, said("a", None, "be brief", "system"), tool, said("d", "b", "odd", "critic"), current_node="d"
    )
    assert [("tool", "tool:python"), ("tool", "tool:critic")] == [
        (one.speaker, one.via) for one in found if isinstance(one, Turn)
    ]
    assert {"c/a": "system"} == codes(found)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"content_type": "text", "parts": ["a", "", "b"]}, "a\nb"),
        ({"content_type": "multimodal_text", "parts": [{"content_type": "image_asset_pointer"}, "b"]}, "[image]\nb"),
        ({"content_type": "multimodal_text", "parts": [{"content_type": "audio_transcription", "text": "hi"}]}, "hi"),
        ({"content_type": "code", "text": "x = 1"}, "x = 1"),
        ({"content_type": "tether_browsing_display", "result": "a page"}, "a page"),
    ],
)
def test_what_was_shown_instead_of_text_is_named(tmp_path: Path, content: object, expected: str) -> None:
    assert [expected] == texts(read(tmp_path, said("a", None, "", content=content), current_node="a"))


def test_an_unreadable_time_costs_one_message(tmp_path: Path) -> None:
    found = read(tmp_path, said("a", None, "x", create_time="soon"), said("b", "a", "y"), current_node="b")
    assert (["y"], {"c/a": "damaged"}) == (texts(found), codes(found))


def test_a_message_is_told_by_its_node_again_when_the_conversation_went_on(tmp_path: Path) -> None:
    places = [
        [
            (one.conversation, one.position)
            for one in read(tmp_path, *FORK[:n], current_node="b")
            if isinstance(one, Turn)
        ]
        for n in (2, 4)
    ]
    assert places[0] == places[1] == [("c", "a"), ("c", "b")]


def test_an_archive_gives_what_the_file_in_it_gives(tmp_path: Path) -> None:
    packed = ChatGptTranscript(archive(tmp_path / "export.zip", conversations="chatgpt.json"))
    assert [one for one in packed.turns() if isinstance(one, Turn)] == [
        one for one in ChatGptTranscript(DATA / "chatgpt.json").turns() if isinstance(one, Turn)
    ]
    assert packed.bytes_read == packed.total_bytes == (DATA / "chatgpt.json").stat().st_size


def test_a_damaged_archive_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = archive(tmp_path / "export.zip", conversations="chatgpt.json")
    data = bytearray(path.read_bytes())
    at = data.index(b"conversations.json") + 200
    data[at : at + 40] = bytes(40)
    path.write_bytes(data)

    found = [one for one in ChatGptTranscript(path).turns() if isinstance(one, Skipped)]
    assert any("reading stopped here" in one.why for one in found)


_READ = """
import sys
from pathlib import Path
from muniment._importers._chatgpt import ChatGptTranscript
print(sum(1 for _ in ChatGptTranscript(Path(sys.argv[1])).turns()))
print(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
"""


def test_a_file_of_sixty_megabytes_is_not_held(tmp_path: Path) -> None:
    nodes = [said(f"n{n}", f"n{n - 1}" if n else None, "the heron stood by the river; " * 300) for n in range(100)]
    one = json.dumps({"id": "c", "mapping": {str(node["id"]): node for node in nodes}, "current_node": "n99"})
    path, count = tmp_path / "conversations.json", 60_000_000 // len(one)
    path.write_text("[" + ",".join([one] * count) + "]", encoding="utf-8")

    done = subprocess.run([sys.executable, "-c", _READ, str(path)], capture_output=True, text=True, check=True)
    turns, peak = map(int, done.stdout.split())

    assert 100 * count == turns
    assert resource.getpagesize() < peak * 1024 < path.stat().st_size
