"""Which scope a folder has: the git repository it lies in, or else the folder itself."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Final

_UNUSABLE: Final = re.compile(r"[^A-Za-z0-9._-]+")
_NAME: Final = 30
_DIGITS: Final = 32


def project_folder(start: Path) -> Path:
    """Return the top folder of the git repository that the folder lies in, or the folder itself."""
    here = Path(os.path.realpath(start))
    for folder in (here, *here.parents):
        # What a `.git` file points to is not followed: whoever can write one in a folder could name another project
        # there, and read its memories.
        if (folder / ".git").exists():
            return folder
    return here


def project_scope(start: Path) -> str:
    """
    Return the scope of the project that the folder lies in: `project/NAME-DIGITS`.

    The digits are 128 bits of the SHA-256 of the folder's real path, so that two folders of one name, and two names
    that can only be spelled alike, are two scopes.
    """
    folder = project_folder(start)
    digits = hashlib.sha256(os.fsencode(folder)).hexdigest()[:_DIGITS]
    name = _UNUSABLE.sub("-", folder.name)[:_NAME].strip("-. ") or "folder"
    return f"project/{name}-{digits}"


def scope_named(given: str, start: Path) -> str:
    """Return the scope that `--scope` names; `auto` is the project's."""
    return project_scope(start) if given == "auto" else given
