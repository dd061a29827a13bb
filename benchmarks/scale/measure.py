"""One measurement per function, each in a process of its own: see `benchmarks.scale.__main__`.

All work runs on one thread, and its time is that of the processor: on a quiet machine the same as elapsed
time, on a shared one without the waits for others. Keys are whole numbers in chunks of at most 4M, so that
the memory of a run is that of the filter; making the chunks is outside of the clock.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from fullbloom import BloomFilter, hash_many
from fullbloom.compose import RatelessDecoder, RatelessEncoder
from fullbloom.engines import hash_sets
from fullbloom.engines.kinds import create_mergeable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FPR = 0.01
CHUNK = 1 << 22
#: Lookups of one run, half of them for absent keys, and accesses of one run of a probe.
LOOKUPS, ACCESSES = 1 << 24, 1 << 22
#: Runs of a measurement, whose mean or median counts; fewer builds of a filter of this size, which take long.
RUNS, LONG, LONG_RUNS = 5, 200_000_000, 3
ABSENT = 1 << 40
#: Chunks of keys between two probes of a build.
PROBED = 8
#: Values of digits per row in the rounds of `fullbloom.engines.spark.find_duplicates`.
SPREADS = [hash_sets.SPREAD, hash_sets.LATER_SPREAD]
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


class Probe:
    """An array of so many bytes, accessed at random or in order: the cost of the memory without a filter."""

    def __init__(self, size: int) -> None:
        words = np.ones(max(8, size // 8), np.uint64)
        # Single bytes, so that what is read takes as little of the caches as the results of lookups.
        self._bytes = words.view(np.uint8)
        self._merged = words[: STREAMED // 8]
        self._other = self._merged.copy()
        self._draw = np.random.default_rng(size)
        self._seconds: dict[str, list[float]] = {"read": [], "write": [], "stream": []}

    def read(self) -> None:
        """Time random reads."""
        places = self._draw_places()
        self._seconds["read"].append(time_call(lambda: self._bytes.take(places)))

    def write(self) -> None:
        """Time random writes."""
        places = self._draw_places()
        self._seconds["write"].append(time_call(lambda: self._bytes.__setitem__(places, 2)))

    def stream(self) -> None:
        """Time a merge of the array, or of its beginning, with another."""
        merged, other = self._merged, self._other
        self._seconds["stream"].append(time_call(lambda: np.bitwise_or(merged, other, out=merged)))

    def describe(self) -> dict[str, float]:
        """Means: nanoseconds of an access, and of a byte of a merge."""
        mean = {name: statistics.fmean(times) * 1e9 for name, times in self._seconds.items()}
        return {
            "read_ns": mean["read"] / ACCESSES,
            "write_ns": mean["write"] / ACCESSES,
            "stream_ns": mean["stream"] / self._merged.nbytes,
        }

    def _draw_places(self) -> Any:
        # New ones each time: caches keep what the run before has touched, all of it on some machines.
        return self._draw.integers(0, len(self._bytes), ACCESSES)


def add_all(into: BloomFilter, count: int, probe: Probe | None = None) -> float:
    """Seconds to add the first whole numbers; the probe writes now and then."""
    spent = 0.0
    for number, keys in enumerate(iter_keys(0, count)):
        if probe is not None and number % PROBED == 0:
            probe.write()
        spent += time_call(lambda keys=keys: into.update(keys))
    return spent


def look_up(known: BloomFilter, count: int, probe: Probe) -> tuple[float, float]:
    """Nanoseconds per lookup of present and absent keys by turns, and the share of false positives."""
    draw, spent, found = np.random.default_rng(count), [], 0
    for start in range(0, RUNS * LOOKUPS, CHUNK):
        keys = np.arange(ABSENT + start, ABSENT + start + CHUNK, dtype=np.uint64)
        keys[::2] = draw.integers(0, count, CHUNK // 2, dtype=np.uint64)
        probe.read()
        begun = time.process_time()
        result = known.contains_many(keys)
        spent.append(time.process_time() - begun)
        assert result[::2].all()
        found += int(result[1::2].sum())
    return statistics.fmean(spent) * 1e9 / CHUNK, found / (RUNS * LOOKUPS // 2)


def measure_filter(count: int) -> dict[str, Any]:
    """A filter of ``count`` keys: build, lookups, bytes, container and merge.

    A probe of as many bytes runs by turns with each, in the same process, and means of both count: the speed
    of the memory of a shared machine changes by half within a minute.
    """
    builds, merges = [], []
    elapsed = time.perf_counter()
    known = BloomFilter(count, FPR)
    probe = Probe(known.nbytes)
    for _ in range(LONG_RUNS if count >= LONG else RUNS):
        # In the memory of the one before: a virtual machine takes 2 s for a GB that it has not used yet.
        del known
        known = BloomFilter(count, FPR)
        builds.append(add_all(known, count, probe))
    query_ns, false_positives = look_up(known, count, probe)
    other = known.copy()
    for _ in range(RUNS):
        probe.stream()
        merges.append(time_call(lambda: known.merge(other)))
    container = len(known.to_bytes())
    return {
        "keys": count,
        "build_seconds": statistics.fmean(builds),
        "query_ns": query_ns,
        "false_positives": false_positives,
        "filter_bytes": known.nbytes,
        "container_bytes": container,
        "merge_seconds": statistics.fmean(merges),
        **probe.describe(),
        "elapsed_seconds": time.perf_counter() - elapsed,
    }


def measure_shard(count: int) -> float:
    """Seconds to add so many keys, as the work of one core among others."""
    return add_all(BloomFilter(count, FPR), count)


def iter_hashes(rows: int) -> Iterator[Any]:
    """The hashes of all rows, of which one in a hundred has the key of another."""
    distinct = np.uint64(round(rows * DISTINCT))
    for keys in iter_keys(0, rows):
        yield hash_many(keys % distinct)


def measure_shuffle(rows: int) -> dict[str, Any]:
    """What finding duplicates sends: digits to owners, and the repeated ones back, in both rounds."""
    rounds: list[dict[str, Any]] = []
    known: list[tuple[Any, int, int]] = []  # the filter of each round, and its digits of a hash

    def iter_candidates() -> Iterator[Any]:
        for hashes in iter_hashes(rows):
            left = hashes
            for one, shift, bits in known:
                left = left[one.contains_many(hash_sets.take_digits(left, bits, shift))]
            yield left

    expected, shift = rows, 0
    for spread in SPREADS:
        shape = hash_sets.choose_shape(expected, spread)
        found = exchange(iter_candidates(), expected, shift, shape)
        digits = found.pop("digits")
        one = create_mergeable("spark", max(1, len(digits)), hash_sets.REPEATED_FPR)
        one.update(digits)
        known.append((one, shift, shape.bits))
        rounds.append(found | {"filter_bytes": one.nbytes})
        expected, shift = max(2 * len(digits), 1), shift + shape.bits
    return {"rows": rows, "rounds": rounds}


def exchange(hashes: Iterator[Any], expected: int, shift: int, shape: hash_sets.Shape) -> dict[str, Any]:
    """One round: digits go to their owners, and the repeated ones come back."""
    bits, owner_bits = shape
    senders = max(1, -(-expected // hash_sets.ROWS_PER_SET))
    inbox: list[list[tuple[bytes, bytes]]] = [[] for _ in range(1 << owner_bits)]
    cost: dict[str, Any] = {"packets": 0, "sent_bytes": 0, "send_seconds": 0.0}

    def send(collector: Any) -> None:
        begun = time.process_time()
        for owner, once, again in collector.split(owner_bits):
            inbox[owner].append((once, again))
            cost["sent_bytes"] += len(once) + len(again)
            cost["packets"] += 1
        cost["send_seconds"] += time.process_time() - begun

    collector, collected, rows = hash_sets.Collector(bits=bits, shift=shift), 0, 0
    for part in hashes:
        for begin in range(0, len(part), CHUNK):
            chunk = part[begin : begin + CHUNK]
            cost["send_seconds"] += time_call(lambda into=collector, chunk=chunk: into.add(chunk))
            collected, rows = collected + len(chunk), rows + len(chunk)
            if collected >= hash_sets.ROWS_PER_SET:
                send(collector)
                collector, collected = hash_sets.Collector(bits=bits, shift=shift), 0
    send(collector)
    answers, answered, owning = [], 0, 0.0
    for owner, parts in enumerate(inbox):
        begun = time.process_time()
        answer = hash_sets.find_repeated(parts, bits - owner_bits)
        owning += time.process_time() - begun
        parts.clear()
        answers.append((owner, answer))
        answered += len(answer)
    digits = hash_sets.join(answers, bits, owner_bits)
    return {
        "rows": rows,
        **shape._asdict(),
        "senders": senders,
        **cost,
        "answered_bytes": answered,
        "answer_seconds": owning,
        "repeated_digits": len(digits),
        "digits": digits,
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
    """The memory at sizes of which no filter is built."""
    result = []
    for size in sizes:
        one = Probe(size)
        for _ in range(RUNS):
            one.read()
            one.write()
            one.stream()
        result.append({"bytes": size, **one.describe()})
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
    """One sender and one owner of a cluster that finds duplicates, with their share of each round's work.

    The other senders are drawn at random: hashes are uniform, so one packet is like another. What the owner
    finds gives the rows of the second round.
    """
    rounds, expected, pairs = [], rows, round(rows * (1 - DISTINCT))
    for spread in SPREADS:
        simulated = simulate_round(expected, spread, pairs)
        rounds.append(simulated)
        expected = max(2 * simulated["repeated_digits"], 1)
    return {"rows": rows, "rounds": rounds}


def simulate_round(rows: int, spread: int, pairs: int) -> dict[str, Any]:
    """One round of so many rows, among which are so many pairs with one key."""
    bits, owner_bits = shape = hash_sets.choose_shape(rows, spread)
    senders = max(1, -(-rows // hash_sets.ROWS_PER_SET))
    collector = hash_sets.Collector(bits=bits)
    sending = 0.0
    for keys in iter_keys(0, min(rows, hash_sets.ROWS_PER_SET)):
        hashes = hash_many(keys)
        sending += time_call(lambda hashes=hashes: collector.add(hashes))
    begun = time.process_time()
    packets = list(collector.split(owner_bits))
    sending += time.process_time() - begun
    rest, draw, parts = bits - owner_bits, np.random.default_rng(rows), []
    packet = rows / senders / (1 << owner_bits)
    pool = draw.integers(0, 1 << rest, pairs >> owner_bits, dtype=np.uint64)
    twice = draw.permutation(np.concatenate([pool, pool]))
    shared = np.array_split(twice, senders)
    for sender in range(senders):
        count = max(0, draw.poisson(packet) - len(shared[sender]))
        digits = np.concatenate([shared[sender], draw.integers(0, 1 << rest, count, dtype=np.uint64)])
        one = hash_sets.Collector(bits=rest)
        one.add(digits << np.uint64(64 - rest))
        parts += [(once, again) for _, once, again in one.split()]
    received = sum(len(once) for once, _ in parts)
    found: list[bytes] = []
    answering = time_call(lambda: found.append(hash_sets.find_repeated(parts, rest)))
    return {
        "rows": rows,
        **shape._asdict(),
        "senders": senders,
        "sender_bytes": sum(len(once) + len(again) for _, once, again in packets),
        "sender_seconds": sending,
        "owner_bytes": received,
        "owner_seconds": answering,
        "repeated_digits": hash_sets.read_size(found[0]) << owner_bits,
    }
