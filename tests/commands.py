"""Commands of the command line, each in a fork of a process that has imported what they need."""

from __future__ import annotations

import atexit
import functools
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

#: Imports of commands that read tables of records, pandas because pyarrow imports it to convert keys.
TABLES = ("pandas", "pyarrow.compute", "pyarrow.ipc", "pyarrow.parquet")
#: Imports of commands that talk with Redis.
REDIS = ("redis.asyncio", "fullbloom.engines.redis")
#: Imports of commands that read or write the folder of a service.
SERVICE = ("fullbloom.service.http.api", "fullbloom.service.http.server", "fullbloom.service.running")

#: A process that has imported the command line and forks for each command: 5 ms instead of 100. The child has
#: the descriptors, directory and words of that command, and else what a new process has.
SERVER = """
import contextlib, gc, importlib, json, os, pkgutil, socket, sys
from pathlib import Path
import fullbloom.cli
from fullbloom.cli import main
for part in pkgutil.walk_packages(fullbloom.cli.__path__, "fullbloom.cli."):
    importlib.import_module(part.name)
for name in sys.argv[2:]:
    with contextlib.suppress(ImportError):
        importlib.import_module(name)
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
    """Runs commands as `subprocess.run` does, each in a fork of one process, which has these imports."""

    def __init__(self, *imports: str):
        self._here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._here.settimeout(60)
        words = [sys.executable, "-c", SERVER, str(there.fileno()), *imports]
        self._process = subprocess.Popen(words, pass_fds=[there.fileno()])
        there.close()

    def run(self, words, *, stdin=b"", cwd=None, variables=(), stdout=None):
        """Run a command to its end, with further variables; ``stdout`` is a descriptor that it writes to."""
        pipes = [os.pipe() for _ in range(3)]
        (theirs_in, ours_in), (ours_out, theirs_out), (ours_err, theirs_err) = pipes
        if stdout is not None:
            os.dup2(stdout, theirs_out)
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

    def close(self) -> None:
        """End the process that forks."""
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


@functools.cache
def fork_for(*imports: str) -> Commands:
    """The one process of these imports: each further one costs a start, and each import 1 to 5 ms a fork."""
    instance = Commands(*imports)
    atexit.register(instance.close)
    return instance


def run_command(
    *words: object, lines: str = "", imports: tuple[str, ...] = (), cwd: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, with these variables beside ours: its code, and what it wrote as text."""
    variables = {**os.environ, **variables}
    texts = [os.fspath(word) if isinstance(word, os.PathLike) else str(word) for word in words]
    done = fork_for(*imports).run(texts, stdin=lines.encode(), cwd=cwd, variables=variables)
    return subprocess.CompletedProcess(words, done.returncode, done.stdout.decode(), done.stderr.decode())
