"""A server on a free loopback port, ended by its process' number."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import time
from typing import TYPE_CHECKING

import redis

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def free_port() -> int:
    """A port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def server(folder: Path, *options: str) -> Iterator[int]:
    """The port of a redis-server or valkey-server."""
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    if program is None:
        raise SystemExit("needs redis-server or valkey-server on PATH")
    port = free_port()
    words = [
        program,
        "--port",
        str(port),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--dir",
        str(folder),
        *options,
    ]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    try:
        for _ in range(500):
            with contextlib.suppress(redis.exceptions.RedisError), redis.Redis(port=port) as client:
                client.ping()
                break
            time.sleep(0.01)
        yield port
    finally:
        process.terminate()
        process.wait(30)
