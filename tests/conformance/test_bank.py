"""Guarantee: a bank of filters answers for each owner as a filter of its own would, however pairs come in."""

from __future__ import annotations

import copy
import pickle
import random
import threading
import warnings

import numpy as np
import pytest
from cases import for_each
from support import SECRET

import fullbloom
from fullbloom import FilterBank


def make_pairs(seed: int, count: int = 4000) -> tuple[list[str], list[int]]:
    """Pairs of which a few owners have most."""
    draw = random.Random(seed)
    owners = [f"owner {draw.randrange(1 + draw.randrange(60))}" for _ in range(count)]
    return owners, [draw.randrange(900) for _ in range(count)]


def fill_bank(**options) -> tuple[FilterBank, set[tuple[str, int]]]:
    """A bank with owners of one stage and of several, and its pairs."""
    bank = FilterBank(60, 0.02, **options)
    owners, keys = make_pairs(1)
    bank.update(owners, keys)
    return bank, set(zip(owners, keys, strict=True))


def test_a_batch_equals_single_calls():
    one, many = FilterBank(60, 0.02), FilterBank(60, 0.02)
    owners, keys = make_pairs(2)
    assert [one.add(owner, key) for owner, key in zip(owners, keys, strict=True)] == many.add_many(
        owners, keys
    )
    assert one.to_bytes() == many.to_bytes()
    assert one == many
    assert many.info()["later_stages"] > 0
    asked = [key + 450 for key in keys]
    assert [pair in one for pair in zip(owners, asked, strict=True)] == many.contains_many(owners, asked)


def test_added_pairs_are_found_and_no_other_owner_has_them():
    bank, pairs = fill_bank()
    assert all(pair in bank for pair in pairs)
    assert len(bank) == len({owner for owner, _ in pairs}) == len(set(bank.owners()))
    assert bank.contains_many(["nobody"] * 900, range(900)) == [False] * 900
    assert ("nobody", 1) not in bank
    assert not bank.has_owner("nobody")
    assert {fullbloom.hash_key(owner) for owner, _ in pairs} == set(bank.owners())


def test_every_container_of_pairs_gives_the_same_bank():
    owners, keys = make_pairs(3)
    numbers = [int(owner.removeprefix("owner ")) for owner in owners]
    expected = FilterBank(60, 0.02)
    expected.update(numbers, keys)
    forms = [
        (np.array(numbers), np.array(keys)),
        (numbers, np.array(keys, dtype=np.int32)),
        (tuple(numbers), iter(keys)),
        ((number for number in numbers), (key for key in keys)),
    ]
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    forms.append((pyarrow.array(numbers), pyarrow.chunked_array([keys[:1000], keys[1000:]])))
    forms.append((np.array(numbers), pyarrow.array(keys)))
    forms.append((pyarrow.chunked_array([numbers[:7], numbers[7:1500], numbers[1500:]]), np.array(keys)))
    for some_owners, some_keys in forms:
        bank = FilterBank(60, 0.02)
        bank.update(some_owners, some_keys)
        assert bank == expected
        assert bank.to_bytes() == expected.to_bytes()
    found = expected.contains_many(np.array(numbers), np.array(keys))
    assert isinstance(found, np.ndarray)
    assert found.all()
    column = expected.contains_many(numbers, pyarrow.array(keys))
    assert column.to_pylist() == [True] * len(keys)
    assert expected.contains_many(tuple(numbers), keys) == [True] * len(keys)


def test_one_owner_may_replace_a_column():
    one, each = FilterBank(60), FilterBank(60)
    one.update("ada", range(200))
    each.update(["ada"] * 200, range(200))
    one.update(7, (str(i) for i in range(50)))
    each.update([7] * 50, [str(i) for i in range(50)])
    assert one == each
    assert one.contains_many(b"ada", np.arange(200)).all()
    assert one.add_many("ada", [1, 5000]) == [False, True]


def test_ready_hashes_equal_keys():
    owners, keys = make_pairs(4)
    for secret in (None, SECRET):
        plain, hashed = (FilterBank(60, seed=9, secret=secret) for _ in range(2))
        plain.update(owners, keys)
        of_owners, of_keys = (fullbloom.hash_many(some, seed=9, secret=secret) for some in (owners, keys))
        assert hashed.add_hashed(of_owners, of_keys) == FilterBank(60, seed=9, secret=secret).add_many(
            owners, keys
        )
        assert hashed == plain
        assert hashed.contains_hashed(np.array(of_owners, np.uint64), np.array(of_keys, np.uint64)).all()
        assert hashed.contains_hashed(of_owners[0], of_keys[:1]) == [True]


