"""Files that lie in a number: refused, or opened by their headers alone, and what is saved is opened then."""

from __future__ import annotations

import struct
import warnings
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from hostile.container import COUNT, File
from support import Variant, every_variant

import fullbloom


def write_copy(variant: Variant, found: Any, _: Path) -> bytes:
    """The bytes of a copy in memory, with some keys more where it takes any."""
    instance = found.copy()
    for key in range(0 if variant.can("build") else 20):
        try:
            variant.add(instance, key)
        except fullbloom.FullbloomError:
            break
    return instance.to_bytes()  # type: ignore[no-any-return]


def write_bytes(_: Variant, found: Any, __: Path) -> bytes:
    """Its own bytes."""
    return found.to_bytes()  # type: ignore[no-any-return]


def write_file(_: Variant, found: Any, path: Path) -> bytes:
    """The bytes of another file of it."""
    found.save(path)
    return path.read_bytes()


def write_pickle(_: Variant, found: Any, __: Path) -> bytes:
    """The bytes that a pickle carries."""
    return found.__reduce__()[1][0]  # type: ignore[no-any-return]


@pytest.mark.long
@for_each("variant", every_variant())
def test_a_forged_file_that_opens_is_saved_as_one_that_opens(variant: Variant, tmp_path: Path) -> None:
    """Counts above all: a table that holds more than is stated of it would save what full loading refuses."""
    path, other = tmp_path / "lie.bloom", tmp_path / "other.bloom"
    data = variant.build_from(range(60), 100).to_bytes()
    opened = 0
    for tag, index, _, value in File.parse(data).params:
        for lie in sorted({0, 1, abs(value - 1), value + 1, value // 2, 2 * value} - {value}):
            file = File.parse(data)
            file.set(tag, lie, index)
            path.write_bytes(file.build())
            for write in (write_copy, write_bytes, write_file, write_pickle):
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore", fullbloom.CapacityWarning)
                        written = write(variant, fullbloom.open(path, verify="header"), other)
                except fullbloom.FullbloomError:
                    continue
                again = fullbloom.loads(written)
                assert again.nbytes > 0, (tag, index, lie)
                opened += 1
    assert opened


@pytest.mark.parametrize("increments", [2, 4, 8])
def test_an_impossible_sum_of_increments_is_refused(increments: int, tmp_path: Path) -> None:
    """Between 0 and the least increment a counter would deny the keys that are added to it."""
    instance = fullbloom.VariableIncrementFilter(100, increments=increments)
    path, bits = tmp_path / "lie.bloom", instance.counter_bits
    for value in range(1 << bits):
        for cell in (0, 7, instance.num_counters - 1):
            file = File.parse(instance.to_bytes())
            cells = int.from_bytes(file.payload, "little") | value << bits * cell
            file.payload = cells.to_bytes(len(file.payload), "little")
            path.write_bytes(file.build())
            reads = (
                lambda: fullbloom.loads(path.read_bytes()),
                lambda: fullbloom.open(path, verify="full"),
                lambda: fullbloom.open(path, verify="header").copy(),
            )
            for read in reads:
                if 0 < value < increments:
                    with pytest.raises(
                        fullbloom.FormatError, match=f"counter {cell} .* is {value}, .*damaged"
                    ):
                        read()
                else:
                    read().fpr()


def list_readers(data: bytes, path: Path) -> list[Any]:
    """Calls that read a file and look at all of it."""
    path.write_bytes(data)
    return [
        lambda: fullbloom.loads(data),
        lambda: fullbloom.open(path, verify="full"),
        lambda: fullbloom.open(path, verify="header").copy(),
    ]


def forge(data: bytes, change: Any) -> bytes:
    """The file with other words in its payload."""
    file = File.parse(data)
    words = list(struct.unpack(f"<{len(file.payload) // 8}Q", file.payload))
    change(words)
    file.payload = struct.pack(f"<{len(words)}Q", *(word % 2**64 for word in words))
    return file.build()


@pytest.mark.parametrize("number", [0, 3, 9])
def test_a_bin_marked_as_overflowed_must_be_full(number: int, tmp_path: Path) -> None:
    """Keys that are not there were looked for in the spare, and a key that came later was lost."""
    instance = fullbloom.PrefixFilter(1000)
    instance.update(range(200))
    words = -(-(51 + 25 * instance.remainder_bits) // 64)

    def passes(cells: list[int]) -> None:
        cells[words * number] |= 1

    for read in list_readers(forge(instance.to_bytes(), passes), tmp_path / "lie.bloom"):
        with pytest.raises(fullbloom.FormatError, match=f"bin {number} of the file is invalid"):
            read()


@for_each("counting", [False, True])
@for_each("members", [0, 1, 4, 6, 2**62])
def test_remainders_of_each_prime_must_match_the_members(
    counting: bool, members: int, tmp_path: Path
) -> None:
    instance = fullbloom.ZoneFilter(10, universe=10_000, counting=counting)
    instance.update([3, 999, 4000, 5000, 9999])
    file = File.parse(instance.to_bytes())
    file.set(COUNT, members)
    for read in list_readers(file.build(), tmp_path / "lie.bloom"):
        if members == 6 and not counting:
            # Members may share bits, so there may be more of them.
            assert fullbloom.loads(read().to_bytes()).num_added == members
        else:
            with pytest.raises(fullbloom.FormatError, match="members"):
                read()


def test_cells_of_one_prime_alone_are_refused(tmp_path: Path) -> None:
    """Taken out again, what such a filter held saved what nobody opens."""
    instance = fullbloom.ZoneFilter(10, universe=10_000, counting=True)
    instance.update([3, 999])
    for word in (0, 1, 5):

        def increment(cells: list[int], word: int = word) -> None:
            cells[word] ^= 1 << 17

        for read in list_readers(forge(instance.to_bytes(), increment), tmp_path / "lie.bloom"):
            with pytest.raises(fullbloom.FormatError, match="damaged"):
                read()


@pytest.mark.parametrize("count", [1, -1, 2**31, -(2**31)])
def test_a_count_in_a_single_subtable_is_refused(count: int, tmp_path: Path) -> None:
    """An add to such a cell could leave it empty, and the key was not found."""
    instance = fullbloom.InvertibleBloomFilter(100)
    instance.update(range(20))
    for cell in (0, 7, instance.num_cells - 1):

        def increment(cells: list[int], cell: int = cell) -> None:
            low = (cells[2 * cell + 1] + count) % 2**32
            cells[2 * cell + 1] = cells[2 * cell + 1] >> 32 << 32 | low

        for read in list_readers(forge(instance.to_bytes(), increment), tmp_path / "lie.bloom"):
            with pytest.raises(fullbloom.FormatError, match="sub-tables of the file hold different keys"):
                read()


@for_each("kind", fullbloom.ScalableBloomFilter.kinds())
def test_the_rate_of_a_growing_filter_with_a_full_stage_is_a_rate(kind: str, tmp_path: Path) -> None:
    """It was -inf."""
    instance = fullbloom.ScalableBloomFilter(100, 0.05, kind=kind)
    instance.update(range(600))
    file = File.parse(instance.to_bytes())
    for section in range(len(file.sections)):
        full = File.parse(instance.to_bytes())
        start, length = full.start(section), full.sections[section][3]
        full.payload = full.payload[:start] + b"\xff" * length + full.payload[start + length :]
        for read in list_readers(full.build(), tmp_path / "lie.bloom"):
            try:
                found = read()
            except fullbloom.FormatError:
                continue
            assert 0.0 <= found.fpr() <= 1.0
            assert 0.0 <= found.info()["fpr"] <= 1.0


@pytest.mark.long
@for_each("variant", every_variant("keys"))
def test_a_regenerated_filter_is_no_larger_than_its_file_allows(variant: Variant, tmp_path: Path) -> None:
    """512 bytes that say that they are for 2^27 keys made a filter of 137 MB, under a bound of 4096 bytes."""
    if not hasattr(variant.cls, "regenerate"):
        return
    data = variant.make(50).to_bytes()
    found = fullbloom.loads(data, max_bytes=len(data))
    assert found.regenerate([1, 2]).nbytes <= len(data)
    path = tmp_path / "file.bloom"
    path.write_bytes(data)
    opened = fullbloom.open(path, max_bytes=len(data))
    for bounded in (found, found.copy(), opened, opened.copy(), found.regenerate([1])):
        with pytest.raises(fullbloom.FilterMemoryError, match="max_bytes is"):
            bounded.regenerate([1, 2], capacity=10**7)
    assert fullbloom.loads(data).regenerate([1], capacity=10**4).nbytes > 0


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (16385, "does not hold the filter that its header describes|holds a ForeignScalableFilter"),
        (16386, "does not hold the filter that its header describes|holds a ForeignCuckooFilter"),
        (16387, "note.* of the service|note of the service.*RESTORE name"),
    ],
)
def test_a_file_of_the_service_is_distinguished_from_a_later_release(
    number: int, message: str, tmp_path: Path
) -> None:
    file = File.parse(fullbloom.BloomFilter(10).to_bytes())
    file.variant = number
    path = tmp_path / "dump.bloom"
    path.write_bytes(file.build())
    reads = (
        lambda: fullbloom.loads(path.read_bytes()),
        lambda: fullbloom.open(path),
        lambda: fullbloom.BloomFilter.open(path),
        lambda: fullbloom.BloomFilter.from_bytes(path.read_bytes()),
    )
    for read in reads:
        with pytest.raises(fullbloom.FormatError, match=message):
            read()


@pytest.mark.parametrize("members", [0, 1, 59, 61, 100])
def test_a_set_with_a_forged_member_count_is_refused(members: int) -> None:
    """`len` is exact, and with one more than there are bits the set was 102 % full."""
    instance = fullbloom.BitSet(100)
    instance.update(range(60))
    file = File.parse(instance.to_bytes())
    file.set(COUNT, members)
    with pytest.raises(
        fullbloom.FormatError, match=f"says that it has {members} members, and has 60; it is damaged"
    ):
        fullbloom.loads(file.build())
