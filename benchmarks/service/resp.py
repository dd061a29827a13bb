"""Keys and commands a second over RESP, from one connection that sends what was written down beforehand.

    python benchmarks/service/resp.py HOST:PORT [SECONDS]

Prints a line a case. `ping` is the yardstick: what parsing and answering alone cost. Filters `bench-*` are made and
dropped.
"""

from __future__ import annotations

import random
import socket
import sys
import threading
import time

CAPACITY = 1_000_000
BATCHES = 40


def command(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def keys(number: int) -> list[bytes]:
    """So many keys of 16 bytes."""
    draw = random.Random(number)
    return [b"%016x" % draw.getrandbits(64) for _ in range(number)]


def packed(batch: list[bytes]) -> bytes:
    return b"".join(len(key).to_bytes(4, "little") + key for key in batch)


class Connection:
    def __init__(self, host: str, port: int) -> None:
        self.socket = socket.create_connection((host, port))
        self.buffer = bytearray(1 << 20)

    def ask(self, sent: bytes) -> bytes:
        """One command with a short answer."""
        self.socket.sendall(sent)
        return self.socket.recv(1 << 16)

    def take(self, length: int) -> None:
        while length:
            length -= self.socket.recv_into(self.buffer, min(length, len(self.buffer)))

    def rate(self, batches: list[bytes], answered: int, items: int, seconds: float) -> float:
        """Items a second: one thread sends batches in turn, another takes answers of so many bytes to each."""
        sent, ended = [0], threading.Event()

        def send() -> None:
            while not ended.is_set():
                self.socket.sendall(batches[sent[0] % len(batches)])
                sent[0] += 1

        sender = threading.Thread(target=send)
        begun = time.perf_counter()
        sender.start()
        taken = 0
        while time.perf_counter() - begun < seconds:
            self.take(answered)
            taken += 1
        rate = taken * items
        spent = time.perf_counter() - begun
        ended.set()
        self.socket.settimeout(0.2)
        while sender.is_alive() or taken < sent[0]:
            try:
                self.take(answered)
                taken += 1
            except TimeoutError:
                sender.join(0.1)
        self.socket.settimeout(None)
        return rate / spent


def cases() -> list[tuple[str, list[bytes], int, int]]:
    """Name, batches, bytes of the answer to one, items of one."""
    every = keys(BATCHES * 10_000)
    tens = [every[i : i + 10_000] for i in range(0, len(every), 10_000)]
    ones = [every[i : i + 1000] for i in range(0, 100_000, 1000)]

    def each(*words: bytes) -> list[bytes]:
        return [b"".join(command(*words, key) for key in batch) for batch in ones]

    def many(*words: bytes) -> list[bytes]:
        return [command(*words, *batch) for batch in ones]

    def whole(*words: bytes) -> list[bytes]:
        return [command(*words, packed(batch)) for batch in tens]

    bits = len(b"$1250\r\n\r\n") + 1250
    return [
        ("ping, pipelined", [command(b"PING") * 1000], 7000, 1000),
        ("BF.ADD, pipelined", each(b"BF.ADD", b"bench-a"), 4000, 1000),
        ("BF.EXISTS, pipelined", each(b"BF.EXISTS", b"bench-a"), 4000, 1000),
        ("BF.MADD x 1000", many(b"BF.MADD", b"bench-b"), 4007, 1000),
        ("BF.MEXISTS x 1000", many(b"BF.MEXISTS", b"bench-b"), 4007, 1000),
        ("BLOOM.PADD x 10,000", whole(b"BLOOM.PADD", b"bench-c"), bits, 10_000),
        ("BLOOM.PCHECK x 10,000", whole(b"BLOOM.PCHECK", b"bench-c"), bits, 10_000),
    ]


def main() -> None:
    host, _, port = sys.argv[1].rpartition(":")
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 2.0
    connection = Connection(host, int(port))
    names = [b"bench-a", b"bench-b", b"bench-c"]
    connection.ask(command(b"DEL", *names))
    for name in names:
        connection.ask(command(b"BF.RESERVE", name, b"0.01", b"%d" % CAPACITY))
    for name, batches, answered, items in cases():
        print(f"{name:24} {connection.rate(batches, answered, items, seconds) / 1e6:8.2f} M/s", flush=True)
    connection.ask(command(b"DEL", *names))


if __name__ == "__main__":
    main()
