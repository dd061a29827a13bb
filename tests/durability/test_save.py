"""`save` replaces a file atomically, also through links; a failed save leaves no temporary file."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from support import Variant, every_variant

import fullbloom


def litter(directory: Path, *expected: str) -> set[str]:
    """Names in the directory besides the expected ones."""
    return {entry.name for entry in directory.iterdir()} - set(expected)


@for_each("variant", every_variant("map", "keys"))
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


def test_save_accepts_every_kind_of_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bloom = fullbloom.BloomFilter(100)
    bloom.add("a")
    monkeypatch.chdir(tmp_path)
    names = ["plain", "with space", "日本", ".hidden", "x" * 200]
    for name in names:
        for path in (name, tmp_path / name, str(tmp_path / name), os.fsencode(name)):
            bloom.save(path)
            assert fullbloom.open(path) == bloom
    assert not litter(tmp_path, *names)


def test_saving_into_a_missing_directory_is_an_error(tmp_path: Path) -> None:
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


@for_each("limit", [0, 1, 63, 64, 4096, 65_536, 100_000])
def test_a_full_disk_leaves_the_old_file(limit: int, tmp_path: Path) -> None:
    path = tmp_path / "filter.bloom"
    old = fullbloom.BloomFilter(100, seed=1)
    old.save(path)
    command = [sys.executable, "-c", FULL_DISK, str(path), str(limit)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == [f"OSError 27 {path}", "True"], done.stdout
    assert path.read_bytes() == old.to_bytes()
    assert not litter(tmp_path, path.name)


def test_invalid_paths_are_refused() -> None:
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


KEYS = range(50)


def fill(seed: int = 1) -> fullbloom.BloomFilter:
    """A small filter with keys."""
    bloom = fullbloom.BloomFilter(100, seed=seed)
    bloom.update(KEYS)
    return bloom


def names(directory: Path) -> set[str]:
    """The contents of the directory."""
    return {entry.name for entry in directory.iterdir()}


@for_each("variant", every_variant())
def test_a_pipe_a_device_and_a_directory_are_refused(variant: Variant, tmp_path: Path) -> None:
    instance = variant.make(100)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "directory").mkdir()
    (tmp_path / "to-pipe").symlink_to("pipe")
    with suppress(PermissionError):  # devices are made by root alone; that of the system is not put at risk
        os.mknod(tmp_path / "device", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    before_all = names(tmp_path)
    targets = [tmp_path / name for name in sorted(before_all)]
    for target in targets:
        before = target.lstat()
        with pytest.raises(OSError, match=re.escape(str(target))):
            instance.save(target)
        after = target.lstat()
        assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    assert names(tmp_path) == before_all >= {"pipe", "directory", "to-pipe"}


def test_save_follows_a_symbolic_link_and_keeps_it(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    target = tmp_path / "store" / "v1.bloom"
    fill(1).save(target)
    target.chmod(0o640)
    (tmp_path / "middle").symlink_to("store/v1.bloom")
    link = tmp_path / "current.bloom"
    link.symlink_to("middle")
    fill(2).save(link)
    assert link.is_symlink()
    assert fullbloom.open(target, verify="full") == fill(2)
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert names(tmp_path) == {"store", "middle", "current.bloom"}
    assert names(tmp_path / "store") == {"v1.bloom"}


def test_dangling_links_are_refused(tmp_path: Path) -> None:
    (tmp_path / "dangling").symlink_to("absent")
    (tmp_path / "loop").symlink_to("loop")
    for name in ("dangling", "loop"):
        with pytest.raises(OSError, match=name):
            fill().save(tmp_path / name)
    assert names(tmp_path) == {"dangling", "loop"}


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_new_file_follows_the_umask(mask: int, tmp_path: Path) -> None:
    program = (
        "import os, sys, fullbloom; os.umask(int(sys.argv[2])); fullbloom.BloomFilter(100).save(sys.argv[1])"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "f"), str(mask)], check=True, timeout=60)
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o666 & ~mask


def test_files_of_other_programs_do_not_block_a_save_and_stay(tmp_path: Path) -> None:
    path = tmp_path / "state.bloom"
    theirs = {f".state.bloom.{os.getpid()}.{serial}.tmp" for serial in range(50)}
    theirs |= {
        ".fullbloom-.tmp",
        ".fullbloom-0.tmp",
        f".fullbloom-{'g' * 32}.tmp",
        f".fullbloom-{'a' * 31}.tmp",
    }
    theirs |= {f".fullbloom-{'a' * 32}.bak", f"fullbloom-{'a' * 32}.tmp", "state.bloom.tmp", "notes.tmp"}
    for name in theirs:
        (tmp_path / name).write_text("mine")
    linked = f".fullbloom-{'b' * 32}.tmp"
    (tmp_path / linked).symlink_to("notes.tmp")
    fill().save(path)
    assert names(tmp_path) == {*theirs, linked, "state.bloom"}


def test_concurrent_savers_do_not_delete_each_others_files(tmp_path: Path) -> None:
    errors: list[BaseException] = []

    def save_often(seed: int) -> None:
        instance = fill(seed)
        try:
            for _ in range(60):
                instance.save(tmp_path / f"{seed % 3}.bloom")
        except BaseException as error:  # noqa: BLE001 - shown by the assertion
            errors.append(error)

    threads = [threading.Thread(target=save_often, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert names(tmp_path) == {"0.bloom", "1.bloom", "2.bloom"}
    for name in names(tmp_path):
        assert all(fullbloom.open(tmp_path / name, verify="full").contains_many(KEYS))


def test_a_file_just_saved_opens_for_writing(tmp_path: Path) -> None:
    path, stop = tmp_path / "state.bloom", threading.Event()
    fill().save(path)

    def save_often() -> None:
        while not stop.is_set():
            fill().save(path)

    thread = threading.Thread(target=save_often)
    thread.start()
    result: list[Any] = []
    try:
        for _ in range(200):
            opened = fullbloom.open(path, mode="r+")
            try:
                opened.close()
            except OSError as error:
                result.append(error)
    finally:
        stop.set()
        thread.join()
    assert all("replaced" in str(error) for error in result)
