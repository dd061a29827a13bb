"""A service in a folder of its own, and raw connections to it."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Running:
    """`fullbloom serve`, ready; `seconds` is how long that took."""

    def __init__(self, folder: Path, *flags: str) -> None:
        ready = folder / "ready.json"
        ready.unlink(missing_ok=True)
        command = [sys.executable, "-m", "fullbloom", "serve", "--data", str(folder / "data")]
        command += ["--http", "127.0.0.1:0", "--resp", "127.0.0.1:0", "--ready-file", str(ready), *flags]
        start = time.perf_counter()
        self.log = (folder / "service.log").open("ab")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        while not ready.exists():
            if self.process.poll() is not None:
                raise SystemExit((folder / "service.log").read_text()[-2000:])
            time.sleep(0.005)
        self.seconds = time.perf_counter() - start
        self.addresses = json.loads(ready.read_text())

    def connect(self) -> socket.socket:
        """A connection to the RESP port."""
        host, _, port = self.addresses["resp"].rpartition(":")
        connection = socket.create_connection((host, int(port)), timeout=120)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    @property
    def rss(self) -> int:
        """Bytes of memory that the process holds."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmRSS"))

    def stop(self, *, kill: bool = False) -> float:
        """Seconds that its end took."""
        start = time.perf_counter()
        self.process.kill() if kill else self.process.terminate()
        self.process.wait()
        self.log.close()
        return time.perf_counter() - start


@contextlib.contextmanager
def running(folder: Path, *flags: str) -> Iterator[Running]:
    """A service that ends with the block."""
    service = Running(folder, *flags)
    try:
        yield service
    finally:
        if service.process.poll() is None:
            service.stop()


def command(*words: str | bytes) -> bytes:
    """A command as RESP has it."""
    parts = [word.encode() if isinstance(word, str) else word for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)


def ask(connection: socket.socket, *words: str | bytes) -> bytes:
    """The reply to one command that fits one packet."""
    connection.sendall(command(*words))
    reply = connection.recv(1 << 20)
    if reply.startswith(b"-"):
        raise SystemExit(f"{words[0]!r}: {reply!r}")
    return reply


def make_large(connection: socket.socket) -> int:
    """Make filters of 1 GB in all, `big0` and on; how many."""
    for number in range(8):
        ask(connection, "BLOOM.CREATE", f"big{number}", "KIND", "bloom", "capacity", "100000000")
    return 8


def receive(connection: socket.socket, size: int) -> None:
    """Take `size` bytes of replies."""
    while size:
        got = len(connection.recv(min(size, 1 << 20)))
        if not got:
            raise SystemExit("the service closed the connection")
        size -= got


def quantile(times: Sequence[float], share: float) -> float:
    """The time that `share` of all do not exceed."""
    return sorted(times)[min(len(times) - 1, int(share * len(times)))]


def keys(count: int, start: int = 0) -> list[bytes]:
    """Keys of 16 bytes."""
    return [b"%016d" % number for number in range(start, start + count)]


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))
