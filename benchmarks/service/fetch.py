"""Single commands while twelve clients fetch a filter of 240 MB and one of 480 MB is merged into another.

A process of its own sends a command of each kind every millisecond, and a PING to an idle `redis-server`,
where one is installed, as the control of how busy the machine is; another thread of it asks HTTP for
`/metrics`, and adds to another filter, while 64 clients add to the merged filter over HTTP.
`DURATION=120 python -m benchmarks.service fetch` measures for longer; `KIND=counting` takes filters of that
kind, of 240 MB each, whose additions wait for copies and merges.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import multiprocessing
import os
import threading
import time
from typing import TYPE_CHECKING

from benchmarks.service.process import Running, ask, command, keys, quantile, running
from benchmarks.service.resp import yardstick

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from multiprocessing.synchronize import Event
    from pathlib import Path

READERS = int(os.environ.get("READERS", "12"))
DURATION = float(os.environ.get("DURATION", "30"))
KIND = os.environ.get("KIND", "bloom")
#: Keys at 1 %: 240 and 480 MB of kind bloom, with 10.1 bits each; 240 MB of others.
CAPACITIES = {
    "bloom": {"fetched": 190_000_000, "into": 380_000_000, "from": 380_000_000},
    "counting": {"fetched": 47_000_000, "into": 47_000_000, "from": 47_000_000},
    "cuckoo": {"fetched": 160_000_000, "into": 160_000_000, "from": 160_000_000},
}
#: Requests to the HTTP port that are timed.
REQUESTS = {
    "GET /metrics": ("GET", "/metrics", None),
    "POST add to another filter": ("POST", "/v1/filters/other/add", '{"key": %d}'),
}
#: Clients that add to the merged filter over HTTP.
ADDERS = 64
PERIOD = 0.001


def run(folder: Path) -> str:
    """The latencies, idle and under load."""
    with yardstick() as redis, running(folder) as service:
        connection = service.connect()
        for name, capacity in {**CAPACITIES[KIND], "other": 1_000_000}.items():
            ask(connection, "BLOOM.CREATE", name, "KIND", KIND, "SEED", "5", "capacity", str(capacity))
            for start in range(0, 200_000, 10_000):
                ask(connection, "BF.MADD", name, *keys(10_000, start))
        control = redis.getpeername()[1] if redis is not None else None
        idle = measured(service, control, 5.0, contextlib.nullcontext)
        load = Load(service)
        busy = measured(service, control, DURATION, lambda: load)
    if load.refused:
        raise SystemExit(f"the merge was refused: {load.refused}")
    lines = [f"{READERS} readers took {load.taken / 1e9:.1f} GB, {len(load.merges)} merges of"]
    lines[0] += f" {', '.join(f'{seconds:.1f}' for seconds in load.merges)} s, in {DURATION:.0f} s"
    for name, times in busy.items():
        lines.append(f"  {name:26s}{format_quantiles(times)}   idle {format_quantiles(idle[name])}")
    return "\n".join(lines)


def format_quantiles(times: list[float]) -> str:
    """Quantiles in milliseconds, and how many times there are."""
    if not times:
        return "no answer until the end"
    p50, p99, most = (1e3 * time for time in (quantile(times, 0.5), quantile(times, 0.99), max(times)))
    return f"p50 {p50:7.2f}  p99 {p99:7.2f}  max {most:8.2f} ms ({len(times):,})"


class Load:
    """The readers and the merges, which have begun when the `with` block is entered and end with it."""

    def __init__(self, service: Running) -> None:
        self._service, self.taken, self.merges, self.refused = service, 0, list[float](), list[bytes]()
        self._end, self._taken = multiprocessing.Event(), multiprocessing.Queue()

    def __enter__(self) -> None:
        address = self._service.addresses["http"]
        self._reader = multiprocessing.Process(target=read, args=(address, self._end, self._taken))
        self._merger = threading.Thread(target=self._merge)
        self._adders = multiprocessing.Process(target=add, args=(address, self._end))
        self._reader.start()
        self._adders.start()
        self._merger.start()
        time.sleep(1.0)

    def _merge(self) -> None:
        connection = self._service.connect()
        while not self._end.is_set():
            begun = time.perf_counter()
            connection.sendall(command("BLOOM.MERGE", "into", "from"))
            answer = connection.recv(1000)
            if b"copies of one key" in answer:  # a cuckoo filter stores each key once for each merge
                ask(connection, "BLOOM.CLEAR", "into")
            elif answer != b"+OK\r\n":
                self.refused.append(answer)
                return
            self.merges.append(time.perf_counter() - begun)

    def __exit__(self, *_error: object) -> None:
        self._end.set()
        self.taken = self._taken.get()
        self._reader.join()
        self._adders.join()
        self._merger.join()


def read(address: str, end: Event, taken: multiprocessing.Queue[int]) -> None:
    """Fetches one filter on each of several threads until the end: the bytes that came."""
    counts = [0] * READERS

    def one(at: int) -> None:
        buffer = bytearray(1 << 18)
        while not end.is_set():
            connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=600)
            connection.request("GET", "/v1/filters/fetched/dump")
            answer = connection.getresponse()
            if answer.status == 503:
                time.sleep(0.5)
            while (more := answer.readinto(buffer)) and not end.is_set():
                counts[at] += more
            connection.close()

    threads = [threading.Thread(target=one, args=(at,)) for at in range(READERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    taken.put(sum(counts))


def add(address: str, end: Event) -> None:
    """Adds to the merged filter on many threads until the end."""

    def one(at: int) -> None:
        connection, number = http.client.HTTPConnection(address.removeprefix("http://"), timeout=600), 0
        while not end.is_set():
            number += 1
            connection.request("POST", "/v1/filters/into/add", json.dumps({"key": [at, number]}))
            answer = connection.getresponse()
            answer.read()
            # The service closes the connection with a refusal; 64 clients need not add more than this.
            time.sleep(0.5 if answer.status == 503 else 0.1)

    threads = [threading.Thread(target=one, args=(at,)) for at in range(ADDERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def measured(
    service: Running,
    control: int | None,
    seconds: float,
    load: Callable[[], contextlib.AbstractContextManager[None]],
) -> dict[str, list[float]]:
    """Latencies by name, taken by another process."""
    with load():
        results: multiprocessing.Queue[str] = multiprocessing.Queue()
        words = (service.addresses, control, seconds, results)
        asks = multiprocessing.Process(target=_ask, args=words)
        asks.start()
        times: dict[str, list[float]] = json.loads(results.get())
        asks.join()
    return times


def _ask(
    addresses: dict[str, str], control: int | None, seconds: float, results: multiprocessing.Queue[str]
) -> None:
    import socket  # the process has it alone

    def connect(address: tuple[str, int]) -> socket.socket:
        connection = socket.create_connection(address, timeout=600)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    host, _, port = addresses["resp"].rpartition(":")
    cases = {"PING": b"PING\r\n"}
    titles = {"other": "another filter", "fetched": "the fetched filter", "into": "the merged filter"}
    cases |= {f"ADD to {title}": name.encode() for name, title in titles.items()}
    connections = {name: connect((host, int(port))) for name in cases}
    if control is not None:
        cases["PING of redis-server"] = b"PING\r\n"
        connections["PING of redis-server"] = connect(("127.0.0.1", control))
    times: dict[str, list[float]] = {name: [] for name in cases}
    end = time.perf_counter() + seconds

    def one(name: str) -> None:
        case, connection, number = cases[name], connections[name], 0
        while (begun := time.perf_counter()) < end:
            number += 1
            sent = case if case.endswith(b"\n") else command("BF.ADD", case, b"%f %d" % (end, number))
            connection.sendall(sent)
            if connection.recv(1000)[:1] == b"-":
                raise SystemExit(f"{name} was refused")
            now = time.perf_counter()
            times[name].append(now - begun)
            time.sleep(max(0.0, begun + PERIOD - now))

    times |= {name: [] for name in REQUESTS}
    threads = [threading.Thread(target=one, args=(name,)) for name in cases]
    web = addresses["http"].removeprefix("http://")
    threads += [threading.Thread(target=_request, args=(web, name, end, times)) for name in REQUESTS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results.put(json.dumps(times))


def _request(address: str, name: str, end: float, times: dict[str, list[float]]) -> None:
    """Times one request over and over."""
    connection = http.client.HTTPConnection(address, timeout=600)
    while (begun := time.perf_counter()) < end:
        method, path, body = REQUESTS[name]
        # Some kinds refuse many copies of one key.
        connection.request(method, path, body and body % len(times[name]))
        answer = connection.getresponse()
        answer.read()
        if answer.status != http.HTTPStatus.OK:
            raise SystemExit(f"{name} was refused: {answer.status}")
        times[name].append(time.perf_counter() - begun)
        time.sleep(10 * PERIOD)
