"""An environment for each product: made once by pip with the pins of its adapter, kept in a cache, used offline."""

from __future__ import annotations

import hashlib
import importlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import NamedTuple, cast

from ._protocol import ADAPTERS, Adapter

_DONE = "muniment-peer.txt"


class NotInstalled(Exception):
    """pip could not install a product; the text is the end of what it said."""


class Environment(NamedTuple):
    """Where a product's interpreter is."""

    python: Path
    requirements: tuple[str, ...]


def adapter_of(name: str) -> type[Adapter]:
    """Return the adapter's class, which can be looked at without the product."""
    return cast("type[Adapter]", importlib.import_module(f"{__package__}.{ADAPTERS[name]}").Adapter)


def default_cache() -> Path:
    """Return the folder of the user's cache in which the environments are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "muniment-eval" / "peers"


def ensure(name: str, cache: Path) -> Environment:
    """
    Return a product's environment, made first where there is none with these pins and this interpreter.

    Raises:
        NotInstalled: the package index cannot be reached, or has no such version.
    """
    wanted = adapter_of(name).requirements
    if not wanted:
        return Environment(Path(sys.executable), ())
    key = hashlib.sha256("\n".join([sys.version, *wanted]).encode()).hexdigest()[:12]
    folder = cache / f"{wanted[0].partition('==')[0]}-{key}"
    python = folder / "bin" / "python"
    if not (folder / _DONE).exists():
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted]
        done = subprocess.run(install, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotInstalled(f"{name}: {done.stderr.strip()[-400:]}")
        # Last: an install that was cut short is made again.
        (folder / _DONE).write_text("\n".join(wanted) + "\n", encoding="utf-8")
    return Environment(python, wanted)


def frozen(environment: Environment) -> dict[str, str]:
    """Return every distribution of an environment with its version."""
    done = subprocess.run(
        [str(environment.python), "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check"],
        capture_output=True,
        text=True,
        check=True,
    )
    pairs = (line.partition("==") for line in done.stdout.split())
    return {name: version for name, _, version in pairs}
