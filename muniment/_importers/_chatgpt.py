"""ChatGPT's export: `conversations.json`, a list of conversations, each a tree of messages; or the .zip around it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from ._cursor import JsonCursor
from ._instants import BadInstant, instant_of
from ._sources import ExportedLists
from ._tree import last_leaf, path_to
from ._turns import Found, Role, Skipped, Turn, as_list, as_object, fault_in_text, plain, unfit

MEMBERS: Final = re.compile(r"(?:.*/)?conversations(?:-\d+)?\.json")
MAX_HELD: Final = 64 * 1024 * 1024
"""Characters of one conversation that are held; its current path is known only when all of it was read."""

_SPEAKERS: Final[dict[str, Role]] = {"user": "user", "assistant": "assistant"}
_REASONING: Final = frozenset({"thoughts", "reasoning_recap"})
_CONTEXT: Final = frozenset({"user_editable_context", "model_editable_context"})


class ChatGptTranscript(ExportedLists):
    """
    The messages of each conversation along its current path; those of other branches are reported, or taken too.

    What a tool gave is its own and nobody's words. Hidden messages, the system's and reasoning are left out.
    """

    name = "chatgpt"
    members = MEMBERS
    noun = "conversation"

    def _record(self, cursor: JsonCursor, where: str) -> Iterator[Found]:
        if cursor.peek() != "{":
            cursor.skip()
            yield Skipped(where=where, why="it is not a JSON object")
            return
        found = _read(cursor)
        name = plain(found.fields.get("conversation_id")) or plain(found.fields.get("id"))
        if not name:
            yield Skipped(where=where, why="it has no usable `conversation_id` or `id`")
        elif found.held > MAX_HELD:
            yield Skipped(where=name, why=f"it holds more than {MAX_HELD} characters", code="too_large")
        elif found.nodes is None:
            yield Skipped(where=name, why="it has no object `mapping`")
        else:
            yield from _along(found, found.nodes, name, branches=self._branches)


class _Read(msgspec.Struct):
    fields: dict[str, object] = {}
    nodes: dict[str, dict[str, object] | None] | None = None
    held: int = 0


def _read(cursor: JsonCursor) -> _Read:
    found = _Read(fields={})
    for key in cursor.members():
        if key == "mapping" and cursor.peek() == "{":
            found.nodes = {}
            for node in cursor.members():
                start = cursor.position
                value = as_object(cursor.value())
                found.held += cursor.position - start
                # One that is too large is read to its end, and not held.
                found.nodes[node] = None if found.held > MAX_HELD else value
        elif key in {"conversation_id", "id", "title", "create_time", "current_node"}:
            found.fields[key] = cursor.value()
        else:
            cursor.skip()
    return found


def _along(found: _Read, nodes: dict[str, dict[str, object] | None], name: str, *, branches: bool) -> Iterator[Found]:
    parents = {key: _parent(node) for key, node in nodes.items()}
    current = found.fields.get("current_node")
    leaf = current if isinstance(current, str) and current in nodes else last_leaf(parents)
    path = path_to(leaf, parents)
    started = _time_or_none(found.fields.get("create_time"))
    title = plain(found.fields.get("title"))
    said_at = started
    for key in path:
        for one in _message(nodes[key], name, key, title, said_at):
            said_at = one.said_at if isinstance(one, Turn) else said_at
            yield one
    on_path = set(path)
    for key, node in nodes.items():
        if key in on_path:
            continue
        for one in _message(node, name, key, title, started):
            if isinstance(one, Turn) and not branches:
                where = f"{name}/{one.position}"
                yield Skipped(where=where, why="it is on another branch than the current one", code="other_branch")
            elif isinstance(one, Turn):
                yield msgspec.structs.replace(one, told={**one.told, "branch": "other"})
            else:
                yield one


def _parent(node: dict[str, object] | None) -> str | None:
    parent = None if node is None else node.get("parent")
    return parent if isinstance(parent, str) else None


def _message(
    node: dict[str, object] | None, name: str, key: str, title: str, before: int | None
) -> Iterator[Turn | Skipped]:
    where = f"{name}/{key}"
    if node is None or fault_in_text(key):
        yield Skipped(where=name if fault_in_text(key) else where, why="it is not a message in the tree")
        return
    if node.get("message") is None:
        return  # the root, which every tree has
    message = as_object(node["message"])
    author = None if message is None else as_object(message.get("author"))
    content = None if message is None else as_object(message.get("content"))
    role = None if author is None else author.get("role")
    if message is None or author is None or content is None or not isinstance(role, str):
        yield Skipped(where=where, why="it has no usable `author` or `content`")
        return
    left_out = _left_out(message, role, content)
    if left_out is not None:
        yield Skipped(where=where, why=left_out[1], code=left_out[0])
        return
    text = text_of(content)
    try:
        said_at = instant_of(message.get("create_time"))
    except BadInstant as error:
        yield Skipped(where=where, why=f"`create_time` {error}")
        return
    bad = unfit(where, text)
    if bad is not None:
        yield bad
        return
    tool = "" if role in _SPEAKERS else f"tool:{plain(author.get('name')) or role}"
    yield Turn(
        conversation=name,
        position=key,
        speaker=role if role in _SPEAKERS else "tool",
        role=_SPEAKERS.get(role, "other"),
        text=text,
        # A message without a time of its own was said after the one before it.
        said_at=before if said_at is None else said_at,
        session=title,
        via=tool,
    )


def _left_out(message: dict[str, object], role: str, content: dict[str, object]) -> tuple[str, str] | None:
    metadata = as_object(message.get("metadata")) or {}
    if metadata.get("is_visually_hidden_from_conversation") or content.get("content_type") in _CONTEXT:
        return "hidden", "it is hidden from the conversation"
    if role == "system":
        return "system", "it is the system's, and nobody's words"
    if content.get("content_type") in _REASONING:
        return "reasoning", "it is reasoning, and was not said"
    if not text_of(content).strip():
        return "empty", "it has no text"
    return None


def text_of(content: dict[str, object]) -> str:
    """Return the text of a message, with what was shown instead of text named in brackets."""
    if isinstance(content.get("parts"), list):
        said = (_part(part) for part in as_list(content["parts"]))
        return "\n".join(part for part in said if part)
    # code, execution_output, tether_quote; tether_browsing_display has `result`
    for key in ("text", "result"):
        text = content.get(key)
        if isinstance(text, str):
            return text
    return ""


def _part(part: object) -> str:
    if isinstance(part, str):
        return part
    fields = as_object(part) or {}
    text = fields.get("text")  # audio_transcription among others
    if isinstance(text, str):
        return text
    sort = fields.get("content_type")
    return _SHOWN.get(sort, "") if isinstance(sort, str) else ""


def _time_or_none(value: object) -> int | None:
    try:
        return instant_of(value)
    except BadInstant:
        return None


_SHOWN: Final = {
    "image_asset_pointer": "[image]",
    "audio_asset_pointer": "[audio]",
    "real_time_user_audio_video_asset_pointer": "[audio]",
    "video_container_asset_pointer": "[video]",
}
