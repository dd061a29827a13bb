"""WithRemovals: removal once, re-adding where the second filter can remove, files, and its rates."""

from __future__ import annotations

import copy
import json
import pickle
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support import SECRET, Keys, scatter_of_mean

from fullbloom import (
    BloomFilter,
    FormatError,
    KeyTypeError,
    QuotientFilter,
    ReadOnlyFilter,
    RemovedKeyError,
    ScalableBloomFilter,
)
from fullbloom.compose import WithRemovals
from fullbloom.protocols import Addable, Countable, Estimating, Filter, Mergeable, Removable

if TYPE_CHECKING:
    from pathlib import Path


def once(**options: Any) -> WithRemovals[BloomFilter, BloomFilter]:
    return WithRemovals(BloomFilter(5000, 1e-6, **options), BloomFilter(1000, 1e-6, **options))


def again() -> WithRemovals[BloomFilter, QuotientFilter]:
    return WithRemovals(BloomFilter(5000, 1e-6), QuotientFilter(1000, 1e-6))


def test_protocols_match_the_capabilities_of_a_class() -> None:
    assert isinstance(BloomFilter(10), (Addable, Mergeable, Estimating))
    assert isinstance(ScalableBloomFilter(10), Addable)
    assert not isinstance(BloomFilter(10), Removable)
    assert not isinstance(BloomFilter(10), Countable)
    assert not isinstance(ScalableBloomFilter(10), Mergeable)
    for protocol in (Filter, Addable, Removable, Countable, Mergeable):
        assert isinstance(QuotientFilter(10), protocol)
    assert not isinstance(QuotientFilter(10), Estimating)
    assert isinstance(again(), Removable)
    assert not isinstance({1}, Addable)


@pytest.mark.parametrize("make", [once, again])
def test_a_key_is_removed_once(make: Any) -> None:
    f = make()
    assert f.add("a")
    assert not f.add("a")
    f.update(["b", "c"])
    f.remove("a")
    assert [key in f for key in "abc"] == [False, True, True]
    for key in ("a", "never"):
        before = f.removed.to_bytes()
        with pytest.raises(KeyError, match=key):
            f.remove(key)
        assert not f.discard(key)
        assert f.removed.to_bytes() == before
    assert f.discard_many(["b", "b", "x"]) == [True, False, False]
    assert f.contains_many(["a", "b", "c"]) == [False, False, True]
    f.clear()
    assert f.contains_many(["a", "b", "c"]) == [False, False, False]
    assert f.add("a")


def test_a_removed_key_is_refused_if_the_second_filter_cannot_remove() -> None:
    f = once()
    f.update(range(10))
    f.remove(3)
    before = f.kept.to_bytes()
    with pytest.raises(RemovedKeyError, match="3"):
        f.add(3)
    with pytest.raises(RemovedKeyError, match="3"):
        f.update([100, 3, 101])
    with pytest.raises(ValueError, match="3"):
        f.update(np.array([100, 3, 101]))
    assert f.kept.to_bytes() == before
    assert 100 not in f


def test_a_removed_key_is_added_again_if_the_second_filter_can_remove() -> None:
    f = again()
    f.update(range(100))
    f.remove_many(np.array([3, 4, 4, 5]))
    assert f.contains_many(range(6)) == [True, True, True, False, False, False]
    assert f.add(3)
    assert not f.add(3)
    assert f.removed.used_slots == 2
    f.update(np.array([4, 4, 200]))
    assert f.contains_many(np.array([3, 4, 5, 200])).tolist() == [True, True, False, True]
    assert f.add_many([5, 5]) == [True, False]
    assert f.removed.used_slots == 0


@pytest.mark.parametrize("kind", [list, np.array, iter, tuple])
def test_a_refused_batch_of_removals_changes_nothing(kind: Any) -> None:
    f = again()
    f.update(range(10))
    with pytest.raises(KeyError, match="77"):
        f.remove_many(kind([1, 2, 77]))
    assert f.removed.num_added == 0
    f.remove_many(kind([1, 2]))
    assert f.contains_many([1, 2, 5]) == [False, False, True]
    answer = f.contains_many(kind([1, 5]))
    assert list(answer) == [False, True]


