"""The command line: one module a group of verbs, over the same calls that host code makes."""

from ._main import cli, main

__all__ = ["cli", "main"]
