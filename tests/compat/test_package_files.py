"""Files that Python packages write, made here by those very packages: our answers are theirs."""

from __future__ import annotations

import base64
import hashlib
import random
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from cases import for_each

import fullbloom
from fullbloom import ForeignFilter, FormatError, IncompatibleFilters, KeyTypeError, ParameterError
from fullbloom.formats import detect, open_foreign

if TYPE_CHECKING:
    from collections.abc import Callable

#: Capacities and rates, for which the packages choose their hash functions and widths of numbers.
SIZES = [(10, 0.3), (100, 0.1), (300, 0.01), (1000, 0.001), (40_000, 0.001), (500, 1e-6), (200, 1e-9)]
ABSENT = [f"absent {i}" for i in range(2000)]


def draw_texts(count: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    return ["".join(draw.choices("abcé日🔑 z", k=draw.randint(0, 30))) + str(i) for i in range(count)]


def check_answers(bloom: ForeignFilter, added: list[Any], asked: list[Any], answers: list[bool]) -> None:
    """The filter finds what was added and answers as its package does, in lists, alone and in columns."""
    assert bloom.contains_many(added) == [True] * len(added)
    assert bloom.contains_many(asked) == answers
    assert [key in bloom for key in asked[:50]] == answers[:50]
    if all(isinstance(key, str) for key in asked):
        assert bloom.contains_many(pa.array(asked)).to_pylist() == answers


@for_each(("capacity", "fpr"), SIZES)
def test_pybloom_live_files_are_read(capacity: int, fpr: float, tmp_path: Path) -> None:
    pybloom_live = pytest.importorskip("pybloom_live", reason="pip install -r requirements/formats.txt")
    theirs = pybloom_live.BloomFilter(capacity, fpr)
    added = draw_texts(min(capacity, 500), seed=1)
    for key in added:
        theirs.add(key)
    theirs.add(12345)
    path = tmp_path / "theirs"
    with path.open("wb") as file:
        theirs.tofile(file)
    bloom: Any = fullbloom.open(path)
    assert (bloom.format, bloom.num_bits, bloom.num_hashes) == (
        "pybloom-live",
        theirs.num_bits,
        theirs.num_slices,
    )
    assert ForeignFilter("pybloom-live", capacity, fpr).num_bits == theirs.num_bits
    check_answers(bloom, [*added, str(12345)], ABSENT, [key in theirs for key in ABSENT])
    ours = ForeignFilter.with_shape("pybloom-live", theirs.num_bits, theirs.num_slices)
    ours.update([*added, "12345"])
    assert ours == bloom
    with pytest.raises(ParameterError, match="read and not written"):
        bloom.to_foreign()


@for_each(("capacity", "fpr"), SIZES)
def test_pyprobables_files_are_read(capacity: int, fpr: float, tmp_path: Path) -> None:
    probables = pytest.importorskip("probables", reason="pip install -r requirements/formats.txt")
    added, path = draw_texts(min(capacity, 300), seed=2), tmp_path / "theirs"
    cases: list[tuple[str, list[Any], list[Any]]] = [
        ("pyprobables", added, ABSENT),
        ("pyprobables-bytes", [key.encode() for key in added], [key.encode() for key in ABSENT]),
    ]
    for name, keys, absent in cases:
        theirs = probables.BloomFilter(est_elements=capacity, false_positive_rate=fpr)
        for key in keys:
            theirs.add(key)
        theirs.export(path)
        bloom = open_foreign(path, name)
        assert (bloom.num_bits, bloom.num_hashes) == (theirs.number_bits, theirs.number_hashes)
        assert ForeignFilter(name, capacity, fpr).num_bits == theirs.number_bits
        check_answers(bloom, keys, absent, [key in theirs for key in absent])
        assert open_foreign(bytes(theirs), name) == bloom
        ours = ForeignFilter.with_shape(name, bloom.num_bits, bloom.num_hashes)
        ours.update(keys)
        assert ours == bloom


#: A file of pybloomfiltermmap3 0.6.3, compressed, its pointer cleared: capacity 40, four seeds, five keys.
MAPPED = zlib.decompress(
    base64.b64decode(
        "eNrzdfIMcQwKcozUYGQAgw0sDAwaECbDDrnW14E75tkDhRhA0v+BQPRsNDs7wygYBaNgpAJGxmHkmQVMDgwGjA4wrgAQ"
        "cwkwcDAwKDCABT0VGABO9A95"
    )
)


def test_the_golden_file_of_pybloomfiltermmap3_is_read(tmp_path: Path) -> None:
    path = tmp_path / "theirs"
    path.write_bytes(MAPPED)
    bloom: Any = fullbloom.open(path)
    assert (bloom.format, bloom.num_bits, bloom.num_hashes) == ("pybloomfiltermmap3", 296, 4)
    assert bloom.contains_many(["a", "b", "hello", "café", b"\x00\xff"]) == [True] * 5
    assert sum(bloom.contains_many(ABSENT)) < 20
    bloom.add("more")
    bloom.save(tmp_path / "ours.bloom")
    assert fullbloom.open(tmp_path / "ours.bloom") == bloom
    assert bloom != ForeignFilter.with_shape("pybloomfiltermmap3", 296, 4)
    with pytest.raises(ParameterError, match="read and not written"):
        bloom.to_foreign()
    with pytest.raises(KeyTypeError):
        bloom.add(1)


@pytest.mark.parametrize(
    ("at", "bytes_", "why"),
    [
        (0, b"N", "MBITARRAY"),
        (9, b"\x30", "follow its header"),
        (9, bytes(8), "number of bits is 0"),
        (9, b"\x29", "number of bits is 297"),
        (16, b"\xff", "number of bits"),
        (17, b"\xb1", "1201 bytes, not 1200"),
        (37, bytes(4), "number of hashes is 0"),
        (37, b"\x21", "number of hashes is 33"),
        (40, b"\x80", "number of hashes"),
        (1077, b"\x02", "version is 2"),
    ],
)
def test_lies_of_pybloomfiltermmap3_files_are_refused(at: int, bytes_: bytes, why: str) -> None:
    lie = MAPPED[:at] + bytes_ + MAPPED[at + len(bytes_) :]
    with pytest.raises(FormatError, match=f'format "pybloomfiltermmap3".*{why}'):
        open_foreign(lie, "pybloomfiltermmap3")
    assert detect(lie) is None


def test_cut_pybloomfiltermmap3_files_are_refused() -> None:
    for end in [*range(0, 1280, 7), *range(1270, len(MAPPED))]:
        with pytest.raises(FormatError, match="pybloomfiltermmap3"):
            open_foreign(MAPPED[:end], "pybloomfiltermmap3")
    with pytest.raises(FormatError, match="38 follow its header"):
        open_foreign(MAPPED + b"\x00", "pybloomfiltermmap3")


@pytest.mark.parametrize(("capacity", "fpr"), SIZES)
def test_pybloomfiltermmap3_files_are_read(capacity: int, fpr: float, tmp_path: Path) -> None:
    pybloomfilter = pytest.importorskip(
        "pybloomfilter", reason="pip install -r requirements/pybloomfiltermmap3.txt"
    )
    path = tmp_path / "theirs"
    theirs = pybloomfilter.BloomFilter(capacity, fpr, str(path))
    added = [*draw_texts(min(capacity, 300), seed=5), b"", b"\x00\xff" * 40]
    for key in added:
        theirs.add(key)
    others = [-1, 12345, ("a", 1)]
    for other in others:
        theirs.add(other)
    theirs.sync()
    bloom: Any = fullbloom.open(path)
    assert all(hash(other).to_bytes(8, "little", signed=True) in bloom for other in others)
    assert (bloom.num_bits, bloom.num_hashes) == (theirs.num_bits, theirs.num_hashes)
    ours = ForeignFilter("pybloomfiltermmap3", capacity, fpr, seed=9)
    assert (ours.num_bits, ours.num_hashes, ours.seed) == (bloom.num_bits, bloom.num_hashes, 9)
    check_answers(bloom, added, ABSENT, [key in theirs for key in ABSENT])
    with pytest.raises(IncompatibleFilters, match="seed"):
        bloom.merge(ours)


@for_each(("capacity", "fpr"), SIZES)
def test_fastbloom_rs_bytes_are_read_and_written(capacity: int, fpr: float) -> None:
    fastbloom_rs = pytest.importorskip("fastbloom_rs", reason="pip install -r requirements/formats.txt")
    theirs = fastbloom_rs.BloomFilter(capacity, fpr)
    texts = draw_texts(min(capacity, 300), seed=3)
    added = [*texts, *(text.encode() for text in texts), 0, -1, 2**63 - 1, -(2**63), *range(50, 90)]
    for key in added:
        theirs.add(key)
    data = bytes(theirs.get_bytes())
    bloom = open_foreign(data, "fastbloom-rs", num_bits=8 * len(data), num_hashes=theirs.hashes())
    asked = [*ABSENT, *range(10**6, 10**6 + 500)]
    check_answers(bloom, added, asked, [theirs.contains(key) for key in asked])
    assert bloom.contains_many(pa.array(range(100, 300))).to_pylist() == [
        theirs.contains(i) for i in range(100, 300)
    ]
    ours = ForeignFilter("fastbloom-rs", capacity, fpr)
    assert (ours.num_bits, ours.num_hashes) == (bloom.num_bits, bloom.num_hashes)
    ours.update(added)
    assert ours.to_foreign() == data
    with pytest.raises(FormatError, match=r'format "fastbloom-rs".*num_bits'):
        open_foreign(data, "fastbloom-rs")
    with pytest.raises(FormatError, match="bits take"):
        open_foreign(data[:-8], "fastbloom-rs", num_bits=8 * len(data), num_hashes=3)


def hash_wide(key: object) -> int:
    return int.from_bytes(hashlib.sha256(repr(key).encode()).digest()[:16], "little", signed=True)


def hash_narrow(key: object) -> int:
    return hash_wide(key) % 1000


@for_each("hash_func", [hash_wide, hash_narrow])
@for_each(("capacity", "fpr"), [(10, 0.3), (1000, 0.01), (500, 1e-6)])
def test_rbloom_files_are_read_and_written(
    hash_func: Callable[[object], int], capacity: int, fpr: float, tmp_path: Path
) -> None:
    rbloom = pytest.importorskip("rbloom", reason="pip install -r requirements/formats.txt")
    theirs = rbloom.Bloom(capacity, fpr, hash_func)
    added = [*draw_texts(min(capacity, 300), seed=4), ("a", 1), 2.5]
    theirs.update(added)
    path = tmp_path / "theirs"
    theirs.save(path)
    bloom = open_foreign(path, "rbloom")
    assert detect(path) is None
    assert bloom.to_foreign() == path.read_bytes() == theirs.save_bytes()
    assert bloom.contains_many(map(hash_func, added)) == [True] * len(added)
    assert bloom.contains_many([hash_func(key) for key in ABSENT]) == [key in theirs for key in ABSENT]
    assert bloom.contains_many(pa.array(range(300))).to_pylist() == [i in bloom for i in range(300)]
    ours = ForeignFilter("rbloom", capacity, fpr)
    ours.update(hash_func(key) for key in added)
    assert ours.to_foreign() == path.read_bytes()
    again = rbloom.Bloom.load_bytes(ours.to_foreign(), hash_func)
    assert all(key in again for key in added)
    for key in ("a text", 2**127, 1.5):
        with pytest.raises(KeyTypeError, match="int of 128 bits, the hash of a key"):
            bloom.add(key)


def test_files_of_packages_become_ours(tmp_path: Path) -> None:
    probables = pytest.importorskip("probables", reason="pip install -r requirements/formats.txt")
    theirs = probables.BloomFilter(est_elements=100, false_positive_rate=0.01)
    theirs.add("café")
    bloom = open_foreign(bytes(theirs), "pyprobables")
    bloom.save(tmp_path / "ours")
    again = fullbloom.open(tmp_path / "ours")
    assert again == bloom
    assert ("café" in again, "cafe" in again) == (True, False)
