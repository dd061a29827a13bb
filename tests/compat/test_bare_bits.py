"""Guarantee: bits alone, as programs of tutorials store them, are read and written under a named rule."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from compat.foreign import rules

import fullbloom
from fullbloom import ForeignFilter, FormatError, IncompatibleFilters, ParameterError, _core
from fullbloom.formats import detect, open_foreign, rows
from fullbloom.recipes.textbook import TextbookFilter, positions

PROGRAMS = Path(rules.__file__).parent
KEYS = [f"item {i}" for i in range(200)] + ["", "é日🔑", "x" * 1000]
MOST = {"md5-slices": 4, "sha1-slices": 5, "sha256-slices": 8}
SHAPES = [(2, 1), (7, 2), (64, 3), (1000, 4), (95_851, 7), (1_000_003, 8)]


def clipped(name: str, num_hashes: int) -> int:
    return min(num_hashes, MOST.get(name, num_hashes))


@pytest.mark.long
@for_each("name", rules.BARE)
@for_each(("num_bits", "num_hashes"), SHAPES)
def test_a_programs_bits_are_read_and_written_in_both_orders(
    name: str, num_bits: int, num_hashes: int, tmp_path: Path
) -> None:
    num_hashes = clipped(name, num_hashes)
    theirs = bytes(rules.bits(name, "bytes", KEYS, num_bits, num_hashes))
    path = tmp_path / "bits"
    for order, data in (("lsb", theirs), ("msb", rules.turned(theirs))):
        path.write_bytes(data)
        for source in (data, path, memoryview(data)):
            read = open_foreign(source, name, num_bits=num_bits, num_hashes=num_hashes, order=order)
            assert read.contains_many(KEYS) == [True] * len(KEYS)
            assert read.to_foreign() == data
            assert (read.num_bits, read.num_hashes, read.nbytes) == (num_bits, num_hashes, len(data))
        format_ = name if order == "lsb" else f"{name}-msb"
        assert read.format == format_
        own = ForeignFilter.with_shape(format_, num_bits, num_hashes)
        for key in KEYS[:100]:
            own.add(key)
            assert key in own
        own.update(KEYS[100:])
        assert own == read
        own.save(path)
        assert fullbloom.open(path) == own
        assert own.convert(name).to_foreign() == theirs
    assert detect(data) is None


@for_each("name", rules.BARE)
def test_positions_are_those_of_the_program_in_order(name: str) -> None:
    for num_bits, num_hashes in SHAPES:
        k = clipped(name, num_hashes)
        wanted = [list(rules.BARE[name](key.encode(), num_bits, k)) for key in KEYS]
        assert _core.foreign_positions(name, num_bits, k, KEYS) == wanted
        assert _core.foreign_positions(f"{name}-msb", num_bits, k, iter(KEYS)) == wanted


@for_each("name", rules.BARE)
def test_absent_keys_get_the_answers_of_the_program(name: str) -> None:
    k = clipped(name, 5)
    cells = rules.bits(name, "bytes", KEYS, 3001, k)
    read = open_foreign(bytes(cells), name, num_bits=3001, num_hashes=k)
    asked = [f"other {i}" for i in range(3000)]
    wanted = [
        all(cells[p >> 3] >> (p & 7) & 1 for p in rules.BARE[name](key.encode(), 3001, k)) for key in asked
    ]
    assert read.contains_many(asked) == wanted
    assert [key in read for key in asked] == wanted
    assert 0 < sum(wanted) < len(wanted)


def run_program(words: list[Any], cwd: Path) -> bytes:
    text = "\n".join(KEYS[:200]) + "\n"
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, input=text.encode(), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return bytes.fromhex(done.stdout.decode().strip())


@pytest.mark.skipif(not shutil.which("go"), reason="needs Go (Debian package golang)")
def test_programs_in_go_set_the_same_bits(tmp_path: Path) -> None:
    subprocess.run(["go", "build", "-o", str(tmp_path / "bits"), str(PROGRAMS / "bits.go")], check=True)
    for name in ("fnv1a-go", "fnv1a-go-32"):
        for num_bits, k in SHAPES[1:]:
            theirs = run_program([tmp_path / "bits", name, num_bits, k], tmp_path)
            own = ForeignFilter.with_shape(name, num_bits, k)
            own.update(KEYS[:200])
            assert own.to_foreign() == theirs, (name, num_bits, k)


@pytest.mark.long
@pytest.mark.skipif(
    not shutil.which("javac"), reason="needs a Java development kit (Debian package default-jdk-headless)"
)
def test_programs_in_java_set_the_same_bits(tmp_path: Path) -> None:
    subprocess.run(["javac", "-d", str(tmp_path), str(PROGRAMS / "Bits.java")], check=True)
    for name in ("fnv1a-java", "fnv1a-java-abs", "fnv1a-java-floor", "fnv1a-java-not"):
        for num_bits, k in ((7, 2), (95_851, 7)):
            theirs = run_program(["java", "-cp", tmp_path, "Bits", name, num_bits, k], tmp_path)
            own = ForeignFilter.with_shape(name, num_bits, k)
            own.update(KEYS[:200])
            assert own.to_foreign() == theirs, (name, num_bits, k)


def test_the_recipe_for_textbook_arrays_sets_the_same_bits() -> None:
    for digest in ("md5", "sha1", "sha256"):
        recipe = TextbookFilter(95_851, 7, order="msb", digest=digest)
        recipe.update(KEYS)
        read = open_foreign(recipe.to_bytes(), f"{digest}-seeded", num_bits=95_851, num_hashes=7, order="msb")
        assert all(read.contains_many(KEYS))
        found = _core.foreign_positions(f"{digest}-seeded", 95_851, 7, KEYS)
        assert found == [positions(key, 95_851, 7, digest) for key in KEYS]


@for_each("name", [row["name"] for row in rows() if row["twin"]])
def test_every_length_and_number_that_lies_is_refused(name: str) -> None:
    data = bytes(12)
    for lie in (b"", data[1:], data + b"\0", data * 2):
        with pytest.raises(FormatError, match=f'format "{name}": 90 bits take 12 bytes'):
            open_foreign(lie, name, num_bits=90, num_hashes=3)
    behind = bytes(11) + (b"\x01" if name.endswith("-msb") else b"\x80")
    with pytest.raises(FormatError, match=f'format "{name}": bits behind the last of 90 are set'):
        open_foreign(behind, name, num_bits=90, num_hashes=3)
    with pytest.raises(FormatError, match="say num_bits and num_hashes"):
        open_foreign(data, name)
    with pytest.raises(ParameterError, match="say both"):
        open_foreign(data, name, num_bits=96)
    for num_hashes in (65, 2**32, 2**63):
        with pytest.raises(FormatError, match="num_hashes must be between"):
            open_foreign(data, name, num_bits=96, num_hashes=num_hashes)
    for num_bits in (2**45, 2**63, 2**64 - 1):
        # Nothing is allocated for numbers that the bytes do not have.
        with pytest.raises(FormatError, match="bits take"):
            open_foreign(data, name, num_bits=num_bits, num_hashes=3)
        with pytest.raises(ParameterError, match="num_bits must be"):
            _core.foreign_positions(name, num_bits, 3, [])
    with pytest.raises(fullbloom.FilterMemoryError):
        open_foreign(data, name, num_bits=96, num_hashes=3, max_bytes=11)


def test_options_of_bare_bits_are_refused_elsewhere() -> None:
    spark = bytes.fromhex("00000001000000040000000187a6190a091be602")
    with pytest.raises(ParameterError, match="num_bits and num_hashes are for bits alone"):
        open_foreign(spark, "spark-v1", num_bits=64, num_hashes=4)
    with pytest.raises(ParameterError, match="order is for formats of bits alone"):
        open_foreign(spark, "spark-v1", order="msb")
    with pytest.raises(ParameterError, match="order must be"):
        open_foreign(spark, "md5-double", order="big")
    one = ForeignFilter.with_shape("md5-double", 64, 4)
    with pytest.raises(IncompatibleFilters, match="of SHA-1"):
        one.convert("sha1-double")
    with pytest.raises(IncompatibleFilters, match="format"):
        one.merge(ForeignFilter.with_shape("sha1-double", 64, 4))


def test_sizes_keep_the_rate_even_where_a_digest_has_few_slices() -> None:
    draw = random.Random(7)
    for name in rules.BARE:
        bloom = ForeignFilter(name, 2000, 0.02)
        bloom.update(f"in {draw.random()}" for _ in range(2000))
        found = sum(bloom.contains_many([f"out {i}" for i in range(20_000)]))
        assert found < 20_000 * 0.02 * 1.3, name
        items, deviation = bloom.approx_count()
        assert abs(items - 2000) < 6 * deviation + 20, name
