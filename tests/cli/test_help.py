"""Help of every command and `fullbloom man`: easy to find, as wide as the terminal, accepted by `man`."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import sys

import pytest

from fullbloom.cli import progress as progress_of
from fullbloom.cli.completion import list_commands
from fullbloom.cli.man import _plain
from fullbloom.cli.parser import COMMANDS, build_parser
from fullbloom.cli.progress import Progress


@pytest.mark.parametrize("words", [["help"], ["help", "help"], ["help", "--help"]], ids=" ".join)
def test_help_without_a_command_lists_all_commands(fullbloom, words):
    assert fullbloom(*words, check=0).stdout == fullbloom("--help", check=0).stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_help_with_a_command_shows_its_help(fullbloom, name):
    assert fullbloom("help", name, check=0).stdout == fullbloom(name, "--help", check=0).stdout


def test_help_with_an_unknown_word_lists_the_commands(fullbloom, refused):
    assert "did you mean dedup?" in refused(fullbloom("help", "dedupe"))
    message = refused(fullbloom("help", "xyz"))
    assert all(name in message for name in COMMANDS)


@pytest.mark.parametrize("columns", [60, 80, 200])
@pytest.mark.parametrize("name", ["help", *COMMANDS])
def test_help_fits_the_terminal(fullbloom, name, columns):
    words = [name] if name == "help" else [name, "--help"]
    environment = os.environ | {"COLUMNS": str(columns), "NO_COLOR": "1"}
    text = fullbloom(*words, check=0, env=environment).stdout.decode()
    result, _, example = text.partition("example:\n")
    assert max(map(len, result.splitlines())) <= columns
    if columns == 200:  # texts use the room, though no more of it than is pleasant to read
        assert 85 < max(map(len, result.splitlines())) <= 100
    if name in COMMANDS:
        assert example.strip() == COMMANDS[name].EXAMPLE  # to be copied as it stands


class Pass:
    """The attributes of blocks that `Progress` reads."""

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


def test_progress_shows_the_time_left(shown):
    progress = Progress(Pass(1 << 30, 4 << 30), quiet=False)
    assert shown(progress, 10) == "1.0 GiB of 4.0 GiB (25 %), 102.4 MiB/s, 30 s left"


def test_progress_of_a_second_pass_is_timed_separately(shown):
    progress = Progress(Pass(4 << 30, 4 << 30), quiet=False)
    shown(progress, 1000)
    progress.follow(Pass(1 << 30, 4 << 30))
    assert shown(progress, 1010).endswith(" (25 %), 102.4 MiB/s, 30 s left")
    assert progress.seconds == 1010


@pytest.mark.parametrize(
    "blocks", [Pass(1 << 30, None), Pass(0, 0), Pass(1, 1 << 40), Pass(0, 1 << 40), Pass(9, 8)],
    ids=["a pipe", "nothing", "hardly begun", "not begun", "a file that grew"],
)  # fmt: skip
def test_progress_shows_no_time_before_it_can_estimate_one(shown, blocks):
    assert "left" not in shown(Progress(blocks, quiet=False), 10)


def test_progress_takes_one_line_of_the_terminal(shown, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    assert len(shown(Progress(Pass(1 << 30, 4 << 30), quiet=False), 10)) == 29


OPTIONS = {name: options for name, _, options in list_commands(build_parser())}


@pytest.fixture(scope="module")
def rendered():
    """Return a function that shows a page's source as people see it, without any warning."""
    if (
        shutil.which("man") is None
        or b"--warnings" not in subprocess.run(["man", "--help"], capture_output=True).stdout
    ):
        pytest.skip("this system has no man that warns (man-db)")

    def show(source):
        environment = os.environ | {
            "MANWIDTH": "100",
            "LC_ALL": "C.UTF-8",
            "MANROFFOPT": "",
            "MAN_KEEP_FORMATTING": "",
        }
        done = subprocess.run(
            ["man", "--warnings=w", "--local-file", "-P", "cat", "-"],
            input=source,
            capture_output=True,
            env=environment,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout.decode()

    return show


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_of_a_command_has_its_options_texts_and_example(fullbloom, rendered, name):
    text = rendered(fullbloom("man", name, check=0).stdout)
    words = " ".join(text.replace("\u2010", "-").split())
    assert f"fullbloom {name} [option ...]" in words
    for option in OPTIONS[name]:
        assert all(re.search(rf"(^|[ ,]){re.escape(flag)}\b", words) for flag in option.names), option.names
        assert " ".join(option.help.split())[:30] in words
    assert COMMANDS[name].EXAMPLE in text
    assert "%%" not in text


def test_the_page_of_the_program_has_all_commands(fullbloom, rendered):
    text = rendered(fullbloom("man", check=0).stdout)
    assert all(f"fullbloom-{name}(1)" in text for name in COMMANDS)
    assert "130 stopped by Ctrl-C" in " ".join(text.split())


def test_all_pages_are_written_into_a_folder(fullbloom, refused, tmp_path):
    done = fullbloom("man", "--output", tmp_path, "--json", check=0)
    names = {f"fullbloom-{name}.1" for name in COMMANDS} | {"fullbloom.1"}
    assert {path.name for path in tmp_path.iterdir()} == names
    assert len(json.loads(done.stdout)["files"]) == len(names)
    assert (tmp_path / "fullbloom-dedup.1").read_bytes() == fullbloom("man", "dedup", check=0).stdout
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    fullbloom("man", "--output", tmp_path, "-q", check=0)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    refused(fullbloom("man", "--output", tmp_path / "none"))
    refused(fullbloom("man", "--output", tmp_path / "fullbloom.1"))
    assert "drop COMMAND" in refused(fullbloom("man", "dedup", "--output", tmp_path))


@pytest.mark.parametrize("word", ["dedupe", "", "../x", "\x1b[2J", "x" * 5000])
def test_an_unknown_word_lists_the_commands(fullbloom, refused, word):
    message = refused(fullbloom("man", word))
    assert all(name in message for name in COMMANDS)


def test_manual_pages_are_identical_on_every_machine(fullbloom):
    plain = fullbloom("man", "dedup", check=0).stdout
    environment = os.environ | {"COLUMNS": "40", "LC_ALL": "C", "TERM": "xterm", "FORCE_COLOR": "1"}
    assert fullbloom("man", "dedup", check=0, env=environment).stdout == plain
    assert b"\x1b" not in plain


@pytest.mark.parametrize(
    ("text", "source"),
    [(".x", "\\&.x"), ("'x", "\\&'x"), ("a\\fBb", "a\\efBb"), ("a-b", "a\\-b"), ("a\n.b", "a .b")],
)
def test_texts_are_escaped_in_manual_pages(text, source):
    assert _plain(text) == source


@pytest.mark.usefixtures("rendered")
def test_a_terminal_gets_the_rendered_page(program):
    ours, theirs = pty.openpty()
    environment = os.environ | {"PAGER": "cat", "MANPAGER": "cat", "TERM": "dumb"}
    process = subprocess.Popen(
        [*program, "man", "info"], stdout=theirs, stdin=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    text = b""
    try:
        while more := os.read(ours, 1000):
            text += more
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert process.wait(timeout=60) == 0
    assert b"SYNOPSIS" in re.sub(rb".\x08", b"", text)  # bold is written over
    assert b".SH" not in text
