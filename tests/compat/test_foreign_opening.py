"""Guarantee: a file of any format opens as its class with what its bytes do not say, and is read once."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from compat.foreign import samples
from compat.foreign.samples import arguments_of, bytes_of, create, keys_of

import fullbloom
from fullbloom import ForeignFilter, FormatError, IncompatibleFilters, ParameterError, formats
from fullbloom.formats import detect, find_row, open_foreign, rows, verify_members

NAMES = [row["name"] for row in rows()]


@for_each("name", NAMES)
def test_a_file_opens_as_the_class_of_its_row(name: str, tmp_path: Path) -> None:
    row, made = find_row(name), create(name)
    if name.startswith("pyprobables"):
        # Its file states no other number of bits.
        made = ForeignFilter.with_shape(name, 96, 7)
        made.update(keys_of(name))
    data, path = bytes_of(made), tmp_path / "theirs"
    path.write_bytes(data)
    arguments = arguments_of(made)
    named = {"format": name} | arguments
    found = [
        fullbloom.open(path, **arguments),
        fullbloom.open(path, **named),
        open_foreign(path, **arguments),
        open_foreign(data, **named),
        open_foreign(memoryview(data), **arguments, verify=keys_of(name)),
    ]
    for opened in found:
        assert type(opened).__name__ == row["class"] == type(made).__name__
        assert all(opened.contains_many(keys_of(name)))
        assert bytes_of(opened) == data
        # Files of this package have seeds that no filter of ours has.
        if name != "pybloomfiltermmap3":
            assert opened == made
    assert detect(data) == detect(path)
    assert (detect(data) == name) == row["detected"]
    for argument in arguments:
        rest = {key: value for key, value in arguments.items() if key != argument}
        with pytest.raises((ParameterError, FormatError)):
            fullbloom.open(path, **rest)


@for_each("name", NAMES)
def test_a_file_of_ours_opens_without_arguments_and_takes_none(name: str, tmp_path: Path) -> None:
    made, path = create(name), tmp_path / "ours.bloom"
    made.save(path)
    for verify in ("header", "full"):
        with fullbloom.open(path, verify=verify) as opened:
            assert opened == made
        assert opened == made  # leaving the block closes nothing that was read
    assert detect(path) is None
    for argument, value in {
        "format": name,
        "key_type": made.key_type,
        "order": "lsb",
        "num_bits": 8,
        "num_hashes": 2,
        "block_hash": bytes(32),
    }.items():
        with pytest.raises(ParameterError, match=f"{argument}= is for files of other programs"):
            fullbloom.open(path, **{argument: value})


def count_bytes_read() -> int:
    """Bytes that this process has read so far, of which each call reads as many."""
    file = os.open("/proc/self/io", os.O_RDONLY)
    try:
        return int(os.read(file, 32).split()[1])
    finally:
        os.close(file)


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="bytes read by a process are counted on Linux only"
)
@for_each("name", NAMES)
def test_a_file_is_read_once(name: str, tmp_path: Path) -> None:
    row = find_row(name)
    made: Any = create(name)
    if row["class"] == "ForeignFilter" and row["written"] and name not in {"ethereum", "parquet"}:
        num_bits = 200_000 if name.startswith("bip37") else 3_000_000
        num_hashes = min(made.num_hashes, 4)
        made = ForeignFilter.with_shape(name, num_bits // 64 * 64, num_hashes, key_type=made.key_type)
    elif name == "redisbloom":
        made = fullbloom.ForeignScalableFilter(10_000)
        made.update(f"{i}" for i in range(50_000))
    elif name == "redisbloom-cuckoo":
        made = fullbloom.ForeignCuckooFilter(100_000)
    if not row["written"]:
        return
    path = tmp_path / "theirs"
    path.write_bytes(made.to_foreign())
    arguments = arguments_of(made)
    for opening in (
        lambda: fullbloom.open(path, **arguments),
        lambda: open_foreign(path, **arguments),
        lambda: open_foreign(path, **{"format": name} | arguments),
        lambda: type(made).open_foreign(path, **accepted(made, arguments)),
    ):
        idle = -count_bytes_read() + count_bytes_read()
        before = count_bytes_read()
        opened = opening()
        read = count_bytes_read() - before - idle
        assert opened.nbytes == made.nbytes
        # A read that finds the end of the file reads nothing.
        assert read <= path.stat().st_size, (name, read, path.stat().st_size)


def accepted(made: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments that the method of the class takes."""
    return {} if hasattr(made, "chunks") else arguments


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="bytes read by a process are counted on Linux only"
)
def test_detection_reads_the_first_bytes_only(tmp_path: Path) -> None:
    path = tmp_path / "noise"
    path.write_bytes(b"\x5a" * 3_000_000)
    idle = -count_bytes_read() + count_bytes_read()
    before = count_bytes_read()
    assert detect(path) is None
    assert count_bytes_read() - before - idle <= 65_536
    with pytest.raises(FormatError, match="not a fullbloom file"):
        fullbloom.open(path)


