"""`muniment mcp`: from a command line to a server. Loads nothing of the engine, and the SDK last."""

from __future__ import annotations

import gc
import importlib
import os
import re
import secrets
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NoReturn

import click

from ._desk import Desk
from ._projects import scope_named
from ._settings import HttpSettings, ServerSettings
from ._wire import claim_streams

TOKEN_VARIABLE: Final = "MUNIMENT_MCP_TOKEN"  # noqa: S105  # the variable's name
_PORT: Final = 8765
_MIN_TOKEN: Final = 16
_STOPPED: Final = 2
_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}(/[A-Za-z0-9][A-Za-z0-9._-]{0,63}){0,2}")
"""Scopes that are valid at a glance; `parse_scope` has the rules for all others."""


@click.command()
@click.option("--store", metavar="PATH", envvar="MUNIMENT_STORE", help="The store [MUNIMENT_STORE].")
@click.option("--scope", metavar="S", envvar="MUNIMENT_SCOPE", help="The scope; `auto`: that of the project.")
@click.option("--policy", metavar="FILE", envvar="MUNIMENT_POLICY", help="The host's policy (TOML).")
@click.option("--model", metavar="PATH", envvar="MUNIMENT_MODEL", help="Embedding model; `none`: words only.")
@click.option("--reads", metavar="S", multiple=True, help="Read exactly this scope too.")
@click.option("--reads-below", metavar="S", multiple=True, help="Read this scope too, and all below it.")
@click.option("--create", is_flag=True, help="Create the store if there is none.")
@click.option("--http", is_flag=True, help="Serve streamable HTTP instead of standard input and output.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65_535), default=_PORT, show_default=True, help="0: any that is free.")
@click.option("--token-file", metavar="FILE", help=f"The bearer token [{TOKEN_VARIABLE}]; made if there is none.")
@click.option("--allow-origin", metavar="URL", multiple=True, help="Let the pages of this origin in.")
@click.option("--allow-host", metavar="HOST:PORT", multiple=True, help="Another name that this server has.")
@click.pass_context
def mcp(
    context: click.Context, store: str | None, scope: str | None, policy: str | None, model: str | None,
    reads: tuple[str, ...], reads_below: tuple[str, ...], create: bool, http: bool, host: str, port: int,
    token_file: str | None, allow_origin: tuple[str, ...], allow_host: tuple[str, ...],
) -> None:  # fmt: skip
    """Serve memory to an MCP client, in one scope.

    \b
    Example:
      muniment mcp --store memory --scope auto
    """
    settings = ServerSettings(
        store=_store(store or _before(context, "store"), create=create),
        scope=_scope(scope or _before(context, "scope")),
        reads=reads or tuple(context.obj.reads if context.obj else ()),
        reads_below=reads_below or tuple(context.obj.reads_below if context.obj else ()),
        policy=policy or _before(context, "policy"),
        model=model or _before(context, "model"),
        create=create,
    )
    desk = Desk(settings)
    try:
        if http:
            token = _token(os.environ, token_file)
            _serve_http(desk, HttpSettings(host=host, port=port, token=token, origins=allow_origin, hosts=allow_host))
        else:
            _serve_stdio(desk)
    finally:
        desk.close()


def serve(args: Sequence[str]) -> NoReturn:
    """Run the verb by itself, as `muniment mcp ARGS` does, and exit."""
    try:
        mcp.main(args, prog_name="muniment mcp", standalone_mode=False)
    except click.exceptions.Exit as ended:
        sys.exit(ended.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(_STOPPED)
    except Exception as error:
        from muniment._cli._main import report  # noqa: PLC0415  # nothing is served, so it may take its time

        sys.exit(report(error))
    sys.exit(0)


def _serve_stdio(desk: Desk) -> None:
    streams = claim_streams()
    _load_sdk("mcp.server.lowlevel", "muniment._mcp._server")
    from ._server import serve_stdio  # noqa: PLC0415  # the SDK, which the other verbs do without

    serve_stdio(desk, streams)


def _serve_http(desk: Desk, settings: HttpSettings) -> None:
    _load_sdk("mcp.server.lowlevel", "muniment._mcp._http")
    from ._http import serve_http  # noqa: PLC0415  # as above

    serve_http(desk, settings)


def _load_sdk(*modules: str) -> None:
    # The SDK builds some hundred models while it is imported. Nothing of that is garbage, and looking for some again
    # and again takes a sixth of the time that a client waits for its handshake.
    gc.disable()
    try:
        for module in modules:
            importlib.import_module(module)
    except ImportError as error:
        raise _extra_missing(error) from error
    finally:
        gc.enable()
    gc.freeze()


def _extra_missing(error: ImportError) -> Exception:
    from muniment.events import ExtraMissing  # noqa: PLC0415  # nothing is served any more, so it may take its time

    return ExtraMissing(extra="mcp", detail=str(error), hint="pip install 'muniment[mcp]'")


def _before(context: click.Context, name: str) -> str | None:
    # Options are taken before the verb too; `muniment mcp` alone has no settings of that kind.
    value = getattr(context.obj, name, None)
    return value if isinstance(value, str) else None


def _store(given: str | None, *, create: bool) -> Path:
    if not given:
        raise click.UsageError("no store: give --store PATH, or set MUNIMENT_STORE")
    path = Path(given).absolute()
    # Looked at now, though opened later: whoever starts the server reads this, and no model has to explain it.
    if not create and not (path / "muniment.toml").exists():
        from muniment.events import StoreMissing  # noqa: PLC0415  # as above

        raise StoreMissing(path=str(path), hint="create it with `muniment init`, or start with --create")
    return path


def _scope(given: str | None) -> str:
    if not given:
        raise click.UsageError("no scope: give --scope S, `--scope auto` for the project's, or set MUNIMENT_SCOPE")
    # A host that says which project it works on is believed before the folder it happened to start us in.
    scope = scope_named(given, Path(os.environ.get("CLAUDE_PROJECT_DIR") or Path.cwd()))
    if not _PLAIN.fullmatch(scope):
        from muniment.events import parse_scope  # noqa: PLC0415  # the engine, which a plain scope does not need

        parse_scope(scope)
    sys.stderr.write(f"muniment: scope {scope}\n")
    return scope


def _token(environment: Mapping[str, str], file: str | None) -> str:
    token = environment.get(TOKEN_VARIABLE, "").strip() if file is None else _token_in(Path(file))
    if not token:
        raise click.UsageError(f"no token: give --token-file FILE, or set {TOKEN_VARIABLE}")
    if len(token) < _MIN_TOKEN or not token.isascii() or not token.isprintable():
        raise click.UsageError(f"the token is at least {_MIN_TOKEN} printable ASCII characters")
    return token


def _token_in(path: Path) -> str:
    try:
        made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text(encoding="utf-8").strip()
    with os.fdopen(made, "w", encoding="ascii") as file:
        token = secrets.token_urlsafe(32)
        file.write(token + "\n")
    sys.stderr.write(f"muniment: a token was made in {path}\n")
    return token
