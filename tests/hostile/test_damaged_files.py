"""Any bytes at all give a valid filter or FormatError: never a crash, never a large allocation."""

from __future__ import annotations

import gzip
import os
import pickle
import random
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from hostile.container import (
    CAPACITY,
    FPR,
    GROWTH,
    LAYOUT,
    NUM_BITS,
    NUM_HASHES,
    SCHEME,
    STRICT,
    TIGHTENING,
    File,
)
from support import LONG, every_variant

import fullbloom

# Tag of the base hash.
HASH = 92

NAMES = [param.id for param in (*every_variant(), *every_variant("worlds"))]


@pytest.fixture
def stored(golden: Path, request: pytest.FixtureRequest) -> bytes:
    """The golden file that the test is parametrised with."""
    return (golden / f"{request.param}.bloom").read_bytes()


every_golden = pytest.mark.parametrize("stored", NAMES, indirect=True)


def list_refusals(data: bytes, path: Path) -> list[str]:
    """Which of the ways to read ``data`` refuse it with FormatError; other errors go through."""
    # In place: to empty a file and write it again costs a flush of the disk, 3 ms for each of 60,000 files.
    with path.open("r+b" if path.exists() else "wb") as file:
        file.write(data)
        file.truncate()
    found = []
    ways: dict[str, Any] = {
        "loads": lambda: fullbloom.loads(data),
        "full": lambda: fullbloom.open(path, verify="full"),
        "header": lambda: fullbloom.open(path, verify="header"),
    }
    for name, way in ways.items():
        try:
            way()
        except fullbloom.FormatError as error:
            assert len(str(error)) < 400 + len(str(path))
            found.append(name)
    return found


def raises(read: Any) -> bool:
    """Whether ``read`` raises FormatError; other errors go through. (pytest.raises costs ten times this.)"""
    try:
        read()
    except fullbloom.FormatError:
        return True
    return False


