"""A system that grants no thread: the work is done all the same, by the one there is."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

# More stack than an address space holds: every thread that is asked for is refused.
NO_THREADS = {**os.environ, "RUST_MIN_STACK": str(1 << 47)}

SCRIPT = """
import sys
import numpy as np
import fullbloom
layout = sys.argv[1]
keys, others = np.arange(300_007), np.arange(300_007, 600_014)
one, many, counted = (fullbloom.BloomFilter(300_007, layout=layout) for _ in range(3))
assert np.array_equal(one.add_many(keys), many.add_many(keys, threads=2))
counted.update(keys, threads=8)
assert one.to_bytes() == many.to_bytes() == counted.to_bytes()
assert np.array_equal(one.contains_many(others), one.contains_many(others, threads=8))
print("same")
"""


@pytest.mark.parametrize("layout", ["blocked", "classic"])
def test_refused_threads_change_nothing(layout: str) -> None:
    command = [sys.executable, "-c", SCRIPT, layout]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=NO_THREADS)
    assert (done.returncode, done.stdout, done.stderr) == (0, "same\n", "")
