"""Every scheme sets exactly the bits that its written rule names, and answers from exactly those."""

from __future__ import annotations

import random

import pytest
from conformance.oracle import NaiveBloom
from hypothesis import given, settings
from hypothesis import strategies as st
from support import SCHEMES, bits_of, layouts

import fullbloom

EDGE_HASHES = (0, 1, 2, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1, 0x0123456789ABCDEF)


def shapes() -> list[object]:
    """Shapes of every layout and scheme: the smallest, odd sizes, word and line borders, the largest k."""
    found = []
    for layout in layouts():
        for scheme in SCHEMES[layout]:
            if layout == "blocked":
                sizes = [(m, k) for m in (512, 1024, 512 * 33) for k in (4, 8, 12)]
            elif layout == "split":
                sizes = [(256, 8), (512, 8), (256 * 5, 8), (256 * 101, 8)]
            elif layout == "two-block":
                sizes = [(m, k) for m in (1024, 3072, 1024 * 33) for k in (8, 16, 24)]
            else:
                sizes = [(1, 1), (2, 3), (63, 1), (64, 2), (65, 7), (512, 64), (1000, 7), (99_991, 13)]
            found += [pytest.param(layout, scheme, m, k, id=f"{layout}-{scheme}-{m}-{k}") for m, k in sizes]
    return found


def test_every_layout_has_an_oracle() -> None:
    assert set(layouts()) == set(SCHEMES)


@pytest.mark.parametrize(("layout", "scheme", "num_bits", "num_hashes"), shapes())
def test_bits_and_answers_are_the_oracles(layout: str, scheme: str, num_bits: int, num_hashes: int) -> None:
    bloom = fullbloom.BloomFilter.with_shape(
        num_bits, num_hashes, capacity=10**9, layout=layout, scheme=scheme
    )
    assert bloom.num_bits >= num_bits
    assert (bloom.num_hashes, bloom.layout, bloom.scheme) == (num_hashes, layout, scheme)
    naive = NaiveBloom(layout, scheme, bloom.num_bits, num_hashes)
    rng = random.Random(num_bits * 100 + num_hashes)
    load = max(1, num_bits // (2 * num_hashes))
    values = [*EDGE_HASHES, *(rng.getrandbits(64) for _ in range(min(load, 500)))]
    for value in values:
        assert (value in naive) == bloom.contains_hashed(value)
        assert naive.add(value) == bloom.add_hashed(value)
    stored = bits_of(bloom)
    assert stored == naive.to_bytes(len(stored))
    probes = [rng.getrandbits(64) for _ in range(500)]
    assert [probe in naive for probe in probes] == [bloom.contains_hashed(probe) for probe in probes]
    assert bloom.fill == pytest.approx(naive.bits.bit_count() / bloom.num_bits, rel=1e-15)


@settings(max_examples=100, deadline=None)
@given(
    layout=st.sampled_from(sorted(SCHEMES)),
    num_bits=st.integers(1, 5000),
    k=st.integers(1, 64),
    choice=st.integers(0, 2),
    values=st.lists(st.integers(0, 2**64 - 1), max_size=30),
)
def test_any_shape_agrees(layout: str, num_bits: int, k: int, choice: int, values: list[int]) -> None:
    if layout == "blocked":
        k = (4, 8, 12)[choice]
    elif layout == "split":
        k = 8
    elif layout == "two-block":
        k = (8, 16, 24)[choice]
    scheme = SCHEMES[layout][choice % len(SCHEMES[layout])]
    bloom = fullbloom.BloomFilter.with_shape(num_bits, k, capacity=10**9, layout=layout, scheme=scheme)
    naive = NaiveBloom(layout, scheme, bloom.num_bits, k)
    assert naive.add_all(values) == [bloom.add_hashed(value) for value in values]
    stored = bits_of(bloom)
    assert stored == naive.to_bytes(len(stored))


@pytest.mark.parametrize("layout", layouts())
def test_keys_arrive_as_their_hash(layout: str) -> None:
    by_key = fullbloom.BloomFilter(500, 0.01, layout=layout, seed=9)
    by_hash = fullbloom.BloomFilter(500, 0.01, layout=layout, seed=9)
    for key in ["a", b"b", 3, -(2**70), 1.5, ("x", 1)]:
        by_key.add(key)
        by_hash.add_hashed(fullbloom.hash_key(key, seed=9))
    assert by_key == by_hash
    assert bits_of(by_key) == bits_of(by_hash)