@for_each(
    ("owners", "keys", "why"),
    [
        (["a", "b"], [1], "2 owners for 1 keys"),
        (["a"], [1, 2], "1 owners for 2 keys"),
        ([], [1], "0 owners for 1 keys"),
        (["a"], [], "1 owners for 0 keys"),
        (iter(["a"]), iter([1, 2]), "1 owners for 2 keys"),
        (np.arange(3), np.arange(4), "3 owners for 4 keys"),
    ],
)
def test_columns_of_different_lengths_are_refused(owners, keys, why):
    bank = FilterBank(100)
    with pytest.raises(fullbloom.ParameterError, match=why):
        bank.update(owners, keys)
    assert len(bank) == 0


def test_nulls_and_objects_without_a_hash_are_refused():
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    bank = FilterBank(100)
    with pytest.raises(fullbloom.KeyTypeError, match="null"):
        bank.update([1, 2], pyarrow.array([1, None]))
    with pytest.raises(fullbloom.KeyTypeError, match="null"):
        bank.update(pyarrow.array([1, None]), [1, 2])
    for owners, keys in (([1, None], [1, 2]), ([1, 2], [1, {}]), (object(), [1]), (None, [1]), ([1], "a")):
        with pytest.raises(fullbloom.KeyTypeError):
            bank.update(owners, keys)
    for pair in (1, "ab", ("a",), ("a", 1, 2), None):
        with pytest.raises(fullbloom.KeyTypeError, match=r"\(owner, key\) in bank"):
            _ = pair in bank
    assert bank.num_added <= 1  # of the pairs before the refused one


def test_an_exported_owner_answers_as_the_bank():
    bank, pairs = fill_bank(secret=SECRET)
    classes = set()
    for owner in {owner for owner, _ in pairs}:
        alone = bank.export(owner)
        classes.add(type(alone))
        assert alone.contains_many(range(2000)) == bank.contains_many(owner, range(2000))
        assert alone.num_added == bank.info(owner)["num_added"]
        assert alone.fpr() == bank.fpr(owner)
        same = fullbloom.loads(alone.to_bytes(), secret=SECRET)
        assert same.contains_many(range(2000)) == alone.contains_many(range(2000))
        items, deviation = bank.approx_count(owner)
        keys = sum(1 for other, _ in pairs if other == owner)
        assert abs(items - keys) <= 6 * deviation + 0.1 * keys + 2
    assert classes == {fullbloom.BloomFilter, fullbloom.ScalableBloomFilter}
    with pytest.raises(KeyError):
        bank.export("nobody")


def test_removal_leaves_the_answers_of_other_owners():
    bank, pairs = fill_bank()
    owners = sorted({owner for owner, _ in pairs})
    before = {owner: bank.contains_many(owner, range(3000)) for owner in owners}
    bytes_before = bank.info()["line_bytes"]
    for gone, owner in enumerate(owners[:20]):
        if gone % 2:
            bank.remove_owner(owner)
            assert not bank.has_owner(owner)
            with pytest.raises(KeyError, match=owner):
                bank.remove_owner(owner)
            assert not bank.discard_owner(owner)
        else:
            bank.clear_owner(owner)
            assert bank.info(owner)["num_added"] == 0
        assert not any(bank.contains_many(owner, range(3000)))
    assert all(bank.contains_many(owner, range(3000)) == before[owner] for owner in owners[20:])
    loaded = FilterBank.from_bytes(bank.to_bytes())  # every line is checked
    assert loaded == bank
    bank.update([f"new {i}" for i in range(10)], range(10))
    assert bank.info()["line_bytes"] == bytes_before
    bank.clear()
    assert (len(bank), bool(bank), bank.num_added, bank.nbytes) == (0, False, 0, 0)


def test_an_owner_costs_nothing_until_it_is_used():
    bank = FilterBank(500)
    assert bank.nbytes == 0
    assert not any(bank.contains_many(range(10_000), range(10_000)))
    assert (bank.nbytes, len(bank)) == (0, 0)
    bank.update(range(50_000), range(50_000))
    # 10 lines of 64 bytes, and 16 bytes of a table that is at least eight tenths full.
    assert 640 + 16 / 0.9 <= bank.nbytes / 50_000 <= 640 + 16 / 0.8 + 0.1


