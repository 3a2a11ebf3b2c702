"""Readers that turn a transcript file into a stream of turns. They know nothing of the engine."""

from ._detect import FORMATS, detect_format, open_transcript
from ._turns import Role, Skipped, Transcript, Turn

__all__ = ["FORMATS", "Role", "Skipped", "Transcript", "Turn", "detect_format", "open_transcript"]
