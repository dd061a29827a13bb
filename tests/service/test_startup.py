"""A failed start prints one clear line and exits with code 2."""

from __future__ import annotations

import socket
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from commands import SERVICE, run_command


@pytest.mark.long
def test_a_registry_of_a_newer_version_is_refused_in_one_line(start):
    service = start()
    assert service.stop() == 0
    with closing(sqlite3.connect(service.folder / "data" / "registry.db")) as registry:
        registry.execute("UPDATE alembic_version SET version_num = '9999'")
        registry.commit()
    words = [
        sys.executable,
        "-m",
        "fullbloom",
        "serve",
        "--data",
        str(service.folder / "data"),
        "--http",
        "127.0.0.1:0",
    ]
    ended = subprocess.run([*words, "--resp", "none"], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2
    assert ended.stderr.count("\n") == 1
    assert "newer release" in ended.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--http", "127.0.0.1:{taken}", "--resp", "none"], "--http"),
        (["--http", "127.0.0.1:0", "--resp", "127.0.0.1:{taken}"], "--resp"),
        (["--http", "0.0.0.0:0", "--resp", "none"], "token create"),
        (["--http", "127.0.0.1"], "HOST:PORT"),
        (["--config", "none.toml"], "no such file"),
        (["--registry", "nonsense"], "registry"),
        (
            ["--registry", "postgresql+psycopg://x@127.0.0.1:1/x", "--http", "127.0.0.1:0"],
            "cannot be reached",
        ),
        (["--tls-cert", "x.pem"], "--tls-key"),
        (["--data", "/proc/none"], "/proc/none"),
    ],
)
def test_a_failed_start_is_reported_in_one_line(tmp_path, options, said):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        words = [option.format(taken=taken.getsockname()[1]) for option in options]
        data = [] if "--data" in words else ["--data", str(tmp_path / "data")]
        ended = run_command("serve", *data, *words, imports=SERVICE)
    assert ended.returncode == 2, ended.stderr
    assert ended.stderr.count("\n") == 1, ended.stderr
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr
