"""The entry point: verbs by group, and one place where errors become exit codes."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import Final, NoReturn

import click

from muniment._version import VERSION
from muniment.events import BadArgument, InvalidInput, MunimentError, Unavailable

from . import _asking, _evidence, _feeding, _forensics, _keys, _querying, _remembering, _serving, _signing, _upkeep
from ._output import emit_json, printable, talk
from ._settings import Settings, common, from_environment
from ._streams import OutputLost, encode_streams, give_up_output

DONE: Final = 0
FOUND: Final = 1
COULD_NOT_RUN: Final = 2


class _ReaderGone(Exception):
    """A broken pipe, by a name that click does not know: it would exit with 1, which says that something was found."""


class MunimentGroup(click.Group):
    """A group of verbs whose every end is one of three exit codes."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the verb that was named."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise _ReaderGone from error

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: ARG002  # click's signature; a command line is always on its own
        windows_expand_args: bool = True,  # noqa: ARG002  # as above; there is no Windows
        **extra: object,
    ) -> NoReturn:
        """Run one command line and exit: 0 done, 1 a finding or a refusal, 2 could not run."""
        given = list(sys.argv[1:] if args is None else args)
        try:
            code = self._run(given, prog_name, complete_var, extra)
            sys.stdout.flush()
        except OSError as error:
            # Standard output takes nothing: whoever read it went away, its disk is full, or it was closed.
            if not isinstance(error, BrokenPipeError):
                talk(f"error: standard output cannot be written: {error.strerror}")
            give_up_output()
            code = COULD_NOT_RUN
        sys.exit(code)

    def _run(self, args: list[str], prog_name: str | None, complete_var: str | None, extra: dict[str, object]) -> int:
        as_json = "--json" in (args[: args.index("--")] if "--" in args else args)
        try:
            found: object = super().main(args, prog_name, complete_var, False, **extra)
        except MunimentError as error:
            return report(error, as_json=as_json)
        except _ReaderGone as error:
            raise BrokenPipeError from error
        except click.Abort:
            talk("stopped")
            return COULD_NOT_RUN
        except click.ClickException as error:
            error.show()
            if as_json:
                emit_json(BadArgument(argument="command line", detail=error.format_message()).to_dict())
            return COULD_NOT_RUN
        except (BrokenPipeError, OutputLost):
            raise
        except OSError as error:
            talk(f"error: {error}")
            if as_json:
                emit_json({"error": "unavailable", "message": str(error), "hint": ""})
            return COULD_NOT_RUN
        except Exception as error:
            return report(error)
        # Commands return nothing; what arrives here is the code of `context.exit`.
        return found if isinstance(found, int) else DONE


def report(error: Exception, *, as_json: bool = False) -> int:
    """Say what went wrong, and return the exit code for it."""
    if not isinstance(error, MunimentError):
        # Python would exit with 1, which says that something was found.
        traceback.print_exception(error)
        return COULD_NOT_RUN
    talk(f"error: {printable(str(error))} [{error.code}]")
    if error.hint:
        talk(f"hint: {printable(error.hint)}")
    if as_json:
        emit_json(error.to_dict())
    return COULD_NOT_RUN if isinstance(error, (InvalidInput, Unavailable)) else FOUND


@click.group(cls=MunimentGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="muniment")
@common
@click.pass_context
def cli(context: click.Context) -> None:
    """Memory for agents in which a memory is evidence.

    The options below are taken before and after the verb. Exit codes: 0 done, 1 a finding or a refusal, 2 could not
    run.

    \b
    Example:
      muniment init --store memory
      muniment --store memory --scope acme remember "The launch is on 12 March."
    """
    from_environment(context.ensure_object(Settings))


for _group in (_remembering, _asking, _keys, _signing, _forensics, _querying, _evidence, _feeding, _upkeep, _serving):
    for _command in _group.COMMANDS:
        cli.add_command(_command)


def main() -> NoReturn:
    """Run the command line of this process."""
    encode_streams()
    cli.main(prog_name="muniment")
