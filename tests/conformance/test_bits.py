"""`bits()` returns the value of every cell, and the reader of a file's cells agrees with the structure."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from cases import for_each
from support import SECRET, Variant, every_variant

import fullbloom
from fullbloom import registry
from fullbloom.cells import map_cells, read_cells, split_regions

GOLDEN = sorted((Path(__file__).resolve().parents[1] / "golden").glob("*.bloom"))
KEYS = [*range(60), "a", b"bytes", 2.5]


def load_golden(path: Path) -> fullbloom.BloomFilter:
    """The filter of a golden file."""
    return fullbloom.loads(path.read_bytes(), secret=SECRET if path.stem.endswith("keyed") else None)


def flatten(view: memoryview) -> list[int]:
    return np.asarray(view).ravel().tolist()


def fill(made) -> memoryview:
    """Some keys, with the value 3 where the structure takes one."""
    row = registry.find_row(made)
    keys = [key for key in KEYS if type(key) is int or not registry.is_open(row, "number")]
    if registry.is_open(row, "key", "value"):
        made.update(keys, [1] * len(keys))
    else:
        made.update(keys)
    return made.bits()


@for_each("variant", every_variant("bits"))
def test_bits_are_zero_exactly_where_nothing_was_written(variant: Variant) -> None:
    made = variant.make(300)
    assert not any(flatten(made.bits()))
    values = flatten(fill(made))
    assert sum(map(bool, values)) / len(values) == pytest.approx(made.fill)
    assert any(values)


@for_each("variant", every_variant("bits", "positions"))
def test_the_cells_that_a_key_writes_are_its_positions(variant: Variant) -> None:
    made = variant.make(300)
    key = 7
    made.add(key)
    values = flatten(made.bits())
    assert {cell for cell, value in enumerate(values) if value} == set(made.positions(key))


@for_each("variant", every_variant("bits"))
def test_the_view_is_a_read_only_copy(variant: Variant) -> None:
    made = variant.make(300)
    before = made.bits()
    assert before.readonly
    fill(made)
    assert not any(flatten(before)), "a later add does not change it"
    del made
    assert len(before.tobytes()) == before.nbytes
    array = np.asarray(before)
    assert np.shares_memory(array, before)
    assert array.shape == before.shape


def test_planes_and_buckets_are_rows() -> None:
    aging = fullbloom.AgingBloomFilter(100)
    aging.update(range(50))
    first, second = np.asarray(aging.bits())
    assert first.any()
    assert not second.any(), "the second generation has no keys yet"
    cuckoo = fullbloom.CuckooFilter(100)
    assert cuckoo.bits().shape == (cuckoo.num_buckets, cuckoo.bucket_size)
    left = fullbloom.DLeftCountingFilter(100)
    assert left.bits().shape == (left.subtables, left.buckets, left.cells)


def test_a_semi_sorted_table_has_the_fingerprints_of_a_plain_one() -> None:
    plain, sorted_ = (
        fullbloom.CuckooFilter(200, fingerprint_bits=12, semi_sort=sort) for sort in (False, True)
    )
    for made in (plain, sorted_):
        made.update(range(20))
    rows = [np.sort(np.asarray(made.bits()), axis=1) for made in (plain, sorted_)]
    assert (rows[0] == rows[1]).all()


def test_counters_hold_their_counts() -> None:
    made = fullbloom.CountingBloomFilter(100, counter_bits=8)
    for _ in range(5):
        made.add("cat")
    assert {made.bits()[cell] for cell in made.positions("cat")} == {5}


def test_a_filter_whose_secret_was_not_taken_shows_its_bits() -> None:
    made = fullbloom.BloomFilter(100, secret=True)
    made.add("cat")
    assert sum(made.bits()) == len(made.positions("cat"))


def test_bits_of_a_large_filter_are_refused_with_the_size_and_a_remedy() -> None:
    made = fullbloom.BloomFilter(3_000_000)
    with pytest.raises(fullbloom.FilterMemoryError, match=r"3\.\d MiB of cells.*2\.0 MiB.*max_bytes.*show"):
        made.bits()
    assert len(made.bits(max_bytes=made.nbytes)) == made.num_bits
    with pytest.raises(fullbloom.ParameterError, match="max_bytes must be between 1"):
        made.bits(max_bytes=0)
    with pytest.raises(fullbloom.ParameterTypeError, match="max_bytes must be a whole number"):
        made.bits(max_bytes=1.5)


@for_each("path", GOLDEN, ids=lambda path: path.stem)
def test_the_cells_of_every_golden_file_are_read(path: Path) -> None:
    made, sections = load_golden(path), read_cells(path.read_bytes())
    assert sections
    for cells in sections:
        values = cells.read_values()
        assert len(values) == cells.count
        assert list(values[::7]) == [cells[cell] for cell in range(0, cells.count, 7)]
        assert sum(map(bool, values)) == cells.count_set()
        for regions in (1, 5, 1000):
            found = list(split_regions(cells, regions))
            assert len(found) <= regions
            assert sum(region.set for region in found) == cells.count_set()
            assert [region.first for region in found[1:]] == [region.last for region in found[:-1]]
            assert found[-1].last == cells.count
    first = sections[0]
    stages = [cells for cells in sections if cells.section == first.section]
    if len(stages) == 1 and first.named:
        assert first.count_set() / first.count == pytest.approx(made.fill)


def test_a_mapped_file_has_the_cells_of_its_bytes(tmp_path: Path) -> None:
    made = fullbloom.CountingBloomFilter(5000, counter_bits=3, layout="classic")
    made.update(range(4000))
    made.save(tmp_path / "f.bloom")
    [mapped], [copied] = map_cells(str(tmp_path / "f.bloom")), read_cells(made.to_bytes())
    assert bytes(mapped.data) == bytes(copied.data)
    assert mapped.count_set(800, 1603) == sum(map(bool, copied.read_values()[800:1603]))
    with pytest.raises(IndexError, match="cell must be between 0"):
        mapped[mapped.count]


def with_header(data: bytes, at: int, form: str, value: int) -> bytes:
    """The file with one number of its header replaced, and the header's checksum renewed."""
    changed = bytearray(data)
    struct.pack_into(form, changed, at, value)
    parameters, sections = struct.unpack_from("<2H", changed, 44)
    head = -(-(64 + 16 * parameters + 32 * sections) // 64) * 64
    struct.pack_into("<I", changed, 60, zlib.crc32(changed[:60] + bytes(4) + changed[64:head]))
    return bytes(changed)


def test_bytes_that_contradict_themselves_are_refused() -> None:
    made = fullbloom.BloomFilter(100, layout="classic")
    data = made.to_bytes()
    [cells] = read_cells(with_header(data, 56, "<I", 0))
    assert cells.count == made.num_bits
    tags = {name.lower(): number for number, name, _ in fullbloom._core.format_numbers()["tag"]}
    at = next(
        64 + 16 * i
        for i in range(struct.unpack_from("<H", data, 44)[0])
        if struct.unpack_from("<H", data, 64 + 16 * i)[0] == tags["num_bits"]
    )
    for forged, why in (
        (b"", "not a fullbloom file"),
        (b"x" * 200, "not a fullbloom file"),
        (data[:-1], "cut short"),
        (data[:70] + b"\xff" + data[71:], "header is damaged"),
        (with_header(data, at + 8, "<Q", 1 << 60), "too few for"),
        (with_header(data, 46, "<H", 2000), "cut short"),
    ):
        with pytest.raises(fullbloom.FormatError, match=why):
            read_cells(forged)
