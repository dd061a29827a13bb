"""Guarantee: the file of a bank of filters never changes its meaning, and damage to it is found."""

from __future__ import annotations

import contextlib
import random
import sys
import zlib
from pathlib import Path

import pytest

import fullbloom
from fullbloom import FilterBank, FormatError

sys.path.insert(0, str(Path(__file__).parents[1] / "golden"))
import make

BANKS = make.of_banks()
GOLDEN = Path(make.__file__).parent / "banks"
SECRETS = {"bank-keyed": make.SECRET}


def load(name: str) -> FilterBank:
    """The bank of a golden file."""
    return FilterBank.from_bytes((GOLDEN / f"{name}.bloom").read_bytes(), secret=SECRETS.get(name))


@pytest.mark.parametrize("name", BANKS)
def test_golden_files_are_read_and_written(name):
    golden = (GOLDEN / f"{name}.bloom").read_bytes()
    assert BANKS[name].to_bytes() == golden
    bank = load(name)
    assert bank == BANKS[name]
    assert bank.to_bytes() == golden
    if len(bank):
        assert all(bank.contains_many(*make.pairs()))
        # Absent keys of these owners that are found, by the scheme of the file.
        assert (
            sum(bank.contains_many("owner-1", range(10_000, 20_000))) == {"bank": 50, "bank-keyed": 56}[name]
        )


def test_every_golden_file_is_tested():
    assert {path.stem for path in GOLDEN.glob("*.bloom")} == set(BANKS)


@pytest.mark.long
@pytest.mark.parametrize("name", ["bank", "bank-keyed"])
def test_every_flipped_byte_is_found(name, tmp_path):
    golden, draw = (GOLDEN / f"{name}.bloom").read_bytes(), random.Random(1)
    path = tmp_path / "bank"
    for at in [*range(512), *(draw.randrange(len(golden)) for _ in range(300))]:
        damaged = bytearray(golden)
        damaged[at] ^= 1 << draw.randrange(8)
        with pytest.raises(FormatError):
            FilterBank.from_bytes(bytes(damaged), secret=SECRETS.get(name))
        path.write_bytes(damaged)
        with pytest.raises(FormatError):
            FilterBank.open(path, verify="full", secret=SECRETS.get(name))
    for length in range(0, len(golden), 61):
        with pytest.raises(FormatError):
            FilterBank.from_bytes(golden[:length], secret=SECRETS.get(name))


def forge(data: bytes, at: int, value: bytes) -> bytes:
    """The file with other bytes, and the right checksums for them."""
    forged = bytearray(data)
    forged[at : at + len(value)] = value
    params, sections = (int.from_bytes(forged[i : i + 2], "little") for i in (44, 46))
    table = 64 + 16 * params
    for start in range(table, table + 32 * sections, 32):
        offset, length = (int.from_bytes(forged[start + i : start + i + 8], "little") for i in (8, 16))
        if offset + length <= len(forged):
            forged[start + 24 : start + 28] = zlib.crc32(forged[offset : offset + length]).to_bytes(
                4, "little"
            )
    head = -(-(table + 32 * sections) // 64) * 64
    forged[60:64] = bytes(4)
    forged[60:64] = zlib.crc32(forged[:head]).to_bytes(4, "little")
    return bytes(forged)


@pytest.mark.long
def test_forged_files_are_refused_or_answer(tmp_path):
    golden, draw, path = (GOLDEN / "bank.bloom").read_bytes(), random.Random(2), tmp_path / "bank"
    params = int.from_bytes(golden[44:46], "little")
    refused = 0
    for _ in range(1500):
        if draw.random() < 0.5:
            at = 64 + 16 * draw.randrange(params) + 8
        else:
            at = draw.randrange(64 + 16 * params, min(len(golden), 4000)) // 4 * 4
        value = draw.choice(
            [draw.randbytes(8), bytes(8), b"\xff" * 8, draw.randrange(99).to_bytes(8, "little")]
        )
        forged = forge(golden, at, value[: draw.choice([4, 8])])
        try:
            bank = FilterBank.from_bytes(forged, max_bytes=1 << 24)
        except (FormatError, fullbloom.FilterMemoryError):
            refused += 1
        else:
            bank.add("owner-1", 12345)
            bank.update(*make.pairs())
        path.write_bytes(forged)
        try:
            mapped = FilterBank.open(path, max_bytes=1 << 24)
        except (FormatError, fullbloom.FilterMemoryError):
            continue
        mapped.contains_many(*make.pairs())
        for owner in (f"owner-{i}" for i in range(17)):
            with contextlib.suppress(FormatError):  # of an owner whose lines are beyond the file
                mapped.approx_count(owner)
    assert refused > 500


def test_a_file_of_another_structure_is_named(tmp_path):
    fullbloom.BloomFilter(10).save(tmp_path / "bloom")
    with pytest.raises(FormatError, match=r"not hold a FilterBank; use fullbloom\.open"):
        FilterBank.open(tmp_path / "bloom")
    BANKS["bank"].save(tmp_path / "bank")
    with pytest.raises(FormatError, match="FilterBank"):
        fullbloom.BloomFilter.open(tmp_path / "bank")


def test_a_killed_save_leaves_the_old_file_or_the_new_one(tmp_path):
    import os
    import signal
    import subprocess
    import time

    path, bank = tmp_path / "bank", FilterBank(100)
    bank.update(range(2000), range(2000))
    bank.save(path)
    program = (
        "import sys; from fullbloom import FilterBank\n"
        "bank = FilterBank.open(sys.argv[1]).copy()\n"
        "print('ready', flush=True)\n"
        "for i in range(10**9):\n"
        "    bank.add(f'new {i}', i); bank.save(sys.argv[1])\n"
    )
    for pause in (0.0, 0.003, 0.01, 0.03, 0.06, 0.1):
        process = subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(pause)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        saved = FilterBank.open(path, verify="full")
        assert saved.contains_many(range(2000), range(2000)) == [True] * 2000
    saved.save(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["bank"]
