"""A file system in a file, mounted over a loop device, whose raw bytes can be read once it is unmounted."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

_SIZES: Final = {"ext4": 192 << 20, "xfs": 320 << 20}
_MAKERS: Final = {"ext4": ["mkfs.ext4", "-q", "-F"], "xfs": ["mkfs.xfs", "-q", "-f"]}


class Image:
    """One file system; a context manager that leaves nothing mounted."""

    def __init__(self, kind: str, directory: Path) -> None:
        self.kind, self.raw, self.root = kind, directory / f"{kind}.img", directory / f"mounted-{kind}"

    def __enter__(self) -> Image:
        with self.raw.open("wb") as file:
            file.truncate(_SIZES[self.kind])
        _run([*_MAKERS[self.kind], str(self.raw)])
        self.root.mkdir()
        self.mount()
        return self

    def __exit__(self, *error: object) -> None:
        if os.path.ismount(self.root):
            self.unmount()

    def mount(self) -> None:
        """Make the files reachable below `root`."""
        _run(["mount", "-o", "loop", str(self.raw), str(self.root)])

    def unmount(self) -> None:
        """Write everything out; from here on `raw` is what the device holds."""
        _run(["umount", str(self.root)])


def why_not(kind: str, directory: Path) -> str | None:
    """Return why this file system cannot be mounted here, or None."""
    if os.geteuid() != 0:
        return "mounting needs root"
    if shutil.which(_MAKERS[kind][0]) is None:
        return f"{_MAKERS[kind][0]} is not installed"
    trial = directory / "trial"
    trial.mkdir(exist_ok=True)
    try:
        with Image(kind, trial):
            return None
    except subprocess.CalledProcessError as error:
        return f"no loop device: {str(error.stderr).strip()}"
    finally:
        shutil.rmtree(trial, ignore_errors=True)


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)
