"""Guarantee: a folder of WithRemovals always holds one whole pair; a save deletes only its own files."""

from __future__ import annotations

import contextlib
import itertools
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import SCALE

import fullbloom
from fullbloom import BloomFilter, QuotientFilter, _core, _folders
from fullbloom.compose import WithRemovals, folder


def pair(*keys: str, removed: str) -> WithRemovals[Any, Any]:
    """Return a pair with these keys."""
    instance = WithRemovals(BloomFilter(100, 1e-6), QuotientFilter(100, 1e-6))
    instance.update(keys)
    instance.remove(removed)
    return instance


OLD, NEW = pair("a", "old", removed="a"), pair("a", "b", "new", removed="b")


def names(folder: Path) -> set[str]:
    """Return the names in a folder."""
    return {entry.name for entry in folder.iterdir()}


@pytest.mark.parametrize("moment", [0, 1])
def test_a_folder_opened_during_a_save_is_one_consistent_pair(
    moment: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    OLD.save(tmp_path)
    opening, calls = _core.open, []

    def slow_open(path: Any, **options: Any) -> Any:
        calls.append(path)
        if len(calls) == moment + 1:
            NEW.save(tmp_path)
        return opening(path, **options)

    monkeypatch.setattr(_core, "open", slow_open)
    found = WithRemovals.open(tmp_path)
    assert ("old" in found, "new" in found) == (False, True)
    assert ("a" in found, "b" in found) == (True, False)


def test_a_missing_part_is_named(tmp_path: Path) -> None:
    OLD.save(tmp_path)
    next(tmp_path.glob("kept-*")).unlink()
    with pytest.raises(FileNotFoundError, match="kept-"):
        WithRemovals.open(tmp_path)


def test_saving_deletes_only_its_own_files(tmp_path: Path) -> None:
    hexadecimal = "0" * 32
    theirs = {"kept-backup.bloom", "removed-me.bloom", "kept-1.bloom", "notes.txt", "removals.json.bak"}
    theirs |= {f"kept-{hexadecimal}.bloom", f"removed-{hexadecimal}.bloom", "kept-.bloom"}
    for name in theirs:
        (tmp_path / name).write_text("mine")
    OLD.save(tmp_path)
    NEW.save(tmp_path)
    NEW.save(tmp_path)
    assert theirs <= names(tmp_path)
    assert len(names(tmp_path)) == len(theirs) + 3
    assert all((tmp_path / name).read_text() == "mine" for name in theirs)
    assert "new" in WithRemovals.open(tmp_path, verify="full")


@pytest.mark.parametrize("named", ["notes.txt", "../outside.bloom", "kept-backup.bloom"])
def test_a_manifest_names_no_file_that_saving_deletes(named: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    OLD.save(folder)
    manifest = folder / "removals.json"
    kept = next(folder.glob("kept-*"))
    kept.rename(folder / named)
    manifest.write_text(manifest.read_text().replace(kept.name, named))
    NEW.save(folder)
    assert (folder / named).exists()
    assert "new" in WithRemovals.open(folder, verify="full")


SAVER = """
import sys
from fullbloom import BloomFilter, QuotientFilter
from fullbloom.compose import WithRemovals
made = WithRemovals(BloomFilter(300_000, 1e-6), QuotientFilter(100, 1e-6))
made.update(["a", "new"])
made.remove("a")
print("ready", flush=True)
while True:
    made.save(sys.argv[1])
"""


def saver(folder: Path) -> subprocess.Popen[str]:
    """Start a process that saves into the folder until it is killed."""
    process = subprocess.Popen([sys.executable, "-c", SAVER, str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def kill(process: subprocess.Popen[str]) -> None:
    """Kill the process and wait for it."""
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def test_opening_while_another_process_saves(tmp_path: Path) -> None:
    OLD.save(tmp_path)
    process = saver(tmp_path)
    try:
        for _ in range(150 * SCALE):
            found = WithRemovals.open(tmp_path, verify="full")
            assert "a" not in found
            assert ("old" in found) + ("new" in found) == 1
    finally:
        kill(process)


def test_two_processes_that_save_leave_a_pair(tmp_path: Path) -> None:
    processes = [saver(tmp_path) for _ in range(2)]
    try:
        for _ in range(20):
            NEW.save(tmp_path)
            assert "new" in WithRemovals.open(tmp_path, verify="full")
    finally:
        for process in processes:
            kill(process)
    assert "new" in WithRemovals.open(tmp_path, verify="full")


class Killed(BaseException):
    """Raised in place of a kill."""


@pytest.mark.parametrize("step", range(9))
def test_leftovers_of_a_save_killed_at_any_step_are_deleted(
    step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This includes the step after the manifest names the new pair and before the old one is deleted."""
    OLD.save(tmp_path)
    steps = itertools.count()

    def until(act: Any) -> Any:
        def stopping(*arguments: Any, **options: Any) -> Any:
            if next(steps) == step:
                raise Killed
            return act(*arguments, **options)

        return stopping

    with monkeypatch.context() as patched:
        for owner, name in ((folder, "_write"), (_folders, "sync"), (Path, "replace"), (Path, "unlink")):
            patched.setattr(owner, name, until(getattr(owner, name)))
        with contextlib.suppress(Killed):
            NEW.save(tmp_path)
    found = WithRemovals.open(tmp_path, verify="full")
    assert ("old" in found) + ("new" in found) == 1
    assert next(steps) >= min(step, 8), "the save has fewer steps than are stopped at here"
    NEW.save(tmp_path)
    assert len(names(tmp_path)) == 3
    assert "new" in WithRemovals.open(tmp_path, verify="full")


def test_a_bound_on_bytes_holds_for_both_parts(tmp_path: Path) -> None:
    OLD.save(tmp_path)
    assert "old" in WithRemovals.open(tmp_path, max_bytes=1 << 20)
    with pytest.raises(fullbloom.FilterMemoryError, match="max_bytes"):
        WithRemovals.open(tmp_path, max_bytes=64)
