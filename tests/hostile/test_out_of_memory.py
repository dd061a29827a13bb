"""Input too large for the memory at hand is a MemoryError: no panic, no abort, and the process goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from cases import for_each
from support import LONG

import fullbloom

LIMIT = 500 << 20
WithRoom = Callable[[int, str, str], list[str]]

PROGRAM = """
import pickle, resource, sys
import fullbloom
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2)
f = fullbloom.BloomFilter(1000)
try:
    exec(sys.argv[2])
except fullbloom.FilterMemoryError as error:
    print("bytes" in str(error), fullbloom.hash_many([1]) == [fullbloom.hash_key(1)])
"""


# An input, then as much memory as is in use plus `spare`: the work ends with the right answer or with the
# house's error, and the process goes on. Each in a fork of a process that has imported what they need.
COLUMNS = """
import json, os, resource, sys
import numpy as np, pyarrow as pa
import fullbloom
for line in sys.stdin:
    spare, made, work = json.loads(line)
    child = os.fork()
    if not child:
        break
    print(json.dumps(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])), flush=True)
else:
    sys.exit()
f = fullbloom.BloomFilter(1000, seed=1)
exec(made)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + spare,) * 2)
try:
    exec(work)
    print("answered", end=" ")
except fullbloom.FilterMemoryError as error:
    print("refused", "bytes" in str(error), end=" ")
