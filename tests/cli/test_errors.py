"""Every command against every class of bad input: one line, the exit code of the table, no traceback."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import time
from functools import partial
from pathlib import Path

import pytest
from support import write_parquet

import fullbloom as package
from fullbloom.cli import main
from fullbloom.cli.parser import COMMANDS, build_parser

NAME = b"\xff\xfe\x1b[2Jname"
MOST = 500

PROBE = ["parquet", "probe", "--column", "id", "--keys"]

#: How each command reads a file, and in which roles: {} is replaced by it.
READS = {
    "dedup": ["dedup", "{}"],
    "dedup --verify": ["dedup", "--verify", "{}"],
    "dedup --select": ["dedup", "--select", "id", "--format", "csv", "{}"],
    "dedup --select json": ["dedup", "--select", "id", "--format", "jsonl", "{}"],
    "dedup --state": ["dedup", "--state", "{}"],
    "dedup --secret-file": ["dedup", "--secret-file", "{}"],
    "seen": ["seen", "{}"],
    "seen --state": ["seen", "--state", "{}"],
    "build": ["build", "out", "{}"],
    "insert": ["insert", "{}"],
    "insert input": ["insert", "f", "{}"],
    "check": ["check", "{}"],
    "check input": ["check", "f", "{}"],
    "info": ["info", "{}"],
    "show": ["show", "{}"],
    "merge": ["merge", "out", "{}"],
    "convert": ["convert", "{}", "out", "--to", "fullbloom"],
    "parquet list": ["parquet", "list", "{}"],
    "parquet probe": [*PROBE, "{}", "users.parquet"],
    "build --except": ["build", "out", "f", "--kind", "cascade", "--except", "{}"],
    "build --like": ["build", "out", "f", "--kind", "cascade", "--except", "binary", "--like", "{}"],
    "delta": ["delta", "out", "world", "{}"],
    "delta --apply": ["delta", "out", "world", "{}", "--apply"],
    "sync": ["sync", "{}", "f"],
    "sync --serve": ["sync", "--serve", "{}"],
}
WRITES = {
    "dedup -o": ["dedup", "-o", "{}"],
    "dedup --dupes-output": ["dedup", "--dupes-output", "{}"],
    "dedup --state": ["dedup", "--state", "{}"],
    "seen --state": ["seen", "--state", "{}"],
    "build": ["build", "{}"],
    "merge": ["merge", "{}", "f"],
    "convert": ["convert", "spark", "{}", "--to", "fullbloom"],
    "parquet --arrow": [*PROBE, "numbers", "--arrow", "{}", "users.parquet"],
    "delta": ["delta", "{}", "world", "world"],
}
PRINTS = {
    "serve": ["serve", "--check", "--data", "served", "--http", "127.0.0.1:0", "--resp", "127.0.0.1:0"],
    "token": ["token", "list", "--data", "served"],
    "dedup": ["dedup"],
    "seen": ["seen"],
    "build": ["build", "out"],
    "insert": ["insert", "f"],
    "check": ["check", "--absent", "f"],
    "info": ["info", "f"],
    "show": ["show", "f"],
    "merge": ["merge", "out", "f"],
    "convert": ["convert", "spark", "out", "--to", "fullbloom"],
    "parquet": ["parquet", "list", "users.parquet"],
    "delta": ["delta", "out", "world", "world"],
    "sync": ["sync", "lines", "more"],
    "plan": ["plan", "--items", "9", "--fpr", ".1"],
    "completion": ["completion", "bash"],
    "man": ["man", "dedup"],
}


@pytest.fixture
def folder(tmp_path):
    package.BloomFilter(9).save(tmp_path / "f")
    package.FilterCascade.build([1], [2]).save(tmp_path / "world")
    (tmp_path / "spark").write_bytes(package.ForeignFilter("spark", 9).to_foreign())
    write_parquet(tmp_path / "users.parquet")
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "lines").write_bytes(b"a\nb\n")
    (tmp_path / "numbers").write_bytes(b"1\n2\n")
    (tmp_path / "more").write_bytes(b"a\nc\n" * 99)
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 64)
    (tmp_path / "folder").mkdir()
    (tmp_path / "bad\x1b[2J\n.gz").write_bytes(gzip.compress(b"a\n" * 99)[:20])
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "locked").write_bytes(b"a\n")
    (tmp_path / "locked").chmod(0)
    return tmp_path


@pytest.fixture
def ask(fullbloom, folder):
    """Run a command in the folder; words may be bytes."""
    return partial(fullbloom, cwd=folder)


def hide(folder):
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


def sound(done, codes=(0, 1, 2)):
    """Check what holds of every end of every command."""
    text = done.stderr.decode()
    assert "Traceback" not in text
    assert done.returncode in codes, text
    assert all(char.isprintable() for char in text.replace("\n", "")), text
    if done.returncode == 2:
        assert text.startswith("fullbloom: ")
        assert text.count("\n") == 1, text
        assert len(text) <= MOST
    return text


def fill_in(command, path):
    return [path if word == "{}" else word for word in command]


@pytest.mark.parametrize("command", READS.values(), ids=READS)
@pytest.mark.parametrize(
    "path",
    [
        "missing",
        "folder",
        "f/x",
        "loop",
        "empty",
        "binary",
        "bad\x1b[2J\n.gz",
        "n" * 5000,
        "",
        b"missing" + NAME,
        "locked",
    ],
    ids=lambda path: repr(path[:12]),
)
def test_an_invalid_input_is_refused_in_one_line(ask, folder, command, path):
    done = ask(*fill_in(command, path), stdin=b"a\n")
    text = sound(done)
    unread = path not in {"empty", "binary", "locked"} and "--state" not in command
    if unread or path in {"folder", "loop", "f/x", "n" * 5000, ""}:
        assert done.returncode == 2
        assert done.stdout == b""
    assert not hide(folder), text


@pytest.mark.parametrize("command", READS.values(), ids=READS)
def test_a_file_name_that_is_not_utf8_is_accepted(ask, folder, command):
    path = os.fsencode(folder / os.fsdecode(NAME))
    content = "lines" if command in (READS["seen"], READS["check input"]) else "f"
    Path(os.fsdecode(path)).write_bytes((folder / content).read_bytes())
    done = ask(*fill_in(command, path), stdin=b"a\n")
    sound(done)
    assert b"\x1b" not in done.stderr
    if command[0] in {"check", "info", "merge", "seen"} or "--state" in command:
        assert done.returncode in {0, 1}


@pytest.mark.parametrize("command", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize(
    "path",
    ["folder", "missing/x", "f/x", "loop/x", "n" * 300, "n" * 5000, "", b"missing/" + NAME],
    ids=lambda path: repr(path[:12]),
)
def test_an_output_that_cannot_be_written_is_refused_before_anything_is_printed(ask, folder, command, path):
    done = ask(*fill_in(command, path), stdin=b"a\nb\na\n")
    sound(done, codes=(2,))
    assert done.stdout == b""
    assert not hide(folder)


@pytest.mark.parametrize("command", WRITES.values(), ids=WRITES)
def test_an_output_file_may_have_any_name(ask, folder, command):
    path = os.fsencode(folder / os.fsdecode(NAME))
    done = ask(*fill_in(command, path), stdin=b"a\nb\na\n")
    sound(done, codes=(0,))
    assert b"\x1b" not in done.stderr + done.stdout
    assert (folder / os.fsdecode(NAME)).exists()


@pytest.mark.parametrize("words", [["info", NAME], ["merge", b"new", NAME, NAME], ["check", NAME, b"lines"]])
def test_a_name_that_is_not_utf8_is_shown_escaped(ask, folder, words):
    """For a missing file, and for a file that is not a fullbloom file."""
    (folder / "lines").write_bytes(b"a\n")
    missing = sound(ask(*words), codes=(2,))
    (folder / os.fsdecode(NAME)).write_bytes(b"no filter" * 20)
    strange = sound(ask(*words), codes=(2,))
    for text in (missing, strange):
        assert r"\xff\xfe\x1b[2Jname: " in text


@pytest.mark.parametrize("encoding", ["ascii", "utf-8", "latin-1"])
def test_characters_that_the_terminal_cannot_encode_are_escaped(ask, encoding):
    environment = os.environ | {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    name = "\u2028\u00e9\u4e2d".encode() + b"\xff"
    for words in (
        ["build", "--capacity", "9", name],
        ["info", name],
        ["merge", "m", name],
        ["info", b"no" + name],
    ):
        done = ask(*words, stdin=b"a\n", env=environment)
        assert done.returncode == (2 if name not in words else 0), done.stderr
        assert b"Traceback" not in done.stderr
        (done.stdout + done.stderr).decode(encoding)


#: Those that speak to a running service or server.
OF_SERVERS = {"backup", "restore", "redis-load", "redis-save", "redis-info"}


@pytest.mark.parametrize("command", PRINTS.values(), ids=PRINTS)
def test_a_closed_standard_output_is_reported(program, folder, command):
    script = f"set -o pipefail; yes | head -n 100000 | {' '.join([*program, *command])} >&-"
    done = subprocess.run(["bash", "-c", script], capture_output=True, cwd=folder, timeout=60, check=False)
    assert "standard output" in sound(done, codes=(2,))


LINES = b"y\n" * 100_000


@pytest.mark.parametrize("command", PRINTS.values(), ids=PRINTS)
def test_a_full_standard_output_is_reported(ask, command):
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with Path("/dev/full").open("wb", buffering=0) as full:
        done = ask(*command, stdin=LINES, stdout=full.fileno())
    assert "standard output" in sound(done, codes=(2,))


@pytest.mark.parametrize("command", PRINTS.values(), ids=PRINTS)
def test_a_reader_that_is_gone_causes_no_traceback(ask, command):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = ask(*command, stdin=LINES, stdout=writer)
    finally:
        os.close(writer)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr


def _numbers() -> list[tuple[str, str]]:
    """Return (command, option) of all options with a value of their own."""
    commands = build_parser()._subparsers._group_actions[0].choices.items()
    return [
        (name, action.option_strings[-1])
        for name, parser in commands
        for action in parser._actions
        if action.option_strings and action.type is not None
    ]


@pytest.mark.parametrize(("command", "option"), _numbers(), ids=" ".join)
def test_an_invalid_number_is_refused_with_its_option(capsys, command, option):
    for value in (
        "9" * 5000,
        "-" + "9" * 5000,
        "-1",
        "x",
        "",
        "\x1b[2J",
        "nan",
        "inf",
        "1e999",
        "\udcff",
        "0x10",
    ):
        words = [*PRINTS.get(command, [command, "file", "redis://nowhere", "name"]), f"{option}={value}"]
        assert main(words) == 2
        out, text = capsys.readouterr()
        assert (out, text.count("\n")) == ("", 1)
        assert text.startswith("fullbloom: ")
        assert option in text
        assert len(text) <= MOST
        assert text[:-1].isprintable()


def test_every_command_is_covered():
    # Those speak to a running service or server: tests/service and tests/engines walk them.
    assert set(PRINTS) | OF_SERVERS == set(COMMANDS)


@pytest.mark.parametrize("value", ["9" * 5000, "x\x1b[2J" * 2000, "0", "", "\udcff", "\u0665" * 5000])
@pytest.mark.parametrize("header", [[], ["--no-header"]])
def test_an_invalid_column_is_refused_in_one_line(ask, folder, value, header):
    (folder / "in.csv").write_bytes(b"id\x1b[2J," * 3000 + b"\n1,2\n")
    words = ["dedup", "--select", value, *header, "in.csv"]
    done = ask(*words)
    text = sound(done, codes=(2,))
    assert "--select" in text


@pytest.mark.parametrize(
    "line",
    [
        b'{"id": %s}' % (b"9" * 5000),
        b'{"id": "\xff"}',
        b"[" * 100_000,
        b'{"id": ',
        b'{"\x1b[2J": }',
        b"\x00",
        b"9" * 5000,
    ],
    ids=lambda line: repr(line[:12]),
)
def test_invalid_json_is_refused_with_its_line(fullbloom, line):
    done = fullbloom("dedup", "--select", "id", "--format", "jsonl", stdin=b'{"id": 1}\n' + line + b"\n")
    assert "line 2" in sound(done, codes=(2,))


def test_a_number_with_too_many_digits_is_refused_as_such(fullbloom):
    done = fullbloom("dedup", "--select", "id", "--format", "jsonl", stdin=b'{"id": %s}\n' % (b"9" * 5000))
    assert "more than 4,300 digits" in sound(done, codes=(2,))


@pytest.mark.parametrize("number", [signal.SIGINT])
def test_ctrl_c_during_startup_prints_at_most_one_line(program, tmp_path, number):
    """From the import of the command line on; before, Python says it in its own way."""
    code = """if True:
        import os, sys
        class Ready:
            def find_spec(self, name, path, target=None):
                if name == "fullbloom.cli.app":
                    os.write(1, b"x")
        from fullbloom.cli import main
        sys.meta_path.insert(0, Ready())
        sys.exit(main(["dedup"]))"""
    for delay in (0.0, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12):
        process = subprocess.Popen(
            [program[0], "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
        )
        process.stdout.read(1)
        time.sleep(delay)
        process.send_signal(number)
        errors = process.communicate(timeout=60)[1]
        assert errors in {b"fullbloom: interrupted\n", b""}, errors.decode()
        assert process.returncode in {130, -number}


@pytest.mark.parametrize("module", ["app", "parser", "dedup.job", "filters.state", "io.blocks", "stops"])
@pytest.mark.parametrize("within", ["a class", "a module", "a callback"])
def test_ctrl_c_during_an_import_prints_one_line(program, tmp_path, module, within):
    """Also where CPython 3.11 wraps it in a RuntimeError: while attributes of a class learn their names.

    And where Python drops it: in the callback of a weak reference, of which every import has one.
    """
    code = f"""if True:
        import os, signal, sys, weakref
        class Name:
            def __set_name__(self, owner, name):
                raise KeyboardInterrupt
        class Stop:
            def find_spec(self, name, path, target=None):
                if name == 'fullbloom.cli.{module}':
                    if {within!r} == 'a class':
                        type('Made', (), {{'name': Name()}})
                    if {within!r} == 'a callback':
                        name = Name()
                        reference = weakref.ref(name, lambda _: os.kill(os.getpid(), signal.SIGINT))
                        del name  # if Ctrl-C is not raised after the callback, the command runs to its end
                        return
                    raise KeyboardInterrupt
        from fullbloom.cli import main
        sys.meta_path.insert(0, Stop())
        sys.exit(main(['dedup']))"""
    done = subprocess.run(
        [program[0], "-c", code], input=b"", capture_output=True, cwd=tmp_path, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (130, b"fullbloom: interrupted\n")


@pytest.mark.parametrize("module", ["_core", "errors", "cli", "cli.app"])
@pytest.mark.parametrize("start", ["script", "-m"])
@pytest.mark.parametrize("within", ["a class", "a module"])
def test_ctrl_c_during_the_import_of_the_package_prints_one_line(program, tmp_path, module, start, within):
    """From the first line of the package on, started either way; before, Python says it in its own way."""
    (tmp_path / "sitecustomize.py").write_text(
        f"""if True:
        import os, signal, sys
        class Name:
            def __set_name__(self, owner, name):
                os.kill(os.getpid(), signal.SIGINT)
        class Stop:
            def find_spec(self, name, path, target=None):
                if name == 'fullbloom.{module}':
                    if {within!r} == 'a class':
                        type('Made', (), {{'name': Name()}})
                    os.kill(os.getpid(), signal.SIGINT)
        sys.meta_path.insert(0, Stop())"""
    )
    script = tmp_path / "fullbloom"
    script.write_text("import sys\nfrom fullbloom.cli import main\nsys.exit(main())\n")
    done = subprocess.run(
        [program[0], *(["-m", "fullbloom"] if start == "-m" else [str(script)]), "dedup"],
        input=b"",
        capture_output=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{tmp_path / 'first'}{os.pathsep}{tmp_path}"},
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, b"fullbloom: interrupted\n")


def test_importing_the_package_keeps_the_callers_ctrl_c(program, tmp_path):
    code = (
        "import signal, fullbloom.cli; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    )
    done = subprocess.run(
        [program[0], "-c", code], capture_output=True, cwd=tmp_path, timeout=60, check=False
    )
    assert done.stdout.split() == [b"True"]


def test_json_reports_escape_any_file_name(ask):
    done = ask("build", "--json", NAME, stdin=b"a\n")
    assert os.fsencode(json.loads(done.stdout)["file"]) == NAME
