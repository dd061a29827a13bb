"""One measurement per function, each in a process of its own: see `benchmarks.scale.__main__`.

All work runs on one thread, and its time is that of the processor: on a quiet machine the same as elapsed
time, on a shared one without the waits for others. Keys are whole numbers in chunks of at most 4M, so that
the memory of a run is that of the filter; making the chunks is outside of the clock.
"""

from __future__ import annotations

import math
import statistics
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from fullbloom import BloomFilter, hash_many
from fullbloom.compose import RatelessDecoder, RatelessEncoder
from fullbloom.engines import hash_sets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FPR = 0.01
CHUNK = 1 << 22
#: Lookups of one run, half of them for absent keys, and accesses of one run of a probe.
LOOKUPS, ACCESSES = 1 << 24, 1 << 22
#: Runs of a measurement, whose median counts; one build of a filter beyond the size, because it takes long.
RUNS, LONG = 5, 200_000_000
ABSENT = 1 << 40
#: Rows of one sender, rows of one owner, and digits per row, as in `fullbloom.engines.spark.duplicates`.
SENDER_ROWS, OWNER_ROWS, MOST_OWNERS, SPREAD = 1 << 24, 1 << 22, 1 << 10, 32
#: One row in a hundred has the key of another.
DISTINCT = 0.99
#: Bytes of an array that a probe merges at most: from there on, its speed is that of the memory.
STREAMED = 2_000_000_000
#: Machines among which keys are routed.
ROUTES = 64
#: Keys that differ in a sync, half on each side.
DIFFERENT = 1000


def iter_keys(start: int, stop: int, chunk: int = CHUNK) -> Iterator[Any]:
    """Whole numbers, chunk by chunk."""
    for begin in range(start, stop, chunk):
        yield np.arange(begin, min(begin + chunk, stop), dtype=np.uint64)


def time_call(call: Callable[[], Any]) -> float:
    """Seconds of one call; its result is freed outside of the clock."""
    begun = time.process_time()
    result = call()
    spent = time.process_time() - begun
    del result
    return spent


def add_all(into: BloomFilter, count: int) -> float:
    """Seconds to add the first whole numbers."""
    return sum(time_call(lambda keys=keys: into.update(keys)) for keys in iter_keys(0, count))