print(fullbloom.hash_many([1]) == [fullbloom.hash_key(1)], f.num_added, flush=True)
os._exit(0)
"""


@pytest.fixture(scope="module")
def with_room() -> Iterator[WithRoom]:
    """The outcome of `work` after `made`, in a process with `room` more bytes."""
    with subprocess.Popen(
        [sys.executable, "-c", COLUMNS],
        # The pool that Arrow takes by itself reserves more than there is; threads of NumPy outlive no fork.
        env={**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system", "OPENBLAS_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        result, asked = process.stdout, process.stdin
        assert result is not None
        assert asked is not None

        def ask(room: int, instance: str, work: str) -> list[str]:
            print(json.dumps([room, instance, work]), file=asked, flush=True)
            outcome = result.readline().split()
            if len(outcome) == 1:  # the code of a child that said nothing
                pytest.fail(f"ended with {outcome[0]}")
            assert json.loads(result.readline()) == 0
            return outcome

        yield ask


def assert_refused(work: str) -> None:
    """Runs `work` in a process with little memory; it must end in FilterMemoryError."""
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
def test_a_filter_that_cannot_be_allocated_is_a_memory_error(work: str) -> None:
    assert_refused(f"f = fullbloom.BloomFilter(25 * 10**7); {work}")


def test_a_list_of_hashes_that_cannot_be_allocated_is_a_memory_error() -> None:
    assert_refused("fullbloom.hash_many([0] * 25_000_000)")


@pytest.mark.long
@for_each(
    "work",
    [
        "fullbloom.hash_many(memoryview(bytearray(80_000_000)))",
        "fullbloom.hash_many(range(3 * 10**8))",
        "import itertools; f.contains_hashed(itertools.repeat(0, 10**9))",
        "fullbloom._core.add_lines(f, bytes(250_000_000))",
        "fullbloom._core.check_lines(f, bytes(250_000_000), absent=True)",
        "fullbloom.loads(bytearray(300_000_000))",
    ],
)
def test_results_that_cannot_be_allocated_are_a_memory_error(work: str) -> None:
    assert_refused(work)


def test_a_line_that_cannot_be_allocated_is_an_error_of_the_command(tmp_path: Path) -> None:
    source = tmp_path / "line"
    with source.open("wb") as file:
        file.truncate(200_000_000)
    limited = "import resource; resource.setrlimit(resource.RLIMIT_AS, (600_000 << 10,) * 2);"
    program = limited + "import sys; from fullbloom.cli.app import run; sys.exit(run(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", program, "dedup", "-q", "--max-line", "1G", str(source)],
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert 0 < done.returncode < 128, done.returncode
    assert b"memory" in done.stderr
    assert b"Traceback" not in done.stderr


#: Columns of rows that are not there: nothing may be asked for by a number that costs its producer nothing.
STATED = {
    "null": "pa.Array.from_buffers(pa.null(), 2**40, [None])",
    "dictionary of nulls": """pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 0], pa.int8()), pa.Array.from_buffers(pa.null(), 2**40, [None]))""",
    "dictionary of nothing": """pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 0], pa.int8()),
        pa.Array.from_buffers(pa.binary(0), 2**40, [None, pa.py_buffer(b"")]))""",
}


@pytest.mark.long
@pytest.mark.parametrize("name", STATED)
@pytest.mark.parametrize("call", ["f.update", "f.add_many", "f.contains_many", "fullbloom.hash_many"])
def test_a_stated_length_allocates_no_memory(name: str, call: str, with_room: WithRoom) -> None:
    outcome = with_room(256 << 20, f"keys = {STATED[name]}", f"{call}(keys)")
    # Answers of 2^40 rows cannot be had, all else can.
    wanted = name == "null" and call != "f.update"
    added = 1 if name == "dictionary of nothing" and call in {"f.update", "f.add_many"} else 0
    assert outcome == (["refused", "True"] if wanted else ["answered"]) + ["True", str(added)]


def with_nulls(kind: str) -> str:
    """A column of 32 million rows of this type, all its bytes zero, every eighth row a null."""
    buffers = {
        "int8": "pa.int8(), n, [valid, z(n)]",
        "int64": "pa.int64(), n, [valid, z(8 * n)]",
        "bool": "pa.bool_(), n, [valid, z(n // 8)]",
        "string": "pa.string(), n, [valid, z(4 * n + 4), z(1)]",
        "large_string": "pa.large_string(), n, [valid, z(8 * n + 8), z(1)]",
        "fixed_size_binary": "pa.binary(1), n, [valid, z(n)]",
        "string_view": "pa.string_view(), n, [valid, z(16 * n)]",
    }
    head = "n = 1 << 25\nvalid = pa.py_buffer(b'\\xfe' * (n // 8))\n"
    head += "z = lambda n: pa.py_buffer(bytes(n))\nkeys = "
    if kind == "dictionary":
        indices = f"pa.Array.from_buffers({buffers['int8']})"
        return f"{head}pa.DictionaryArray.from_arrays({indices}, pa.array(['a', None]))"
    return f"{head}pa.Array.from_buffers({buffers[kind]})"


KINDS = ["int8", "int64", "bool", "string", "large_string", "fixed_size_binary", "string_view", "dictionary"]


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS if LONG else ["int8", "bool", "dictionary"])
def test_columns_with_nulls_are_processed_in_chunks(kind: str, with_room: WithRoom) -> None:
    """32 million rows: their hashes would take 256 MB, their marks 32 MB twice; 96 MB are available."""
    outcome = with_room(
        128 << 20, with_nulls(kind), "f.update(keys); assert f.contains_many(keys).null_count == n // 8"
    )
    assert outcome == ["answered", "True", "1"]


@pytest.mark.parametrize("kind", KINDS if LONG else ["int64"])
def test_hashes_of_a_column_that_cannot_be_allocated_are_a_memory_error(
    kind: str, with_room: WithRoom
) -> None:
    assert with_room(96 << 20, with_nulls(kind), "fullbloom.hash_many(keys)") == [
        "refused",
        "True",
        "True",
        "0",
    ]


ANSWERED = ["answered", "True", "1"]
REFUSED = ["refused", "True", "True", "0"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("instance", "work", "outcome"),
    [
        ("key = bytearray(400_000_000)", "f.add(key)", ANSWERED),
        ("key = memoryview(bytes(400_000_000))", "f.add(key)", ANSWERED),
        ("key = np.bytes_(b'a' * 400_000_000)", "f.add(key)", ANSWERED),
        ("key = type('T', (str,), {})('a' * 400_000_000)", "f.add(key)", ANSWERED),
        ("keys = np.zeros(1, 'U100000000'); keys[0] = 'é' * 100_000_000", "f.update(keys)", ANSWERED),
        ("key = memoryview(bytes(400_000_000))[::-2]", "f.add(key)", REFUSED),
        ("key = 1 << 3_200_000_000", "f.add(key)", REFUSED),
        ("key = -1 << 3_200_000_000", "f.add(key)", REFUSED),
        ("key = 'é' * 200_000_000", "f.add(key)", REFUSED),
        ("keys = ['é' * 200_000_000]", "f.update(keys)", REFUSED),
        ("keys = np.broadcast_to(np.int64(1), 1 << 30)", "fullbloom.hash_many(keys)", REFUSED),
        ("keys = np.broadcast_to(np.int64(1), 1 << 30)", "f.add_many(keys)", REFUSED),
        ("keys = [1] * 40_000_000", "f.contains_many(keys)", REFUSED),
        # The first portion is added before the list of its answers is made.
        ("keys = (b'',) * 40_000_000", "f.add_many(keys)", [*REFUSED[:-1], "1"]),
    ],
)
def test_long_keys_and_many_answers(
    instance: str, work: str, outcome: list[str], with_room: WithRoom
) -> None:
    """128 MB are available: a key is hashed in place, and a key that must be copied is refused."""
    assert with_room(128 << 20, instance, work) == outcome


def test_a_wide_text_hashes_as_its_utf8() -> None:
    for length in (255, 256, 257, 100_000):
        text = "aé日🔑" * length
        keys = np.array([text[:length], text, "a"])
        for secret in (None, b"sixteen secrets!"):
            hashes = fullbloom.hash_many(keys, secret=secret).tolist()
            assert hashes == [fullbloom.hash_key(key, secret=secret) for key in keys.tolist()]
