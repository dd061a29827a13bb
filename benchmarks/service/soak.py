"""Ten minutes (or FULLBLOOM_SOAK seconds) of mixed load: memory at each tenth, and how much was asked."""

from __future__ import annotations

import os
import random
import threading
import time
from typing import TYPE_CHECKING

from benchmarks.service.process import Running, command, keys, running

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = float(os.environ.get("FULLBLOOM_SOAK", "600"))
CLIENTS, NAMES = 8, 200


def run(folder: Path) -> str:
    """Memory in MB, ten times, and the number of commands."""
    counts = [0] * CLIENTS
    with running(folder) as service:
        end = time.perf_counter() + SECONDS
        threads = [
            threading.Thread(target=_client, args=(service, number, end, counts)) for number in range(CLIENTS)
        ]
        for thread in threads:
            thread.start()
        held = []
        for _ in range(10):
            time.sleep(SECONDS / 10)
            held.append(f"{service.rss / 1e6:.0f}")
        for thread in threads:
            thread.join()
    return f"{sum(counts):,} commands in {SECONDS:.0f} s; MB held at each tenth: {' '.join(held)}"


def _client(service: Running, number: int, end: float, counts: list[int]) -> None:
    """Makes, fills, asks, saves and drops filters of a fixed number of names and sizes."""
    rng = random.Random(number)
    connection = service.connect()
    while time.perf_counter() < end:
        name = f"n{rng.randrange(NAMES)}"
        some = keys(rng.choice([1, 10, 100]), rng.randrange(20_000))
        match rng.randrange(20):
            case 0:
                words: list[str | bytes] = ["DEL", name]
            case 1:
                words = ["BF.RESERVE", name, "0.01", "20000"]
            case 2:
                words = ["BF.INFO", name]
            case 3 if rng.random() < 0.01:
                words = ["BGSAVE"]
            case 4 | 5 | 6 | 7 | 8:
                words = ["BF.MADD", name, *some]
            case _:
                words = ["BF.MEXISTS", name, *some]
        connection.sendall(command(*words))
        connection.recv(1 << 16)
        counts[number] += 1
        if rng.random() < 0.001:
            connection.close()
            connection = service.connect()