def look_up(known: BloomFilter, count: int) -> tuple[float, int]:
    """Nanoseconds per lookup, and the false positives; present and absent keys by turns."""
    draw, spent, found = np.random.default_rng(count), 0.0, 0
    for start in range(0, LOOKUPS, CHUNK):
        keys = np.arange(ABSENT + start, ABSENT + start + CHUNK, dtype=np.uint64)
        keys[::2] = draw.integers(0, count, CHUNK // 2, dtype=np.uint64)
        begun = time.process_time()
        result = known.contains_many(keys)
        spent += time.process_time() - begun
        assert result[::2].all()
        found += int(result[1::2].sum())
    return spent * 1e9 / LOOKUPS, found


def measure_filter(count: int) -> dict[str, Any]:
    """A filter of ``count`` keys: build, lookups, bytes, container and merge."""
    builds, lookups = [], []
    elapsed = time.perf_counter()
    for _ in range(1 if count >= LONG else RUNS):
        known = BloomFilter(count, FPR)
        builds.append(add_all(known, count))
    for _ in range(RUNS):
        ns, wrong = look_up(known, count)
        lookups.append(ns)
    other = known.copy()
    merges = [time_call(lambda: known.merge(other)) for _ in range(RUNS)]
    container = len(known.to_bytes())
    return {
        "keys": count,
        "build_seconds": statistics.median(builds),
        "query_ns": statistics.median(lookups),
        "false_positives": wrong / (LOOKUPS // 2),
        "filter_bytes": known.nbytes,
        "container_bytes": container,
        "merge_seconds": statistics.median(merges),
        "elapsed_seconds": time.perf_counter() - elapsed,
    }


def measure_shard(count: int) -> float:
    """Seconds to add so many keys, as the work of one core among others."""
    return add_all(BloomFilter(count, FPR), count)


def measure_shuffle(rows: int) -> dict[str, Any]:
    """What finding duplicates sends in its first round: digits to owners, and the repeated ones back."""
    shape = find_shape(rows)
    bits, owner_bits = shape["bits"], shape["owner_bits"]
    inbox: list[list[tuple[bytes, bytes]]] = [[] for _ in range(1 << owner_bits)]
    distinct, sent, packets, spent = round(rows * DISTINCT), 0, 0, 0.0
    for start in range(0, rows, SENDER_ROWS):
        collector, stop = hash_sets.Collector(bits=bits), min(start + SENDER_ROWS, rows)
        for keys in iter_keys(start, stop):
            hashes = hash_many(keys % np.uint64(distinct))
            spent += time_call(lambda into=collector, hashes=hashes: into.add(hashes))
        begun = time.process_time()
        for owner, once, again in collector.split(owner_bits):
            inbox[owner].append((once, again))
            sent, packets = sent + len(once) + len(again), packets + 1
        spent += time.process_time() - begun
    answered, candidates, owning = 0, 0, 0.0
    for parts in inbox:
        begun = time.process_time()
        answer = hash_sets.find_repeated(parts, bits - owner_bits)
        owning += time.process_time() - begun
        parts.clear()
        answered, candidates = answered + len(answer), candidates + len(hash_sets.decode(answer))
    return {
        "rows": rows,
        **shape,
        "packets": packets,
        "sent_bytes": sent,
        "answered_bytes": answered,
        "repeated_digits": candidates,
        "send_seconds": spent,
        "answer_seconds": owning,
    }


def measure_sync(count: int) -> dict[str, Any]:
    """What two machines send to find the keys that one of them lacks, half of these on each side."""
    half = DIFFERENT // 2
    here, there = RatelessDecoder(np.arange(half, count + half)), RatelessEncoder(np.arange(count))
    sent = 0
    while True:
        symbols = there.produce(64)
        sent += len(symbols)
        if here.feed(symbols):
            break
    mine, theirs, complete = here.decoded()
    assert complete
    assert len(mine) == len(theirs) == half
    return {"keys": count, "sync_bytes": sent}


def probe(sizes: list[int]) -> list[dict[str, float]]:
    """Nanoseconds of a random access to so many bytes, and of a byte of a merge, without a filter."""
    result = []
    for size in sizes:
        words = np.ones(max(8, size // 8), np.uint64)
        places = np.random.default_rng(size).integers(0, len(words), ACCESSES)
        reads = [time_call(lambda w=words, p=places: w.take(p)) for _ in range(RUNS)]
        writes = [time_call(lambda w=words, p=places: w.__setitem__(p, 2)) for _ in range(RUNS)]
        merged = words[: STREAMED // 8]
        other = merged.copy()
        streams = [time_call(lambda w=merged, o=other: np.bitwise_or(w, o, out=w)) for _ in range(RUNS)]
        result.append(
            {
                "bytes": size,
                "read_ns": statistics.median(reads) * 1e9 / len(places),
                "write_ns": statistics.median(writes) * 1e9 / len(places),
                "stream_ns": statistics.median(streams) * 1e9 / merged.nbytes,
            }
        )
    return result


def measure_route() -> dict[str, float]:
    """Nanoseconds per key to hash a batch and order the hashes by the machine that owns them."""
    spent = []
    for start in range(RUNS):
        keys = np.arange(start * CHUNK, (start + 1) * CHUNK, dtype=np.uint64)

        def route(keys: Any = keys) -> Any:
            hashes = hash_many(keys)
            owners = (hashes >> np.uint64(64 - ROUTES.bit_length() + 1)).astype(np.uint8)
            return hashes[np.argsort(owners, kind="stable")]

        spent.append(time_call(route))
    return {"machines": ROUTES, "ns": statistics.median(spent) * 1e9 / CHUNK}


def simulate_shuffle(rows: int) -> dict[str, Any]:
    """One sender and one owner of a cluster that finds duplicates, with their share of the work.

    The other senders are drawn at random: hashes are uniform, so one packet is like another.
    """
    shape = find_shape(rows)
    collector = hash_sets.Collector(bits=shape["bits"])
    count = min(rows, SENDER_ROWS)
    sending = 0.0
    for keys in iter_keys(0, count):
        hashes = hash_many(keys)
        sending += time_call(lambda hashes=hashes: collector.add(hashes))
    begun = time.process_time()
    packets = list(collector.split(shape["owner_bits"]))
    sending += time.process_time() - begun
    rest, draw, parts = shape["bits"] - shape["owner_bits"], np.random.default_rng(rows), []
    packet = rows / shape["senders"] / (1 << shape["owner_bits"])
    pool = draw.integers(0, 1 << rest, 1 << 16, dtype=np.uint64)  # what several senders have
    for _ in range(shape["senders"]):
        digits = draw.integers(0, 1 << rest, draw.poisson(packet), dtype=np.uint64)
        shared = round(len(digits) * (1 - DISTINCT))
        digits[:shared] = pool[draw.integers(0, len(pool), shared)]
        one = hash_sets.Collector(bits=rest)
        one.add(digits << np.uint64(64 - rest))
        parts += [(once, again) for _, once, again in one.split()]
    received = sum(len(once) for once, _ in parts)
    answering = time_call(lambda: hash_sets.find_repeated(parts, rest))
    return {
        "rows": rows,
        **shape,
        "sender_bytes": sum(len(once) + len(again) for _, once, again in packets),
        "sender_seconds": sending,
        "owner_bytes": received,
        "owner_seconds": answering,
    }


def find_shape(rows: int) -> dict[str, int]:
    """The digits, senders and owners of a cluster, chosen as by `engines.spark.find_duplicates`."""
    owners = min(MOST_OWNERS, max(1, -(-rows // OWNER_ROWS)))
    return {
        "bits": max(8, math.ceil(math.log2(SPREAD * rows))),
        "senders": -(-rows // SENDER_ROWS),
        "owner_bits": (owners - 1).bit_length(),
    }
