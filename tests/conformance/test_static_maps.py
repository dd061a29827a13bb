"""Guarantee: a static map tells the value of every key it was built of, and of absent keys at the rate."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from cases import for_each
from support import chance

import fullbloom
from fullbloom import BloomierMap, theory

#: Bits of values, of checks, whether values change, cells of a key.
SHAPES = [
    (1, 1, False, 3),
    (8, 8, False, 3),
    (8, 8, True, 3),
    (13, 20, False, 4),
    (56, 8, False, 3),
    (64, 32, True, 4),
]


def draw_values(number: int, bits: int, seed: int = 1) -> dict[str, int]:
    """Keys with numbers, of which some have all their bits."""
    draw = random.Random(seed)
    values = {f"key {i}": draw.getrandbits(bits) for i in range(number)}
    return values | dict.fromkeys(list(values)[:2], 2**bits - 1)


@for_each(("value_bits", "check_bits", "mutable", "arity"), SHAPES)
@for_each("number", [2, 50, 5000])
def test_stored_keys_have_their_values(
    value_bits: int, check_bits: int, mutable: bool, arity: int, number: int
) -> None:
    pairs = draw_values(number, value_bits)
    instance = BloomierMap.build(pairs, check_bits=check_bits, mutable=mutable, arity=arity, seed=number)
    assert (instance.value_bits, instance.check_bits, instance.mutable) == (value_bits, check_bits, mutable)
    assert instance.num_added == instance.capacity == number
    assert instance.get_many(list(pairs)) == list(pairs.values())
    assert [instance[key] for key in pairs] == [instance.get(key) for key in pairs] == list(pairs.values())
    assert all(key in instance for key in pairs)
    again = fullbloom.loads(instance.to_bytes())
    assert again == instance
    assert again.get_many(list(pairs)) == list(pairs.values())


@for_each("mutable", [False, True])
@for_each("arity", [3, 4])
@for_each(("number", "check_bits"), [(300, 2), (5000, 5), (40_000, 8)])
def test_absent_keys_have_a_value_at_the_rate(
    number: int, check_bits: int, arity: int, mutable: bool
) -> None:
    instance = BloomierMap.build(range(number), 1, check_bits=check_bits, arity=arity, mutable=mutable)
    trials = 200_000
    found = instance.contains_many(np.arange(1 << 40, (1 << 40) + trials))
    # Three of the four numbers that tell a key's own cell can be with three cells. Those of cells without
    # a key are zero, which makes the law a bound, at most 4 % too high.
    rate = theory.bloomier_fpr(check_bits, arity, mutable, number)
    least = 2.0**-check_bits * (arity / 4 if mutable else 1)
    assert instance.fpr() == pytest.approx(rate)
    assert least <= rate <= 1.04 * least
    assert instance.target_fpr == 2.0**-check_bits
    assert trials * least - chance(trials * least, sigmas=4.0) < int(found.sum())
    assert int(found.sum()) < trials * rate + chance(trials * rate, sigmas=4.0)


def test_a_rate_is_kept_by_bits_of_the_check() -> None:
    assert BloomierMap.build({1: 2}).check_bits == 8
    assert BloomierMap.build({1: 2}, fpr=0.01).check_bits == 7
    assert BloomierMap.build({1: 2}, fpr=0.01).target_fpr == 0.01
    with pytest.raises(fullbloom.ParameterError, match=r"fpr or check_bits, not both"):
        BloomierMap.build({1: 2}, fpr=0.01, check_bits=7)


def test_an_absent_key_is_none_for_get_and_a_key_error_for_brackets() -> None:
    instance = BloomierMap.build({"ada": 36}, check_bits=32)
    assert instance.get("bob") is None
    assert instance.get("bob", -1) == -1
    assert instance.get("ada", -1) == 36
    with pytest.raises(KeyError) as caught:
        instance[("bob", 1)]
    assert caught.value.args == (("bob", 1),)
    assert instance.get_many(["ada", "bob"]) == [36, None]
    assert instance.get_many(["ada", "bob"], default=2**64 - 1) == [36, 2**64 - 1]
    with pytest.raises(TypeError):
        iter(instance)
    for empty in (BloomierMap.build({}), BloomierMap.build([], []), BloomierMap.build([], 5)):
        assert empty.get("ada") is None
        assert not empty
        assert empty.fpr() == 0


def test_results_have_the_container_type_of_the_keys() -> None:
    keys, values = list(range(1000)), [i * i % 4096 for i in range(1000)]
    instance = BloomierMap.build(keys, values, check_bits=32)
    assert instance.get_many(np.array(keys)).dtype == np.uint64
    assert instance.get_many(np.array(keys)).tolist() == values
    assert instance.get_many(pa.array(keys)).to_pylist() == values
    assert instance.get_many(pl.Series([1, None, 5000])).to_list() == [1, None, None]
    assert instance.get_many(iter(keys)) == values


@for_each(
    "given",
    [
        lambda keys, values: (keys, values),
        lambda keys, values: (dict(zip(keys, values, strict=True)),),
        lambda keys, values: (iter(keys), iter(values)),
        lambda keys, values: (np.array(keys), np.array(values, np.uint16)),
        lambda keys, values: (np.array(keys, np.int32), np.array(values, np.int64)[::1]),
        lambda keys, values: (np.array(keys), np.repeat(np.array(values, np.uint32), 2)[::2]),
        lambda keys, values: (np.array(keys), np.array(values, object)),
        lambda keys, values: (pa.array(keys), pa.array(values)),
        lambda keys, values: (pl.Series(keys), pl.Series(values, dtype=pl.UInt16)),
        lambda keys, values: (keys[::-1] + keys, values[::-1] + values),
    ],
)
def test_pairs_of_any_kind_give_the_same_bytes(given: Any) -> None:
    keys, values = list(range(70_000)), [i * 7 % 1000 for i in range(70_000)]
    wanted = BloomierMap.build(keys, values).to_bytes()
    for options in ({}, {"threads": 3}, {"memory": 1 << 22}):
        assert BloomierMap.build(*given(keys, values), **options).to_bytes() == wanted
    hashed = BloomierMap.build_hashed(fullbloom.hash_many(keys), values)
    assert hashed == BloomierMap.build(keys, values)
    assert hashed.key_domains == "hashed"


@pytest.mark.parametrize("mutable", [False, True])
def test_a_key_with_two_values_is_refused_by_its_positions(mutable: bool) -> None:
    keys, values = [f"key {i % 900}" for i in range(1000)], [i % 900 % 7 for i in range(1000)]
    assert BloomierMap.build(keys, values, mutable=mutable).num_added == 900
    values[950] = 100
    for given in (keys, np.array(keys), pl.Series(keys), tuple(keys)):
        with pytest.raises(fullbloom.ParameterError, match=r"keys number 50 and 950 .* 1 and 100"):
            BloomierMap.build(given, values, mutable=mutable)
    with pytest.raises(fullbloom.ParameterError, match=r"hash 0x[0-9a-f]{16} has two values, 1 and 100"):
        BloomierMap.build(iter(keys), values, mutable=mutable)
    with pytest.raises(fullbloom.ParameterError, match=r"keys number 1 and 3 .* 2 and 4"):
        BloomierMap.build_hashed([5, 6, 5, 6], [1, 2, 1, 4])


def test_invalid_values_are_refused() -> None:
    with pytest.raises(fullbloom.ParameterError, match=r"value_bits=8 is too few for the value 300.*9"):
        BloomierMap.build([1, 2], [3, 300], value_bits=8)
    with pytest.raises(fullbloom.ParameterError, match="mutable=True"):
        BloomierMap.build([1], [2**60])
    assert BloomierMap.build([1], [2**64 - 1], mutable=True)[1] == 2**64 - 1
    for wrong in ([-1], [2**64], np.array([-5])):
        with pytest.raises(fullbloom.ParameterError, match=r"values must be between 0 and 2\*\*64 - 1"):
            BloomierMap.build([1], wrong)
    for strange in (["a"], [1.5], [None], [True]):
        with pytest.raises(fullbloom.ParameterTypeError, match="values must be a whole number"):
            BloomierMap.build([1], strange)
    for keys, values in (([1, 2], [3]), ([1], [3, 4]), (iter([1, 2]), [3]), (iter([1]), [3, 4])):
        with pytest.raises(fullbloom.ParameterError, match="as many values as keys"):
            BloomierMap.build(keys, values)
    with pytest.raises(fullbloom.ParameterTypeError, match=r"unless keys is a mapping, got"):
        BloomierMap.build([1, 2])
    with pytest.raises(fullbloom.KeyTypeError, match="null"):
        BloomierMap.build(pa.array([1, None]), [1, 2])


@pytest.mark.parametrize(("value_bits", "arity"), [(1, 3), (8, 3), (37, 4), (64, 3)])
def test_values_change_in_place(value_bits: int, arity: int, tmp_path: Any) -> None:
    pairs = draw_values(3000, value_bits)
    instance = BloomierMap.build(pairs, check_bits=30, mutable=True, arity=arity)
    before, draw = instance.copy(), random.Random(3)
    some = draw.sample(list(pairs), 1000)
    fresh = [draw.getrandbits(value_bits) for _ in some]
    pairs |= dict(zip(some, fresh, strict=True))
    assert instance.set_many(some[:900], fresh[:900]) == [True] * 900
    for key, value in list(zip(some, fresh, strict=True))[900:]:
        instance[key] = value
    assert instance.get_many(list(pairs)) == list(pairs.values())
    assert instance != before
    # A key that is absent changes nothing and says so.
    stored = instance.to_bytes()
    assert instance.set_many(["no", "none"], 1) == [False, False]
    with pytest.raises(KeyError, match="none"):
        instance["none"] = 1
    for wrong in ([0, 2**value_bits], [0, -1]):
        with pytest.raises(fullbloom.ParameterError):
            instance.set_many(some[:2], wrong)
    with pytest.raises(fullbloom.ParameterError, match="as many values as keys"):
        instance.set_many(some[:2], [1])
    for strange in ([None], "no", before):
        with pytest.raises(fullbloom.KeyTypeError):
            instance.set_many(strange, 1)
    assert instance.to_bytes() == stored
    instance.save(tmp_path / "map.bloom")
    mapped: Any = fullbloom.open(tmp_path / "map.bloom")
    assert mapped.get_many(list(pairs)) == list(pairs.values())
    for write in (lambda: mapped.set_many(some, 1), lambda: mapped.__setitem__(some[0], 1)):
        with pytest.raises(fullbloom.ReadOnlyFilter, match=r"copy\(\)"):
            write()
    assert mapped.copy().set_many(some[:1], 1) == [True]


def test_values_whose_cells_are_shared_do_not_change() -> None:
    instance = BloomierMap.build({"a": 1})
    for write in (lambda: instance.set_many(["a"], 1), lambda: instance.__setitem__("a", 1)):
        with pytest.raises(fullbloom.ReadOnlyFilter, match="mutable=True"):
            write()


def test_the_progress_callback_may_cancel_a_build() -> None:
    def stop(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        BloomierMap.build(range(1000), 1, progress=stop)


@for_each("mutable", [False, True])
@for_each("number", [1, 3000, 300_000])
def test_hashes_and_threads_give_the_results_of_keys(number: int, mutable: bool) -> None:
    instance = BloomierMap.build(range(number), np.arange(number) % 250, check_bits=20, mutable=mutable)
    keys = np.arange(-50, number + 50)
    hashes, answers = fullbloom.hash_many(keys), instance.get_many(keys, default=251)
    for threads in (1, 2, 5):
        assert (instance.get_many(keys, default=251, threads=threads) == answers).all()
    assert (instance.get_hashed(hashes, default=251) == answers).all()
    assert (instance.get_hashed(hashes) == instance.get_many(keys)).all()
    for hash_, answer in list(zip(hashes.tolist(), answers.tolist(), strict=True))[:100]:
        assert instance.get_hashed(hash_, default=251) == answer
        assert instance.get_hashed(hash_) == (None if answer == 251 else answer)
    assert instance.get_hashed(hashes.tolist()[:60], default=251) == answers.tolist()[:60]
    for wrong in (-1, 2**64, "a", 1.5):
        with pytest.raises((fullbloom.ParameterError, fullbloom.KeyTypeError)):
            instance.get_hashed([wrong])
