"""Commands and keys per second over RESP: one connection sends what was written down, 16-byte keys, 1 %.

Pipelined `PING` is the yardstick, what reading and answering alone cost, that of `redis-server` beside it
where there is one.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import threading
import time
from typing import TYPE_CHECKING

from benchmarks.service.process import ask, command, keys, receive, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CAPACITY = 1_000_000
SECONDS = 2.0
#: Commands sent at once, keys of a command of words, keys of a packed one.
PIPELINE, MANY, PACKED = 1000, 1000, 10_000


def pack(batch: list[bytes]) -> bytes:
    """Each key behind its length."""
    return b"".join(len(key).to_bytes(4, "little") + key for key in batch)


def cases() -> list[tuple[str, list[bytes], int, int]]:
    """Name, what is sent in turn, bytes of the answer to one, items of one."""
    every = keys(40 * PACKED)
    tens = [every[i : i + PACKED] for i in range(0, len(every), PACKED)]
    ones = [every[i : i + MANY] for i in range(0, 100 * MANY, MANY)]

    def each(name: str) -> list[bytes]:
        return [b"".join(command(name, "a", key) for key in batch) for batch in ones]

    answers, bits = len(b"*1000\r\n") + 4 * MANY, len(b"$1250\r\n\r\n") + PACKED // 8
    return [
        ("PING", [command("PING") * PIPELINE], 7 * PIPELINE, PIPELINE),
        ("BF.ADD", each("BF.ADD"), 4 * PIPELINE, PIPELINE),
        ("BF.EXISTS", each("BF.EXISTS"), 4 * PIPELINE, PIPELINE),
        ("BF.MADD x 1000", [command("BF.MADD", "b", *batch) for batch in ones], answers, MANY),
        ("BF.MEXISTS x 1000", [command("BF.MEXISTS", "b", *batch) for batch in ones], answers, MANY),
        ("BLOOM.PADD x 10,000", [command("BLOOM.PADD", "c", pack(batch)) for batch in tens], bits, PACKED),
        (
            "BLOOM.PCHECK x 10,000",
            [command("BLOOM.PCHECK", "c", pack(batch)) for batch in tens],
            bits,
            PACKED,
        ),
    ]


def rate(connection: socket.socket, batches: list[bytes], answered: int, items: int) -> float:
    """Items per second: one thread sends batches in turn, another takes answers of so many bytes to each."""
    sent, ended = [0], threading.Event()

    def send() -> None:
        while not ended.is_set():
            sent[0] += 1
            connection.sendall(batches[sent[0] % len(batches)])

    sender = threading.Thread(target=send)
    begun = time.perf_counter()
    sender.start()
    taken = 0
    while time.perf_counter() - begun < SECONDS:
        receive(connection, answered)
        taken += 1
    spent = time.perf_counter() - begun
    ended.set()
    # The sender may wait for its answers to be taken.
    received = taken
    while sender.is_alive() or received < sent[0]:
        if received < sent[0]:
            receive(connection, answered)
            received += 1
        else:
            sender.join(0.01)
    return taken * items / spent


@contextlib.contextmanager
def yardstick() -> Iterator[socket.socket | None]:
    """A connection to `redis-server`; none where it is not installed."""
    program = shutil.which("redis-server")
    if program is None:
        yield None
        return
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [program, "--port", str(port), "--save", "", "--appendonly", "no"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    try:
        for _ in range(200):
            with contextlib.suppress(ConnectionRefusedError):
                yield socket.create_connection(("127.0.0.1", port))
                return
            time.sleep(0.02)
    finally:
        process.terminate()
        process.wait()


def run(folder: Path) -> str:
    """Millions per second, case by case."""
    lines = []
    with yardstick() as other:
        if other is not None:
            lines.append(f"PING of redis-server {rate(other, *cases()[0][1:]) / 1e6:.2f}")
    with running(folder, "--durability", "everysec") as service:
        connection = service.connect()
        for name in "abc":
            ask(connection, "BF.RESERVE", name, "0.01", str(CAPACITY))
        for name, batches, answered, items in cases():
            lines.append(f"{name} {rate(connection, batches, answered, items) / 1e6:.2f}")
    return ", ".join(lines) + " M/s"
