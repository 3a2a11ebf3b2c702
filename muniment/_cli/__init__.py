"""The command line: one module a group of verbs, over the same calls that host code makes."""

import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from ._main import cli

__all__ = ["cli", "main"]


def main() -> NoReturn:
    """Run the command line of this process."""
    if sys.argv[1:2] == ["mcp"]:
        # The one verb that somebody waits for: what all the others need is not loaded for it.
        from muniment._mcp._command import serve  # noqa: PLC0415  # as above

        serve(sys.argv[2:])
    from ._main import main as run  # noqa: PLC0415  # as above

    run()


def __getattr__(name: str) -> object:
    if name != "cli":
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
    from ._main import cli as group  # noqa: PLC0415  # as above

    return group
