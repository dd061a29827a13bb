"""Calls that people try first work, or their errors name the call that does."""

from __future__ import annotations

import inspect
import itertools
import operator
import re
import subprocess
import sys
import warnings
from contextlib import suppress
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from cases import for_each
from support import Variant, every_variant, variants_with

import fullbloom
from fullbloom import BloomFilter, BloomierMap, CountingBloomFilter, protocols


@pytest.mark.parametrize(("value_bits", "mutable"), [(8, False), (8, True), (32, False), (64, True)])
def test_get_many_equals_get_for_every_kind_of_input(value_bits: int, mutable: bool) -> None:
    values = {n: (2**value_bits - 1 if n % 3 == 0 else n) for n in range(200)}
    instance = BloomierMap.build(values, check_bits=32, value_bits=value_bits, mutable=mutable)
    keys = [*range(150, 200), *range(10_000, 10_030), 0]
    expected = [instance.get(key) for key in keys]
    assert expected.count(None) == 30
    hashes = fullbloom.hash_many(keys)
    assert instance.get_many(keys) == instance.get_many(iter(keys)) == instance.get_hashed(hashes) == expected
    masked: Any = instance.get_many(np.array(keys))
    assert isinstance(masked, np.ma.MaskedArray)
    assert (masked.tolist(), masked.dtype) == (expected, np.uint64)
    assert instance.get_hashed(np.array(hashes, np.uint64)).tolist() == expected
    assert instance.get_many(pa.array(keys)).to_pylist() == expected
    assert instance.get_many(pa.chunked_array([keys[:7], keys[7:], []], pa.int64())).to_pylist() == expected
    assert instance.get_many(pl.Series("k", keys)).to_list() == expected
    assert instance.get_many(pa.array([None, *keys])).to_pylist() == [None, *expected]
    assert instance.get_many(keys, default=7) == [7 if value is None else value for value in expected]
    assert instance.get_many([]) == []
    assert instance.get_hashed(hashes[-2]) is None
    pandas = pytest.importorskip("pandas")
    for dtype in ("int64", object):
        series = instance.get_many(pandas.Series(keys, dtype=dtype, index=range(5, 5 + len(keys))))
        assert [None if value is pandas.NA else value for value in series] == expected
        assert series.index[0] == 5


def test_remove_on_a_filter_without_removal_names_one_with_it() -> None:
    instance: Any = BloomFilter(10)
    for of in (instance, type(instance)):
        with pytest.raises(
            AttributeError, match=r"a BloomFilter cannot remove keys; CountingBloomFilter, .*can"
        ):
            of.remove  # noqa: B018
        assert not hasattr(of, "remove")
    assert hasattr(CountingBloomFilter, "remove")
    assert not isinstance(instance, protocols.Removable)


@for_each("variant", variants_with("worlds"), ids=lambda variant: variant.id)
def test_the_in_operator_of_a_cascade_names_includes(variant: Variant) -> None:
    instance = variant.build_from([1, 2], seed=1)
    for ask in (lambda: 1 in instance, lambda: 1 not in instance, lambda: operator.contains(instance, 1)):
        with pytest.raises(TypeError, match=r"cannot answer `in`.* includes\(key\)") as caught:
            ask()
        assert isinstance(caught.value, fullbloom.FullbloomError)
    assert not hasattr(instance, "__contains__")
    assert not hasattr(type(instance), "__contains__")
    assert not isinstance(instance, protocols.Filter)
    assert instance.includes(1)


def fpr_of(text: str) -> tuple[float, str, float]:
    """The rate of a warning, how it is beside the target, and the target."""
    found = re.search(r"rate is ([\d.e-]+), (above|within) the target of ([\d.e-]+)[,;]", text)
    assert found, text
    return float(found[1]), found[2], float(found[3])


@for_each("variant", every_variant("keys"))
@for_each("times", [1, 2])
def test_the_capacity_warning_states_an_excess_rate_only_if_there_is_one(
    variant: Variant, times: int
) -> None:
    instance = variant.make(500, 0.02, seed=4)
    with warnings.catch_warnings(record=True) as caught, suppress(fullbloom.FilterFull):
        warnings.simplefilter("always")
        if times == 1:
            for key in range(2000):
                instance.add(key)
                if caught:
                    break
        else:
            instance.update(range(1000))
    for warning in caught:
        assert warning.category is fullbloom.CapacityWarning
        rate, word, target = fpr_of(str(warning.message))
        assert target == pytest.approx(instance.target_fpr, rel=0.01)
        assert rate == pytest.approx(instance.fpr(), rel=0.01, abs=1e-12)
        assert word == ("above" if instance.fpr() > instance.target_fpr else "within")
        assert rate != target or instance.fpr() == instance.target_fpr


