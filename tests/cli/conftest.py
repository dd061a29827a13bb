from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

PROGRAM = [sys.executable, "-m", "fullbloom"]

#: A process that has imported the command line and forks for each command: 5 ms instead of 100. The child has
#: the descriptors, directory and words of that command, and else what a new process has.
SERVER = """
import contextlib, gc, importlib, json, os, pkgutil, socket, sys
from pathlib import Path
import fullbloom.cli
from fullbloom.cli import main
for part in pkgutil.walk_packages(fullbloom.cli.__path__, "fullbloom.cli."):
    importlib.import_module(part.name)
with contextlib.suppress(ImportError):
    import pandas, pyarrow.compute, pyarrow.ipc, pyarrow.parquet  # what pyarrow imports to convert keys
fullbloom.cli.parser.build_parser()
gc.freeze()
here = socket.socket(fileno=int(sys.argv[1]))
while True:
    message, streams, *_ = socket.recv_fds(here, 1 << 20, 3)
    if not message:
        break
    child = os.fork()
    if not child:
        code = 70
        try:
            here.close()
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
                os.close(stream)
            words, directory, variables = json.loads(message)
            os.environ.update(variables)
            os.chdir(directory)
            try:
                code = main(words)
            except SystemExit as stop:
                code = stop.code
            sys.stdout.flush()
        except BaseException:
            import traceback
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    for stream in streams:
        os.close(stream)
    here.send(json.dumps(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())
"""


class Commands:
    """Runs commands as `subprocess.run` does, each in a fork of one process."""

    def __init__(self):
        self._here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._here.settimeout(60)
        words = [sys.executable, "-c", SERVER, str(there.fileno())]
        self._process = subprocess.Popen(words, pass_fds=[there.fileno()])
        there.close()

    def run(self, words, *, stdin=b"", cwd=None, variables=()):
        pipes = [os.pipe() for _ in range(3)]
        (theirs_in, ours_in), (ours_out, theirs_out), (ours_err, theirs_err) = pipes
        texts = [os.fsdecode(word) for word in words]
        request = json.dumps([texts, str(cwd or Path.cwd()), dict(variables)])
        socket.send_fds(self._here, [request.encode()], [theirs_in, theirs_out, theirs_err])
        for theirs in (theirs_in, theirs_out, theirs_err):
            os.close(theirs)
        read = [b"", b""]
        workers = [threading.Thread(target=_feed, args=(ours_in, stdin))]
        workers += [
            threading.Thread(target=_drain, args=(ours, read, place))
            for place, ours in enumerate((ours_out, ours_err))
        ]
        for worker in workers:
            worker.start()
        try:
            code = json.loads(self._here.recv(64))
        except BaseException:
            self._process.kill()
            raise
        for worker in workers:
            worker.join()
        return subprocess.CompletedProcess(words, code, *read)

    def close(self):
        self._here.close()
        self._process.wait(timeout=60)


def _feed(descriptor, data):
    with os.fdopen(descriptor, "wb", buffering=0) as pipe, memoryview(data) as view:
        done = 0
        try:
            while done < len(view):
                done += pipe.write(view[done:])
        except BrokenPipeError:
            pass


def _drain(descriptor, read, place):
    with os.fdopen(descriptor, "rb") as pipe:
        read[place] = pipe.read()


@pytest.fixture(scope="session")
def commands():
    instance = Commands()
    yield instance
    instance.close()


@pytest.fixture(scope="session")
def fullbloom(commands):
    """Run a command in a fork; with an environment, or a memory to be kept, in a process of its own."""

    def run(*arguments, stdin=b"", check=None, cwd=None, **options):
        words = [word if isinstance(word, bytes) else str(word) for word in arguments]
        # Python itself reads other variables when it starts.
        variables = options.get("env", os.environ)
        changed = {name for name, _ in variables.items() ^ os.environ.items()}
        if options.keys() == {"env"} and changed <= {"COLUMNS", "NO_COLOR"} & variables.keys():
            options = {}
        if options or "--memory" in words:
            done = subprocess.run(
                [*PROGRAM, *words], input=stdin, capture_output=True, timeout=60, cwd=cwd, **options
            )
        else:
            done = commands.run(
                words, stdin=stdin, cwd=cwd, variables={name: variables[name] for name in changed}
            )
        assert b"Traceback" not in done.stderr, done.stderr.decode()
        if check is not None:
            assert done.returncode == check, done.stderr.decode()
        return done

    return run


def first_occurrences(data: bytes) -> bytes:
    seen, out = set(), []
    for line in data.splitlines(keepends=True):
        key = line.rstrip(b"\n")
        if key not in seen:
            seen.add(key)
            out.append(line)
    return b"".join(out)


def one_error_line(done) -> str:
    text = done.stderr.decode()
    assert done.returncode == 2
    assert text.startswith("fullbloom: ")
    assert text.count("\n") == 1, text
    return text


@pytest.fixture
def exact():
    return first_occurrences


@pytest.fixture
def refused():
    return one_error_line


@pytest.fixture(scope="session")
def program():
    return PROGRAM


@pytest.fixture(scope="session")
def lines() -> bytes:
    """60,000 lines, a third of them repetitions, of unlike lengths, the last without newline."""
    draw = random.Random(7)
    return b"\n".join(
        b"%d/%s" % (draw.randrange(60_000), b"x" * (draw.randrange(9) ** 2)) for _ in range(60_000)
    )
