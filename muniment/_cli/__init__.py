"""The command line: one module a group of verbs, over the same calls that host code makes."""

import sys
from typing import TYPE_CHECKING, NoReturn

from ._streams import fill_streams

if TYPE_CHECKING:
    from ._main import cli

__all__ = ["cli", "main"]


def main() -> NoReturn:
    """Run the command line of this process."""
    try:
        fill_streams()
        if sys.argv[1:2] == ["mcp"]:
            # The one verb that somebody waits for: what all the others need is not loaded for it.
            from muniment._mcp._command import serve  # noqa: PLC0415  # as above

            serve(sys.argv[2:])
        from ._main import main as run  # noqa: PLC0415  # as above

        run()
    except KeyboardInterrupt:
        # While modules are being loaded. The code is one that tells a host of hooks to let the call wait, not pass.
        sys.stderr.write("stopped\n")
        sys.exit(2)


def __getattr__(name: str) -> object:
    if name != "cli":
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
    from ._main import cli as group  # noqa: PLC0415  # as above

    return group
