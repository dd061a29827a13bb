"""Guarantee: after log2(P) exchanges, every element holds all keys; the bits are the formula's."""

from __future__ import annotations

import random
from typing import Any

import pytest
from cases import for_each
from networked.processes import run_processes
from support import Variant, variants_with

from fullbloom import (
    BloomFilter,
    CountingBloomFilter,
    CuckooFilter,
    GolombSet,
    PrefixFilter,
    QuotientFilter,
    hash_many,
    theory,
)
from fullbloom.compose.networked import (
    CountingElement,
    LocalElement,
    ProcessingElement,
    replicate,
    run_local,
)
from fullbloom.errors import FilterFull, ParameterError, PeerError

SECRET = b"sixteen secrets!"
#: Most bytes of a message beside the cells.
HEADER = 512


@for_each("seed", range(12))
def test_every_element_holds_the_union_and_the_bits_are_those_of_the_formula(seed: int) -> None:
    draw = random.Random(seed)
    size, capacity = draw.randint(1, 13), draw.choice([100, 5000, 40_000])
    options: dict[str, Any] = {"fpr": draw.choice([0.1, 0.01, 1e-4])}
    options["layout"] = draw.choice(["classic", "blocked", "partitioned"])
    options["secret"] = draw.choice([None, SECRET])
    shards = [draw.sample(range(capacity), draw.randint(0, capacity // size)) for _ in range(size)]
    everything = BloomFilter(capacity, **options)
    everything.update(key for shard in shards for key in shard)

    def job(element: LocalElement) -> tuple[bool, int, int, int]:
        own = BloomFilter(capacity, **options)
        own.update(shards[element.rank])
        before = own.copy()
        counter = CountingElement(element)
        result = replicate(counter, own, secret=options["secret"])
        right = bytes(result.bits()) == bytes(everything.bits()) and bytes(own.bits()) == bytes(before.bits())
        return right, counter.messages_sent, counter.bits_sent, counter.bytes_received

    results = run_local(size, job)
    assert all(right for right, *_ in results)
    messages = sum(each[1] for each in results)
    assert messages == theory.replication_bits(1, size)
    sent, law = sum(each[2] for each in results), theory.replication_bits(everything.num_bits, size)
    assert law <= sent <= law + 8 * HEADER * messages
    assert sum(each[3] for each in results) * 8 == sent
    if size & (size - 1) == 0:
        assert all(each[1] == size.bit_length() - 1 for each in results)


@pytest.mark.parametrize("size", [1, 4, 6, 7])
def test_counters_add_up_and_static_sets_unite(size: int) -> None:
    """Each filter is merged exactly once into each result, or counts would be too high."""

    def job(element: LocalElement) -> tuple[list[int], bool, bool, int]:
        counts = CountingBloomFilter(1000, 1e-6)
        for key in range(element.rank + 1):
            counts.add(key, 2)
        table = QuotientFilter(1000, 1e-6)
        table.update([element.rank])
        hashes = GolombSet.build([element.rank, "all"], capacity=100)
        whole, united = replicate(element, table), replicate(element, hashes)
        return (
            replicate(element, counts).count_many(range(size)),
            all(rank in whole for rank in range(size)),
            all(rank in united for rank in range(size)),
            united.num_added,
        )

    expected = [2 * (size - key) for key in range(size)]
    values = (
        {value * united.universe >> 64 for value in hash_many([*range(size), "all"])}
        if (united := GolombSet.build([], capacity=100)) is not None
        else set()
    )
    assert run_local(size, job) == [(expected, True, True, len(values))] * size


@for_each("size", range(1, 10))
@for_each("variant", variants_with("merge"), ids=lambda variant: variant.id)
def test_every_kind_is_replicated_to_any_number_of_elements(size: int, variant: Variant) -> None:
    """Filters are as large as the union: one that were merged twice would not fit, or count too much."""
    keys = range(size * 300)

    def fill(some: range) -> Any:
        options = {"universe": 10_000} if variant.can("numbers") else {}
        return variant.build_from(some, len(keys), 0.001, seed=7, **options)

    everything, countable = fill(keys), hasattr(variant.cls, "count_many")

    def job(element: LocalElement) -> tuple[bool, list[int], int]:
        result = replicate(element, fill(keys[element.rank :: size]))
        counts = result.count_many(keys) if countable else []
        return all(result.contains_many(keys)), counts, result.num_added

    results = run_local(size, job)
    assert all(found for found, *_ in results)
    if countable:
        assert all(counts == everything.count_many(keys) for _, counts, _ in results)
    if not variant.can("estimate"):
        assert {added for *_, added in results} == {everything.num_added}


@pytest.mark.parametrize("size", [2, 3, 9])
def test_a_union_that_does_not_fit_is_no_fault_of_a_peer(size: int) -> None:
    """Copies of one key have eight slots in a cuckoo table, and each element has three."""

    def job(element: LocalElement) -> Any:
        own = CuckooFilter(1000)
        for _ in range(3 + 3 * (size == 2)):
            own.add("everywhere")
        return replicate(element, own)

    with pytest.raises(FilterFull, match="do not fit together"):
        run_local(size, job)


@pytest.mark.parametrize("size", [2, 3, 5, 7])
def test_the_result_has_the_parameters_of_the_own_filter(size: int) -> None:
    """Capacity and strictness are not compared, and a peer does not choose those of others."""

    def job(element: LocalElement) -> tuple[int, bool, int]:
        capacity, strict = (1990, True) if element.rank == 0 else (2000, False)
        own = BloomFilter(capacity, 0.01, strict=strict)
        own.update([element.rank])
        result = replicate(element, own)
        assert all(rank in result for rank in range(size))
        return result.capacity, result.strict, result.num_added

    assert run_local(size, job) == [(1990, True, size), *[(2000, False, size)] * (size - 1)]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("size", [2, 5, 8])
def test_processes_get_the_same_filter_as_threads(size: int) -> None:
    def job(element: ProcessingElement) -> bytes:
        own = BloomFilter(2000, 0.001)
        own.update(range(element.rank * 100, element.rank * 100 + 100))
        return bytes(replicate(element, own).bits())

    outcomes = run_processes(size, job)
    assert [outcome.value for outcome in outcomes] == run_local(size, job)


@for_each("size", [2, 3, 4, 6])
@for_each("lie", ["nothing", "noise", "short", "unlike", "kind", "seed"])
def test_a_peer_that_sends_no_filter_of_these_parameters_is_an_error_with_its_rank(
    size: int, lie: str
) -> None:
    liar = size - 1
    messages = {
        "nothing": b"",
        "noise": random.Random(size).randbytes(5000),
        "short": BloomFilter(1000).to_bytes()[:-1],
        "unlike": BloomFilter(2000).to_bytes(),
        "kind": PrefixFilter(1000, 0.01).to_bytes(),
        "seed": BloomFilter(1000, seed=1).to_bytes(),
    }

    class Liar(CountingElement):
        def send(self, to: int, _: bytes) -> None:
            super().send(to, messages[lie])

    def job(element: LocalElement) -> None:
        replicate(Liar(element) if element.rank == liar else element, BloomFilter(1000))

    with pytest.raises(PeerError, match=f"rank {liar} sent a filter that cannot be merged: ") as caught:
        run_local(size, job)
    assert caught.value.rank == liar


def test_a_keyed_filter_is_refused_without_its_secret_and_from_a_peer() -> None:
    keyed = BloomFilter(1000, secret=bytes(16))
    with pytest.raises(ParameterError, match="pass it as secret="):
        run_local(2, lambda element: replicate(element, keyed))

    def job(element: LocalElement) -> None:
        secret = bytes(16) if element.rank else None
        replicate(element, keyed if element.rank else BloomFilter(1000), secret=secret)

    with pytest.raises(PeerError, match="sent a filter that cannot be merged"):
        run_local(2, job)


def test_a_filter_above_the_receivers_limit_is_refused() -> None:
    def job(element: LocalElement) -> int:
        # Alike, so that rank 0 has nothing to refuse: whichever refusal came first would be raised.
        own = QuotientFilter(100_000, 0.001)
        return replicate(element, own, max_bytes=10_000 if element.rank else None).nbytes

    with pytest.raises(PeerError, match=r"rank 0 sent a filter that cannot be merged: .*max_bytes"):
        run_local(2, job)
