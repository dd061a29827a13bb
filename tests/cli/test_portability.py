"""Features that other systems lack: signals, modules, functions, and folders that open as files."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import write_parquet

import fullbloom as package
from fullbloom.cli import parser

#: Takes away what Windows does not have. Python's own `subprocess` wants some of it: it is imported before.
POORER = """
import doctest, importlib, io, os, pathlib, select, signal, subprocess, sys, tempfile, uuid
for name in ("SIGHUP", "SIGPIPE", "SIGALRM", "SIGCHLD", "SIGUSR1", "SIGSTOP", "pthread_sigmask", "setitimer"):
    delattr(signal, name)
for name in ("resource", "fcntl", "pwd", "grp", "termios", "tty", "pty", "syslog"):
    sys.modules[name] = None
for name in ("O_NOFOLLOW", "O_DIRECTORY", "O_NONBLOCK", "O_CLOEXEC", "fchown", "chown", "fchmod", "fork",
             "sysconf", "getuid", "geteuid", "getgid", "statvfs", "pread", "pwrite"):
    if hasattr(os, name):
        delattr(os, name)
_open, _io_open = os.open, io.open
def no_folders(path, *rest, **named):
    if not isinstance(path, int) and os.path.isdir(path):
        raise PermissionError(13, "Permission denied", os.fspath(path))
    return _open(path, *rest, **named)
def no_proc(path, *rest, **named):
    if not isinstance(path, int) and os.fspath(path).startswith("/proc/"):
        raise FileNotFoundError(2, "No such file or directory", os.fspath(path))
    return _io_open(path, *rest, **named)
def sockets_only(*files):
    raise OSError(10038, "not a socket")
os.open, io.open, select.select = no_folders, no_proc, sockets_only
os.chdir(sys.argv.pop(1))
"""

COMMAND = """
from fullbloom.cli import main
sys.exit(main(sys.argv[1:]))
"""


#: The locks of Windows, before and after it is poorer: of bytes of files; no open file is deleted.
LOCKS_BEFORE = """
import errno, fcntl, os, sys, types
_flock, _unlink = fcntl.flock, os.unlink
def locking(descriptor, mode, nbytes):
    try:
        _flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise PermissionError(errno.EACCES, "Permission denied") from None
def unlink(path, **named):
    held = {os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")}
    if os.path.realpath(path) in held:
        raise PermissionError(errno.EACCES, "Permission denied", os.fspath(path))
    _unlink(path, **named)
"""
LOCKS = """
sys.modules["msvcrt"] = types.SimpleNamespace(locking=locking, LK_NBLCK=2)
os.unlink = unlink
"""


def modules():
    """Every module of the package by its name; `__main__` runs the command line when it is imported.

    The service is for systems with POSIX's files and signals; other programs have systems of their own.
    """
    left_out = ("fullbloom.service", "fullbloom.recipes.celery", "fullbloom.recipes.scrapy")
    found = pkgutil.walk_packages(package.__path__, "fullbloom.", onerror=lambda _name: None)
    names = [part.name for part in found if part.name != "fullbloom.__main__"]
    return ["fullbloom", *(name for name in names if not name.startswith(left_out))]


def run(program, directory, *words):
    """Run ``program`` on the poorer system."""
    command = (sys.executable, "-c", POORER + program, str(directory), *words)
    return subprocess.run(command, capture_output=True, timeout=120)


def test_every_module_is_imported_and_its_examples_run(tmp_path):
    many = f"""
from fullbloom.errors import MissingExtra
failed = []
for name in {modules()!r}:
    try:
        if doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS).failed:
            failed.append(name)
    except MissingExtra as error:
        # The package of an engine, or what it needs, is not installed here.
        if not name.startswith("fullbloom.engines."):
            failed.append(f"{{name}}: {{error!r}}")
    except Exception as error:
        failed.append(f"{{name}}: {{error!r}}")
sys.exit("\\n".join(failed) or 0)
"""
    done = run(many, tmp_path)
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()


COMMANDS = [
    ["build", "f", "in"],
    ["build", "--kind", "counting", "c", "in"],
    ["dedup", "in"],
    ["dedup", "--verify", "in"],
    ["dedup", "--memory", "500M", "in"],
    ["dedup", "--memory", "500M", "--state", "s", "in"],
    ["dedup", "--memory", "500M", "--state", "s", "in"],
    ["dedup", "--state", "t", "-o", "out", "in"],
    ["dedup", "--json", "--select", "1", "--format", "tsv", "--no-header", "in"],
    ["seen", "--state", "u", "in"],
    ["seen", "--state", "u", "--mark", "in"],
    ["insert", "f", "in"],
    ["insert", "--in-place", "f", "in"],
    ["check", "f", "in"],
    ["info", "--verify", "full", "f"],
    ["show", "f"],
    ["convert", "spark", "converted", "--to", "fullbloom"],
    ["parquet", "list", "users.parquet"],
    ["merge", "m", "f", "f"],
    ["build", "--kind", "cascade", "x", "in", "--except", "other"],
    ["delta", "d", "x", "x"],
    ["sync", "in", "in"],
    ["plan", "--items", "1e6", "--fpr", "0.01"],
    ["completion", "bash"],
    ["man", "dedup"],
]


def test_every_command_runs(tmp_path):
    (tmp_path / "in").write_bytes(b"a\nb\na\n")
    (tmp_path / "other").write_bytes(b"c\nd\n")
    (tmp_path / "spark").write_bytes(package.ForeignFilter("spark", 9).to_foreign())
    write_parquet(tmp_path / "users.parquet")
    for words in COMMANDS:
        done = run(COMMAND, tmp_path, *words)
        assert (done.returncode, b"Traceback" in done.stderr) == (0, False), (words, done.stderr.decode())
    of_services = {"serve", "token", "backup", "restore", "redis-load", "redis-save", "redis-info"}
    assert {words[0] for words in COMMANDS} == set(parser.COMMANDS) - of_services


def test_two_runs_cannot_share_a_state_on_a_poorer_system(tmp_path):
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("this system does not tell which files are open")
    program = LOCKS_BEFORE + POORER + LOCKS + COMMAND
    command = (sys.executable, "-c", program, str(tmp_path), "seen", "--quiet", "--state", "s")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as first:
        first.stdin.write(b"a\n")
        first.stdin.flush()
        assert first.stdout.readline() == b"a\n", first.stderr.read()
        second = subprocess.run(command, input=b"a\n", capture_output=True, timeout=60)
        assert (second.returncode, second.stdout) == (2, b"")
        assert b"s: another run uses this file" in second.stderr
        assert first.communicate(b"b\n", timeout=60) == (b"b\n", b"")
    third = subprocess.run(command, input=b"a\nc\n", capture_output=True, timeout=60)
    assert (third.returncode, third.stdout, third.stderr) == (0, b"c\n", b"")
    assert [path.name for path in tmp_path.iterdir()] == ["s"], "no lock is left"


def test_filters_in_a_folder_are_saved_and_opened(tmp_path):
    code = """
from fullbloom import BloomFilter
from fullbloom.compose import WithRemovals
made = WithRemovals(BloomFilter(100), BloomFilter(100))
made.add("a")
made.save("folder")
made.save("folder")
sys.exit("a" not in WithRemovals.open("folder"))
"""
    done = run(code, tmp_path)
    assert done.returncode == 0, done.stderr.decode()
