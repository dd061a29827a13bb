"""At every moment the path holds the old file or the new one, whole; a failed save leaves no litter."""

from __future__ import annotations

import os
import random
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from support import SCALE, Variant, every_variant

import fullbloom

ROUNDS = 30 * SCALE

SAVER = """
import sys
import fullbloom
path = sys.argv[1]
filters = []
for seed in range(4):
    f = fullbloom.BloomFilter(400_000, seed=seed)
    f.update(range(50_000))
    filters.append(f)
print("ready", flush=True)
while True:
    for f in filters:
        f.save(path)
"""


def test_killed_at_random_moments(tmp_path: Path) -> None:
    path = tmp_path / "state.bloom"
    first = fullbloom.BloomFilter(400_000, seed=99)
    first.update(range(50_000))
    first.save(path)
    rng = random.Random(1)
    seen: set[int] = set()
    for round_number in range(ROUNDS):
        saver = subprocess.Popen([sys.executable, "-c", SAVER, str(path)], stdout=subprocess.PIPE, text=True)
        assert saver.stdout is not None
        assert saver.stdout.readline() == "ready\n"
        # A save takes some milliseconds: the kill falls anywhere into the first few of them.
        time.sleep(rng.uniform(0, 0.02))
        saver.send_signal(signal.SIGKILL)
        assert saver.wait(timeout=60) == -signal.SIGKILL
        saver.stdout.close()
        found = fullbloom.open(path, verify="full")
        assert found.seed in {0, 1, 2, 3, 99}, round_number
        assert found.contains_many(np.arange(50_000)).all()
        seen.add(found.seed)
    assert len(seen) > 1, "no save was ever finished: the kills came too early to test anything"


def litter(directory: Path, *expected: str) -> set[str]:
    """Names in the directory besides the expected ones."""
    return {entry.name for entry in directory.iterdir()} - set(expected)


@pytest.mark.parametrize("variant", every_variant("map", "keys"))
def test_saving_replaces_and_keeps_permissions(variant: Variant, tmp_path: Path) -> None:
    path = tmp_path / "filter.bloom"
    one, two = variant.make(100, seed=1), variant.make(5000, seed=2)
    two.update(range(1000))
    one.save(path)
    path.chmod(0o640)
    two.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert fullbloom.open(path, verify="full") == two
    assert path.read_bytes() == two.to_bytes()
    assert not litter(tmp_path, path.name)


def test_every_kind_of_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bloom = fullbloom.BloomFilter(100)
    bloom.add("a")
    monkeypatch.chdir(tmp_path)
    names = ["plain", "with space", "日本", ".hidden", "x" * 200]
    for name in names:
        for path in (name, tmp_path / name, str(tmp_path / name), os.fsencode(name)):
            bloom.save(path)
            assert fullbloom.open(path) == bloom
    assert not litter(tmp_path, *names)


def test_a_directory_that_is_gone(tmp_path: Path) -> None:
    bloom = fullbloom.BloomFilter(100)
    with pytest.raises(FileNotFoundError, match="gone"):
        bloom.save(tmp_path / "gone" / "filter.bloom")
    with pytest.raises(OSError, match="file"):
        (tmp_path / "file").touch()
        bloom.save(tmp_path / "file" / "filter.bloom")
    with pytest.raises(OSError, match="directory"):
        (tmp_path / "directory").mkdir()
        bloom.save(tmp_path / "directory")
    assert not litter(tmp_path, "file", "directory")
    assert not litter(tmp_path / "directory")


FULL_DISK = """
import resource, signal, sys
import fullbloom
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
limit = int(sys.argv[2])
f = fullbloom.BloomFilter(100_000, seed=5)
f.update(range(1000))
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    f.save(sys.argv[1])
except OSError as error:
    print(type(error).__name__, error.errno, error.filename)
print(all(f.contains_many(range(1000))))
"""


@pytest.mark.parametrize("limit", [0, 1, 63, 64, 4096, 65_536, 100_000])
def test_a_full_disk_leaves_the_old_file(limit: int, tmp_path: Path) -> None:
    path = tmp_path / "filter.bloom"
    old = fullbloom.BloomFilter(100, seed=1)
    old.save(path)
    command = [sys.executable, "-c", FULL_DISK, str(path), str(limit)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == [f"OSError 27 {path}", "True"], done.stdout
    assert path.read_bytes() == old.to_bytes()
    assert not litter(tmp_path, path.name)


def test_dev_full_and_other_odd_targets() -> None:
    bloom = fullbloom.BloomFilter(100)
    for target in ("", "/", "\0"):
        with pytest.raises((OSError, ValueError)):
            bloom.save(target)
    for target in (None, 5, object()):
        with pytest.raises(TypeError):
            bloom.save(target)  # type: ignore[arg-type]


def test_a_mapped_filter_can_be_saved_over_its_own_file(tmp_path: Path) -> None:
    path = tmp_path / "filter.bloom"
    bloom = fullbloom.BloomFilter(100)
    bloom.update(range(50))
    bloom.save(path)
    mapped = fullbloom.open(path)
    mapped.save(path)
    assert mapped == bloom
    assert fullbloom.open(path, verify="full") == bloom
