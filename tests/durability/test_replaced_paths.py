"""A path replaced while filters of it are open: a reader gets one whole file, a writer an error."""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support import SCALE

import fullbloom

KEYS = range(500)

REPLACER = """
import os, sys
path, *files = sys.argv[1:]
whole = [open(file, "rb").read() for file in files]
print("ready", flush=True)
turn = 0
while True:
    with open(path + ".new", "wb") as out:
        out.write(whole[turn % len(whole)])
    os.replace(path + ".new", path)
    turn += 1
"""


@pytest.fixture
def replaced(tmp_path: Path) -> Any:
    """A path that another process replaces all the time: a plain filter, a growing one, another plain one."""
    small, large = (fullbloom.BloomFilter(capacity, seed=1) for capacity in (1000, 50_000))
    growing = fullbloom.ScalableBloomFilter(100, seed=1)
    files = []
    for name, instance in (("small", small), ("growing", growing), ("large", large)):
        instance.update(KEYS)
        instance.save(tmp_path / name)
        files.append(str(tmp_path / name))
    path = tmp_path / "live.bloom"
    path.write_bytes((tmp_path / "small").read_bytes())
    processes = []

    def start(*which: int) -> Path:
        command = [sys.executable, "-c", REPLACER, str(path), *(files[i] for i in which)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        processes.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return path

    yield start
    for process in processes:
        process.kill()
        process.wait()
        process.stdout.close()


def test_opening_reads_one_whole_file(replaced: Any) -> None:
    path = replaced(0, 1, 2)
    classes, deadline = set(), time.monotonic() + 60
    for turn in itertools.count():
        # On a busy machine the other process may not run during the first thousands.
        if turn >= 3000 * SCALE and (len(classes) == 2 or time.monotonic() > deadline):
            break
        found = fullbloom.open(path, verify=("header", "full")[turn % 2])
        assert all(found.contains_many(KEYS)), turn
        classes.add(type(found))
    assert len(classes) == 2


@pytest.mark.long
def test_opening_for_writing_reads_one_whole_file(replaced: Any) -> None:
    path = replaced(0, 2)
    for turn in range(2000 * SCALE):
        found = fullbloom.open(path, mode="r+")
        assert all(found.contains_many(KEYS)), turn
        # By now the path names another file, or will in a moment: that is told.
        try:
            found.close()
        except OSError as error:
            assert str(path) in str(error)


def fresh(path: Path) -> fullbloom.BloomFilter:
    """A filter on disk, opened for writing in place."""
    fullbloom.BloomFilter(1000).save(path)
    return fullbloom.BloomFilter.open(path, mode="r+")


def replaced_by_rename(path: Path) -> None:
    """Another file takes the name."""
    fullbloom.BloomFilter(2000).save(path.with_name("other"))
    path.with_name("other").replace(path)


@pytest.mark.parametrize("gone", [replaced_by_rename, Path.unlink], ids=["replaced", "removed"])
def test_a_writer_whose_path_was_replaced_is_refused(gone: Any, tmp_path: Path) -> None:
    path = tmp_path / "filter.bloom"
    bloom = fresh(path)
    bloom.add("before")
    bloom.flush()
    gone(path)
    bloom.add("after")
    with pytest.raises(OSError, match=r"filter\.bloom.*save\(\)"):
        bloom.flush()
    bloom.save(tmp_path / "rescued.bloom")
    with pytest.raises(OSError, match=r"filter\.bloom"):
        bloom.close()
    rescued = fullbloom.open(tmp_path / "rescued.bloom", verify="full")
    assert "before" in rescued
    assert "after" in rescued


def test_a_writer_follows_its_file_and_not_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    bloom = fresh(Path("filter.bloom"))
    monkeypatch.chdir(tmp_path / "elsewhere")
    bloom.add("a")
    bloom.flush()
    bloom.close()
    assert "a" in fullbloom.open(tmp_path / "filter.bloom", verify="full")


def test_a_moved_file_is_closed_properly(tmp_path: Path) -> None:
    path = tmp_path / "filter.bloom"
    bloom = fresh(path)
    bloom.add("a")
    path.replace(tmp_path / "moved.bloom")
    del bloom
    assert "a" in fullbloom.open(tmp_path / "moved.bloom", verify="full")
