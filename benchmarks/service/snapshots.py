"""Checks at half load while 1 GB of snapshots is written: their 99th percentile against that of idling."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from benchmarks.service.process import Running, ask, command, keys, make_large, quantile, running

if TYPE_CHECKING:
    import socket
    from pathlib import Path

CLIENTS, SECONDS = 4, 8.0


def run(folder: Path) -> str:
    """The latencies of both."""
    with running(folder) as service:
        connection = service.connect()
        filters = make_large(connection)
        pause = _half_load(service)
        ask(connection, "BF.MADD", "big0", *keys(1000))
        idle = _checks(service, pause)
        over = threading.Event()
        saving = threading.Thread(target=_save, args=(connection, filters, over))
        saving.start()
        busy = _checks(service, pause)
        over.set()
        saving.join()
    now, before = quantile(busy, 0.99) * 1e3, quantile(idle, 0.99) * 1e3
    return (
        f"p99 of a check {now:.2f} ms while 1 GB is written over and over, {before:.2f} ms idle: "
        f"{now / before:.1f}x; longest {max(busy) * 1e3:.1f} and {max(idle) * 1e3:.1f} ms ({len(busy):,})"
    )


def _save(connection: socket.socket, filters: int, over: threading.Event) -> None:
    """Has all filters written as long as checks are timed: one snapshot would be over before they are."""
    while not over.is_set():
        for number in range(filters):
            ask(connection, "BF.MADD", f"big{number}", *keys(1000))
        ask(connection, "SAVE")


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
