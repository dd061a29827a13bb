"""A static build keeps hashes in a file without a name: nothing is left of it; a full folder is an error."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import fullbloom
from fullbloom import registry

KINDS = [
    row["class"]
    for row in fullbloom.variants()
    if registry.is_built(row, "key") or registry.is_built(row, "key", "value")
]
#: More hashes than half of the memory holds, which 65,536 always fit in.
KEYS, MEMORY = 200_000, 1 << 20
PROGRAM = """
import fullbloom, inspect, os, resource, sys
kind, keys, memory, limit, stop = sys.argv[1], *map(int, sys.argv[2:])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
def given():
    yield from range(keys)
    if stop:
        print("gathered", flush=True)
        sys.stdin.read()
try:
    build = getattr(fullbloom, kind).build
    beside = {"values": 1} if "values" in inspect.signature(build).parameters else {}
    build(given(), memory=memory, **beside)
except (fullbloom.FullbloomError, OSError) as error:
    print(type(error).__name__, error, sep=": ")
"""


def start_build(folder: Path, kind: str, *, limit: int = 0, stop: int = 0) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-c", PROGRAM, kind, *map(str, (KEYS, MEMORY, limit, stop))]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen(words, env=os.environ | {"TMPDIR": str(folder)}, **pipes)  # type: ignore[call-overload, no-any-return]


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_build_leaves_no_file(tmp_path: Path, kind: str) -> None:
    with start_build(tmp_path, kind, stop=1) as running:
        assert running.stdout
        assert running.stdout.readline() == b"gathered\n"
        held = [str(link.readlink()) for link in Path(f"/proc/{running.pid}/fd").iterdir()]
        assert any(name.startswith(str(tmp_path)) for name in held), "hashes were written"
        assert not list(tmp_path.iterdir())
        running.kill()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_folder_is_an_error_that_names_it(tmp_path: Path, kind: str) -> None:
    with start_build(tmp_path, kind, limit=1 << 18) as running:
        result = running.communicate()[0].decode()
    assert result.startswith("OSError: [Errno 27] File too large")
    assert str(tmp_path) in result
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_folder_is_an_error_that_names_it(tmp_path: Path, kind: str) -> None:
    with start_build(tmp_path / "gone", kind) as running:
        result = running.communicate()[0].decode()
    assert result.startswith("FileNotFoundError: ")
    assert str(tmp_path / "gone") in result


@pytest.mark.parametrize("kind", KINDS)
def test_too_little_memory_to_build_is_refused_with_the_size_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    build = getattr(fullbloom, kind).build
    beside = {"values": 1} if "values" in inspect.signature(build).parameters else {}
    with pytest.raises(fullbloom.FilterMemoryError, match=r"need \d+ bytes .* memory=1048576; raise it"):
        build(range(KEYS), fpr=1e-9, memory=MEMORY, **beside)
    assert not list(tmp_path.iterdir())