def test_operations_agree_with_a_set() -> None:
    f, model, rng = again(), set[int](), np.random.default_rng(3)
    for _ in range(4000):
        key = int(rng.integers(0, 500))
        if rng.random() < 0.5:
            assert f.add(key) == (key not in model)
            model.add(key)
        else:
            assert f.discard(key) == (key in model)
            model.discard(key)
    assert f.contains_many(range(600)) == [key in model for key in range(600)]


@pytest.mark.parametrize(("removed", "rate"), [(200, 0.02), (1000, 0.05), (5000, 0.01)])
def test_rates_are_as_reported(removed: int, rate: float) -> None:
    members, trials = max(6_000, 20 * removed), 10_000
    missing, finding = [], []
    for seed in range(30):
        f = WithRemovals(BloomFilter(members, 0.05, seed=seed), BloomFilter(removed, rate, seed=seed))
        assert f.fnr() == 0.0
        keys = Keys("random", 100 * removed + seed)
        inside = keys.take(members)
        f.update(inside)
        f.remove_many(inside[:removed])
        assert not f.contains_many(inside[:removed]).any()
        missing.append(1.0 - f.contains_many(inside[removed:]).mean() - f.fnr())
        finding.append(f.contains_many(keys.take(trials)).mean() - f.fpr())
        assert f.info()["fnr"] == f.fnr()
    for errors in (missing, finding):
        mean, off = scatter_of_mean(errors)
        assert abs(mean) <= off


def test_a_folder_holds_the_old_pair_or_the_new_one(tmp_path: Path) -> None:
    f = again()
    f.update(range(50))
    f.remove(7)
    f.save(tmp_path / "f")
    f.remove(8)
    f.save(tmp_path / "f")
    assert len(list((tmp_path / "f").iterdir())) == 3
    opened = WithRemovals.open(tmp_path / "f", verify="full")
    assert opened == f
    assert opened.contains_many([7, 8, 9]) == [False, False, True]
    with pytest.raises(ReadOnlyFilter):
        opened.remove(9)
    free = opened.copy()
    free.remove(9)
    assert (9 in opened, 9 in free) == (True, False)
    # A writer that died before it replaced the manifest leaves the previous pair.
    (tmp_path / "f" / "kept-half.bloom").write_bytes(b"half")
    assert WithRemovals.open(tmp_path / "f") == f
    keyed = once(secret=SECRET)
    keyed.add("k")
    keyed.save(tmp_path / "keyed")
    assert "k" in WithRemovals.open(tmp_path / "keyed", secret=SECRET)


def test_an_invalid_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        WithRemovals.open(tmp_path)
    once().save(tmp_path)
    manifest = tmp_path / "removals.json"
    sound = json.loads(manifest.read_text())
    lies: list[Any] = [
        "",
        "[]",
        "{",
        {**sound, "kept": "../other"},
        {**sound, "kept": 5},
        {**sound, "removed": "/etc/passwd"},
        {**sound, "version": 9},
        {**sound, "format": "x"},
    ]
    for lie in lies:
        manifest.write_text(lie if isinstance(lie, str) else json.dumps(lie))
        with pytest.raises(FormatError):
            WithRemovals.open(tmp_path)


def test_misuse_is_refused_by_name() -> None:
    same = BloomFilter(10)
    with pytest.raises(ValueError, match="twice"):
        WithRemovals(same, same)
    with pytest.raises(TypeError, match="removed"):
        WithRemovals(same, {1})  # type: ignore[type-var]
    with pytest.raises(KeyTypeError):
        once().contains_many([object()])
    pyarrow = pytest.importorskip("pyarrow")
    with pytest.raises(KeyTypeError, match="Arrow"):
        once().contains_many(pyarrow.array([1, 2]))


def test_copies_and_pickles_keep_both_parts() -> None:
    f = again()
    f.update(list("abc"))
    f.remove("a")
    for twin in (f.copy(), copy.deepcopy(f), pickle.loads(pickle.dumps(f))):
        assert twin == f
        twin.remove("b")
        assert twin != f
    assert "WithRemovals(BloomFilter" in repr(f)


def test_one_of_several_threads_removes_a_key() -> None:
    f = again()
    f.update(range(500))
    removed: list[int] = []

    def remove_all() -> None:
        removed.extend(key for key in range(500) if f.discard(key))

    threads = [threading.Thread(target=remove_all) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(removed) == list(range(500))
