"""Help of every command: found in the usual ways, as wide as the terminal; progress that says how long."""

from __future__ import annotations

import os
import sys

import pytest

from fullbloom.cli import progress as progress_of
from fullbloom.cli.parser import COMMANDS
from fullbloom.cli.progress import Progress


@pytest.mark.parametrize("words", [["help"], ["help", "help"], ["help", "--help"]], ids=" ".join)
def test_help_without_a_command_is_that_of_all(fullbloom, words):
    assert fullbloom(*words, check=0).stdout == fullbloom("--help", check=0).stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_help_with_a_command_is_that_of_the_command(fullbloom, name):
    assert fullbloom("help", name, check=0).stdout == fullbloom(name, "--help", check=0).stdout


def test_help_with_another_word_names_the_commands(fullbloom, refused):
    assert "did you mean dedup?" in refused(fullbloom("help", "dedupe"))
    message = refused(fullbloom("help", "xyz"))
    assert all(name in message for name in COMMANDS)


@pytest.mark.parametrize("columns", [60, 80, 200])
@pytest.mark.parametrize("name", ["help", *COMMANDS])
def test_help_fits_the_terminal(fullbloom, name, columns):
    words = [name] if name == "help" else [name, "--help"]
    environment = os.environ | {"COLUMNS": str(columns), "NO_COLOR": "1"}
    text = fullbloom(*words, check=0, env=environment).stdout.decode()
    told, _, example = text.partition("example:\n")
    assert max(map(len, told.splitlines())) <= columns
    if columns == 200:  # texts use the room, though no more of it than is pleasant to read
        assert 85 < max(map(len, told.splitlines())) <= 100
    if name in COMMANDS:
        assert example.strip() == COMMANDS[name].EXAMPLE  # to be copied as it stands


class Pass:
    """What `Progress` asks of the blocks that are read."""

    def __init__(self, taken, total):
        self.bytes_read, self.total = taken, total


@pytest.fixture
def shown(monkeypatch):
    """Return a function that shows a `Progress` at a time and returns what is on the terminal."""
    now = [100.0]
    written = []
    monkeypatch.setattr(progress_of.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys.stderr, "write", written.append)

    def show(progress, seconds):
        now[0] = 100.0 + seconds
        written.clear()
        progress.show()
        return "".join(written).removeprefix("\r\033[K")

    return show


def test_progress_tells_the_time_left(shown):
    progress = Progress(Pass(1 << 30, 4 << 30), quiet=False)
    assert shown(progress, 10) == "1.0 GiB of 4.0 GiB (25 %), 102.4 MiB/s, 30 s left"


def test_progress_of_a_second_pass_has_its_own_pace(shown):
    progress = Progress(Pass(4 << 30, 4 << 30), quiet=False)
    shown(progress, 1000)
    progress.follow(Pass(1 << 30, 4 << 30))
    assert shown(progress, 1010).endswith(" (25 %), 102.4 MiB/s, 30 s left")
    assert progress.seconds == 1010


@pytest.mark.parametrize(
    "blocks", [Pass(1 << 30, None), Pass(0, 0), Pass(1, 1 << 40), Pass(0, 1 << 40), Pass(9, 8)],
    ids=["a pipe", "nothing", "hardly begun", "not begun", "a file that grew"],
)  # fmt: skip
def test_progress_tells_no_time_it_cannot_know(shown, blocks):
    assert "left" not in shown(Progress(blocks, quiet=False), 10)


def test_progress_takes_one_line_of_the_terminal(shown, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    assert len(shown(Progress(Pass(1 << 30, 4 << 30), quiet=False), 10)) == 29