def test_limits_are_refused_with_one_error():
    bank = FilterBank(20, 0.01, max_owners=3, max_fpr=0.01)
    with pytest.raises(fullbloom.FilterFull, match="3 owners, its max_owners"):
        bank.update([1, 2, 3, 2, 4, 1], range(6))
    assert (len(bank), bank.num_added) == (3, 4)
    with pytest.raises(fullbloom.FilterFull, match="max_fpr leaves no rate"):
        bank.update(1, range(100, 200))
    assert bank.info(1)["num_added"] == 20
    with pytest.raises(fullbloom.FilterFull, match="max_fpr leaves no rate"):
        for key in range(1000, 1100):
            bank.add(1, key)
    small = FilterBank.from_bytes(bank.to_bytes(), max_bytes=bank.nbytes)
    with pytest.raises(fullbloom.FilterFull, match="max_owners"):
        small.add(9, 9)
    wide = FilterBank(20)
    wide.update(range(50), range(50))
    small = FilterBank.from_bytes(wide.to_bytes(), max_bytes=wide.nbytes)
    with pytest.raises(fullbloom.FilterMemoryError, match="max_bytes"):
        small.update(range(100, 10_000), range(100, 10_000))


@for_each(
    ("options", "why"),
    [
        ({"fpr": 1.0}, "fpr must be between 0 and 1"),
        ({"fpr": 0.01, "max_fpr": 0.005}, "max_fpr must be at least fpr"),
        ({"max_fpr": 1.5}, "max_fpr must be between 0 and 1"),
        ({"growth": 0.5}, "growth must be between 1 and 1024"),
        ({"capacity": 0}, "capacity must be between 1"),
        ({"capacity": 1 << 40}, "capacity must be at most"),
    ],
)
def test_impossible_parameters_are_refused(options, why):
    with pytest.raises(fullbloom.ParameterError, match=why):
        FilterBank(**{"capacity": 100, **options})


