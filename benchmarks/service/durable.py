"""Durable adds (`always`) by 32 clients, single keys and batches, beside what the disk gives one writer."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

from benchmarks.service.process import Running, ask, command, keys, quantile, receive, running

if TYPE_CHECKING:
    from pathlib import Path

CLIENTS, SECONDS, BATCH = 32, 5.0, 1000


def run(folder: Path) -> str:
    """Keys a second of both, and syncs a second of the disk."""
    syncs = _syncs(folder)
    with running(folder, "--durability", "always") as service:
        connection = service.connect()
        ask(connection, "BF.RESERVE", "f", "0.01", "50000000", "NONSCALING")
        single, pipelined, batches = (_adds(service, *form) for form in ((1, 1), (1, 32), (BATCH, 1)))
    rates = f"{single:,.0f} single adds/s, {pipelined:,.0f} with 32 in flight a client, {batches:,.0f} keys/s"
    most = f"{CLIENTS} clients that wait for theirs reach {CLIENTS * syncs:,.0f} at most"
    return f"{rates} in batches of {BATCH:,}; the disk syncs {syncs:,.0f} times a second, so {most}"


def _syncs(folder: Path) -> float:
    times = []
    with (folder / "sync").open("wb", buffering=0) as file:
        for _ in range(200):
            file.write(bytes(512))
            start = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - start)
    return 1 / quantile(times, 0.5)


def _adds(service: Running, batch: int, in_flight: int) -> float:
    counts = [0] * CLIENTS
    end = time.perf_counter() + SECONDS

    def client(number: int) -> None:
        connection = service.connect()
        start = number * 1_000_000
        while time.perf_counter() < end:
            some = [keys(batch, start + i * batch) for i in range(in_flight)]
            if batch == 1:
                connection.sendall(b"".join(command("BF.ADD", "f", *key) for key in some))
                receive(connection, 4 * in_flight)
            else:
                connection.sendall(b"".join(command("BF.MADD", "f", *key) for key in some))
                receive(connection, (len(b"*%d\r\n" % batch) + 4 * batch) * in_flight)
            start += batch * in_flight
            counts[number] += batch * in_flight

    threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - begun)
