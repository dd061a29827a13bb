"""Processes of the command line, forked from one that has imported the service.

A start takes 0.15 s of a processor instead of 0.85: all but the rest is imports.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from typing import Any

#: Each command is the child of a process of its own, which waits for its end and sends the exit code.
SERVER = """
import json, os, signal, socket, sys
import fullbloom.cli.app, fullbloom.cli.serve, fullbloom.service.http.api, fullbloom.service.http.server
import fullbloom.service.running
from fullbloom.cli import main
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
here = socket.socket(fileno=int(sys.argv[1]))
while True:
    message, passed, *_ = socket.recv_fds(here, 1 << 20, 2)
    if not message:
        break
    log, status = passed
    if not os.fork():
        here.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        child = os.fork()
        if not child:
            code = 70
            try:
                os.close(status)
                os.dup2(log, 1)
                os.dup2(log, 2)
                os.close(log)
                words, environment = json.loads(message)
                os.environ.clear()
                os.environ.update(environment)
                sys.argv = ["fullbloom", *words]
                code = main(words)
            except SystemExit as stop:
                code = stop.code
            except BaseException:
                import traceback
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        os.close(log)
        os.write(status, b"%d\\n" % child)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.write(status, b"%d\\n" % code)
        os._exit(0)
    os.close(log)
    os.close(status)
"""


class ServiceProcess:
    """The part of `subprocess.Popen` that tests use."""

    def __init__(self, words: list[str], log: int, environment: dict[str, str]):
        read, write = os.pipe()
        self._status, self.returncode = os.fdopen(read, "rb", buffering=0), None
        socket.send_fds(_here(), [json.dumps([words, environment]).encode()], [log, write])
        os.close(write)
        self.pid = int(self._line())

    def _line(self) -> bytes:
        line = b""
        while not line.endswith(b"\n"):
            byte = self._status.read(1)
            assert byte, "the process that waits for the service ended"
            line += byte
        return line

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None while it runs."""
        if self.returncode is None and select.select([self._status], [], [], 0)[0]:
            self.returncode = int(self._line())
            self._status.close()
        return self.returncode

    def wait(self, timeout: float) -> int:
        """Return the exit code once there is one."""
        if self.returncode is None and not select.select([self._status], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("fullbloom", timeout)
        code = self.poll()
        assert code is not None
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal to it, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)


@functools.cache
def _here() -> socket.socket:
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = subprocess.Popen([sys.executable, "-c", SERVER, str(there.fileno())], pass_fds=[there.fileno()])
    there.close()

    def end() -> None:
        here.close()
        process.wait(60)

    atexit.register(end)
    return here


def spawn(words: list[str], log: Any, environment: dict[str, str]) -> Any:
    """Start a command, its output in the file ``log``; a variable that is not ours takes a new process."""
    if all(name.startswith("FULLBLOOM_") for name in environment):
        return ServiceProcess(words, log.fileno(), {**os.environ, **environment})
    command = [sys.executable, "-m", "fullbloom", *words]
    return subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **environment})


def run(*words: object, check: int = 0) -> str:
    """Run a command to its end, which has the exit code ``check``: what it wrote."""
    with tempfile.TemporaryFile("w+") as log:
        code = spawn(list(map(str, words)), log, {}).wait(60)
        log.seek(0)
        said = log.read()
    assert code == check, said
    return said


def create_token(data: Any) -> str:
    """Make the token "root" in a data folder: its text."""
    return run("token", "create", "root", "--scope", "admin", "--scope", "read", "--data", data).strip()


def wait_for_file(path: Any, process: Any, seconds: float = 60) -> bool:
    """Wait for a file that a process writes; False where the process ended, or time did."""
    deadline = time.monotonic() + seconds
    while not path.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
