"""Input too large for the memory at hand is a MemoryError: no panic, no abort, and the process goes on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LIMIT = 2_000_000 << 10

PROGRAM = """
import pickle, resource, sys
import bloomery
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2)
f = bloomery.BloomFilter(1000)
try:
    exec(sys.argv[2])
except bloomery.FilterMemoryError as error:
    print("bytes" in str(error), bloomery.hash_many([1]) == [bloomery.hash_key(1)])
"""


def refused(work: str) -> None:
    """Runs `work` in a process with little memory; it must end in the house's error."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(LIMIT), work],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout.split() == ["True", "True"], done.stdout


@pytest.mark.parametrize("work", ["f.to_bytes()", "pickle.dumps(f)"])
def test_a_filter_whose_bytes_find_no_room_is_a_memory_error(work: str) -> None:
    refused(f"f = bloomery.BloomFilter(7 * 10**8); {work}")


def test_hashes_that_find_no_room_in_a_list_are_a_memory_error() -> None:
    refused("bloomery.hash_many([0] * 100_000_000)")


@pytest.mark.parametrize(
    "work",
    [
        "bloomery.hash_many(memoryview(bytearray(300_000_000)))",
        "bloomery.hash_many(range(3 * 10**8))",
        "import itertools; f.contains_hashed(itertools.repeat(0, 10**9))",
        "bloomery._core.add_lines(f, bytes(1_000_000_000))",
        "bloomery._core.check_lines(f, bytes(1_000_000_000), absent=True)",
        "bloomery.loads(bytearray(1_200_000_000))",
    ],
)
def test_a_batch_whose_answers_find_no_room_is_a_memory_error(work: str) -> None:
    refused(work)


def test_a_line_that_finds_no_room_ends_the_command_with_a_reason(tmp_path: Path) -> None:
    source = tmp_path / "line"
    with source.open("wb") as file:
        file.truncate(200_000_000)
    limited = "import resource; resource.setrlimit(resource.RLIMIT_AS, (600_000 << 10,) * 2);"
    program = limited + "import sys; from bloomery.cli.app import run; sys.exit(run(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", program, "dedup", "-q", str(source)],
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert 0 < done.returncode < 128, done.returncode
    assert b"memory" in done.stderr
    assert b"Traceback" not in done.stderr
