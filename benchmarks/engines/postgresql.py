"""A PostgreSQL server on a socket in a folder of its own, ended with the block; tests use it, too."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def find_program(name: str) -> str | None:
    """The path of a program of the newest installed PostgreSQL."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(found[-1]) if found else shutil.which(name)


@contextlib.contextmanager
def run_postgresql(*settings: str) -> Iterator[str]:
    """The URL of a new, empty database; ``settings`` are further ones, as ``"NAME=VALUE"``."""
    initdb, postgres, ready = (find_program(name) for name in ("initdb", "postgres", "pg_isready"))
    assert initdb, "PostgreSQL is not installed (on Debian: apt-get install postgresql)"
    assert postgres
    assert ready
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    # PostgreSQL refuses to run as root.
    user = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] if os.geteuid() == 0 else []
    if user:
        shutil.chown(folder, "nobody", "nogroup")
    options = ["-U", "fullbloom", "-A", "trust", "-N"]
    subprocess.run(
        [*user, initdb, "-D", folder / "data", *options], stdout=subprocess.DEVNULL, check=True, cwd="/"
    )
    chosen = ["listen_addresses=", f"unix_socket_directories={folder}", "fsync=off", *settings]
    with (folder / "log").open("wb") as log:
        words = [*user, postgres, "-D", folder / "data", *(word for one in chosen for word in ("-c", one))]
        process = subprocess.Popen(words, stdout=log, stderr=log, cwd="/")
    try:
        deadline = time.monotonic() + 30
        # The socket exists before the server accepts connections.
        while subprocess.run([ready, "-q", "-h", folder, "-U", "fullbloom"], check=False).returncode != 0:
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield f"postgresql+psycopg://fullbloom@/postgres?host={folder}"
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)
        shutil.rmtree(folder, ignore_errors=True)
