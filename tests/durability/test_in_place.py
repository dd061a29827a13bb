"""mode="r+": flushed keys survive any kill, an unclean file says so, and reopening heals it."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from support import SCALE, layouts

import fullbloom

# Several times what the writers add: keys taken for known would be missing from the count.
CAPACITY = 500_000

WRITER = """
import sys
import fullbloom
f = fullbloom.open(sys.argv[1], mode="r+")
start = int(sys.argv[2])
while True:
    f.update(range(start, start + 100))
    f.flush()
    start += 100
    print(start, flush=True)
"""


def fresh(path: Path, layout: str = "auto") -> Path:
    """A saved, empty filter."""
    fullbloom.BloomFilter(CAPACITY, 0.01, layout=layout).save(path)
    return path


@pytest.mark.filterwarnings("ignore::fullbloom.CapacityWarning")
@pytest.mark.parametrize("layout", layouts())
def test_a_killed_writer_loses_no_flushed_key(layout: str, tmp_path: Path) -> None:
    path = fresh(tmp_path / "live.bloom", layout)
    rng = random.Random(layout)
    result = 0
    for _ in range(8 * SCALE):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(result)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        result = int(writer.stdout.readline())
        time.sleep(rng.uniform(0, 0.02))
        writer.send_signal(signal.SIGKILL)
        for line in writer.stdout:
            result = int(line) if line.endswith("\n") else result
        assert writer.wait(timeout=60) == -signal.SIGKILL
        writer.stdout.close()
        reopened = fullbloom.open(path, verify="header")
        assert reopened.contains_many(np.arange(result)).all()
        estimate, _ = reopened.approx_count()
        # The estimate, less the keys that were wrongly known when they came, as a whole number.
        assert estimate * (1 - reopened.fpr()) - 0.5 <= reopened.num_added <= estimate + 0.5
        with pytest.raises(fullbloom.FormatError, match=r"never closed.*r\+"):
            fullbloom.open(path, verify="full")
    with fullbloom.open(path, mode="r+") as healing:
        assert healing.contains_many(np.arange(result)).all()
    healed = fullbloom.open(path, verify="full")
    assert healed.contains_many(np.arange(result)).all()
    assert healed.to_bytes() == path.read_bytes()


@pytest.mark.parametrize("layout", layouts())
def test_writing_in_place_gives_the_bytes_of_a_filter_in_memory(layout: str, tmp_path: Path) -> None:
    path = fresh(tmp_path / "filter.bloom", layout)
    free = fullbloom.BloomFilter(CAPACITY, 0.01, layout=layout)
    with fullbloom.open(path, mode="r+", verify="full") as bloom:
        assert bloom.mapped
        assert bloom.add("a") == free.add("a")
        for batch in (np.arange(5000), ["x", "y", b"z"], range(4000, 6000)):
            assert list(bloom.add_many(batch)) == list(free.add_many(batch))
        assert bloom == free
        bloom.flush()
        assert fullbloom.open(path) == free
    assert path.read_bytes() == free.to_bytes()
    assert fullbloom.open(path, verify="full").num_added == free.num_added


def test_an_open_file_is_marked_and_readable(tmp_path: Path) -> None:
    path = fresh(tmp_path / "filter.bloom")
    bloom = fullbloom.open(path, mode="r+")
    bloom.update(range(1000))
    bloom.flush()
    assert all(fullbloom.open(path).contains_many(range(1000)))
    with pytest.raises(fullbloom.FormatError, match="open for writing"):
        fullbloom.loads(path.read_bytes())
    bloom.close()
    assert fullbloom.loads(path.read_bytes()).num_added == bloom.num_added


def test_a_closed_filter_refuses_adds_and_keeps_finding_keys(tmp_path: Path) -> None:
    path = fresh(tmp_path / "filter.bloom")
    bloom = fullbloom.open(path, mode="r+")
    bloom.update(range(100))
    bloom.close()
    stored = path.read_bytes()
    for act in (lambda: bloom.add("x"), lambda: bloom.update(["x"]), bloom.clear):
        with pytest.raises(fullbloom.ReadOnlyFilter):
            act()
    bloom.close()
    bloom.flush()
    assert all(bloom.contains_many(range(100)))
    assert path.read_bytes() == stored
    assert bloom.copy().add("x")


def test_dropping_the_last_reference_closes_the_file(tmp_path: Path) -> None:
    path = fresh(tmp_path / "filter.bloom")
    bloom = fullbloom.open(path, mode="r+")
    bloom.update(range(100))
    del bloom
    assert all(fullbloom.open(path, verify="full").contains_many(range(100)))


def test_an_exception_inside_with_closes_the_file(tmp_path: Path) -> None:
    path = fresh(tmp_path / "filter.bloom")
    with pytest.raises(KeyError), fullbloom.open(path, mode="r+") as bloom:
        bloom.update(range(100))
        raise KeyError
    assert all(fullbloom.open(path, verify="full").contains_many(range(100)))


def test_in_place_operators_and_clear_write_the_file(tmp_path: Path) -> None:
    path = fresh(tmp_path / "filter.bloom")
    other = fullbloom.BloomFilter(CAPACITY, 0.01)
    other.update(range(500))
    with fullbloom.open(path, mode="r+") as bloom:
        bloom.__ior__(other)
        assert all(bloom.contains_many(range(500)))
    assert all(fullbloom.open(path, verify="full").contains_many(range(500)))
    with fullbloom.open(path, mode="r+") as bloom:
        bloom.clear()
    assert fullbloom.open(path, verify="full").fill == 0.0


def test_saving_to_the_open_path_loses_no_later_key(tmp_path: Path) -> None:
    path = fresh(tmp_path / "filter.bloom")
    with fullbloom.open(path, mode="r+") as bloom:
        bloom.add("before")
        # Refusing is an answer too; losing what comes next is not.
        with contextlib.suppress(OSError, fullbloom.FullbloomError):
            bloom.save(path)
        bloom.add("after")
    found = fullbloom.open(path, verify="full")
    assert "before" in found
    assert "after" in found


def test_a_copy_saved_elsewhere_is_clean(tmp_path: Path) -> None:
    path = fresh(tmp_path / "filter.bloom")
    with fullbloom.open(path, mode="r+") as bloom:
        bloom.update(range(100))
        bloom.save(tmp_path / "copy.bloom")
        assert fullbloom.open(tmp_path / "copy.bloom", verify="full") == bloom
        assert fullbloom.loads(bloom.to_bytes()) == bloom


def test_files_that_cannot_be_written_in_place_are_refused(tmp_path: Path) -> None:
    fullbloom.ScalableBloomFilter(100).save(tmp_path / "growing.bloom")
    stored = (tmp_path / "growing.bloom").read_bytes()
    with pytest.raises(fullbloom.ParameterError, match=r"copy\(\)"):
        fullbloom.open(tmp_path / "growing.bloom", mode="r+")
    assert (tmp_path / "growing.bloom").read_bytes() == stored
    with pytest.raises(FileNotFoundError):
        fullbloom.open(tmp_path / "absent.bloom", mode="r+")
    assert not (tmp_path / "absent.bloom").exists()


def test_warnings_and_strictness_survive_reopening(tmp_path: Path) -> None:
    path = tmp_path / "strict.bloom"
    fullbloom.BloomFilter(100, strict=True).save(path)
    with fullbloom.open(path, mode="r+") as bloom, pytest.raises(fullbloom.FilterFull):
        bloom.update(range(200))
    with fullbloom.open(path, mode="r+") as bloom:
        assert bloom.num_added == 100
        with pytest.raises(fullbloom.FilterFull):
            bloom.add("another")
    lax = tmp_path / "lax.bloom"
    fullbloom.BloomFilter(100).save(lax)
    with fullbloom.open(lax, mode="r+") as bloom, pytest.warns(fullbloom.CapacityWarning):
        bloom.update(range(200))
    with fullbloom.open(lax, mode="r+") as bloom, warnings.catch_warnings():
        warnings.simplefilter("error")
        bloom.add("more")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("layout", layouts())
def test_a_forked_child_cannot_write(layout: str, tmp_path: Path) -> None:
    """The file is the parent's, whose lock and count the child does not have."""
    path = fresh(tmp_path / "filter.bloom", layout)
    other = fullbloom.BloomFilter(CAPACITY, 0.01, layout=layout)
    other.add("other")
    bloom = fullbloom.open(path, mode="r+")
    bloom.update(range(1000))
    acts = [
        lambda: bloom.add("x"),
        lambda: bloom.add(("x", 1)),
        lambda: bloom.update(["x"]),
        lambda: bloom.update(np.arange(300_000), threads=2),
        lambda: bloom.add_many(["x"]),
        lambda: bloom.add_hashed(5),
        lambda: bloom.add_hashed(np.arange(5, dtype=np.uint64)),
        lambda: bloom.__ior__(other),
        lambda: bloom.__iand__(other),
        lambda: bloom.merge(other),
        bloom.clear,
    ]

    def child() -> int:
        for number, act in enumerate(acts):
            try:
                act()
                return 10 + number
            except fullbloom.ReadOnlyFilter as error:
                if "parent" not in str(error) or "copy()" not in str(error):
                    return 40 + number
        copied = bloom.copy()
        if not (all(bloom.contains_many(range(1000))) and copied.add("x") and "x" in copied):
            return 3
        bloom.flush()
        bloom.close()
        with pytest.raises(fullbloom.ReadOnlyFilter, match="closed"):
            bloom.add("x")
        return 0

    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = child()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    bloom.update(range(1000, 2000))
    bloom.close()
    found = fullbloom.open(path, verify="full")
    alone = fullbloom.BloomFilter(CAPACITY, 0.01, layout=layout)
    alone.update(range(2000))
    assert found == alone
    assert found.num_added == alone.num_added


@pytest.mark.parametrize("options", [{}, {"hash": "fnv1a"}, {"hash": "md5"}], ids=str)
def test_the_header_keeps_its_length_under_every_change_in_place(tmp_path, options):
    """An intersection adds parameters to the header and clear() removes them; the cells must not move."""
    path = tmp_path / "f.bloom"
    ours, theirs = (fullbloom.BloomFilter(1000, seed=0, **options) for _ in range(2))
    ours.update(range(600))
    theirs.update(range(300, 900))
    both = ours & theirs
    for stored, change in ((ours, "__iand__"), (both, "clear"), (both, "__ior__"), (ours, "__ior__")):
        stored.save(path)
        before = path.read_bytes()
        with fullbloom.open(path, mode="r+") as writer:
            try:
                getattr(writer, change)(*([] if change == "clear" else [theirs if stored is ours else ours]))
            except fullbloom.ParameterError as error:
                # A base hash is one parameter more: the header has no room for those of an intersection.
                assert options, change
                assert change == "__iand__"
                assert "has no room for" in str(error)
                assert writer == stored
            expected = writer.approx_count()
        assert path.stat().st_size == len(before)
        again = fullbloom.open(path, verify="full")
        assert again.approx_count() == expected
        assert again.contains_many(range(300, 600)) == [change != "clear"] * 300
