"""The attacks, one function each: what chosen keys do to a filter, and to one with a secret.

Each figure is measured for three filters: one with random keys, one with the public hash and the chosen keys,
and one with a secret and the same chosen keys.
"""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import fullbloom
from benchmarks.attacks import search

if TYPE_CHECKING:
    from collections.abc import Callable

SECRET = b"not for strangers"[:16]
ABSENT = np.arange(1 << 60, (1 << 60) + 200_000)


class Row(NamedTuple):
    """A line of the table."""

    attack: str
    measured: str
    chance: str
    public: str
    secret: str
    effort: str


def random_keys(count: int, seed: int = 1) -> Any:
    """Keys that nobody chose."""
    return np.random.default_rng(seed).integers(1 << 50, 1 << 59, count)


def offer(instance: Any, keys: Any) -> int:
    """Adds keys one by one; how many were refused."""
    refused = 0
    for key in keys.tolist():
        try:
            instance.add(key)
        except fullbloom.FilterFull:
            refused += 1
    return refused


def three(make: Callable[..., Any], keys: Any, measure: Callable[[Any], str]) -> tuple[str, str, str]:
    """The figure after random keys, after chosen ones, and after these with a secret."""
    plans = (({}, random_keys(len(keys))), ({}, keys), ({"secret": SECRET}, keys))
    result = []
    for options, given in plans:
        instance = make(**options)
        offer(instance, given)
        result.append(measure(instance))
    return result[0], result[1], result[2]


def effort(found: search.Found) -> str:
    """Keys used, and hashes computed to find them."""
    return f"{len(found.keys):,} keys of {found.tried / 1e6:.1f} million"


def rate(instance: Any) -> str:
    """Share of absent keys found."""
    return f"{100 * float(np.mean(instance.contains_many(ABSENT))):.2f} %"


def pollution() -> Row:
    """Keys that set as many bits as they can."""

    def make(**options: Any) -> Any:
        return fullbloom.BloomFilter(10_000, 0.01, layout="classic", **options)

    like = make()
    found = search.polluting(like.num_bits, like.num_hashes, 10_000)
    result = three(make, found.keys, rate)
    return Row(
        "pollution: keys that set the most bits", "false positives of a 1 % filter", *result, effort(found)
    )


def target() -> Row:
    """Keys that cover the bits of one that was never added."""

    def make(**options: Any) -> Any:
        return fullbloom.BloomFilter(10_000, 0.01, layout="classic", **options)

    like, victims = make(), random_keys(100, seed=2)
    crowds = [search.covering(like.num_bits, like.num_hashes, int(victim)) for victim in victims]
    result = []
    for options, chosen in (({}, False), ({}, True), ({"secret": SECRET}, True)):
        hits = 0
        for at, (victim, crowd) in enumerate(zip(victims, crowds, strict=True)):
            instance = make(**options)
            instance.update(crowd.keys if chosen else random_keys(len(crowd.keys), seed=3 + at))
            hits += int(victim) in instance
        result.append(f"{hits} of 100")
    mean = sum(len(crowd.keys) for crowd in crowds) / 100
    tried = sum(crowd.tried for crowd in crowds) / 100
    return Row(
        "a victim's line: keys that cover its bits",
        "victims treated as duplicates (`dedup` drops them)",
        *result,
        f"{mean:.1f} keys of {tried / 1e6:.1f} million",
    )


def offline() -> Row:
    """False positives that an attacker who knows the keys finds without querying the filter."""
    members = np.arange(10_000)
    twin = fullbloom.BloomFilter(10_000, 0.01)
    twin.update(members)
    candidates = np.arange(1 << 40, (1 << 40) + 200_000)
    wrong = candidates[np.asarray(twin.contains_many(candidates))][:1000]
    result = []
    for options, asked in (({}, random_keys(1000)), ({}, wrong), ({"secret": SECRET}, wrong)):
        instance = fullbloom.BloomFilter(10_000, 0.01, **options)
        instance.update(members)
        result.append(f"{int(np.sum(instance.contains_many(asked)))} of 1000")
    return Row(
        "false positives searched offline in a copy of the filter",
        "absent keys found at the first question",
        *result,
        "1,000 keys of 0.1 million",
    )


