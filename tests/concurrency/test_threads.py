"""Any number of threads on one filter, with a GIL, without, and where none are granted: no key is lost."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import SCALE, Keys, Variant, bits_of, every_variant, layouts

import fullbloom

THREADS = 8
ROUNDS = 6 * SCALE
BATCH = 3000


def run_together(work: Any, threads: int = THREADS) -> list[Any]:
    """Run ``work(i)`` on several threads that start at the same moment; their results."""
    barrier = threading.Barrier(threads)

    def start(i: int) -> Any:
        barrier.wait(timeout=60)
        return work(i)

    with ThreadPoolExecutor(threads) as pool:
        return [future.result(timeout=120) for future in [pool.submit(start, i) for i in range(threads)]]


@pytest.mark.parametrize("variant", every_variant("keys", "keeps"))
def test_concurrent_calls_of_every_kind_lose_no_key(variant: Variant, tmp_path: Path) -> None:
    bloom = variant.make(3 * THREADS * ROUNDS * BATCH, 0.001, seed=1)

    def work(i: int) -> list[Any]:
        mine: list[Any] = []
        for step in range(ROUNDS):
            numbers = Keys("random", i * ROUNDS + step).take(BATCH)
            texts = [f"{i}-{step}-{j}" for j in range(BATCH)]
            singles = [(i, step, j) for j in range(50)]
            bloom.update(numbers, threads=2)
            assert bloom.contains_many(numbers).all()
            new = bloom.add_many(texts)
            assert len(new) == BATCH
            for key in singles:
                bloom.add(key)
                assert key in bloom
            if step == i % ROUNDS:
                save_and_check(texts)
            mine += [*numbers.tolist(), *texts, *singles]
        return mine

    def save_and_check(texts: list[str]) -> None:
        path = tmp_path / "shared.bloom"
        bloom.save(path)
        assert all(fullbloom.loads(bloom.to_bytes()).contains_many(texts))
        assert all(bloom.copy().contains_many(texts))
        assert fullbloom.open(path, verify="full").num_added > 0
        repr(bloom)
        bloom.info()
        if variant.can("union"):
            assert bloom.copy() <= bloom

    for mine in run_together(work):
        assert all(bloom.contains_many(mine))


@pytest.mark.parametrize("layout", layouts())
def test_racing_threads_set_the_bits_that_one_thread_sets(layout: str) -> None:
    keys = Keys("random", 3).take(400_000)
    bloom = fullbloom.BloomFilter(len(keys), 0.01, layout=layout)
    one = bloom.copy()
    one.update(keys)

    def work(i: int) -> None:
        for part in np.array_split(keys[i::THREADS], 20):
            bloom.update(part)
            bloom.add(int(part[0]))

    run_together(work)
    assert bits_of(bloom) == bits_of(one)


def test_each_key_is_new_to_one_thread_at_most() -> None:
    keys = Keys("random", 4).take(100_000)
    bloom = fullbloom.BloomFilter(len(keys), 1e-6)
    masks = run_together(lambda i: bloom.add_many(keys if i % 2 else keys[::-1]))
    outcome = sum(
        mask if i % 2 else mask[::-1] for i, mask in enumerate(np.asarray(m, np.int64) for m in masks)
    )
    assert outcome.max() == 1
    # A key told new to none is a false positive; at 1e-6 there is hardly one among these.
    assert outcome.sum() == bloom.num_added
    assert bloom.num_added >= len(keys) - 5


def test_single_adds_of_the_same_keys_are_new_once() -> None:
    keys = [*range(50_000), *(f"key-{i}" for i in range(50_000))]
    bloom = fullbloom.BloomFilter(len(keys), 1e-9)
    answers = run_together(lambda i: [bloom.add(key) for key in (keys if i % 2 else keys[::-1])])
    outcome = [
        sum(new) for new in zip(*(a if i % 2 else a[::-1] for i, a in enumerate(answers)), strict=True)
    ]
    assert outcome == [1] * len(keys)
    assert bloom.num_added == len(keys)


@pytest.mark.parametrize("variant", every_variant("keys", "remove"))
def test_single_adds_and_removes_keep_the_keys_that_stay(variant: Variant) -> None:
    bloom = variant.make(THREADS * 5000, 0.001)

    def work(i: int) -> list[str]:
        keys = [f"{i}-{j}" for j in range(4000)]
        for key in keys:
            bloom.add(key)
            assert key in bloom
        for key in keys[::2]:
            bloom.remove(key)
        return keys[1::2]

    for kept in run_together(work):
        assert all(key in bloom for key in kept)


def test_a_list_may_be_changed_by_another_thread_while_it_is_read() -> None:
    keys = [f"key-{i}" for i in range(20_000)]
    shared: list[object] = []
    bloom = fullbloom.BloomFilter(100_000, 1e-6)

    def work(i: int) -> None:
        for step in range(60):
            if i == 0:
                shared.clear()
                shared.extend(f"key-{j}" for j in range(step * 300))
            elif i == 1:
                del shared[::3]
                shared.append((step, "tuple"))
            elif i % 2:
                bloom.update(shared)
            else:
                assert len(bloom.contains_many(shared)) <= 2 * len(keys)

    run_together(work)
    bloom.update(keys)
    assert all(bloom.contains_many(keys))


@pytest.mark.filterwarnings("ignore::fullbloom.CapacityWarning")
def test_merging_both_ways_at_once_does_not_deadlock() -> None:
    one, other = fullbloom.BloomFilter(50_000), fullbloom.BloomFilter(50_000)

    def work(i: int) -> None:
        left, right = (one, other) if i % 2 else (other, one)
        for step in range(100):
            left |= right
            left.update(np.arange(step * 100, step * 100 + 100) + i * 10**6)
            assert left.isdisjoint(right) in {True, False}
            assert left == left  # noqa: PLR0124 - takes the lock twice

    run_together(work)
    one |= other
    for i in range(THREADS):
        assert one.contains_many(np.arange(10_000) + i * 10**6).all()


def test_clearing_while_adding_never_fails() -> None:
    bloom = fullbloom.BloomFilter(100_000)

    def work(i: int) -> None:
        for step in range(50):
            if i == 0:
                bloom.clear()
            else:
                bloom.update(np.arange(2000) + step)

    run_together(work)
    assert 0 <= bloom.num_added <= 100_000


def test_scalar_calls_run_during_a_batch() -> None:
    keys = Keys("random", 6).take(5_000_000)
    bloom = fullbloom.BloomFilter(2 * len(keys), 0.001)
    start, done, added = threading.Barrier(2), threading.Event(), 0

    def batch() -> None:
        start.wait(timeout=60)
        for turn in range(100):  # 50 ms each; on a busy machine the other thread starts late
            bloom.update(keys)
            if turn >= 3 and added >= 2:
                break
        done.set()

    thread = threading.Thread(target=batch)
    thread.start()
    start.wait(timeout=60)
    while not done.is_set():
        assert bloom.add(("scalar", added)) or added
        assert ("scalar", added) in bloom
        added += 1
        time.sleep(0)
    thread.join()
    assert added >= 2
    assert all(bloom.contains_many([("scalar", i) for i in range(added)]))
    assert bloom.contains_many(keys).all()


# More stack than an address space holds: every thread that is asked for is refused.
NO_THREADS = {**os.environ, "RUST_MIN_STACK": str(1 << 47)}

SCRIPT = """
import sys
import numpy as np
import fullbloom
layout = sys.argv[1]
keys, others = np.arange(300_007), np.arange(300_007, 600_014)
one, many, counted = (fullbloom.BloomFilter(300_007, layout=layout) for _ in range(3))
assert np.array_equal(one.add_many(keys), many.add_many(keys, threads=2))
counted.update(keys, threads=8)
assert one.to_bytes() == many.to_bytes() == counted.to_bytes()
assert np.array_equal(one.contains_many(others), one.contains_many(others, threads=8))
print("same")
"""


@pytest.mark.parametrize("layout", ["blocked", "classic"])
def test_refused_threads_change_nothing(layout: str) -> None:
    command = [sys.executable, "-c", SCRIPT, layout]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=NO_THREADS)
    assert (done.returncode, done.stdout, done.stderr) == (0, "same\n", "")


GIL = not sysconfig.get_config_var("Py_GIL_DISABLED")


def test_importing_fullbloom_leaves_the_gil_as_it_was() -> None:
    code = """if True:
        import sys
        enabled = getattr(sys, "_is_gil_enabled", lambda: True)
        before = enabled()
        import fullbloom
        fullbloom.BloomFilter(10).update([1, "a"])
        print(before, enabled())
    """
    env = {name: value for name, value in os.environ.items() if name != "PYTHON_GIL"}
    command = [sys.executable, "-W", "error", "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, env=env)
    assert run.stdout.split() == [str(GIL), str(GIL)]


def test_these_tests_run_without_the_gil_where_it_can_be_off() -> None:
    assert fullbloom.__name__ in sys.modules
    assert getattr(sys, "_is_gil_enabled", lambda: True)() == GIL
