from __future__ import annotations

import gzip
import os
import subprocess
from io import FileIO
from pathlib import Path
from types import SimpleNamespace

import pytest

from fullbloom.cli.io import sources


@pytest.fixture
def shell(program, tmp_path, fullbloom):
    (tmp_path / "in").write_bytes(b"a\na\n")
    fullbloom("build", tmp_path / "f", tmp_path / "in", check=0)

    def run(text, **settings):
        command = f"{' '.join(program)} {text}"
        return subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, capture_output=True, timeout=60, env=os.environ | settings
        )

    return run


@pytest.mark.parametrize(
    "command",
    [
        "dedup -q --dupes-output d in",
        "seen -q in",
        "check f in",
        "check --count f in",
        "info f",
        "plan --items 9 --fpr .1",
        "completion bash",
        "--version",
        "--help",
        "dedup --help",
    ],
)
def test_a_closed_standard_output_is_an_error(shell, refused, tmp_path, command):
    assert "standard output is closed" in refused(shell(f"{command} >&-"))
    assert not (tmp_path / "d").exists()
    if Path("/dev/full").exists():
        assert "No space left" in refused(shell(f"{command} >/dev/full"))
        assert "No space left" in refused(shell(f"{command} >/dev/full", PYTHONUNBUFFERED=""))


@pytest.mark.parametrize("command", ["dedup", "seen", "check f", "build o"])
def test_a_closed_standard_input_is_an_error(shell, refused, command):
    assert "standard input is closed" in refused(shell(f"{command} <&-"))


def test_closed_streams_that_are_not_needed_are_ignored(shell, tmp_path):
    assert shell("check -q f in >&- <&-").returncode == 0
    assert shell("dedup -o o --dupes-output d in >&- <&- 2>&-").returncode == 0
    assert ((tmp_path / "o").read_bytes(), (tmp_path / "d").read_bytes()) == (b"a\n", b"a\n")


def test_a_report_is_not_printed_to_standard_output_if_stderr_is_closed(shell):
    assert shell("dedup in 2>&-").stdout == b"a\n"


@pytest.mark.parametrize("size", ["9" * 400, "9" * 400 + "G", "8388608T"])
def test_an_impossible_size_is_refused(fullbloom, refused, size):
    assert "--memory" in refused(fullbloom("dedup", "--memory", size))
    assert "--memory" in refused(fullbloom("plan", "--memory", size, "--items", "9"))


@pytest.mark.skipif(not hasattr(os, "set_blocking"), reason="pipes always block here")
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_pipe_that_another_process_made_non_blocking_is_read_to_its_end(monkeypatch, pack):
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    data = pack(b"a\nb\nc\n")
    pieces = [data[:1], data[1:4], data[4:]]

    def select(*_):
        """The pipe is ready once its writer has written, or closed it."""
        os.write(writing, pieces.pop(0)) if pieces else os.close(writing)

    monkeypatch.setattr(sources, "select", SimpleNamespace(select=select))
    monkeypatch.setattr(sources, "FileIO", lambda *_, **__: FileIO(reading, "rb"))
    source, got, buffer = sources.Source("-"), b"", bytearray(9)
    while count := source.readinto(memoryview(buffer)):
        got += buffer[:count]
    source.close()
    assert got == b"a\nb\nc\n"
