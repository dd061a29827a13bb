"""Strangers that hold every connection keep the service from neither its files nor its clients for long."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from support import eventually

LIMIT = 400


def _clamped(ports: str, soft: int, hard: int, connections: int) -> list[str]:
    code = (
        "import logging, sys\n"
        "logging.basicConfig(stream=sys.stdout, format='%(message)s')\n"
        "from fullbloom.service.resources import clamp, warn_if_clamped\n"
        "from fullbloom.service.settings import load\n"
        f"settings = clamp(load(resp={ports!r}, limits={{'connections': {connections}}}))\n"
        f"warn_if_clamped({connections}, settings.limits.connections)\n"
        "import resource\n"
        "print(settings.limits.connections, *resource.getrlimit(resource.RLIMIT_NOFILE))\n"
    )
    limited = f'ulimit -Sn {soft} && ulimit -Hn {hard} && exec "$@"'
    words = ["sh", "-c", limited, "sh", sys.executable, "-c", code]
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout.splitlines()


@pytest.mark.parametrize(
    ("ports", "hard", "connections", "expected"),
    [
        ("none", 4096, 1000, 1000),
        ("127.0.0.1:0", 4096, 10_000, (4096 - 256) // 2),
        ("none", 4096, 10_000, 4096 - 256),
        ("127.0.0.1:0", 300, 10_000, 75),
    ],
)
def test_the_descriptor_limit_is_raised_and_files_keep_a_reserve(ports, hard, connections, expected):
    said = _clamped(ports, min(256, hard), hard, connections)
    assert said[-1] == f"{expected} {hard} {hard}"
    assert sum("clamped" in line for line in said) == (expected < connections)


def test_unauthenticated_connections_do_not_block_a_checkpoint(tmp_path):
    # As in a container with few descriptors: the service cannot raise the limit.
    ready = tmp_path / "ready.json"
    words = [sys.executable, "-m", "fullbloom", "serve", "--data", tmp_path / "data", "--http", "127.0.0.1:0"]
    words += ["--resp", "127.0.0.1:0", "--ready-file", ready]
    limited = ["sh", "-c", f'ulimit -n {LIMIT} && exec "$@"', "sh", *map(str, words)]
    process = subprocess.Popen(limited, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while not ready.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        said = json.loads(ready.read_text())
        with contextlib.ExitStack() as stack, httpx.Client(base_url=said["http"], timeout=60) as http:
            assert http.post("/v1/filters", json={"name": "f", "capacity": 10}).status_code == 201
            assert http.post("/v1/filters/f/add", json={"key": "a"}).status_code == 200
            for address in (said["resp"], said["http"].removeprefix("http://")):
                host, _, port = address.rpartition(":")
                for _ in range(LIMIT):
                    with contextlib.suppress(OSError):
                        stack.enter_context(socket.create_connection((host, int(port)), timeout=5))
            assert http.post("/v1/checkpoint").status_code < 300
            # No loop spins: the service is quiet once it has closed what is too much.
            eventually(lambda: _load(process.pid) < 0.8)
    finally:
        process.kill()
        process.wait(60)


def _load(pid: int) -> float:
    """The processors that a process takes, measured for half a second."""
    before = os.times().elapsed, _ticks(pid)
    time.sleep(0.5)
    seconds, ticks = os.times().elapsed - before[0], _ticks(pid) - before[1]
    return ticks / os.sysconf("SC_CLK_TCK") / seconds


def _ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
