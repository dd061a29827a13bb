"""Ctrl-C ends a long batch, of any kind and any input, and what was added stays."""

from __future__ import annotations

import array
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from support import Keys, Variant, every_variant

import fullbloom
from fullbloom import _core

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers")

SOON = 0.03
#: Where a busy machine has not come to the first key by then.
LATER = (SOON, 10 * SOON, 100 * SOON)


class Stopped(Exception):
    """Raised by the signal."""


@contextmanager
def alarm(seconds: float = SOON) -> Iterator[None]:
    """A signal after a short while."""

    def handle(*_: object) -> None:
        raise Stopped

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def interrupt(work: Callable[[], object], begun: Callable[[], object]) -> None:
    """Let a signal end ``work`` after it has ``begun``."""
    for seconds in LATER:
        with pytest.raises(Stopped), alarm(seconds):
            work()
        if begun():
            return


def endless(length: int, dtype: str = "int64") -> Any:
    """So many keys in the memory of one: none of the batches below ends within minutes."""
    return np.broadcast_to(np.zeros((), dtype), length)


# Answers take memory where they are written: these batches end within seconds if nothing stops them.
MANY, ANSWERED = 1 << 40, 1 << 28


@pytest.mark.filterwarnings("ignore::fullbloom.CapacityWarning")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("variant", every_variant("keys", "keeps"))
def test_adding_is_interrupted(variant: Variant, threads: int) -> None:
    if variant.row["once"]:
        pytest.skip("a table of copies of one key is full at once")
    instance = variant.make(100_000)
    interrupt(lambda: instance.update(endless(MANY), threads=threads), lambda: 0 in instance)
    assert 0 in instance


CALLS: dict[str, Callable[[Any], object]] = {
    "add_many": lambda f: f.add_many(endless(ANSWERED)),
    "add_many threads": lambda f: f.add_many(endless(ANSWERED), threads=2),
    "contains_many": lambda f: f.contains_many(endless(ANSWERED)),
    "contains_many threads": lambda f: f.contains_many(endless(ANSWERED), threads=2),
    "contains_hashed": lambda f: f.contains_hashed(endless(ANSWERED, "uint64")),
    "add_hashed": lambda f: f.add_hashed(endless(ANSWERED, "uint64")),
    "hash_many": lambda _: fullbloom.hash_many(endless(ANSWERED)),
    "hash_many text": lambda _: fullbloom.hash_many(endless(ANSWERED, "S9")),
    "update of a generator": lambda f: f.update(iter(int, 1)),
    "update of a range": lambda f: f.update(range(1 << 40)),
}


@pytest.mark.filterwarnings("ignore::fullbloom.CapacityWarning")
@pytest.mark.parametrize("call", CALLS)
def test_every_batch_is_interrupted(call: str) -> None:
    instance = fullbloom.BloomFilter(1000)
    instance.add(0)
    with pytest.raises(Stopped), alarm():
        CALLS[call](instance)


ASKED = {
    "count": "count_many",
    "remove": "discard_many",
}


@pytest.mark.parametrize("need", ASKED)
def test_counting_and_removing_are_interrupted(need: str) -> None:
    for variant in (param.values[0] for param in every_variant("keys", need)):
        instance = variant.make(1000)
        with pytest.raises(Stopped), alarm():
            getattr(instance, ASKED[need])(endless(ANSWERED))


@pytest.mark.parametrize("variant", every_variant("pairs"))
def test_adding_pairs_is_interrupted(variant: Variant) -> None:
    instance = variant.make(1000)
    interrupt(lambda: instance.update(endless(MANY), 1), lambda: 0 in instance)
    assert 0 in instance


@pytest.mark.filterwarnings("ignore::fullbloom.CapacityWarning")
@pytest.mark.parametrize("call", [_core.add_lines, _core.check_lines])
def test_line_input_is_interrupted(call: Any) -> None:
    instance = fullbloom.BloomFilter(1000)
    lines = b"".join(b"%x\n" % i for i in range(1 << 18)) * 64
    with pytest.raises(Stopped), alarm():
        call(instance, lines)


@pytest.mark.parametrize("kind", ["numpy", "arrow", "array", "list"])
def test_keys_added_before_the_signal_stay(kind: str) -> None:
    numbers = Keys("random", 8).take(20_000_000 if kind != "list" else 4_000_000)
    keys: Any = numbers
    if kind == "arrow":
        keys = pytest.importorskip("pyarrow").array(numbers)
    elif kind == "array":
        keys = array.array("q", numbers.tobytes())
    elif kind == "list":
        keys = numbers.tolist()
    instance = fullbloom.BloomFilter(len(numbers), 1e-6, layout="classic")
    interrupt(lambda: instance.update(keys), lambda: instance.num_added)
    added = instance.num_added
    assert 0 < added < len(numbers)
    # One of a million is missing among those that were new, since the filter held it already.
    assert instance.contains_many(numbers[:added]).all()
    assert not instance.contains_many(numbers[added + 1000 :: 16]).all()


def test_a_signal_that_raises_nothing_changes_nothing() -> None:
    keys = Keys("random", 9).take(10_000_000)
    instance, one = fullbloom.BloomFilter(len(keys)), fullbloom.BloomFilter(len(keys))
    seen: list[int] = []

    def handle(*_: object) -> None:
        # Code that a signal runs finds the filter free.
        seen.append(instance.num_added)

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    try:
        answers = instance.add_many(keys)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert seen == sorted(seen)
    assert seen
    assert np.array_equal(answers, one.add_many(keys))
    assert instance == one
