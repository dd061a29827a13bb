"""A damaged file is never written again under checksums of its own: what reads it and writes finds it out."""

from __future__ import annotations

import pickle
import random
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from commands import run_command
from support import Variant, every_variant, layouts

import fullbloom
from fullbloom.compose import WithRemovals

KEYS = range(1000)


def damage(path: Path) -> bytes:
    """Change some cells of the file, under its old checksums; what it then holds."""
    data = bytearray(path.read_bytes())
    rng = random.Random(len(data))
    first = 64 + 16 * int.from_bytes(data[44:46], "little") + 32 * int.from_bytes(data[46:48], "little")
    for _ in range(20):
        data[rng.randrange(-(-first // 64) * 64, len(data) - 128)] ^= 1 << rng.randrange(8)
    path.write_bytes(data)
    return bytes(data)


@pytest.fixture
def spoiled(tmp_path: Path) -> Path:
    """A filter on disk that a bad sector has got at."""
    instance = fullbloom.BloomFilter(1000)
    instance.update(KEYS)
    instance.save(tmp_path / "filter.bloom")
    damage(tmp_path / "filter.bloom")
    return tmp_path / "filter.bloom"


@pytest.mark.long
@for_each("variant", every_variant())
def test_copies_and_files_of_a_damaged_filter_are_refused(variant: Variant, tmp_path: Path) -> None:
    path = tmp_path / "filter.bloom"
    instance = variant.build_from(KEYS[:500], 10_000)
    instance.save(path)
    damage(path)
    try:
        found = fullbloom.open(path)
    except fullbloom.FormatError:
        return  # some damage shows at once
    ways: list[Any] = [found.copy, found.to_bytes, lambda: found.save(tmp_path / "again.bloom")]
    ways += [
        lambda: found.save(path),
        lambda: pickle.dumps(found),
        lambda: fullbloom.open(path, verify="full"),
    ]
    for way in ways:
        with pytest.raises(fullbloom.FormatError, match="damaged"):
            way()
    assert [entry.name for entry in tmp_path.iterdir()] == ["filter.bloom"]


@for_each("variant", every_variant("merge"))
def test_a_damaged_filter_is_not_merged(variant: Variant, tmp_path: Path) -> None:
    path = tmp_path / "filter.bloom"
    instance = variant.build_from(KEYS[:300], 10_000)
    instance.save(path)
    damage(path)
    before = instance.to_bytes()
    with pytest.raises(fullbloom.FormatError, match="damaged"):
        instance.merge(fullbloom.open(path))
    assert instance.to_bytes() == before


def test_a_damaged_filter_is_not_combined(spoiled: Path) -> None:
    found, other = fullbloom.BloomFilter.open(spoiled), fullbloom.BloomFilter(1000)
    ways: list[Any] = [
        lambda: other | found,
        lambda: found | other,
        lambda: other & found,
        lambda: found & other,
    ]
    ways += [lambda: other.__ior__(found), lambda: other.__iand__(found)]
    for way in ways:
        with pytest.raises(fullbloom.FormatError, match="damaged"):
            way()


@for_each("verify", ["header", "full"])
@for_each("layout", layouts())
def test_a_damaged_file_is_not_opened_for_writing(layout: str, verify: str, tmp_path: Path) -> None:
    path = tmp_path / "filter.bloom"
    fullbloom.BloomFilter(10_000, layout=layout).save(path)
    data = damage(path)
    for opening in (fullbloom.open, fullbloom.BloomFilter.open):
        with pytest.raises(fullbloom.FormatError, match=r"filter\.bloom.*damaged"):
            opening(path, mode="r+", verify=verify)
    assert path.read_bytes() == data


@pytest.mark.parametrize("cls", ["QuotientFilter", "CuckooFilter", "CountingBloomFilter"])
def test_a_pair_with_a_damaged_part_is_not_saved_again(cls: str, tmp_path: Path) -> None:
    pair = WithRemovals(getattr(fullbloom, cls)(1000), fullbloom.QuotientFilter(100))
    pair.update(KEYS)
    pair.save(tmp_path / "one")
    damage(next((tmp_path / "one").glob("kept-*")))
    found = WithRemovals.open(tmp_path / "one")
    for way in (found.copy, lambda: found.save(tmp_path / "two"), lambda: found.save(tmp_path / "one")):
        with pytest.raises(fullbloom.FormatError, match="damaged"):
            way()
    with pytest.raises(FileNotFoundError):
        WithRemovals.open(tmp_path / "two")


@pytest.mark.parametrize(
    "command",
    [
        ["merge", "OUT", "FILE", "OTHER"],
        ["merge", "OUT", "OTHER", "FILE"],
        ["merge", "FILE", "OTHER", "FILE"],
        ["dedup", "--state", "FILE"],
        ["dedup", "--state", "FILE", "--memory", "64M"],
        ["seen", "--state", "FILE"],
    ],
    ids=" ".join,
)
def test_commands_do_not_rewrite_a_damaged_file(command: list[str], spoiled: Path) -> None:
    names = {"FILE": spoiled, "OTHER": spoiled.with_name("other"), "OUT": spoiled.with_name("out")}
    fullbloom.BloomFilter(1000).save(names["OTHER"])
    before = spoiled.read_bytes()
    done = run_command(*(names.get(word, word) for word in command), lines="a\nb\n")
    assert done.returncode != 0
    assert "damaged" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert spoiled.read_bytes() == before
    assert not names["OUT"].exists()


def test_a_mapped_file_that_was_written_meanwhile_is_refused(tmp_path: Path) -> None:
    """Another process has added to the mapped file: its old checksum is no damage, and no truth either."""
    path = tmp_path / "filter.bloom"
    fullbloom.BloomFilter(1000).save(path)
    reader = fullbloom.BloomFilter.open(path)
    with fullbloom.BloomFilter.open(path, mode="r+") as writer:
        writer.add("a")
        writer.flush()
        assert "a" in reader
        with pytest.raises(fullbloom.FormatError, match="written in place since"):
            reader.copy()
        assert "a" in fullbloom.open(path).copy()
    assert "a" in fullbloom.open(path).copy()
