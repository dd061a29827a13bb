"""Filters of other programs in containers of ours: their files stay readable, and forged ones are refused."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from cases import for_each
from golden import make

import fullbloom
from fullbloom import ForeignFilter, FormatError

FILTERS = make.of_foreign()
GOLDEN = Path(make.__file__).parent / "foreign"
SECTIONS_AT, CRC_AT = 44, 60


@for_each("name", FILTERS)
def test_the_same_keys_make_the_same_bytes(name: str) -> None:
    stored = (GOLDEN / f"{name}.bloom").read_bytes()
    assert FILTERS[name].to_bytes() == stored
    opened = fullbloom.open(GOLDEN / f"{name}.bloom", verify="full")
    assert type(opened) is type(FILTERS[name])
    assert opened == FILTERS[name]
    assert opened.contains_many(make.foreign_keys(FILTERS[name])) == [True] * 30


def test_every_golden_file_has_a_recipe() -> None:
    assert {path.stem for path in GOLDEN.glob("*.bloom")} == set(FILTERS)


def repaired(data: bytearray) -> bytes:
    """The file with the checksum of its header as it should be."""
    import zlib

    params, sections = (int.from_bytes(data[at : at + 2], "little") for at in (SECTIONS_AT, SECTIONS_AT + 2))
    length = -(-(64 + 16 * params + 32 * sections) // 64) * 64
    head = bytearray(data[:length])
    head[CRC_AT : CRC_AT + 4] = bytes(4)
    data[CRC_AT : CRC_AT + 4] = zlib.crc32(head).to_bytes(4, "little")
    return bytes(data)


@pytest.mark.long
@for_each("name", FILTERS)
def test_headers_that_lie_are_refused(name: str) -> None:
    stored = (GOLDEN / f"{name}.bloom").read_bytes()
    draw = random.Random(11)
    accepted = 0
    for _ in range(3000):
        lie = bytearray(stored)
        for _ in range(draw.randint(1, 2)):
            lie[draw.choice([*range(8, 60), *range(64, 160)])] = draw.choice(
                [0, 1, 5, 64, 127, 255, draw.randrange(256)]
            )
        try:
            read = fullbloom.loads(repaired(lie), max_bytes=1 << 20)
        except (FormatError, fullbloom.FilterMemoryError, fullbloom.ParameterError):
            continue
        accepted += 1
        assert type(read).__name__.startswith("Foreign")
        assert read.nbytes <= len(stored)
        assert fullbloom.loads(read.to_bytes()) == read
    assert accepted


def test_cells_that_were_damaged_are_refused(tmp_path: Path) -> None:
    stored = bytearray((GOLDEN / "spark.bloom").read_bytes())
    stored[-20] ^= 1
    path = tmp_path / "damaged.bloom"
    path.write_bytes(stored)
    with pytest.raises(FormatError, match="checksum"):
        fullbloom.open(path, verify="full")
    mapped = ForeignFilter.open(path)
    with pytest.raises(FormatError, match="checksum"):
        mapped.copy()
    with pytest.raises(FormatError, match="checksum"):
        mapped.save(tmp_path / "other.bloom")
    with pytest.raises(FormatError):
        fullbloom.loads(bytes(stored))


def test_a_foreign_filter_takes_no_secret_and_is_not_written_in_place(tmp_path: Path) -> None:
    path = tmp_path / "f.bloom"
    FILTERS["spark"].save(path)
    with pytest.raises(fullbloom.ParameterError, match="without a secret"):
        fullbloom.open(path, secret=bytes(16))
    with pytest.raises(fullbloom.ParameterError, match="BloomFilter"):
        ForeignFilter.open(path, mode="r+")
    with pytest.raises(FormatError, match="ForeignFilter"):
        fullbloom.BloomFilter.open(path)
    fullbloom.BloomFilter(10).save(path)
    with pytest.raises(FormatError, match="does not hold a ForeignFilter"):
        ForeignFilter.open(path)