def test_a_bank_is_planned_before_it_is_built():
    planned = FilterBank.nbytes_for(30_000, 100, 0.01)
    bank = FilterBank(100, 0.01)
    for start in range(0, 3_000_000, 500_000):
        pairs = np.arange(start, start + 500_000)
        bank.update(pairs // 100, pairs % 100)
    assert planned <= bank.nbytes <= 1.03 * planned
    # The essay's case.
    assert FilterBank.nbytes_for(10_000_000, 5000, 0.01) == pytest.approx(63.5e9, rel=0.01)
    with pytest.raises(fullbloom.ParameterError, match="4294967294 lines"):
        FilterBank.nbytes_for(100_000_000, 5000, 0.01)
    grown = FilterBank.nbytes_for(1000, 100, 0.01, keys=300)
    assert grown > FilterBank.nbytes_for(1000, 100, 0.01) + FilterBank.nbytes_for(1000, 200, 0.005) * 0.9


def test_merged_banks_find_the_keys_of_both():
    one, two = FilterBank(60, 0.02), FilterBank(60, 0.02)
    first, second = make_pairs(5), make_pairs(6)
    one.update(*first)
    two.update(*second)
    one.merge(two)
    one.merge(one)
    for pairs in (first, second):
        assert all(one.contains_many(*pairs))
    assert FilterBank.from_bytes(one.to_bytes()) == one
    for other in (
        FilterBank(61, 0.02),
        FilterBank(60, 0.02, seed=1),
        FilterBank(60, 0.02, growth=3.0),
        FilterBank(60, 0.02, secret=SECRET),
    ):
        with pytest.raises(fullbloom.IncompatibleFilters):
            one.merge(other)


def test_copies_pickles_and_files_are_equal(tmp_path):
    bank, pairs = fill_bank(seed=5)
    path = tmp_path / "bank"
    bank.save(path)
    mapped = FilterBank.open(path)
    for same in (
        copy.copy(bank),
        copy.deepcopy(bank),
        pickle.loads(pickle.dumps(bank)),
        FilterBank.from_bytes(bank.to_bytes()),
        fullbloom.loads(bank.to_bytes()),
        fullbloom.open(path),
        fullbloom.open(path, verify="full"),
        mapped,
    ):
        assert type(same) is FilterBank
        assert same == bank
        assert (same.seed, same.capacity, same.target_fpr, same.max_fpr) == (5, 60, 0.02, 0.04)
        assert same.contains_many(*zip(*pairs, strict=True)).count(False) == 0
    assert mapped.info()["mapped"]
    assert str(mapped.path) == str(path)
    for change in (
        lambda: mapped.add("ada", 1),
        lambda: mapped.update(["ada"], [1]),
        lambda: mapped.remove_owner("owner 1"),
        lambda: mapped.clear_owner("owner 1"),
        mapped.clear,
        lambda: mapped.merge(bank),
    ):
        with pytest.raises(fullbloom.ReadOnlyFilter):
            change()
    with pytest.raises(fullbloom.ParameterError, match="r\\+"):
        FilterBank.open(path, mode="r+")
    changed = mapped.copy()
    assert changed.add("ada", 1)
    assert changed != bank == mapped


def test_a_secret_is_needed_to_open_and_is_not_pickled(tmp_path):
    bank = FilterBank(60, secret=True)
    bank.update("ada", range(100))
    with pytest.raises(fullbloom.SecretError):
        bank.to_bytes()
    secret = bank.take_secret()
    bank.save(tmp_path / "bank")
    assert (
        FilterBank.open(tmp_path / "bank", secret=secret).contains_many("ada", range(100)).count(True) == 100
    )
    for wrong in (None, bytes(16)):
        with pytest.raises(fullbloom.ParameterError, match="secret"):
            FilterBank.open(tmp_path / "bank", secret=wrong)
    with pytest.raises(TypeError, match="secret"):
        pickle.dumps(bank)
    assert secret not in bank.to_bytes()


def test_a_lookup_of_another_type_warns_once():
    bank = FilterBank(60)
    bank.update("ada", range(10))
    with pytest.warns(fullbloom.KeyDomainWarning):
        bank.contains_many("ada", ["1", "2"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ("ada", "1") not in bank


def test_a_bank_is_not_a_batch_of_keys():
    with pytest.raises((fullbloom.KeyTypeError, TypeError)):
        fullbloom.BloomFilter(10).update(FilterBank(10))


def test_lookups_on_several_threads_answer_as_on_one():
    bank = FilterBank(200)
    owners, keys = np.arange(700_000) % 1777, np.arange(700_000)
    bank.update(owners[::2], keys[::2])
    one = bank.contains_many(owners, keys)
    assert one[::2].all()
    assert not one.all()
    assert (bank.contains_many(owners, keys, threads=2) == one).all()
    assert (bank.contains_many(5, keys, threads=3) == bank.contains_many(5, keys)).all()
    assert bank.contains_many(owners[:9].tolist(), keys[:9].tolist(), threads=2) == one[:9].tolist()
    with pytest.raises(fullbloom.ParameterError, match="threads"):
        bank.contains_many(owners, keys, threads=0)


def test_pairs_are_added_up_to_one_that_memory_does_not_allow():
    start, owners = FilterBank(20), np.arange(9_000) % 40
    start.update(owners[:40], np.arange(40))
    bank, one = (
        FilterBank.from_bytes(start.to_bytes(), max_bytes=len(start.to_bytes()) + 6_400) for _ in range(2)
    )
    with pytest.raises(fullbloom.FilterMemoryError):
        bank.update(owners, np.arange(9_000))
    with pytest.raises(fullbloom.FilterMemoryError):
        for owner, key in zip(owners.tolist(), range(9_000), strict=True):
            one.add(owner, key)
    assert bank.num_added > start.num_added
    assert bank.to_bytes() == one.to_bytes()


def test_threads_lose_no_pair():
    bank = FilterBank(100, 0.001)
    owners, keys = np.arange(40_000) % 700, np.arange(40_000)
    errors = []

    def add(part: int) -> None:
        try:
            some = slice(part * 10_000, (part + 1) * 10_000)
            for _ in range(3):
                bank.update(owners[some], keys[some])
                for owner, key in zip(owners[some][:200].tolist(), keys[some][:200].tolist(), strict=True):
                    bank.add(owner, key)
                assert bank.contains_many(owners[some], keys[some]).all()
        except BaseException as error:  # noqa: BLE001 - reported below
            errors.append(error)

    threads = [threading.Thread(target=add, args=(part,)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert bank.contains_many(owners, keys).all()
    assert len(bank) == 700
    assert 0.99 * 40_000 <= bank.num_added <= 40_000
