"""
Items of a conversation as memories: the words as content, all the rest beside them, and who could have said them.

    {"role": "user", "content": "hi"}    content `hi`, metadata {"openai-agents": '{"role":"user","content":""}',
                                                                 "text": "content"}

The item comes back character for character. An item without words of its own (a function call, an image) is its JSON.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias, cast

from muniment.events import BadValue, SecretFound, is_blank

from ._answers import Record

Item: TypeAlias = Mapping[str, object]

MARK: Final = "openai-agents"
_TEXT: Final = "text"
_UNUSABLE: Final = re.compile(r"[^A-Za-z0-9._-]+")
_NAME: Final = 30
_DIGITS: Final = 32
_TOOL_NAME: Final = 100

# What the model itself writes. Everything else that is no message (outputs, searches with their results, a call to
# another server with what came back) holds words from elsewhere, and a kind that nobody knows yet is taken for one.
_AGENTS: Final = frozenset(
    {
        "function_call", "custom_tool_call", "reasoning", "computer_call", "local_shell_call", "shell_call",
        "apply_patch_call", "tool_search_call", "mcp_approval_request",
    }
)  # fmt: skip
_AGENT_ROLES: Final = frozenset({"assistant", "system", "developer"})
_CALLS: Final = frozenset({"function_call", "custom_tool_call", "computer_call", "local_shell_call", "shell_call"})


def session_scope(scope: str, session_id: str) -> str:
    """
    Return the scope of one session's items, below the host's: `SCOPE/session/NAME-DIGITS`.

    The digits are 128 bits of the SHA-256 of the id, so that two ids that can only be spelled alike are two scopes.
    """
    digits = hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    name = _UNUSABLE.sub("-", session_id)[:_NAME].strip("-. ") or "chat"
    return f"{scope}/session/{name}-{digits}"


def stored(item: object, clean: Callable[[str], str]) -> tuple[str, dict[str, object]]:
    """
    Return content and metadata of an item. `clean` masks or refuses the secrets of a text.

    Raises:
        BadValue: it is no JSON object. SecretFound: it holds a credential that cannot be masked where it stands.
    """
    if not isinstance(item, dict):
        raise BadValue(what="item", detail="it is not a dict")
    # Text by text, as each was written: behind the escapes of JSON a detector does not see a password in arguments.
    whole = _format(cast("object", item), clean)
    checked = cast("Item", json.loads(whole))
    spot = _spot(checked)
    if spot is not None:
        where, text = spot
        return text, {MARK: _format(_with(checked, where, ""), clean), _TEXT: where}
    # A name and its value together can be a credential too. Masking across their quotes would break the item.
    if clean(whole) != whole:
        raise SecretFound(what="an item", rules="in its JSON")
    return whole, {MARK: "", _TEXT: ""}


def restored(record: Record) -> dict[str, object]:
    """Return the item that a record holds."""
    rest, where = cast("str", record.metadata[MARK]), cast("str", record.metadata[_TEXT])
    if not where:
        return cast("dict[str, object]", json.loads(record.content or ""))
    return _with(cast("Item", json.loads(rest)), where, record.content or "")


def is_item(record: Record) -> bool:
    """Tell whether a record of the scope is an item of the conversation."""
    return record.content is not None and MARK in record.metadata and _TEXT in record.metadata


def speaker(item: Item, calls: Mapping[str, str]) -> str:
    """Return who could have said it: `user`, `agent`, or `tool:NAME`; `calls` has the tool's name of each call id."""
    kind = item.get("type")
    if kind is None or kind == "message":
        role = item.get("role")
        if role == "user":
            return "user"
        return "agent" if role in _AGENT_ROLES else "tool:message"
    if kind in _AGENTS:
        return "agent"
    name = calls.get(str(item.get("call_id"))) or item.get("name") or item.get("server_label") or kind
    return "tool:" + (_UNUSABLE.sub("-", str(name))[:_TOOL_NAME].strip("-") or "unknown")


def called(items: Iterable[Item]) -> dict[str, str]:
    """Return the tool's name of each call among the items, by call id."""
    return {
        str(item.get("call_id")): str(item.get("name") or item.get("type"))
        for item in items
        if item.get("type") in _CALLS
    }


def _cleaned(value: object, clean: Callable[[str], str]) -> object:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_cleaned(inner, clean) for inner in cast("list[object]", value)]
    if isinstance(value, dict):
        return {name: _cleaned(inner, clean) for name, inner in cast("dict[object, object]", value).items()}
    return value


def _format(item: object, clean: Callable[[str], str]) -> str:
    try:
        item = _cleaned(item, clean)
        text = json.dumps(item, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise BadValue(what="item", detail="it is not JSON") from error
    return text if _is_text(text) else json.dumps(item, separators=(",", ":"))


def _spot(item: Item) -> tuple[str, str] | None:
    """Return where the one text of an item stands, and the text; None when there is none, or several, or a blank."""
    for where in ("content", "output"):
        value = item.get(where)
        if isinstance(value, str):
            return (where, value) if _may_stand_alone(value) else None
        if isinstance(value, list) and len(cast("list[object]", value)) == 1:
            part = cast("list[object]", value)[0]
            text = cast("Item", part).get("text") if isinstance(part, dict) else None
            if isinstance(text, str) and _may_stand_alone(text):
                return f"{where}/0/text", text
    return None


def _with(item: Item, where: str, text: str) -> dict[str, object]:
    name, *inner = where.split("/")
    changed = dict(item)
    if inner:
        [part] = cast("Sequence[Item]", changed[name])
        changed[name] = [{**part, "text": text}]
    else:
        changed[name] = text
    return changed


def _may_stand_alone(text: str) -> bool:
    return not is_blank(text) and _is_text(text)


def _is_text(text: str) -> bool:
    if "\0" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
