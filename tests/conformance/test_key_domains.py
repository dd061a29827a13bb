"""A filter knows of which types its keys are, and a lookup of another type warns once."""

from __future__ import annotations

import datetime as dt
import pickle
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
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


def filled(variant: Variant, keys: Any) -> Any:
    """A filter of this variant that holds ``keys``."""
    return variant.filled(keys, 400, 0.01, seed=5)


@pytest.mark.parametrize("variant", ANY)
def test_texts_looked_up_in_a_filter_of_integers_warn_once(variant: Variant) -> None:
    made = filled(variant, NUMBERS)
    assert made.key_domains == made.info()["key_domains"] == "integer"
    assert 5 in made or not variant.can("keeps")
    with pytest.warns(KeyDomainWarning, match=r"type text .* holds keys of type integer") as caught:
        made.contains_many(TEXTS)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made.contains_many(TEXTS)
        assert isinstance("x" in made, bool)


@pytest.mark.parametrize("variant", ANY)
def test_one_key_of_another_type_warns_as_a_batch_does(variant: Variant) -> None:
    for key in ("5", b"5", 5.0, (5,), dt.date(2024, 1, 1), 1.5):
        made = filled(variant, NUMBERS)
        with pytest.warns(KeyDomainWarning):
            assert isinstance(key in made, bool)
    made = filled(variant, TEXTS)
    for key in (5, True, np.int8(5), 2**70):
        made = filled(variant, TEXTS)
        with pytest.warns(KeyDomainWarning, match="type integer"):
            assert isinstance(key in made, bool)


@pytest.mark.parametrize("variant", ADDED)
def test_an_empty_filter_and_a_filter_of_hashes_never_warn(variant: Variant) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = variant.make(400, 0.01)
        made.contains_many(TEXTS)
        made.contains_many(NUMBERS)
        assert made.key_domains == "none"
        made.add_hashed(hash_many(NUMBERS))
        made.add_hashed(7)
        assert made.key_domains == "hashed"
        made.contains_many(TEXTS)
        made.clear()
        made.contains_many(TEXTS)
        assert made.key_domains == "none"
        made.update(TEXTS)
        made.contains_hashed(hash_many(NUMBERS))
        made.contains_many([])
        made.contains_many(pa.array([None, None], pa.int64()))


WAYS = {
    "scalar": lambda made, keys: [made.add(key) for key in keys],
    "list": lambda made, keys: made.update(keys),
    "answers": lambda made, keys: made.add_many(keys),
    "iterator": lambda made, keys: made.update(iter(keys)),
    "numpy": lambda made, keys: made.update(np.array(keys)),
    "arrow": lambda made, keys: made.update(pa.array(keys)),
    "dictionary": lambda made, keys: made.update(pa.array(keys).dictionary_encode()),
    "nulls": lambda made, keys: made.update(pa.array([*keys, None])),
}


@pytest.mark.parametrize("keys", [NUMBERS, TEXTS, [n + 0.5 for n in NUMBERS]], ids=["int", "str", "float"])
@pytest.mark.parametrize("variant", ADDED)
def test_the_same_keys_give_the_same_bytes_by_every_method(variant: Variant, keys: list[Any]) -> None:
    made = []
    for add in WAYS.values():
        made.append(variant.make(400, 0.01))
        add(made[-1], keys)
    assert len({one.to_bytes() for one in made}) == 1
    assert made[0].key_domains == {int: "integer", str: "text", float: "float"}[type(keys[0])]


@pytest.mark.parametrize("variant", ANY)
def test_key_types_survive_files_pickles_and_copies(variant: Variant, tmp_path: Path) -> None:
    made = filled(variant, [dt.timedelta(seconds=n) for n in NUMBERS])
    made.save(tmp_path / "f.bloom")
    again = [fullbloom.open(tmp_path / "f.bloom"), made.copy(), pickle.loads(pickle.dumps(made))]
    for one in [*again, again[0].copy()]:
        assert one.key_domains == "duration"
        with pytest.warns(KeyDomainWarning):
            one.contains_many(TEXTS)
        assert one.to_bytes() == made.to_bytes()


@pytest.mark.parametrize("variant", every_variant("keys", "merge"))
def test_merging_unites_key_types(variant: Variant) -> None:
    one, other = (variant.filled(keys, 400, 0.01, seed=5) for keys in (NUMBERS[:50], TEXTS[:50]))
    assert (one | other).key_domains == "text, integer"
    assert one.key_domains == "integer"
    one.merge(other)
    assert one.key_domains == "text, integer"
    hashed = variant.make(400, 0.01, seed=5)
    hashed.add_hashed(3)
    one |= hashed
    assert one.key_domains == "text, integer, hashed"


@pytest.mark.parametrize("variant", every_variant("keys", "remove"))
def test_removing_a_key_of_another_type_is_a_lookup(variant: Variant) -> None:
    for discard in (lambda made: made.discard("1"), lambda made: made.discard_many(["1"])):
        made = filled(variant, NUMBERS)
        with pytest.warns(KeyDomainWarning):
            discard(made)
    made = filled(variant, NUMBERS)
    with pytest.raises(KeyError), pytest.warns(KeyDomainWarning):
        made.remove("1")


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
    made = fullbloom.BloomFilter(1000, secret=SECRET)
    made.add(1)
    made.save(path)
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
        made = variant.make(100)
        made.add(1, 1)
        made.update([2, 3], 1)
        assert made.key_domains == "integer"
        with pytest.warns(KeyDomainWarning):
            assert "1" not in made
        made.clear()
        assert made.key_domains == "none"


def test_a_warning_as_an_error_ends_the_lookup() -> None:
    made = fullbloom.BloomFilter(100)
    made.add(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", KeyDomainWarning)
        with pytest.raises(KeyDomainWarning):
            made.contains_many(["1"])