def test_arguments_of_other_formats_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "spark"
    path.write_bytes(ForeignFilter("spark", 100).to_foreign())
    for arguments, match in [
        ({"num_bits": 64, "num_hashes": 3}, "num_bits and num_hashes are for bits alone"),
        ({"num_bits": 64}, "say both"),
        ({"block_hash": bytes(32)}, "block_hash is for filters of a block"),
        ({"order": "msb"}, "order is for formats of bits alone, got format None"),
        ({"format": "spark", "order": "msb"}, 'order is for formats of bits alone, got format "spark"'),
        ({"format": "md5-double", "order": "big"}, 'order must be "lsb" or "msb"'),
        ({"key_type": "long"}, 'key_type must be any in format "spark"'),
        ({"format": "sparc"}, "format must be one of spark, spark-v1"),
    ]:
        for opening in (fullbloom.open, open_foreign):
            with pytest.raises(ParameterError, match=match):
                opening(path, **arguments)
    with pytest.raises(ParameterError, match="are of class ForeignFilter, not ForeignStaticFilter"):
        fullbloom.ForeignStaticFilter.open_foreign(path)
    with pytest.raises(ParameterError, match="are of class ForeignStaticFilter, not ForeignFilter"):
        ForeignFilter("fuse8", 10)
    with pytest.raises(ParameterError, match="without a secret"):
        fullbloom.open(path, secret=bytes(16))
    with pytest.raises(fullbloom.ParameterTypeError, match="source must be bytes or a path, got int"):
        open_foreign(7)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="format must be one of"):
        find_row("sparc")


def test_the_order_of_bits_alone_selects_the_format_of_both() -> None:
    made = create("md5-double")
    data = made.to_foreign()
    turned = made.convert("md5-double-msb").to_foreign()
    assert data != turned
    for name in ("md5-double", "md5-double-msb"):
        for order, theirs in (("lsb", data), ("msb", turned)):
            shape = {"num_bits": made.num_bits, "num_hashes": made.num_hashes}
            opened = ForeignFilter.from_foreign(theirs, name, order=order, **shape)
            assert opened.convert("md5-double") == made


def test_known_members_are_counted_before_a_filter_is_used(tmp_path: Path) -> None:
    made = ForeignFilter.with_shape("sha256-double", 10_000, 5)
    members = [f"member {i}" for i in range(500)]
    made.update(members)
    path = tmp_path / "bits"
    path.write_bytes(made.to_foreign())
    shape: dict[str, Any] = {"num_bits": 10_000, "num_hashes": 5}
    assert open_foreign(path, "sha256-double", **shape, verify=members) == made
    for name in ("md5-double", "sha256-slices", "sha256-double-msb", "fnv1a-go"):
        wrong = open_foreign(path, name, **shape)
        verification = verify_members(wrong, members)
        assert not verification
        assert verification.asked == 500
        deviation = verification.by_chance**0.5
        assert abs(verification.found - verification.by_chance) < 6 * deviation + 1, name
        with pytest.raises(
            IncompatibleFilters, match=rf"finds {verification.found} of 500 known members, where chance"
        ):
            open_foreign(path, name, **shape, verify=members)
    assert path.read_bytes() == made.to_foreign()
    with pytest.raises(ParameterError, match="verify must have keys"):
        open_foreign(path, "sha256-double", **shape, verify=[])
    spark = ForeignFilter("spark", 100)
    spark.update([1, "a"])
    assert formats.verify_members(spark, [1, "a"]).found == 2
    guava = ForeignFilter("guava", 1000, key_type="utf-8")
    guava.update(members)
    with pytest.raises(IncompatibleFilters, match="keys of type 'utf-16'"):
        open_foreign(guava.to_foreign(), key_type="utf-16", verify=members)


def test_numbers_names_and_programs_of_the_table_are_distinct() -> None:
    table = rows()
    assert len({row["number"] for row in table}) == len({row["name"] for row in table}) == len(table)
    for row in table:
        assert hasattr(fullbloom, row["class"])
        assert row["program"]
        assert set(row["needs"]) <= {"num_bits", "num_hashes", "block_hash"}
        if row["twin"] is not None:
            assert find_row(row["twin"])["twin"] == row["name"]
            assert {row["order"], find_row(row["twin"])["order"]} == {"lsb", "msb"}
    assert samples.seeds.create_seeds().keys() == {row["name"] for row in table if row["written"]}
