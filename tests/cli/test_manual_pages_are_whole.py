"""`fullbloom man`: a page for the program and for each command, which `man` shows without a complaint."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess

import pytest

from fullbloom.cli.completion import list_commands
from fullbloom.cli.man import _plain
from fullbloom.cli.parser import COMMANDS, build_parser

OPTIONS = {name: options for name, _, options in list_commands(build_parser())}


@pytest.fixture(scope="module")
def shown():
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
def test_the_page_of_a_command_has_its_options_texts_and_example(fullbloom, shown, name):
    text = shown(fullbloom("man", name, check=0).stdout)
    words = " ".join(text.replace("\u2010", "-").split())
    assert f"fullbloom {name} [option ...]" in words
    for option in OPTIONS[name]:
        assert all(re.search(rf"(^|[ ,]){re.escape(flag)}\b", words) for flag in option.names), option.names
        assert " ".join(option.help.split())[:30] in words
    assert COMMANDS[name].EXAMPLE in text
    assert "%%" not in text


def test_the_page_of_the_program_has_all_commands(fullbloom, shown):
    text = shown(fullbloom("man", check=0).stdout)
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
def test_another_word_names_the_commands(fullbloom, refused, word):
    message = refused(fullbloom("man", word))
    assert all(name in message for name in COMMANDS)


def test_the_pages_are_the_same_on_every_machine(fullbloom):
    plain = fullbloom("man", "dedup", check=0).stdout
    environment = os.environ | {"COLUMNS": "40", "LC_ALL": "C", "TERM": "xterm", "FORCE_COLOR": "1"}
    assert fullbloom("man", "dedup", check=0, env=environment).stdout == plain
    assert b"\x1b" not in plain


@pytest.mark.parametrize(
    ("text", "source"),
    [(".x", "\\&.x"), ("'x", "\\&'x"), ("a\\fBb", "a\\efBb"), ("a-b", "a\\-b"), ("a\n.b", "a .b")],
)
def test_texts_are_no_requests(text, source):
    assert _plain(text) == source


@pytest.mark.usefixtures("shown")
def test_a_terminal_gets_the_page_and_no_source(program):
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
    assert process.wait(timeout=20) == 0
    assert b"SYNOPSIS" in re.sub(rb".\x08", b"", text)  # bold is written over
    assert b".SH" not in text
