"""Every scheme sets exactly the bits of a naive computation; `positions(key)` names them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from cases import for_each
from conformance.oracle import NaiveBloom, positions
from hypothesis import given, settings
from hypothesis import strategies as st
from support import SCHEMES, Variant, bits_of, every_variant, layouts

import fullbloom

CELLS = ("num_bits", "num_counters", "num_cells")
KEYS = [*range(40), "a", b"bytes", 2.5, ("t", 1)]


def set_bits(data: bytes) -> set[int]:
    return {8 * i + bit for i, byte in enumerate(data) for bit in range(8) if byte >> bit & 1}


@pytest.mark.parametrize("layout", layouts())
def test_positions_equal_those_of_the_oracle(layout: str) -> None:
    for scheme in SCHEMES[layout]:
        instance = fullbloom.BloomFilter(300, 0.01, layout=layout, scheme=scheme)
        for key in KEYS:
            wanted = positions(
                layout, scheme, instance.num_bits, instance.num_hashes, fullbloom.hash_key(key)
            )
            found = instance.positions(key)
            assert sorted(found) == sorted(set(wanted))
            if layout in {"classic", "partitioned"}:
                assert found == list(dict.fromkeys(wanted)), "in the order of the probes"


@pytest.mark.parametrize("layout", layouts())
def test_adding_a_key_sets_exactly_its_positions(layout: str) -> None:
    for key in KEYS:
        instance = fullbloom.BloomFilter(300, layout=layout, seed=3)
        before = instance.to_bytes()
        named = instance.positions(key)
        assert instance.to_bytes() == before
        instance.add(key)
        assert set_bits(bits_of(instance)) == set(named)


@for_each("variant", every_variant("positions", "keys"))
def test_positions_are_distinct_cells(variant: Variant) -> None:
    instance = variant.make(300)
    cells = next(getattr(instance, name) for name in CELLS if hasattr(instance, name))
    for key in KEYS:
        found = instance.positions(key)
        assert all(type(cell) is int and 0 <= cell < cells for cell in found)
        assert len(set(found)) == len(found)
        assert 1 <= len(found) <= instance.num_hashes
        assert found == instance.positions(key) == instance.copy().positions(key)
        instance.add(key)
        assert found == instance.positions(key), "cells of a key do not depend on what is held"


#: Whose cells tell more than that they were written.
TELLING = {"variable-increment", "invertible"}


@for_each("variant", every_variant("positions", "keys", "keeps"))
def test_a_key_is_found_exactly_when_its_cells_were_written(variant: Variant) -> None:
    """A key is found if and only if all its cells are set."""
    instance = variant.make(50)
    members, others = range(50), range(1000, 3000)
    instance.update(members)
    written = {cell for key in members for cell in instance.positions(key)}
    for key in others:
        if key not in instance:
            assert not written.issuperset(instance.positions(key)) or variant.name in TELLING
        else:
            assert written.issuperset(instance.positions(key))


def test_the_cell_of_a_number_in_a_bit_set_is_the_number() -> None:
    (variant,) = (parameter.values[0] for parameter in every_variant("positions", "numbers"))
    instance = variant.make(100)
    assert instance.positions(42) == [42]
    assert instance.positions(100) == instance.positions("x") == []


@for_each("variant", every_variant())
def test_a_filter_knows_the_file_it_was_opened_from(variant: Variant, tmp_path: Path) -> None:
    instance = variant.make(100)
    assert instance.path is None
    path = tmp_path / "f \u00e9.bloom"
    instance.save(path)
    assert instance.path is None
    for opened in (variant.cls.open(path), variant.cls.open(str(path)), fullbloom.open(bytes(path))):
        assert opened.path == str(path)
        assert opened.copy().path is None
    assert fullbloom.loads(path.read_bytes()).path is None
    if variant.can("write-in-place"):
        with variant.cls.open(path, mode="r+") as writer:
            assert writer.path == str(path)


def test_a_path_is_absolute_and_may_be_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    monkeypatch.chdir(tmp_path)
    fullbloom.BloomFilter(10).save(b"no-text-\xff.bloom")
    opened: Any = fullbloom.open(b"no-text-\xff.bloom")
    assert opened.path == os.fsdecode(os.fsencode(tmp_path) + b"/no-text-\xff.bloom")
    assert fullbloom.open(opened.path) == opened


WINDOWS = [p for p in every_variant() if hasattr(p.values[0].cls, "advance")]


@pytest.mark.parametrize("window", [None, 60.0])
@pytest.mark.parametrize("variant", WINDOWS)
def test_advance_turns_generations(variant: Variant, window: float | None) -> None:
    instance = variant.make(100, window=window)
    if window:
        instance.advance(5.0)
    instance.add("old")
    for _ in range(instance.generations - 1):
        assert instance.advance() == 1
        assert "old" in instance
    instance.add("new")
    assert instance.advance() == 1
    assert "old" not in instance
    assert "new" in instance
    assert sum(instance.generation_counts()) == instance.num_added == 1
    again = fullbloom.loads(instance.to_bytes())
    assert again == instance
    if window:
        # Time goes on from where it was, and the newest generation began there.
        assert instance.now == 5.0
        assert instance.advance(5.0) == 0
        with pytest.raises(fullbloom.ParameterError):
            instance.advance(4.0)
        assert instance.advance(1e6) == instance.generations
        assert not instance
    else:
        with pytest.raises(fullbloom.ParameterError, match="window="):
            instance.advance(1.0)


@pytest.mark.parametrize("variant", WINDOWS)
def test_a_mapped_window_refuses_to_turn(variant: Variant, tmp_path: Path) -> None:
    instance = variant.make(100)
    instance.add("key")
    instance.save(tmp_path / "f")
    with pytest.raises(fullbloom.ReadOnlyFilter):
        variant.cls.open(tmp_path / "f").advance()


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


@for_each(("layout", "scheme", "num_bits", "num_hashes"), shapes())
def test_bits_and_answers_equal_those_of_the_oracle(
    layout: str, scheme: str, num_bits: int, num_hashes: int
) -> None:
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
def test_filters_of_any_shape_equal_the_oracle(
    layout: str, num_bits: int, k: int, choice: int, values: list[int]
) -> None:
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
def test_filters_place_keys_by_their_hash(layout: str) -> None:
    by_key = fullbloom.BloomFilter(500, 0.01, layout=layout, seed=9)
    by_hash = fullbloom.BloomFilter(500, 0.01, layout=layout, seed=9)
    for key in ["a", b"b", 3, -(2**70), 1.5, ("x", 1)]:
        by_key.add(key)
        by_hash.add_hashed(fullbloom.hash_key(key, seed=9))
    assert by_key == by_hash
    assert bits_of(by_key) == bits_of(by_hash)
