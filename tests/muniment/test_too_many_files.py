"""A process that may open no more files is told so by name, whichever file it is, and goes on once it may again."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from muniment.errors import ResourcesExhausted
from muniment.events import typed
from tests.processes import run

# As many as are still free, from none on: each opening of a file fails in one of the rounds.
_PROGRAM = "import sys; from tests.muniment.starved import main; main(*sys.argv[1:])"


@pytest.mark.parametrize("act", ["a whole life", "a new store", "an open store", "a rebuild"])
def test_no_more_open_files_is_an_error_of_ours_at_every_file(tmp_path: Path, act: str) -> None:
    ends, is_whole = json.loads(run(_PROGRAM, tmp_path, act))
    assert {"resources_exhausted", "done"} == set(ends)
    assert is_whole


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM])
def test_whatever_has_run_out_has_that_name(tmp_path: Path, number: int) -> None:
    with pytest.raises(ResourcesExhausted, match=os.strerror(number)), typed(tmp_path, "a file"):
        raise OSError(number, os.strerror(number))
