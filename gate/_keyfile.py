"""
The user's key in a file, outside every store.

Without a passphrase the file is a PKCS #8 PEM, which any tool reads. With one it is the encrypted PEM under a line that
tells how the passphrase was stretched, because the encryption of PEM alone costs a guesser 2048 hashes:

    muniment key v1 scrypt 16 8 1 <salt, 32 hexadecimal digits>
    -----BEGIN ENCRYPTED PRIVATE KEY-----

The PEM's own passphrase is then scrypt(passphrase, salt, n=2^16, r=8, p=1), 32 bytes in hexadecimal.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
from pathlib import Path
from typing import NoReturn

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from muniment.events import check_path, open_file
from muniment.events._errors import BadArgument

_HEADER = re.compile(rb"muniment key v1 scrypt 16 8 1 ([0-9a-f]{32})\n(?=-----BEGIN ENCRYPTED PRIVATE KEY-----)")
_MAX_BYTES = 16_384


class KeyFile:
    """Signs with the Ed25519 key in a file that only its owner can read.

    Raises `BadArgument` if there is no such file, others can read it, or the passphrase does not open it. The key stays
    in memory until the object goes; it is never shown, and the object cannot be pickled.
    """

    def __init__(self, path: str | os.PathLike[str], *, passphrase: str | None = None) -> None:
        self._path = check_path(path, "path").expanduser()
        self._key = _open_key(_read_private(self._path), passphrase)
        self._public = self._key.public_key().public_bytes_raw()

    @classmethod
    def create(cls, path: str | os.PathLike[str], *, passphrase: str | None = None) -> KeyFile:
        """Make a key, and return it once it is on disk. Never overwrites; folders it has to make are the owner's only.

        Where the file is put is the caller's to judge: a key inside a store would go wherever the store is copied.
        """
        where = check_path(path, "path").expanduser()
        data = _seal_key(Ed25519PrivateKey.generate(), passphrase)
        _make_private_folder(where.parent)
        _write_private(where, data)
        return cls(where, passphrase=passphrase)

    @property
    def public_key(self) -> bytes:
        """The 32 raw bytes by which the key is enrolled."""
        return self._public

    @property
    def path(self) -> Path:
        """Where the key is kept."""
        return self._path

    def sign(self, message: bytes) -> bytes:
        """Return the 64 bytes of the signature."""
        return self._key.sign(message)

    def __repr__(self) -> str:
        return f"KeyFile({str(self._path)!r}, public_key={self._public.hex()})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a private key is not pickled; open the file again instead")


def _seal_key(key: Ed25519PrivateKey, passphrase: str | None) -> bytes:
    header = b""
    encryption: KeySerializationEncryption = NoEncryption()
    if passphrase is not None:
        salt = secrets.token_bytes(16)
        header = b"muniment key v1 scrypt 16 8 1 " + salt.hex().encode() + b"\n"
        encryption = BestAvailableEncryption(_stretched(passphrase, salt))
    return header + key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)


def _open_key(data: bytes, passphrase: str | None) -> Ed25519PrivateKey:
    header = _HEADER.match(data)
    secret: bytes | None = None
    if header is not None:
        if passphrase is None:
            raise BadArgument(argument="passphrase", detail="the key has one, and none was given")
        secret = _stretched(passphrase, bytes.fromhex(header[1].decode()))
        data = data[header.end() :]
    elif passphrase is not None:
        # An encrypted PEM made by another tool takes the passphrase as it is.
        secret = _passphrase_bytes(passphrase)
    try:
        key = load_pem_private_key(data, secret)
    except TypeError as error:
        detail = "the key has one, and none was given" if secret is None else "the key has none, and one was given"
        raise BadArgument(argument="passphrase", detail=detail) from error
    except ValueError as error:
        if b"ENCRYPTED" in data[:64]:
            raise BadArgument(argument="passphrase", detail="it does not open this key") from error
        raise BadArgument(argument="path", detail="the file holds no private key in PEM") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise BadArgument(argument="path", detail="the key is not an Ed25519 key")
    return key


def _stretched(passphrase: str, salt: bytes) -> bytes:
    return Scrypt(salt=salt, length=32, n=2**16, r=8, p=1).derive(_passphrase_bytes(passphrase)).hex().encode()


def _passphrase_bytes(passphrase: str) -> bytes:
    if not passphrase:
        raise BadArgument(argument="passphrase", detail="it is empty; leave it out for a key without one")
    try:
        return passphrase.encode()
    except UnicodeEncodeError:
        # Not chained: the original error carries the passphrase.
        raise BadArgument(argument="passphrase", detail="it is not valid text") from None


def _make_private_folder(folder: Path) -> None:
    missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    try:
        for parent in reversed(missing):
            parent.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise BadArgument(argument="path", detail=f"folder `{folder}` cannot be made: {error.strerror}") from error


def _write_private(path: Path, data: bytes) -> None:
    try:
        # O_EXCL and O_NOFOLLOW: neither a key that is there nor one that a link points to is overwritten.
        handle = open_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW)
    except FileExistsError as error:
        raise BadArgument(argument="path", detail=f"`{path}` exists, and a key is never overwritten") from error
    except OSError as error:
        raise BadArgument(argument="path", detail=f"`{path}` cannot be made: {error.strerror}") from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        folder = open_file(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except BaseException as error:
        # Half a key would block the next attempt and open nothing.
        with contextlib.suppress(OSError):
            path.unlink()
        if isinstance(error, OSError):
            raise BadArgument(argument="path", detail=f"`{path}` cannot be written: {error.strerror}") from error
        raise


def _read_private(path: Path) -> bytes:
    try:
        # O_NONBLOCK: a pipe put there must not hang us.
        handle = open_file(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        hint = "make one with `muniment keygen`"
        raise BadArgument(hint=hint, argument="path", detail=f"no key at `{path}`: {error.strerror}") from error
    try:
        # Asked of the open file: the name could point elsewhere by now.
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise BadArgument(argument="path", detail=f"`{path}` is not a file")
        if found.st_mode & 0o077:
            mode = stat.S_IMODE(found.st_mode)
            detail = f"others may use `{path}` (mode {mode:o}); only its owner may"
            raise BadArgument(hint=f"chmod 600 {path}", argument="path", detail=detail)
        return os.read(handle, _MAX_BYTES)
    finally:
        os.close(handle)
