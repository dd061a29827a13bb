"""Files that lie in a number: refused, or opened by their headers alone, and what is saved is opened then."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from hostile.container import COUNT, File
from support import Variant, every_variant

import bloomery


def of_a_copy(variant: Variant, found: Any, _: Path) -> bytes:
    """The bytes of a copy in memory, with some keys more where it takes any."""
    made = found.copy()
    for key in range(0 if variant.can("build") else 20):
        try:
            variant.add(made, key)
        except bloomery.BloomeryError:
            break
    return made.to_bytes()  # type: ignore[no-any-return]


def of_itself(_: Variant, found: Any, __: Path) -> bytes:
    """Its own bytes."""
    return found.to_bytes()  # type: ignore[no-any-return]


def of_a_file(_: Variant, found: Any, path: Path) -> bytes:
    """The bytes of another file of it."""
    found.save(path)
    return path.read_bytes()


def of_a_pickle(_: Variant, found: Any, __: Path) -> bytes:
    """The bytes that a pickle carries."""
    return found.__reduce__()[1][0]  # type: ignore[no-any-return]


@pytest.mark.parametrize("variant", every_variant())
def test_what_is_saved_of_a_file_that_lies_can_be_opened(variant: Variant, tmp_path: Path) -> None:
    """Counts above all: a table that holds more than is stated of it would save what full loading refuses."""
    path, other = tmp_path / "lie.bloom", tmp_path / "other.bloom"
    data = variant.filled(range(60), 100).to_bytes()
    opened = 0
    for tag, index, _, value in File.parse(data).params:
        for lie in sorted({0, 1, abs(value - 1), value + 1, value // 2, 2 * value} - {value}):
            file = File.parse(data)
            file.set(tag, lie, index)
            path.write_bytes(file.build())
            for write in (of_a_copy, of_itself, of_a_file, of_a_pickle):
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore", bloomery.CapacityWarning)
                        written = write(variant, bloomery.open(path, verify="header"), other)
                except bloomery.BloomeryError:
                    continue
                again = bloomery.loads(written)
                assert again.nbytes > 0, (tag, index, lie)
                opened += 1
    assert opened


@pytest.mark.parametrize("increments", [2, 4, 8])
def test_a_counter_that_no_sum_of_increments_makes_is_refused(increments: int, tmp_path: Path) -> None:
    """Between 0 and the least increment a counter would deny the keys that are added to it."""
    made = bloomery.VariableIncrementFilter(100, increments=increments)
    path, bits = tmp_path / "lie.bloom", made.counter_bits
    for value in range(1 << bits):
        for cell in (0, 7, made.num_counters - 1):
            file = File.parse(made.to_bytes())
            cells = int.from_bytes(file.payload, "little") | value << bits * cell
            file.payload = cells.to_bytes(len(file.payload), "little")
            path.write_bytes(file.build())
            reads = (
                lambda: bloomery.loads(path.read_bytes()),
                lambda: bloomery.open(path, verify="full"),
                lambda: bloomery.open(path, verify="header").copy(),
            )
            for read in reads:
                if 0 < value < increments:
                    with pytest.raises(
                        bloomery.FormatError, match=f"counter {cell} .* is {value}, .*damaged"
                    ):
                        read()
                else:
                    read().fpr()


@pytest.mark.parametrize("members", [0, 1, 59, 61, 100])
def test_a_set_whose_number_of_members_is_a_lie_is_refused(members: int) -> None:
    """`len` is exact, and with one more than there are bits the set was 102 % full."""
    made = bloomery.BitSet(100)
    made.update(range(60))
    file = File.parse(made.to_bytes())
    file.set(COUNT, members)
    with pytest.raises(
        bloomery.FormatError, match=f"says that it has {members} members, and has 60; it is damaged"
    ):
        bloomery.loads(file.build())