def flood() -> Row:
    """Keys that share a few buckets of a cuckoo filter."""

    def make(**options: Any) -> Any:
        return fullbloom.CuckooFilter(10_000, **options)

    like = make()
    found = search.cuckoo(like.num_buckets, like.fingerprint_bits, 200, region=13)

    def measure(instance: Any) -> str:
        chosen = instance.num_added
        refused = offer(instance, random_keys(10_000 - len(found.keys), seed=5))
        return f"{200 - chosen} chosen, {refused} others"

    result = three(make, found.keys, measure)
    return Row("flooding of 13 cuckoo buckets", "keys refused of 10,000", *result, effort(found))


def clusters() -> Row:
    """Keys at home in few slots of a quotient filter."""

    def make(**options: Any) -> Any:
        return fullbloom.QuotientFilter(120_000, **options)

    found = search.quotient(make().quotient_bits, 60_000, homes=1 << 10)

    def measure(instance: Any) -> str:
        chosen, others = 60_000 - instance.used_slots, random_keys(20_000, seed=6)
        start = time.process_time()
        refused = offer(instance, others)
        each = (time.process_time() - start) / len(others)
        return f"{each * 1e6:.1f} us; {chosen:,} chosen, {refused:,} others"

    result = three(make, found.keys, measure)
    return Row(
        "one cluster of a quotient filter", "an add of 20,000 others; keys refused", *result, effort(found)
    )


def size(instance: Any) -> str:
    """Bytes and stages."""
    return f"{instance.nbytes / 1000:,.0f} kB, {instance.stages} stage{'s' * (instance.stages > 1)}"


def dynamic() -> Row:
    """Keys that share buckets in every stage."""

    def make(**options: Any) -> Any:
        return fullbloom.DynamicCuckooFilter(10_000, max_stages=256, **options)

    like = make()
    found = search.cuckoo(like.num_buckets, like.fingerprint_bits, 700, region=13)
    result = three(make, found.keys, size)
    return Row("growth of a dynamic cuckoo filter", "size after 700 keys", *result, effort(found))


def scalable() -> Row:
    """Keys that share buckets in the newest stage of a chain of cuckoo filters, each twice as large."""

    def make(**options: Any) -> Any:
        return fullbloom.ScalableBloomFilter(1000, kind="cuckoo", **options)

    twin, parts, tried = make(), [], 0
    for _ in range(5):
        newest = twin.stage_info()[-1]
        region = newest["num_buckets"] // 80
        found = search.cuckoo(newest["num_buckets"], newest["fingerprint_bits"], 6 * region, region)
        offer(twin, found.keys)
        parts, tried = [*parts, found.keys], tried + found.tried
    keys = np.concatenate(parts)
    result = three(make, keys, size)
    effort_in_all = effort(search.Found(keys, tried))
    return Row(
        "growth of a scalable filter of cuckoo stages", f"size after {len(keys)} keys", *result, effort_in_all
    )


def counters() -> Row:
    """Keys that cover the counters of a victim, each added until counters overflow."""

    def make(**options: Any) -> Any:
        return fullbloom.CountingBloomFilter(10_000, 0.01, layout="classic", **options)

    like, victim = make(), int(random_keys(1, seed=7)[0])
    found = search.covering(like.num_counters, like.num_hashes, victim)
    result = three(make, np.repeat(found.keys, 15), lambda instance: f"{instance.count(victim)}")
    return Row("overflow of a victim's counters", "its count, never added", *result, effort(found))


ATTACKS: tuple[Callable[[], Row], ...] = (
    pollution,
    target,
    offline,
    flood,
    clusters,
    dynamic,
    scalable,
    counters,
)


def measured() -> list[Row]:
    """All rows; some four seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fullbloom.CapacityWarning)
        return [attack() for attack in ATTACKS]