def test_the_capacity_warning_has_both_forms() -> None:
    words = set()
    for seed in range(20):
        for number in (1, 400):
            instance = BloomFilter(300, 0.01, layout="classic", seed=seed)
            instance.update(range(295))
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                for key in itertools.count(295):
                    instance.update(range(key, key + number))
                    if caught:
                        break
            words.add((number, fpr_of(str(caught[0].message))[1]))
    assert words == {(1, "above"), (1, "within"), (400, "above")}


def test_a_counting_filter_accepts_an_explicit_shape() -> None:
    sized = CountingBloomFilter(1000, 0.01, layout="classic", seed=3)
    shaped = CountingBloomFilter.with_shape(sized.num_counters, sized.num_hashes, capacity=1000, seed=3)
    for instance in (sized, shaped):
        instance.update(range(500))
    assert (shaped.num_counters, shaped.num_hashes) == (sized.num_counters, sized.num_hashes)
    assert (shaped.capacity, shaped.fpr()) == (1000, sized.fpr())
    assert shaped.to_bytes()[-1000:] == sized.to_bytes()[-1000:]
    shaped.merge(sized)
    half = CountingBloomFilter.with_shape(1000, 7)
    assert (half.num_counters, half.capacity) == (1000, 99)
    assert CountingBloomFilter.with_shape(1000, 8, layout="blocked").num_counters == 1024
    for wrong in ((0, 7), (1000, 0), (1000, 99), (2**60, 7)):
        with pytest.raises(fullbloom.ParameterError):
            CountingBloomFilter.with_shape(*wrong)
    with pytest.raises(fullbloom.ParameterError):
        CountingBloomFilter.with_shape(1000, 7, layout="blocked")
    with pytest.raises(fullbloom.ParameterError):
        CountingBloomFilter.with_shape(1000, 7, counter_bits=5)


def rate_at(instance: Any, items: float) -> float | None:
    """The rate at a load; None where the structure has no law of it."""
    try:
        found: float = instance.fpr(items)
    except fullbloom.ParameterError as error:
        assert "no law" in str(error)
        return None
    return found


@for_each("variant", every_variant("keys"))
def test_fpr_at_a_load_equals_the_rate_of_a_filter_so_filled(variant: Variant) -> None:
    empty, filled = (variant.make(2000, 0.01, seed=2) for _ in range(2))
    filled.update(range(1500))
    if (at := rate_at(empty, 1500)) is None:
        return
    # Cells tell the number of keys within some 2 %, and rates go with its tenth power at most.
    assert at == pytest.approx(filled.fpr(), rel=0.25)
    assert empty.fpr(0) == empty.fpr() == 0
    assert empty.fpr(items=1e300) <= 1.0
    assert 0.001 < empty.fpr(2000) <= 0.0105
    for wrong in (-1, float("nan"), float("inf")):
        with pytest.raises(fullbloom.ParameterError, match="items"):
            empty.fpr(wrong)


def test_most_structures_have_a_law_of_their_load() -> None:
    instance = {variant.name: variant.make(100, 0.01) for variant in variants_with("add")}
    found = {name for name, one in instance.items() if rate_at(one, 10) is not None}
    assert found >= {"bloom", "counting", "cuckoo", "d-left", "deletable", "layered", "quotient", "spectral"}


def test_saturated_counters_are_counted() -> None:
    for bits in (2, 3, 4, 8):
        instance = CountingBloomFilter(100, counter_bits=bits, layout="classic")
        instance.update(range(20))
        assert instance.num_saturated == 0 or bits == 2
        instance.add("x", 2**bits)
        assert instance.num_saturated == instance.info()["num_saturated"] >= instance.num_hashes - 1


def test_a_star_import_leaves_open_alone() -> None:
    program = "from fullbloom import *; import builtins, sys; sys.exit(open is not builtins.open)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    assert inspect.isbuiltin(fullbloom.open)
