"""Calls that no tool can take, drawn by dice whose seed a failing test prints."""

from __future__ import annotations

import random
from typing import Final

from mcp import Client

from muniment._mcp._tools import TOOLS, Param, Tool

from .serving import Row, row_of, text_of

SEED: Final = 7
COUNT: Final = 200
_NAMES: Final = ("scope", "origin", "Query", "", "__proto__", "x" * 5000, "contents", "\u202e")


async def send_malformed(client: Client) -> None:
    """Send them all, and check that each is refused by the name of its wrong argument, and that the server lives on."""
    dice = random.Random(SEED)
    for _ in range(COUNT):
        tool, given, name = _malformed(dice)
        error = row_of(await client.call_tool(tool, given), failed=True)
        assert "invalid_params" == error["error"], (SEED, tool, given)
        assert str(error["argument"])[:60] in (name[:60], "�"), (SEED, tool, given)
    await check_alive(client)


async def check_alive(client: Client) -> None:
    """Check that the server remembers and recalls."""
    row_of(await client.call_tool("memory_remember", {"content": "Still here."}))
    assert "Still here." in text_of(await client.call_tool("memory_recall", {"query": "still here"}))


def _wrong(param: Param, dice: random.Random) -> object:
    """Return a value that the argument cannot mean."""
    match param.sort:
        case "integer" | "number":
            return dice.choice([param.high + 1, param.low - 1, "many", True, [1], {"a": 1}, 10**30, "1e400"])
        case "boolean":
            return dice.choice([1, "maybe", [True], {}])
        case "texts":
            return dice.choice([5, {"a": "b"}, [1, 2], ["a", None], True, [["a"]]])
        case "pair":
            return dice.choice(["one", ["a", "b", "c"], {"subject": "a"}, 3, [1, 2]])
        case "object":
            return dice.choice(["a=b", ["a"], 7, "[1]", True])
        case "value":
            return dice.choice([["a"], {"a": 1}])
        case "moment":
            return dice.choice([1.5, ["a"], {"a": 1}, True])
        case _:
            choices: list[object] = [5, ["a"], {"a": 1}, True, 1.5]
            return dice.choice([*choices, "no such word"] if param.choices or param.prefixes else choices)


def _right(tool: Tool) -> Row:
    return {param.name: ["00"] if param.sort == "texts" else "some text" for param in tool.params if param.required}


def _malformed(dice: random.Random) -> tuple[str, Row, str]:
    """Return a tool, arguments for it, and the name of the one that is wrong."""
    tool = dice.choice(TOOLS)
    given = _right(tool)
    required = [param.name for param in tool.params if param.required]
    sort = dice.randrange(4)
    if sort == 0:
        name = dice.choice(_NAMES)
        return tool.name, {**given, name: "x"}, name
    if sort == 1 and required:
        name = dice.choice(required)
        return tool.name, {key: value for key, value in given.items() if key != name}, name
    if sort == 2 and required:
        name = dice.choice(required)
        return tool.name, {**given, name: dice.choice([None, "null", []])}, name
    param = dice.choice(tool.params)
    return tool.name, {**given, param.name: _wrong(param, dice)}, param.name
