"""The program that the tests of this folder start."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("redis", reason="redis-py is not installed")

from service.resp.data_plane import ROOT, example


def test_the_program_is_no_older_than_its_sources():
    program = example()
    # cargo lists beside a program the sources that it was compiled from.
    listed = program.with_suffix(".d").read_text().partition(": ")[2]
    sources = [ROOT / source.replace("\\ ", " ") for source in re.split(r"(?<!\\)\s+", listed) if source]
    assert ROOT / "crates/fullbloom-server/src/resp/session/mod.rs" in sources
    built = program.stat().st_mtime
    assert [source for source in sources if source.stat().st_mtime > built] == []
