"""Processes share a mapped file: many readers, one writer, forked or spawned."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import Variant, every_variant, layouts

import fullbloom

COUNT = 20_000


def read(path: str, start: int) -> tuple[bool, int]:
    """Open the file in this process: are its keys there, and how many others seem to be."""
    bloom = fullbloom.open(path)
    keys = np.arange(start, start + 1000)
    return bool(bloom.contains_many(keys).all()), int(bloom.contains_many(keys + 10**9).sum())


@pytest.fixture(scope="module", params=["fork", "spawn"])
def pool(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Two processes that the tests of a method share: a start takes 0.3 s of a processor."""
    with multiprocessing.get_context(request.param).Pool(2) as running:
        yield running


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("variant", every_variant("map", "keys", "keeps")[1::4])
def test_readers_in_other_processes_find_every_key(variant: Variant, pool: Any, tmp_path: Path) -> None:
    bloom = variant.make(COUNT, 0.01)
    bloom.update(np.arange(COUNT))
    path = str(tmp_path / "shared.bloom")
    bloom.save(path)
    answers = pool.starmap(read, [(path, start) for start in range(0, COUNT, 2000)])
    assert all(whole for whole, _ in answers)
    here = [read(path, start) for start in range(0, COUNT, 2000)]
    assert answers == here


def in_child(work: Any) -> int:
    """Run ``work`` in a forked child; its exit code."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if work() else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("variant", every_variant("keys", "keeps"))
def test_a_forked_child_has_its_own_copy(variant: Variant) -> None:
    bloom = variant.make(400_000)
    bloom.update(np.arange(300_000), threads=2)

    def work() -> bool:
        found = bool(bloom.contains_many(np.arange(300_000), threads=2).all())
        bloom.update(np.arange(300_000, 400_000), threads=2)
        return found and bool(bloom.contains_many(np.arange(400_000)).all())

    before = bloom.to_bytes()
    assert in_child(work) == 0
    assert bloom.to_bytes() == before


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "one.bloom"
    fullbloom.BloomFilter(1000).save(path)
    program = (
        "import fullbloom, sys\n"
        "try:\n    fullbloom.open(sys.argv[1], mode='r+')\n"
        "except OSError as error:\n    print('refused', error)\n"
    )

    def elsewhere() -> str:
        command = [sys.executable, "-c", program, str(path)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout

    with fullbloom.open(path, mode="r+") as writer:
        writer.add("a")
        with pytest.raises(OSError, match="writer"):
            fullbloom.open(path, mode="r+")
        assert "writer" in elsewhere()
        assert "one.bloom" in elsewhere()
        # Readers are welcome, and see what is written.
        reader = fullbloom.open(path)
        assert "a" in reader
        writer.add("b")
        assert "b" in reader
    assert elsewhere() == ""
    with fullbloom.open(path, mode="r+") as writer:
        assert "a" in writer
        assert "b" in writer


WRITER = """
import sys
import fullbloom
with fullbloom.open(sys.argv[1], mode="r+") as f:
    for start in range(0, 50_000, 500):
        f.update(list(range(start, start + 500)))
        print(start + 500, flush=True)
"""


@pytest.mark.parametrize("layout", layouts())
def test_a_reader_sees_every_key_that_the_writer_flushed(layout: str, tmp_path: Path) -> None:
    path = tmp_path / "live.bloom"
    fullbloom.BloomFilter(60_000, layout=layout).save(path)
    reader = fullbloom.open(path)
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    result = 0
    for line in writer.stdout:
        result = int(line)
        assert reader.contains_many(np.arange(max(0, result - 1000), result)).all()
    assert writer.wait(timeout=60) == 0
    assert result == 50_000
    assert fullbloom.open(path, verify="full").contains_many(np.arange(result)).all()


def test_readers_keep_a_replaced_file(tmp_path: Path) -> None:
    path = tmp_path / "replaced.bloom"
    old = fullbloom.BloomFilter(50_000)
    old.update(np.arange(50_000))
    old.save(path)
    reader = fullbloom.open(path)
    for seed in range(20):
        new = fullbloom.BloomFilter(10 + seed, seed=seed)
        new.save(path)
        assert reader.contains_many(np.arange(50_000)).all()
    assert fullbloom.open(path).capacity == 29
    path.unlink()
    assert reader == old
