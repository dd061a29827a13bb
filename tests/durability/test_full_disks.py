"""A disk that is full at any moment is an error that names it: old files stay whole, nothing is left over.

On a small file system in memory where one may be mounted.
"""

from __future__ import annotations

import random
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from durability.kills import names, rounds
from durability.small_disk import PAGE, fill, mount

import fullbloom

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB."""
    with mount(tmp_path / "disk", 1 << 20) as folder:
        yield folder


def test_a_save_onto_a_full_disk_leaves_the_old_file(disk: Path) -> None:
    path = disk / "filter.bloom"
    old, new = fullbloom.BloomFilter(1000, seed=1), fullbloom.BloomFilter(40_000, seed=2)
    new.update(range(1000))
    needed = -(-len(new.to_bytes()) // PAGE)
    steps = range(needed) if rounds(1) > 1 else (0, 1, needed // 2, needed - 1)
    for pages in steps:
        old.save(path)
        fill(disk, pages * PAGE)
        with pytest.raises(OSError, match=r"[Nn]o space left") as refused:
            new.save(path)
        assert str(path) in str(refused.value)
        assert path.read_bytes() == old.to_bytes()
        assert names(disk) == {"filter.bloom", "filler"}
        (disk / "filler").unlink()
    new.save(path)
    assert fullbloom.open(path, verify="full") == new


def test_a_disk_that_fills_during_a_run_leaves_a_sound_state(disk: Path) -> None:
    state = disk / "s"
    program = [
        sys.executable,
        "-c",
        "import sys; from fullbloom.cli import main; sys.exit(main(sys.argv[1:]))",
    ]
    command = [*program, "dedup", "-q", "--expected", "40000", "--kind", "bloom", "--state", str(state)]
    first = b"".join(b"%d\n" % i for i in range(1000))
    subprocess.run(command, input=first, check=True, capture_output=True)
    before = state.read_bytes()
    rng = random.Random(2)
    for _ in range(rounds(2, 0.04)):
        fill(disk, rng.randrange(len(before) // PAGE) * PAGE)
        for options in ([], ["--memory", "40M"]):
            # The lines went out; only remembering them failed, which is told.
            done = subprocess.run(
                [*command, *options], input=first + b"new\n", capture_output=True, check=False
            )
            assert done.returncode == 2
            assert done.stdout in {b"", b"new\n"}
            assert b"No space left" in done.stderr
            assert b"Traceback" not in done.stderr
            assert state.read_bytes() == before
            assert names(disk) == {"s", "filler"}
        (disk / "filler").unlink()
    done = subprocess.run(command, input=first + b"new\n", check=True, capture_output=True)
    assert done.stdout == b"new\n"


IN_PLACE = """
import sys
import fullbloom
try:
    with fullbloom.open(sys.argv[1], mode="r+") as f:
        f.update(range(10_000))
except OSError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="files with holes elsewhere are another matter")
def test_a_sparse_file_on_a_full_disk_is_an_error_instead_of_a_signal(disk: Path) -> None:
    path = disk / "sparse.bloom"
    data = fullbloom.BloomFilter(100_000).to_bytes()
    with path.open("wb") as file:
        file.write(data[:PAGE])
        file.truncate(len(data))  # the rest is zeros, and takes no room yet
    fill(disk, 0)
    command = [sys.executable, "-c", IN_PLACE, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.returncode
    assert "No space left" in done.stdout
    assert str(path) in done.stdout
    (disk / "filler").unlink()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == ""
    assert all(fullbloom.open(path, verify="full").contains_many(range(10_000)))
    assert path.stat().st_blocks * 512 >= len(data)
