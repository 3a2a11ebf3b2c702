"""Claude's export: conversations, projects and memories as JSON lists; or the .zip around them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ._blocks import blocks_of
from ._cursor import JsonCursor
from ._instants import BadInstant, instant_of
from ._sources import ExportedLists
from ._tree import path_to
from ._turns import Found, Note, Role, Skipped, Turn, as_list, as_object, plain, unfit

MEMBERS: Final = re.compile(
    r"(?:.*/)?(?:(?:conversations|projects|memories)(?:-\d+)?|(?:projects|memories)/[^/]+)\.json"
)
MAX_HELD: Final = 64 * 1024 * 1024
"""Characters of one conversation that are held; its current path is known only when all of it was read."""

_ROLES: Final[dict[str, Role]] = {"human": "user", "assistant": "assistant"}


class ClaudeTranscript(ExportedLists):
    """
    The messages of each conversation along its current path, then what projects and memories say.

    What a tool gave, and what was attached, is its own and nobody's words. Reasoning is left out.
    """

    name = "claude"
    members = MEMBERS

    def _record(self, cursor: JsonCursor, where: str) -> Iterator[Found]:
        if cursor.peek() != "{":
            cursor.skip()
            yield Skipped(where=where, why="it is not a JSON object")
            return
        fields: dict[str, object] = {}
        messages: list[object] = []
        start = cursor.position
        for key in cursor.members():
            if key == "chat_messages" and cursor.peek() == "[":
                fields[key] = True
                for _ in cursor.elements():
                    value = cursor.value()
                    if cursor.position - start <= MAX_HELD:
                        messages.append(value)
            else:
                fields[key] = cursor.value()
        if cursor.position - start > MAX_HELD:
            yield Skipped(where=where, why=f"it holds more than {MAX_HELD} characters", code="too_large")
        elif "chat_messages" in fields:
            yield from self._conversation(fields, messages, where)
        elif "conversations_memory" in fields or "project_memories" in fields:
            yield from _memories(fields)
        elif "docs" in fields or "prompt_template" in fields:
            yield from _project(fields, where)
        else:
            yield Skipped(where=where, why="it is no conversation, project or memory", code="unsupported")

    def _conversation(self, fields: dict[str, object], messages: list[object], where: str) -> Iterator[Found]:
        name = plain(fields.get("uuid"))
        if not name:
            yield Skipped(where=where, why="it has no usable `uuid`")
            return
        on_path = _current(fields, messages)
        title, seen = plain(fields.get("name")), set[str]()
        for number, item in enumerate(messages, start=1):
            message = as_object(item)
            position = "" if message is None else plain(message.get("uuid"))
            here = f"{name}/{position or number}"
            if message is None or not position:
                yield Skipped(where=here, why="it is not a message with a `uuid`")
            elif position in seen:
                yield Skipped(where=here, why="this `uuid` was used before in the conversation", code="duplicate")
            elif on_path is not None and position not in on_path and not self._branches:
                why = "it is on another branch than the current one"
                yield Skipped(where=here, why=why, code="other_branch")
            else:
                other = on_path is not None and position not in on_path
                yield from _message(message, name, position, title, {"branch": "other"} if other else {})
            seen.add(position)


def _current(fields: dict[str, object], messages: list[object]) -> set[str] | None:
    """Return the ids on the current path; None where the messages do not say what they answer."""
    parents: dict[str, str | None] = {}
    told = False
    for item in messages:
        message = as_object(item)
        uuid = "" if message is None else plain(message.get("uuid"))
        if message is not None and uuid:
            parent = message.get("parent_message_uuid")
            told = told or isinstance(parent, str)
            parents[uuid] = parent if isinstance(parent, str) else None
    if not told or not parents:
        return None
    leaf = fields.get("current_leaf_message_uuid")
    return set(path_to(leaf if isinstance(leaf, str) and leaf in parents else list(parents)[-1], parents))


def _message(message: dict[str, object], name: str, uuid: str, title: str, told: dict[str, object]) -> Iterator[Found]:
    where = f"{name}/{uuid}"
    sender = message.get("sender")
    try:
        said_at = instant_of(message.get("created_at"))
    except BadInstant as error:
        yield Skipped(where=where, why=f"`created_at` {error}")
        return
    if not isinstance(sender, str) or not (isinstance(message.get("text"), str) or message.get("content")):
        yield Skipped(where=where, why="it has no usable `sender`, or neither `text` nor `content`")
        return
    role: Role = _ROLES.get(sender, "other")
    # `text` repeats the blocks, with placeholders for those that are no words.
    content = message.get("content") if as_list(message.get("content")) else message.get("text")
    gave = False
    for block in blocks_of(content):
        position = uuid if block.sort == "words" and not gave else f"{uuid}#{block.number}"
        gave = gave or block.sort == "words"
        here = f"{name}/{position}"
        if block.sort == "reasoning":
            yield Skipped(where=here, why="it is reasoning, and was not said", code="reasoning")
        elif not block.text.strip():
            yield Skipped(where=here, why="it has no text", code="empty")
        elif block.sort == "result":
            via = f"tool:{block.name or 'tool'}"
            yield unfit(here, block.text) or Turn(
                name, position, "tool", "other", block.text, said_at, title, via, told
            )
        else:
            said = "user" if role == "user" else sender
            yield unfit(here, block.text) or Turn(name, position, said, role, block.text, said_at, title, "", told)
    for number, item in enumerate(as_list(message.get("attachments")), start=1):
        attached = as_object(item) or {}
        text, file = attached.get("extracted_content"), plain(attached.get("file_name")) or "attachment"
        if isinstance(text, str) and text.strip():
            here = f"{uuid}#attachment{number}"
            yield unfit(f"{name}/{here}", text) or Turn(
                name, here, "tool", "other", text, said_at, title, f"document:{file}", {**told, "file": file}
            )


def _memories(fields: dict[str, object]) -> Iterator[Found]:
    texts = {"conversations": fields.get("conversations_memory")}
    for uuid, text in (as_object(fields.get("project_memories")) or {}).items():
        texts[f"project/{uuid}" if plain(uuid) else "project"] = text
    for place, text in texts.items():
        # A paragraph is one thing remembered. Its number is no part of its place: others may come before it.
        for paragraph in re.split(r"\n\s*\n", text) if isinstance(text, str) else ():
            if paragraph.strip():
                yield unfit(f"memories/{place}", paragraph) or Turn(
                    "memories", place, "", "other", paragraph.strip(), None, "", note=Note()
                )


def _project(fields: dict[str, object], where: str) -> Iterator[Found]:
    uuid, name = plain(fields.get("uuid")), plain(fields.get("name"))
    if not uuid:
        yield Skipped(where=where, why="it has no usable `uuid`")
        return
    texts = [(key, fields.get(key), fields.get("updated_at"), "") for key in ("description", "prompt_template")]
    for number, item in enumerate(as_list(fields.get("docs")), start=1):
        doc = as_object(item) or {}
        file = plain(doc.get("filename")) or f"doc {number}"
        texts.append((f"doc/{plain(doc.get('uuid')) or number}", doc.get("content"), doc.get("created_at"), file))
    for place, text, time, file in texts:
        here = f"projects/{uuid}/{place}"
        if not isinstance(text, str) or not text.strip():
            continue
        try:
            since = instant_of(time)
        except BadInstant as error:
            yield Skipped(where=here, why=f"its time {error}")
            continue
        told = {key: said for key, said in (("project", name), ("file", file)) if said}
        via = f"document:{file}" if file else ""
        yield unfit(here, text) or Turn(
            "projects", f"{uuid}/{place}", "", "other", text, since, "", via, note=Note(metadata=dict(told))
        )
