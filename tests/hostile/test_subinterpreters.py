"""Guarantee: the import in another interpreter of the process fails with an error that says so.

Threads attach again by calls that know the main interpreter only: calls hung in the first
subinterpreter, and in the second one every refusal was a plain TypeError.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import sys
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    import _interpreters as interpreters
if sys.argv[1] == "after":
    import fullbloom
for _ in range(2):
    interpreters.run_string(interpreters.create(), '''if True:
        try:
            import fullbloom
        except ImportError as error:
            print(error, flush=True)
    ''')
import fullbloom
assert fullbloom.BloomFilter(10).add("key")
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_subinterpreter_is_refused_and_the_main_interpreter_keeps_working(when: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE, when], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 2
    assert all(
        "works in the main interpreter of a process only, this one is subinterpreter" in line
        for line in lines
    )
