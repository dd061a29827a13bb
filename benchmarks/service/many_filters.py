"""10,000 filters and 1,000 idle connections: seconds to start, memory beyond the filters' own bytes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.request import urlopen

from benchmarks.service.process import ask, command, receive, running

if TYPE_CHECKING:
    from pathlib import Path

FILTERS, CONNECTIONS = 10_000, 1_000


def run(folder: Path) -> str:
    """Make them, stop, start, connect."""
    with running(folder) as service:
        connection = service.connect()
        for number in range(FILTERS):
            connection.sendall(command("BF.RESERVE", f"f{number}", "0.01", "1000"))
        receive(connection, 5 * FILTERS)
        stopped = service.stop()
    with running(folder) as service:
        connections = [service.connect() for _ in range(CONNECTIONS)]
        for connection in connections:
            ask(connection, "PING")
        if ask(connections[0], "DBSIZE") != b":%d\r\n" % FILTERS:
            raise SystemExit("filters are missing")
        held, ready = service.rss, service.seconds
        cells = json.load(urlopen(f"{service.addresses['http']}/v1/service"))["nbytes"]
    with running(_create_folder(folder / "empty")) as service:
        empty = service.rss
    return (
        f"ready in {ready:.2f} s, {held / 1e6:.0f} MB held, {(held - cells) / 1e6:.0f} MB beyond "
        f"{cells / 1e6:.0f} MB of cells, an empty service {empty / 1e6:.0f} MB; stopped in {stopped:.2f} s"
    )


def _create_folder(folder: Path) -> Path:
    folder.mkdir()
    return folder
