"""One small file in each format, each with a record that is damaged, and what a reader must make of it."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import NamedTuple

DATA = Path(__file__).parent / "data"


class Fixture(NamedTuple):
    """A file, its format, how many memories it gives, where its damage is, and some of what it says, and when."""

    file: str
    format: str
    memories: int
    damaged: str
    says: dict[str, str | None]


CHAT, TALK = "c0000000-0000-4000-8000-00000000000", "d0000000-0000-4000-8000-000000000001"
FIXTURES = (
    Fixture("locomo.json", "locomo", 2, "conv-1/session_1[1]", {"Μαρία: Τι ωραία!": "2023-05-08T13:56:02+00:00"}),
    Fixture("jsonl.jsonl", "jsonl", 2, "line 2", {"門は緑です。": "2026-01-02T08:00:00+00:00"}),
    Fixture(
        "chatgpt.json", "chatgpt", 7, f"{CHAT}3/ccc2",
        {
            "Which colour is the garden door?": "2024-04-05T19:34:39.623456+00:00",
            "[image]\nIst das die richtige Tür? 門は緑です": "2024-04-05T19:34:45.500000+00:00",
            # It has no time of its own, and was said after the one before it.
            "Ja, die Tür ist grün.": "2024-04-05T19:34:45.500000+00:00",
        },
    ),
    Fixture("claude.json", "claude", 6, f"{TALK}/m3", {"Спасибо, запуск второго апреля.": "2025-03-01T10:01:00+00:00"}),
    Fixture(
        "claude-projects.json", "claude", 3, "record 2", {"The venue is the town hall.": "2025-02-03T00:00:00+00:00"}
    ),
    Fixture("claude-memories.json", "claude", 4, "record 2", {"Ann plans a launch.": None, "会場は変わった。": None}),
    Fixture(
        "claude-code.jsonl", "claude-code", 8, "line 9", {"Fix the login, bitte. ログイン": "2025-10-01T09:00:01+00:00"}
    ),
    Fixture("CLAUDE.md", "agents-md", 7, "line 24", {"Project > Commands: 提交前运行测试。": None}),
    Fixture("mem0.json", "mem0", 3, "memory 2", {"안은 서울에 산다": "2024-08-01T00:00:00+00:00"}),
    Fixture("midas.json", "midas", 5, "record 4", {"Сад открыт по воскресеньям.": "2023-11-14T22:15:00+00:00"}),
    Fixture("mcp-memory.jsonl", "mcp-memory", 6, "line 3", {"Ann: 住在首尔": None}),
    Fixture("muniment.jsonl", "muniment", 4, "line 5", {"ساعة الإطلاق: الثانية": "2026-02-01T00:00:00+00:00"}),
)  # fmt: skip


def archive(path: Path, **members: str) -> Path:
    """Write a .zip of fixtures, as an export comes: the names of its members without their ending, and their files."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("user.json", "{}")
        for name, file in members.items():
            made.write(DATA / file, f"{name.replace('__', '/')}.json")
    return path