@every_golden
def test_every_flipped_bit_is_found_in_bytes(stored: bytes) -> None:
    data = bytearray(stored)
    for bit in range(8 * len(stored)):
        data[bit // 8] ^= 1 << bit % 8
        assert raises(lambda: fullbloom.loads(bytes(data))), bit
        data[bit // 8] ^= 1 << bit % 8
    assert bytes(data) == stored


@every_golden
def test_a_flipped_bit_of_every_byte_is_found_in_a_file(stored: bytes, tmp_path: Path) -> None:
    head = 64 + 16 * int.from_bytes(stored[44:46], "little") + 32 * int.from_bytes(stored[46:48], "little")
    path = tmp_path / "flipped.bloom"
    path.write_bytes(stored)
    with path.open("r+b", buffering=0) as file:
        for byte in range(len(stored)):
            for bit in range(8) if byte < head or LONG else [random.randrange(8)]:
                os.pwrite(file.fileno(), bytes([stored[byte] ^ 1 << bit]), byte)
                assert raises(lambda: fullbloom.open(path, verify="full")), (byte, bit)
                if byte < head:
                    assert raises(lambda: fullbloom.open(path, verify="header")), (byte, bit)
            os.pwrite(file.fileno(), stored[byte : byte + 1], byte)
    assert not raises(lambda: fullbloom.open(path, verify="full"))


@every_golden
def test_every_truncation_is_found(stored: bytes, tmp_path: Path) -> None:
    for length in range(len(stored)):
        assert len(list_refusals(stored[:length], tmp_path / "cut.bloom")) == 3, length


@every_golden
def test_every_swap_of_blocks_is_found(stored: bytes, tmp_path: Path) -> None:
    blocks = [stored[i : i + 64] for i in range(0, len(stored), 64)]
    for i in range(len(blocks)):
        for j in range(i):
            swapped = blocks.copy()
            swapped[i], swapped[j] = swapped[j], swapped[i]
            if b"".join(swapped) != stored:
                assert {"loads", "full"} <= set(list_refusals(b"".join(swapped), tmp_path / "swapped.bloom"))


@every_golden
def test_added_bytes_are_found(stored: bytes, tmp_path: Path) -> None:
    for extra in (b"\0", b"\n", b"\0" * 64, os.urandom(64), stored, b"\0" * 4096):
        assert len(list_refusals(stored + extra, tmp_path / "long.bloom")) == 3
        assert len(list_refusals(extra + stored, tmp_path / "long.bloom")) == 3


def foreign(stored: bytes) -> dict[str, bytes]:
    """Files of other programs, and noise."""
    rng = random.Random(7)
    return {
        "empty": b"",
        "one byte": b"\x89",
        "magic only": stored[:8],
        "seven bytes": b"\x01\x07\x7f\xff\xff\xff\xff",
        "text": b"hello\n" * 100,
        "text mode copy": stored.replace(b"\r\n", b"\n"),
        "gzip": gzip.compress(stored),
        "pickle": pickle.dumps({"a": 1}),
        "pickled filter": pickle.dumps(fullbloom.loads(stored)),
        "zip": b"PK\x03\x04" + rng.randbytes(500),
        "png": b"\x89PNG\r\n\x1a\n" + rng.randbytes(500),
        "parquet": b"PAR1" + rng.randbytes(500) + b"PAR1",
        "zeros": b"\0" * 4096,
        "ones": b"\xff" * 4096,
        "noise": rng.randbytes(4096),
        "noise after magic": stored[:8] + rng.randbytes(4096),
        "noise after header": stored[:64] + rng.randbytes(len(stored) - 64),
        "two files": stored * 2,
    }


@pytest.mark.parametrize("kind", foreign(fullbloom.BloomFilter(10).to_bytes()))
@pytest.mark.parametrize("stored", NAMES[:1], indirect=True)
def test_files_of_other_formats_are_refused(stored: bytes, kind: str, tmp_path: Path) -> None:
    assert len(list_refusals(foreign(stored)[kind], tmp_path / "foreign")) == 3


class Trap:
    """Unpickling this would write a file."""

    path = ""

    def __reduce__(self) -> Any:
        return (Path.touch, (Path(self.path),))


def test_a_pickle_is_never_executed(tmp_path: Path) -> None:
    trap = Trap()
    trap.path = str(tmp_path / "sprung")
    assert len(list_refusals(pickle.dumps(trap), tmp_path / "trap")) == 3
    assert not (tmp_path / "sprung").exists()


def test_paths_that_are_not_filter_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="absent"):
        fullbloom.open(tmp_path / "absent")
    with pytest.raises((fullbloom.FormatError, IsADirectoryError)):
        fullbloom.open(tmp_path)
    with pytest.raises(fullbloom.FormatError):
        fullbloom.open("/dev/zero")
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as out:
        out.writestr("x", "y")
    with pytest.raises(fullbloom.FormatError, match=r"a\.zip"):
        fullbloom.open(archive)
    for data in ("text", 5, None, [1], object()):
        with pytest.raises(TypeError):
            fullbloom.loads(data)  # type: ignore[arg-type]


def test_opening_with_the_wrong_class_names_the_right_one(golden: Path) -> None:
    path = golden / "scalable-blocked.bloom"
    for read in (fullbloom.BloomFilter.open, lambda p: fullbloom.BloomFilter.from_bytes(p.read_bytes())):
        with pytest.raises(fullbloom.FormatError, match=r"ScalableBloomFilter.*fullbloom\.open"):
            read(path)


LIES: dict[str, Any] = {
    "version 0": lambda f: setattr(f, "version", 0),
    "version 2": lambda f: setattr(f, "version", 2),
    "unknown variant": lambda f: setattr(f, "variant", 999),
    "variant 0": lambda f: setattr(f, "variant", 0),
    "scalable without stages": lambda f: setattr(f, "variant", 2),
    "unknown scheme": lambda f: setattr(f, "scheme", 99),
    "other scheme": lambda f: setattr(f, "scheme", 4),
    "key rule 0": lambda f: setattr(f, "rule", 0),
    "key rule 2": lambda f: setattr(f, "rule", 2),
    "unknown flag": lambda f: setattr(f, "flags", 2),
    "all flags": lambda f: setattr(f, "flags", 2**32 - 1),
    "reserved": lambda f: setattr(f, "reserved", b"\0" * 11 + b"\1"),
    "length 0": lambda f: setattr(f, "length", 0),
    "length huge": lambda f: setattr(f, "length", 2**64 - 1),
    "no parameters": lambda f: (setattr(f, "num_params", 0), f.params.clear()),
    "no sections": lambda f: (setattr(f, "num_sections", 0), f.sections.clear()),
    "many parameters": lambda f: setattr(f, "num_params", 65535),
    "many sections": lambda f: setattr(f, "num_sections", 65535),
    "one parameter too many": lambda f: setattr(f, "num_params", f.num_params + 1),
    "one section too many": lambda f: setattr(f, "num_sections", f.num_sections + 1),
    **{f"capacity {v}": lambda f, v=v: f.set(CAPACITY, v) for v in (0,)},
    **{
        f"num_bits {v}": lambda f, v=v: f.set(NUM_BITS, v)
        for v in (0, 1, 511, 2**20, 2**32, 2**58, 2**58 + 1, 2**63, 2**64 - 1, 2**64 - 64)
    },
    **{f"num_hashes {v}": lambda f, v=v: f.set(NUM_HASHES, v) for v in (0, 65, 10**6, 2**32 + 7, 2**64 - 1)},
    **{f"layout {v}": lambda f, v=v: f.set(LAYOUT, v) for v in (0, 5, 2**16 + 1, 2**64 - 1)},
    **{f"scheme {v}": lambda f, v=v: f.set(SCHEME, v) for v in (0, 2, 3, 11, 2**16 + 1, 2**64 - 1)},
    **{f"strict {v}": lambda f, v=v: f.set(STRICT, v) for v in (2, 2**64 - 1)},
    **{
        f"fpr {v}": lambda f, v=v: f.set_float(FPR, v)
        for v in (0.0, 1.0, -1.0, float("nan"), float("inf"), float("-inf"))
    },
    "section before the file": lambda f: f.sections.__setitem__(0, (1, 0, 0, 192, 0, 0)),
    "section off by one": lambda f: f.sections.__setitem__(0, (1, 0, 257, 191, 0, 0)),
    "section after the file": lambda f: f.sections.__setitem__(0, (1, 0, 2**40, 192, 0, 0)),
    "section past the end": lambda f: f.sections.__setitem__(0, (1, 0, 256, 2**40, 0, 0)),
    "section wraps": lambda f: f.sections.__setitem__(0, (1, 0, 256, 2**64 - 64, 0, 0)),
    "section too short": lambda f: f.sections.__setitem__(0, (1, 0, 256, 128, 0, 0)),
    "section of another kind": lambda f: f.sections.__setitem__(0, (7, *f.sections[0][1:])),
    "section of another index": lambda f: f.sections.__setitem__(0, (1, 9, *f.sections[0][2:])),
    "section reserved": lambda f: f.sections.__setitem__(0, (*f.sections[0][:5], 1)),
    "parameter reserved": lambda f: f.params.__setitem__(0, (*f.params[0][:2], 1, f.params[0][3])),
}


def test_the_test_parser_rebuilds_a_file_byte_for_byte(golden: Path) -> None:
    stored = (golden / "bloom-classic.bloom").read_bytes()
    assert File.parse(stored).build() == stored


@for_each("lie", LIES)
def test_forged_headers_are_refused(lie: str, golden: Path, tmp_path: Path) -> None:
    instance = File.parse((golden / "bloom-classic.bloom").read_bytes())
    LIES[lie](instance)
    data = instance.build()
    assert list_refusals(data, tmp_path / "lie.bloom") == ["loads", "full", "header"]
    with pytest.raises((fullbloom.FormatError, fullbloom.ParameterError)):
        fullbloom.open(tmp_path / "lie.bloom", mode="r+")
    assert (tmp_path / "lie.bloom").read_bytes() == data, "a refused file is left alone"


@pytest.mark.parametrize("number", [0, 1, 9, 2**16 + 2, 2**64 - 1])
def test_a_base_hash_that_is_unknown_or_the_default_is_refused(
    number: int, golden: Path, tmp_path: Path
) -> None:
    instance = File.parse((golden / "bloom-hash-sha256.bloom").read_bytes())
    instance.set(HASH, number)
    assert list_refusals(instance.build(), tmp_path / "lie.bloom") == ["loads", "full", "header"]


@for_each(
    ("name", "index"),
    [
        *[(name, index) for name in ("scalable-classic", "bit-set") for index in (0, 1, 0xFFFF)],
        *[("bloom-keyed", 0), ("bloom-classic", 1), ("bloom-classic", 0xFFFF)],
    ],
)
def test_a_base_hash_is_refused_where_it_is_not_allowed(
    name: str, index: int, golden: Path, tmp_path: Path
) -> None:
    data = (golden / f"{name}.bloom").read_bytes()
    instance = File.parse(data)
    instance.params.append((HASH, index, 0, 8))
    instance.num_params += 1
    assert list_refusals(instance.move_sections(data).build(), tmp_path / "lie.bloom") == [
        "loads",
        "full",
        "header",
    ]


SCALABLE_LIES: dict[str, Any] = {
    **{
        f"growth {v}": lambda f, v=v: f.set_float(GROWTH, v, 0xFFFF) for v in (0.0, float("nan"), 1e300, -2.0)
    },
    **{
        f"tightening {v}": lambda f, v=v: f.set_float(TIGHTENING, v, 0xFFFF)
        for v in (0.0, 1.0, float("nan"), float("inf"))
    },
    "fpr": lambda f: f.set_float(FPR, float("nan"), 0xFFFF),
    "initial capacity": lambda f: f.set(CAPACITY, 0, 0xFFFF),
    "layout": lambda f: f.set(LAYOUT, 77, 0xFFFF),
    "stage bits": lambda f: f.set(NUM_BITS, 2**57, 1),
    "stage rate": lambda f: f.set_float(FPR, float("nan"), 1),
    "stage capacity": lambda f: f.set(CAPACITY, 0, 1),
    "stage numbers": lambda f: setattr(
        f, "params", [(t, 500 if i == 1 else i, r, v) for t, i, r, v in f.params]
    ),
}


@for_each("lie", SCALABLE_LIES)
def test_forged_headers_of_growing_filters_are_refused(lie: str, golden: Path, tmp_path: Path) -> None:
    instance = File.parse((golden / "scalable-classic.bloom").read_bytes())
    SCALABLE_LIES[lie](instance)
    data = instance.build()
    assert list_refusals(data, tmp_path / "lie.bloom") == ["loads", "full", "header"]


BOMB = """
import resource, sys
import fullbloom
data = open(sys.argv[1], "rb").read()
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
limit = used + (16 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for read in (lambda: fullbloom.loads(data), lambda: fullbloom.open(sys.argv[1], verify="full")):
    try:
        read()
    except fullbloom.FormatError:
        print("refused")
"""


@for_each("bits", [2**30, 2**34, 2**40, 2**57])
@for_each("name", ["bloom-classic", "bloom-blocked", "scalable-classic"])
def test_nothing_is_allocated_that_the_input_does_not_fill(
    name: str, bits: int, golden: Path, tmp_path: Path
) -> None:
    instance = File.parse((golden / f"{name}.bloom").read_bytes())
    for index in range(3):
        instance.set(NUM_BITS, bits, index)
        instance.set(CAPACITY, 2**50, index)
    path = tmp_path / "bomb.bloom"
    path.write_bytes(instance.build())
    command = [sys.executable, "-c", BOMB, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr[-300:]
    assert done.stdout.split() == ["refused", "refused"]
