"""The data plane on its own: the crate's example, as a process, on a port of its choice."""

from __future__ import annotations

import functools
import json
import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from support import eventually

#: What `fullbloom serve` tells glibc's allocator (`fullbloom.service.resources`).
ALLOCATOR = {
    "MALLOC_ARENA_MAX": "4",
    "MALLOC_MMAP_THRESHOLD_": str(1 << 17),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 17),
}
ROOT = Path(__file__).parents[3]


@functools.cache
def example() -> Path:
    """The program, built by cargo if sources have changed (0.1 s if not); the test is skipped without cargo.

    `scripts/test.sh` has compiled it with the Rust tests before, by the profile that it exports.
    """
    words = [tool("cargo"), "build", "--locked", "--quiet", "--profile", os.environ.get("PROFILE", "quick")]
    words += ["--package", "fullbloom-server", "--example", "serve", "--message-format", "json"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    messages = map(json.loads, done.stdout.splitlines())
    return next(Path(found) for message in messages if (found := message.get("executable")))


def tool(name: str) -> str:
    """The path of a program; the test is skipped without it."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


class Service:
    """The process. `folder` keeps its filters, in files of so many blocks; settings are the example's."""

    def __init__(
        self,
        folder: Path | None = None,
        mode: str = "always",
        *,
        file_blocks: int | None = None,
        **settings: object,
    ):
        words = [str(example()), "127.0.0.1:0", *([str(folder), mode] if folder else [])]
        words += [f"{name}={value}" for name, value in settings.items()]

        if file_blocks is not None:
            limited = f"trap '' XFSZ; ulimit -f {file_blocks}; exec \"$@\""
            words = ["sh", "-c", limited, "sh", *words]
        self.process = subprocess.Popen(
            words,
            env=os.environ | ALLOCATOR,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        said = self.process.stdout.readline().strip()
        if not said:
            _, error = self.process.communicate(timeout=60)
            raise RuntimeError(error)
        self.port = int(said.rpartition(":")[2])

    def client(self, protocol: int = 2, **options: object) -> redis.Redis:
        once = Retry(NoBackoff(), 0)  # an error is to be seen, not tried again
        return redis.Redis(port=self.port, protocol=protocol, socket_timeout=60, retry=once, **options)

    def socket(self) -> Raw:
        return Raw(self.port)

    def stop(self) -> None:
        """Ends it well."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(60) == 0
        self.close()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(60)
        self.close()

    def close(self) -> None:
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def settle(self) -> None:
        """Wait until all its threads sleep: then what follows a reply is done, such as freeing memory."""
        eventually(self._sleeps)

    def _sleeps(self) -> bool:
        try:
            texts = [stat.read_text() for stat in Path(f"/proc/{self.process.pid}/task").glob("*/stat")]
        except OSError:  # a thread ended
            return False
        return all(text.rpartition(")")[2].split()[0] == "S" for text in texts)

    def memory(self) -> int:
        """Resident bytes."""
        return self._status("VmRSS")

    def highest_memory(self) -> int:
        """The most resident bytes that it ever had."""
        return self._status("VmHWM")

    def _status(self, name: str) -> int:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


class Raw:
    """A connection that sends the given bytes."""

    def __init__(self, port: int):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._file = self.socket.makefile("rb")

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def take(self, length: int) -> bytes:
        """So many bytes; fewer where the connection ends before."""
        return self._file.read(length)

    def reply(self) -> bytes:
        """One whole answer, as it came."""
        line = self._file.readline()
        sort, text = line[:1], line[1:].strip()
        if sort in b"$=" and int(text) >= 0:
            return line + self._file.read(int(text) + 2)
        if sort in b"*~%":
            return line + b"".join(self.reply() for _ in range(int(text) * (2 if sort == b"%" else 1)))
        return line

    def rest(self) -> bytes:
        """All until the connection ends."""
        try:
            return self._file.read()
        except ConnectionResetError:
            return b""

    def ask(self, data: bytes, answer: bytes) -> None:
        """Sends, and expects the answer."""
        self.send(data)
        assert self.take(len(answer)) == answer

    def close(self) -> None:
        self._file.close()
        self.socket.close()
