"""The tour of README over a Redis server prints what it says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from engines.servers import needs_redis

README = Path(__file__).parents[2] / "README.md"
PORT = "6390"


@needs_redis
def test_the_tour_across_a_fleet(server, tmp_path):
    """Its lines as printed, but for the port, and without the server that they start."""
    block = (
        README.read_text("utf-8").partition("Across a fleet")[2].partition("```sh\n")[2].partition("```")[0]
    )
    start, _, rest = block.partition("\n")
    assert start.startswith(f"redis-server --port {PORT} ")
    assert PORT in rest
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-ec", rest.replace(PORT, str(server.port))],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("[True, False]\n")
    with server.client() as client:
        assert len(client.keys("ids:*")) == 2
