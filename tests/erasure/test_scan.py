"""The scanner of the erasure campaign: a search that finds nothing proves something only if it can find."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from eval._erasure_control import missed, plant, planted_needles
from eval._erasure_scan import Scanner, byte_needles, compressors, text_needles

TEXT = "the zyzzyvaform sleeps quietly below forty bridges"


def test_what_was_planted_in_every_kind_and_encoding_is_found(tmp_path: Path) -> None:
    plant(tmp_path / "control")

    hits = Scanner(planted_needles()).scan_tree(tmp_path)

    assert [] == missed(hits, raw=False)


def test_a_file_that_was_removed_is_missed_by_a_search_of_the_files(tmp_path: Path) -> None:
    """So that the control of the raw image is one: there these have to be found."""
    plant(tmp_path / "control")

    hits = Scanner(planted_needles()).scan_tree(tmp_path)

    assert {"control-removed", "control-renamed"} == set(missed(hits, raw=True))


@pytest.mark.parametrize("name", sorted(compressors()))
def test_a_text_inside_a_compressed_block_among_noise_is_found(name: str) -> None:
    block = compressors()[name](f"and {TEXT}, again and again and again and again".encode())

    hits = Scanner(text_needles("content", "a", TEXT)).scan(b"\1" * 501 + block + os.urandom(99), "here")

    assert any("inflated" in hit.where for hit in hits)


def test_a_needle_across_the_border_of_two_reads_is_found(tmp_path: Path) -> None:
    needles = byte_needles("key", "k", random.Random(1).randbytes(32))
    path = tmp_path / "file"
    path.write_bytes(b"\2" * ((1 << 20) - 16) + needles[0].pattern + b"\2" * 5000)

    hits = Scanner(needles).scan_file(path, "file")

    assert [((1 << 20) - 16, "raw")] == [(hit.offset, hit.needle.encoding) for hit in hits if hit.needle is needles[0]]


def test_a_name_of_a_file_is_searched_too(tmp_path: Path) -> None:
    (tmp_path / "zyzzyvaform.tmp").touch()

    assert Scanner(text_needles("word", "a", "zyzzyvaform")).scan_tree(tmp_path)


def test_noise_gives_no_hit() -> None:
    noise = random.Random(2).randbytes(1 << 20)

    assert [] == Scanner(planted_needles()).scan(noise, "noise")
