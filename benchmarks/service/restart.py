"""A restart with 1 GB of filters and ten million logged adds: seconds until both ports listen."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from benchmarks.service.process import ask, command, keys, make_large, receive, running

if TYPE_CHECKING:
    from pathlib import Path

LOGGED, BATCH = 10_000_000, 10_000


def run(folder: Path) -> str:
    """Fill, kill without a checkpoint, start again."""
    with running(folder) as service:
        connection = service.connect()
        filters = make_large(connection)
        ask(connection, "SAVE")
        for start in range(0, LOGGED, BATCH):
            name = f"big{start // BATCH % filters}"
            connection.sendall(command("BF.MADD", name, *keys(BATCH, start)))
            # "*10000", then ":1" or ":0" each
            receive(connection, len(b"*%d\r\n" % BATCH) + 4 * BATCH)
        held = service.rss
        time.sleep(0.1)  # ten times what the default mode may lose with the process
        service.stop(kill=True)
    with running(folder) as service:
        connection = service.connect()
        last = ask(connection, "BF.EXISTS", f"big{(LOGGED - 1) // BATCH % filters}", keys(1, LOGGED - 1)[0])
        if last != b":1\r\n":
            raise SystemExit(f"the last key is lost: {last!r}")
        return (
            f"ready in {service.seconds:.2f} s with {held / 1e9:.2f} GB of filters and {LOGGED:,} logged adds"
        )
