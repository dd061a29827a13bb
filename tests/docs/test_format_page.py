"""docs/format.md describes the files that are there: its reader reads them, its tables name their parts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support import SECRET

from fullbloom import _core, loads, variants

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "format.md").read_text(encoding="utf-8")
GOLDEN = sorted((ROOT / "tests" / "golden").glob("*.bloom"))


def reader():
    """The reader that the page shows, and its set of tags with floats."""
    names: dict[str, object] = {}
    exec(re.search(r"^```python\n(import struct.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[1], names)
    return names["read"], names["FLOATS"]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_the_reader_of_the_page_reads_every_golden_file(path):
    read, _ = reader()
    data = path.read_bytes()
    header, parameters, sections = read(data)
    made = loads(data, secret=SECRET if header["fingerprint"] else None)
    rows = {row["id"]: row["class"] for row in variants()}
    assert rows[header["variant"]] == type(made).__name__
    assert header["seed"] == made.seed
    assert sum(len(section) for section in sections.values()) <= len(data)
    numbers = {room: {n for n, _, _ in known} for room, known in _core.format_numbers().items()}
    assert {tag for _, tag in parameters} <= numbers["tag"]
    assert {kind for kind, _ in sections} <= numbers["kind"]
    rates = [value for (index, tag), value in parameters.items() if tag == 2 and index in {0, 0xFFFF}]
    assert made.target_fpr in (rates or [0.0])  # what has no false positives has no rate in its file


def test_the_page_knows_which_tags_hold_floats():
    _, floats = reader()
    assert floats == {number for number, _, meaning in _core.format_numbers()["tag"] if "an f64" in meaning}


def test_a_damaged_file_is_refused_by_the_reader_of_the_page():
    read, _ = reader()
    data = bytearray(GOLDEN[0].read_bytes())
    data[70] ^= 1
    with pytest.raises(ValueError, match="damaged"):
        read(bytes(data))
