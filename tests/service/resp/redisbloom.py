"""The real RedisBloom, in a redis-server of its own.

``FULLBLOOM_REDISBLOOM`` names the module (``redisbloom.so``, or ``rebloom.so``); tests that need it are
skipped without one.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from .data_plane import Raw, tool


def module() -> Path:
    """The path of the module; the test is skipped without it."""
    named = os.environ.get("FULLBLOOM_REDISBLOOM")
    if not named:
        pytest.skip("FULLBLOOM_REDISBLOOM does not name RedisBloom's module")
    return Path(named)


class RedisBloom:
    """The process, on a port of its own."""

    def __init__(self, folder: Path):
        program, loaded = tool("redis-server"), module()
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        words = [
            program,
            "--port",
            str(self.port),
            "--save",
            "",
            "--dir",
            str(folder),
            "--loadmodule",
            str(loaded),
        ]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                break
            except ConnectionRefusedError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    self.kill()
                    raise RuntimeError(self.process.stdout.read()) from None
                time.sleep(0.05)

    def client(self, protocol: int = 2) -> redis.Redis:
        return redis.Redis(port=self.port, protocol=protocol, socket_timeout=20, retry=Retry(NoBackoff(), 0))

    def socket(self) -> Raw:
        return Raw(self.port)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(20)


@pytest.fixture(scope="module")
def redisbloom(tmp_path_factory):
    """One for the tests of a file; they use names of their own."""
    one = RedisBloom(tmp_path_factory.mktemp("redis"))
    yield one
    one.kill()
    one.process.stdout.close()
