"""Input too large for the memory at hand is a MemoryError: no panic, no abort, and the process goes on."""

from __future__ import annotations

import subprocess
import sys

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
        [sys.executable, "-c", PROGRAM, str(LIMIT), work], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout.split() == ["True", "True"], done.stdout


@pytest.mark.parametrize("work", ["f.to_bytes()", "pickle.dumps(f)"])
def test_a_filter_whose_bytes_find_no_room_is_a_memory_error(work: str) -> None:
    refused(f"f = bloomery.BloomFilter(7 * 10**8); {work}")


def test_hashes_that_find_no_room_in_a_list_are_a_memory_error() -> None:
    refused("bloomery.hash_many([0] * 100_000_000)")
