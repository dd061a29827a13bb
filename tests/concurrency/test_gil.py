"""No call on a large filter keeps the interpreter from other threads, and no wait does."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from concurrency.calls import Scene, calls_of, scene
from concurrency.gil import MOST, TRIES, least_of_longest, watch
from support import LONG, Keys, Variant, every_variant, variants_with

import fullbloom


@contextmanager
def another_thread() -> Iterator[list[int]]:
    """How often another thread ran, where none runs but when native code lets it: no switch by time."""
    runs, stop, interval = [0], threading.Event(), sys.getswitchinterval()

    def run() -> None:
        while not stop.is_set():
            runs[0] += 1
            time.sleep(0)

    other = threading.Thread(target=run)
    other.start()
    sys.setswitchinterval(1000)
    try:
        yield runs
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        other.join()


def one_of_each_class() -> list[Variant]:
    """The first layout or kind of every class."""
    return list({variant.name: variant for variant in reversed(variants_with())}.values())


@pytest.mark.skipif(
    not LONG, reason="FULLBLOOM_LONG=1 measures every call on 300 MB; it wants a machine without other work"
)
@pytest.mark.filterwarnings("ignore::fullbloom.CapacityWarning")
@pytest.mark.parametrize("variant", every_variant())
@pytest.mark.timed
def test_no_call_on_300_mb_holds_the_gil_for_10_ms(variant: Variant, tmp_path: Path) -> None:
    s: Scene = scene(variant, 300 << 20, Keys("random", 7).take(2_000_000), tmp_path)
    held = {}
    with watch() as watching:
        for name, call in calls_of(variant):
            longest = least_of_longest(watching, lambda call=call: call(s))
            if longest >= MOST:
                held[name] = f"{1000 * longest:.1f} ms"
    assert not held, f"{variant.id}: {held}"


@pytest.mark.filterwarnings("ignore::fullbloom.CapacityWarning")
@pytest.mark.parametrize("variant", one_of_each_class(), ids=lambda variant: variant.name)
@pytest.mark.timed
def test_every_long_call_releases_the_gil(variant: Variant, tmp_path: Path) -> None:
    """No switch by time: another thread runs only when native code lets it."""
    s: Scene = scene(variant, 32 << 20, Keys("random", 7).take(100_000), tmp_path)

    def is_free(call: Callable[[Scene], object]) -> bool:
        before, start = runs[0], time.perf_counter()
        answer = call(s)
        after, took = runs[0], time.perf_counter() - start
        del answer
        return after > before or took < MOST / 2

    with another_thread() as runs:
        kept = [name for name, call in calls_of(variant) if not any(is_free(call) for _ in range(TRIES))]
    assert not kept


@pytest.mark.parametrize(
    "waiting", ["in", "add", "update", "__ior__", "__eq__", "merge", "clear", "info", "num_added"]
)
@pytest.mark.timed
def test_a_call_that_waits_for_a_filter_releases_the_gil(waiting: str) -> None:
    """While one thread reads a filter for a long time, a second waits for it, and a third computes."""
    shared, other = fullbloom.BloomFilter(1000), fullbloom.BloomFilter(1000)
    # Small, so that nothing but the wait takes time; the reader keeps it for one round of all threads.
    keys = np.broadcast_to(np.zeros((), "int64"), 1 << 24)
    calls: dict[str, Callable[[], object]] = {
        "in": lambda: 7 in shared,
        "add": lambda: shared.add(7),
        "update": lambda: shared.update([7]),
        "__ior__": lambda: shared.__ior__(other),
        "__eq__": lambda: other == shared,
        "merge": lambda: shared.merge(other),
        "clear": shared.clear,
        "info": shared.info,
        "num_added": lambda: shared.num_added,
    }

    def measure() -> tuple[float, float]:
        """How long no other thread ran while this one waited, and how long the reader read."""
        stuck, reader = 0.0, threading.Thread(target=lambda: shared.contains_many(keys, threads=2))
        with another_thread() as runs:
            reader.start()
            begin = time.perf_counter()
            for _ in range(50):
                before, start = runs[0], time.perf_counter()
                calls[waiting]()
                stuck += (time.perf_counter() - start) * (runs[0] == before)
                if not reader.is_alive():
                    break
            whole = time.perf_counter() - begin
        reader.join()
        return stuck, whole

    # The reader keeps the filter for 20 ms and more at a time: who waits attached stops all for as long.
    # Where other programs have the processor, the third thread may not run: the best of some tries counts.
    tries = (measure() for _ in range(5))
    assert any(stuck < max(whole / 2, 2 * MOST) for stuck, whole in tries)
