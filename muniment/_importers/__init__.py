"""Readers that turn a file of conversations or memories into a stream of turns. They know nothing of the engine."""

from ._detect import FORMATS, detect_format, open_transcript
from ._turns import Ending, Found, Linking, Note, Role, Skipped, Transcript, Turn

__all__ = [
    "FORMATS", "Ending", "Found", "Linking", "Note", "Role", "Skipped", "Transcript", "Turn", "detect_format",
    "open_transcript",
]  # fmt: skip
