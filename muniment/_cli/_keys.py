"""Verbs of keys: making one, letting it speak for a user, and putting another in its place."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import click

from muniment._submit import replace_key
from muniment.events import BadArgument, EnrolDenied, SignatureInvalid
from muniment.gate import KeyFile

from ._output import emit_json, emit_receipt, printable, talk
from ._settings import Settings, common, open_key, repeatable, signed, signer_for


@click.command()
@click.argument("path")
@click.option("--passphrase-prompt", is_flag=True, help="Ask on the terminal for a passphrase to seal it with.")
@common
@click.pass_obj
def keygen(settings: Settings, path: str, passphrase_prompt: bool) -> None:
    """Make a user's key, and print its public half. Keep the file outside every store, and away from agents.

    \b
    Example:
      muniment keygen ~/.config/muniment/user.key
    """
    inside = [folder for folder in Path(path).expanduser().absolute().parents if (folder / "muniment.toml").exists()]
    if inside:
        raise BadArgument(argument="path", detail=f"`{inside[0]}` is a store: a key in it goes wherever that is copied")
    passphrase = None
    if passphrase_prompt:
        passphrase = click.prompt("Passphrase", hide_input=True, confirmation_prompt=True, err=True)
    key = KeyFile.create(path, passphrase=passphrase)
    if settings.json:
        emit_json({"path": str(key.path), "public_key": key.public_key.hex()})
    else:
        click.echo(key.public_key.hex())
        talk(f"key at {key.path}")


@click.command()
@click.argument("principal", metavar="user:NAME")
@click.option("--public-key", metavar="HEX", help="The public half, as keygen prints it.")
@click.option("--key", metavar="FILE", help="The key file itself, instead.")
@click.option("--for", "scopes", metavar="S", multiple=True, help="A scope the user speaks for, and all below it.")
@click.option("--recovery", is_flag=True, help="Only to replace a lost key of this user; it signs nothing else.")
@repeatable
@common
@click.pass_obj
def enroll(
    settings: Settings, principal: str, public_key: str | None, key: str | None, scopes: tuple[str, ...],
    recovery: bool, command_id: str | None,
) -> None:  # fmt: skip
    """Let a key speak for a user in some scopes. Only on a terminal: it asks the person who sits there.

    \b
    Example:
      muniment enroll user:ann --key ~/.config/muniment/user.key --for acme --for user/ann
    """
    if (public_key is None) == (key is None):
        raise click.UsageError("give --public-key or --key")
    wanted = scopes or ((settings.scope,) if settings.scope else ())
    if not wanted:
        raise click.UsageError("no scope: give --for S")
    if not sys.stdin.isatty():
        # A program that an agent started could otherwise enroll a key of its own.
        raise EnrolDenied(principal=principal, detail="standard input is not a terminal")
    public = open_key(key).public_key if key is not None else _unhex(public_key or "")
    talk(f"{printable(principal)} will speak for {', '.join(map(printable, wanted))} with key {public.hex()}")
    typed = click.prompt("Type the user's name to go on", err=True, default="", show_default=False)
    if typed.strip() != principal:
        raise EnrolDenied(principal=principal, detail="another name was typed")
    with settings.open() as store:
        receipt = store.enroll_by(
            principal, public, scopes=wanted, by="terminal", recovery=recovery, command_id=command_id
        )
    emit_receipt(receipt, as_json=settings.json)


@click.command()
@click.argument("new", metavar="NEWKEY")
@click.option(
    "--for", "scopes", metavar="S", multiple=True, help="A scope that it speaks for; without, all of the old."
)
@repeatable
@signed
@common
@click.pass_obj
def rotate(
    settings: Settings, new: str, scopes: tuple[str, ...], command_id: str | None, key: str | None,
    principal: str | None,
) -> None:  # fmt: skip
    """Put another key (its file, or its public half in hexadecimal) in the place of the one that signs this.

    What the old key confirmed stays confirmed. For a key that was lost or stolen there is `recover`.

    \b
    Example:
      muniment rotate new.key --key old.key --as user:ann
    """
    signer = _signer(key, principal)
    with settings.open() as store:
        receipt = replace_key(
            store._engine, principal or "", signer, _public_half(new), scopes=scopes or None, command_id=command_id
        )
        emit_receipt(receipt, as_json=settings.json)


@click.command()
@click.argument("lost", metavar="LOSTKEY")
@click.argument("new", metavar="NEWKEY")
@click.option(
    "--for", "scopes", metavar="S", multiple=True, help="A scope that it speaks for; without, all of the old."
)
@repeatable
@signed
@common
@click.pass_obj
def recover(
    settings: Settings, lost: str, new: str, scopes: tuple[str, ...], command_id: str | None, key: str | None,
    principal: str | None,
) -> None:  # fmt: skip
    """Put NEWKEY in the place of a key that was lost or stolen, signed by the user's recovery key (--key).

    Both are a key file or a public half in hexadecimal. What was confirmed before is void.

    \b
    Example:
      muniment recover 9f31...c0 new.key --key recovery.key --as user:ann
    """
    signer = _signer(key, principal)
    with settings.open() as store:
        receipt = store.recover(
            principal or "", lost=_public_half(lost), public_key=_public_half(new), signer=signer,
            scopes=scopes or None, command_id=command_id,
        )  # fmt: skip
        emit_receipt(receipt, as_json=settings.json)


def _signer(key: str | None, principal: str | None) -> KeyFile:
    signer = signer_for(key, principal)
    if signer is None:
        raise SignatureInvalid(detail="a key is replaced by signature", hint="add --key FILE --as user:NAME")
    return signer


def _public_half(given: str) -> bytes:
    if len(given) == 64 and all(digit in "0123456789abcdef" for digit in given.lower()):
        return bytes.fromhex(given)
    return open_key(given).public_key


def _unhex(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        raise click.BadParameter("expected hexadecimal digits", param_hint="--public-key") from error


COMMANDS: Final = (keygen, enroll, rotate, recover)
