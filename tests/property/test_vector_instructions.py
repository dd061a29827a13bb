"""Scalar, batch, threaded, and each set of vector instructions: the same bits and the same answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cases import for_each
from support import SCHEMES, Keys, Variant, bits_of, every_variant, layouts

import fullbloom
from fullbloom import _core

# Above two threads' worth of keys (2^17 each), so that threads= really starts threads; odd, as vectors take
# eight at a time.
MANY = 300_007

SHAPES = [
    (layout, scheme, k)
    for layout in layouts()
    for scheme in SCHEMES[layout]
    for k in {"blocked": (4, 8, 12), "split": (8,), "two-block": (8, 16, 24)}.get(layout, (1, 7))
]


def build(layout: str, scheme: str, k: int, bits: int = 1 << 22) -> Any:
    return fullbloom.BloomFilter.with_shape(bits, k, capacity=10**9, layout=layout, scheme=scheme)


@for_each("isa", _core.isas())
@for_each(("layout", "scheme", "k"), SHAPES)
def test_every_instruction_set_sets_the_same_bits(
    layout: str, scheme: str, k: int, isa: str, force_isa: Any
) -> None:
    keys = Keys("random", 5).take(20_000)
    force_isa("portable")
    reference = build(layout, scheme, k, 1 << 17)
    new = np.array([reference.add(int(key)) for key in keys])
    probes = Keys("random", 6).take(20_000)
    found = np.array([int(key) in reference for key in probes])
    force_isa(isa)
    assert _core.isa() == isa
    batch, scalar = build(layout, scheme, k, 1 << 17), build(layout, scheme, k, 1 << 17)
    assert np.array_equal(batch.add_many(keys), new)
    assert [scalar.add(int(key)) for key in keys] == new.tolist()
    assert bits_of(batch) == bits_of(scalar) == bits_of(reference)
    assert np.array_equal(batch.contains_many(probes), found)
    assert [int(key) in scalar for key in probes] == found.tolist()


def test_a_portable_path_exists_and_unknown_ones_are_refused() -> None:
    assert "portable" in _core.isas()
    assert _core.isa() in _core.isas()
    with pytest.raises(ValueError, match="sse9"):
        _core.force_isa("sse9")


@pytest.mark.long
@for_each(("layout", "scheme", "k"), SHAPES)
def test_every_number_of_threads_sets_the_same_bits(layout: str, scheme: str, k: int) -> None:
    check_threads(layout, scheme, k, 2, 3, 8)


@for_each("isa", _core.isas())
@for_each("threads", [2, 3])
@for_each("layout", ["blocked", "classic"])
def test_every_instruction_set_with_threads_sets_the_same_bits(
    layout: str, threads: int, isa: str, force_isa: Any
) -> None:
    force_isa(isa)
    check_threads(layout, SCHEMES[layout][0], 4, threads)


def check_threads(layout: str, scheme: str, k: int, *numbers: int) -> None:
    """The bits, answers and counts of one thread, with keys whose last round is a short one."""
    keys = Keys("random", 7).take(MANY)
    # Repeats across the parts of different threads: the first in order is the new one.
    keys = np.concatenate([keys, keys[: MANY // 2], keys[::-1]])
    one = build(layout, scheme, k)
    new = one.add_many(keys, threads=1)
    probes = Keys("random", 8).take(2 * MANY)
    found = one.contains_many(probes)
    for threads in numbers:
        many, updated = build(layout, scheme, k), build(layout, scheme, k)
        assert np.array_equal(new, many.add_many(keys, threads=threads))
        assert bits_of(one) == bits_of(many)
        assert one.num_added == many.num_added
        updated.update(keys, threads=threads)
        assert updated.to_bytes() == one.to_bytes()
        assert np.array_equal(found, one.contains_many(probes, threads=threads))


@pytest.mark.filterwarnings("ignore::fullbloom.CapacityWarning")
@pytest.mark.parametrize("variant", every_variant("keys"))
def test_threads_and_batches_of_every_variant(variant: Variant) -> None:
    keys = Keys("sequential", 1).take(MANY)
    # Far past its capacity, where that is no error.
    capacity = MANY // 4 if variant.row["family"] == "bloom" else MANY
    scalar, batch, threaded, text = (variant.make(capacity, 0.01) for _ in range(4))
    expected = [scalar.add(key) for key in keys.tolist()]
    assert batch.add_many(keys).tolist() == expected
    assert threaded.add_many(keys, threads=4).tolist() == expected
    assert text.add_many(pa.array(keys), threads=2).to_pylist() == expected
    assert scalar.to_bytes() == batch.to_bytes() == threaded.to_bytes() == text.to_bytes()


def test_strict_filters_stop_at_the_same_key_on_every_path() -> None:
    keys = Keys("random", 2).take(MANY)
    states = set()
    for threads in (1, 2):
        bloom = fullbloom.BloomFilter(MANY // 2, 0.01, strict=True)
        with pytest.raises(fullbloom.FilterFull):
            bloom.update(keys, threads=threads)
        states.add(bloom.to_bytes())
        assert bloom.num_added == MANY // 2
    scalar = fullbloom.BloomFilter(MANY // 2, 0.01, strict=True)
    with pytest.raises(fullbloom.FilterFull):
        for key in keys.tolist():
            scalar.add(key)
    states.add(scalar.to_bytes())
    assert len(states) == 1


@pytest.mark.parametrize("size", [10**6, 5 * 10**7])
def test_large_pages_hold_the_same_bits(size: int) -> None:
    # 5e7 bits are above the size from which memory comes in huge pages.
    keys = Keys("random", 3).take(100_000)
    bloom = build("blocked", "columns", 8, size)
    bloom.update(keys)
    twin = fullbloom.loads(bloom.to_bytes())
    assert bits_of(twin) == bits_of(bloom)
    assert twin.contains_many(keys).all()


@for_each("variant", every_variant("endless"))
def test_a_batch_of_known_keys_opens_no_stage(variant: Variant) -> None:
    scalar, batch = variant.make(5, 0.01), variant.make(5, 0.01)
    for bloom in (scalar, batch):
        while bloom.num_added < 5:
            bloom.add(bloom.num_added)
    assert [scalar.add(key) for key in range(5)] == batch.add_many(list(range(5))) == [False] * 5
    assert (scalar.stages, batch.stages) == (1, 1)
    assert scalar.to_bytes() == batch.to_bytes()
