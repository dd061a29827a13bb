"""A filter knows of which types its keys are, and a lookup of another type warns once."""

from __future__ import annotations

import datetime as dt
import pickle
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from cases import for_each
from support import SECRET, Variant, every_variant, variants_with

import fullbloom
from fullbloom import KeyDomainWarning, hash_many

if TYPE_CHECKING:
    from pathlib import Path

NUMBERS = list(range(200))
TEXTS = [str(number) for number in NUMBERS]
ADDED = every_variant("keys")
#: What takes keys of any type, alone, in pairs or all at once.
ANY = [*ADDED, *every_variant("pairs"), *every_variant("build")]


def fill(variant: Variant, keys: Any) -> Any:
    """A filter of this variant that holds ``keys``."""
    return variant.build_from(keys, 400, 0.01, seed=5)


@for_each("variant", ANY)
def test_texts_looked_up_in_a_filter_of_integers_warn_once(variant: Variant) -> None:
    instance = fill(variant, NUMBERS)
    assert instance.key_domains == instance.info()["key_domains"] == "integer"
    assert 5 in instance or not variant.can("keeps")
    with pytest.warns(KeyDomainWarning, match=r"type text .* holds keys of type integer") as caught:
        instance.contains_many(TEXTS)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        instance.contains_many(TEXTS)
        assert isinstance("x" in instance, bool)


@for_each("variant", ANY)
def test_one_key_of_another_type_warns_as_a_batch_does(variant: Variant) -> None:
    for key in ("5", b"5", 5.0, (5,), dt.date(2024, 1, 1), 1.5):
        instance = fill(variant, NUMBERS)
        with pytest.warns(KeyDomainWarning):
            assert isinstance(key in instance, bool)
    instance = fill(variant, TEXTS)
    for key in (5, True, np.int8(5), 2**70):
        instance = fill(variant, TEXTS)
        with pytest.warns(KeyDomainWarning, match="type integer"):
            assert isinstance(key in instance, bool)


@for_each("variant", ADDED)
def test_an_empty_filter_and_a_filter_of_hashes_never_warn(variant: Variant) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        instance = variant.make(400, 0.01)
        instance.contains_many(TEXTS)
        instance.contains_many(NUMBERS)
        assert instance.key_domains == "none"
        instance.add_hashed(hash_many(NUMBERS))
        instance.add_hashed(7)
        assert instance.key_domains == "hashed"
        instance.contains_many(TEXTS)
        instance.clear()
        instance.contains_many(TEXTS)
        assert instance.key_domains == "none"
        instance.update(TEXTS)
        instance.contains_hashed(hash_many(NUMBERS))
        instance.contains_many([])
        instance.contains_many(pa.array([None, None], pa.int64()))


WAYS = {
    "scalar": lambda instance, keys: [instance.add(key) for key in keys],
    "list": lambda instance, keys: instance.update(keys),
    "answers": lambda instance, keys: instance.add_many(keys),
    "iterator": lambda instance, keys: instance.update(iter(keys)),
    "numpy": lambda instance, keys: instance.update(np.array(keys)),
    "arrow": lambda instance, keys: instance.update(pa.array(keys)),
    "dictionary": lambda instance, keys: instance.update(pa.array(keys).dictionary_encode()),
    "nulls": lambda instance, keys: instance.update(pa.array([*keys, None])),
}


@for_each("keys", [NUMBERS, TEXTS, [n + 0.5 for n in NUMBERS]], ids=["int", "str", "float"])
@for_each("variant", ADDED)
def test_the_same_keys_give_the_same_bytes_by_every_method(variant: Variant, keys: list[Any]) -> None:
    instance = []
    for add in WAYS.values():
        instance.append(variant.make(400, 0.01))
        add(instance[-1], keys)
    assert len({one.to_bytes() for one in instance}) == 1
    assert instance[0].key_domains == {int: "integer", str: "text", float: "float"}[type(keys[0])]


@for_each("variant", ANY)
def test_key_types_survive_files_pickles_and_copies(variant: Variant, tmp_path: Path) -> None:
    instance = fill(variant, [dt.timedelta(seconds=n) for n in NUMBERS])
    instance.save(tmp_path / "f.bloom")
    again = [fullbloom.open(tmp_path / "f.bloom"), instance.copy(), pickle.loads(pickle.dumps(instance))]
    for one in [*again, again[0].copy()]:
        assert one.key_domains == "duration"
        with pytest.warns(KeyDomainWarning):
            one.contains_many(TEXTS)
        assert one.to_bytes() == instance.to_bytes()


@for_each("variant", every_variant("keys", "merge"))
def test_merging_unites_key_types(variant: Variant) -> None:
    one, other = (variant.build_from(keys, 400, 0.01, seed=5) for keys in (NUMBERS[:50], TEXTS[:50]))
    assert (one | other).key_domains == "text, integer"
    assert one.key_domains == "integer"
    one.merge(other)
    assert one.key_domains == "text, integer"
    hashed = variant.make(400, 0.01, seed=5)
    hashed.add_hashed(3)
    one |= hashed
    assert one.key_domains == "text, integer, hashed"


@for_each("variant", every_variant("keys", "remove"))
def test_removing_a_key_of_another_type_is_a_lookup(variant: Variant) -> None:
    for discard in (lambda instance: instance.discard("1"), lambda instance: instance.discard_many(["1"])):
        instance = fill(variant, NUMBERS)
        with pytest.warns(KeyDomainWarning):
            discard(instance)
    instance = fill(variant, NUMBERS)
    with pytest.raises(KeyError), pytest.warns(KeyDomainWarning):
        instance.remove("1")


def test_a_refused_key_records_no_type() -> None:
    full = fullbloom.BloomFilter(1, strict=True)
    full.add(1)
    before = full.to_bytes()
    with pytest.raises(fullbloom.FilterFull):
        full.add("a")
    assert full.to_bytes() == before
    with pytest.raises(fullbloom.KeyTypeError):
        full.add(object())
    assert full.key_domains == "integer"


def test_a_keyed_filter_written_in_place_records_types(tmp_path: Path) -> None:
    path = tmp_path / "f.bloom"
    instance = fullbloom.BloomFilter(1000, secret=SECRET)
    instance.add(1)
    instance.save(path)
    with fullbloom.BloomFilter.open(path, mode="r+", secret=SECRET) as opened:
        opened.add("a")
    assert fullbloom.open(path, secret=SECRET).key_domains == "text, integer"


def test_filters_of_pairs_and_cascades_warn_too() -> None:
    looks: list[Any] = [lambda m: m.get("1"), lambda m: m.get_many(["1"]), lambda m: "1" in m]
    for look in looks:
        with pytest.warns(KeyDomainWarning):
            look(fullbloom.BloomierMap.build({1: 36, 2: 41}))
    world = fullbloom.FilterCascade.build([1, 2], [3, 4])
    with pytest.warns(KeyDomainWarning):
        world.includes("1")
    for variant in variants_with("pairs"):
        instance = variant.make(100)
        instance.add(1, 1)
        instance.update([2, 3], 1)
        assert instance.key_domains == "integer"
        with pytest.warns(KeyDomainWarning):
            assert "1" not in instance
        instance.clear()
        assert instance.key_domains == "none"


def test_a_warning_as_an_error_ends_the_lookup() -> None:
    instance = fullbloom.BloomFilter(100)
    instance.add(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", KeyDomainWarning)
        with pytest.raises(KeyDomainWarning):
            instance.contains_many(["1"])
