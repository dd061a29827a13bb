"""Checks at half load while 1 GB of snapshots is written: their 99th percentile against that of idling."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from benchmarks.service.running import Running, ask, command, keys, quantile, running

if TYPE_CHECKING:
    import socket
    from pathlib import Path

FILTERS, CAPACITY, CLIENTS, SECONDS = 8, 100_000_000, 4, 8.0


def run(folder: Path) -> str:
    """The latencies of both."""
    with running(folder) as service:
        connection = service.connect()
        for number in range(FILTERS):
            ask(
                connection,
                "BLOOM.CREATE",
                f"big{number}",
                "KIND",
                "bloom",
                "capacity",
                str(CAPACITY),
                "fpr",
                "0.01",
            )
        pause = _half_load(service)
        ask(connection, "BF.MADD", "big0", *keys(1000))
        idle = _checks(service, pause)
        for number in range(FILTERS):
            ask(connection, "BF.MADD", f"big{number}", *keys(1000))
        ask(connection, "BGSAVE")
        busy = _checks(service, pause)
    now, before = quantile(busy, 0.99) * 1e3, quantile(idle, 0.99) * 1e3
    return (
        f"p99 of a check {now:.2f} ms while 1 GB is written, {before:.2f} ms idle: {now / before:.1f}x; "
        f"longest {max(busy) * 1e3:.1f} and {max(idle) * 1e3:.1f} ms ({len(busy):,} checks)"
    )


def _half_load(service: Running) -> float:
    """The pause between checks of a client at which all take half of what they can."""
    times: list[float] = []
    _client(service.connect(), 0.0, 2.0, times)
    return sum(times) / len(times)


def _checks(service: Running, pause: float) -> list[float]:
    times: list[float] = []
    clients = [(service.connect(), pause, SECONDS, times) for _ in range(CLIENTS)]
    threads = [threading.Thread(target=_client, args=client) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times


def _client(connection: socket.socket, pause: float, seconds: float, times: list[float]) -> None:
    check = command("BF.EXISTS", "big0", keys(1)[0])
    end = time.perf_counter() + seconds
    while (start := time.perf_counter()) < end:
        connection.sendall(check)
        connection.recv(64)
        times.append(time.perf_counter() - start)
        time.sleep(pause)
