"""Clocks and loops. All times are nanoseconds per key unless a name says otherwise."""

from __future__ import annotations

import gc
import os
import statistics
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

T = TypeVar("T")


def one_cpu() -> int:
    """The processor that single-thread work is pinned to: the last one, the least interrupted."""
    return max(os.sched_getaffinity(0))


@contextmanager
def pinned(cpus: set[int]) -> Iterator[None]:
    """Runs the block on `cpus` only; threads started inside inherit it."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def no_gc() -> Iterator[None]:
    """Runs the block with the cyclic garbage collector off, after one collection."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def rotated(items: Sequence[T], round_: int) -> list[T]:
    """`items`, started at another one each round, so that no one always runs first."""
    at = round_ % len(items)
    return [*items[at:], *items[:at]]


def loop_empty(keys: list[Any]) -> float:
    """The cost of walking over `keys`."""
    start = time.perf_counter_ns()
    for _ in keys:
        pass
    return (time.perf_counter_ns() - start) / len(keys)


def loop_call(call: Callable[[Any], Any], keys: list[Any]) -> float:
    """`call(key)` for every key."""
    start = time.perf_counter_ns()
    for key in keys:
        call(key)
    return (time.perf_counter_ns() - start) / len(keys)


def loop_in(container: Any, keys: list[Any]) -> float:
    """`key in container` for every key."""
    start = time.perf_counter_ns()
    for key in keys:
        key in container  # noqa: B015
    return (time.perf_counter_ns() - start) / len(keys)


def wall(call: Callable[[], Any], keys: int) -> float:
    """Wall time of one call over `keys` keys. The answer is freed outside the clock."""
    start = time.perf_counter_ns()
    answer = call()
    spent = time.perf_counter_ns() - start
    del answer
    return spent / keys


def wall_and_cpu(call: Callable[[], Any], keys: int) -> tuple[float, float]:
    """Wall time and CPU time (all threads of the process) of one call."""
    cpu, start = time.process_time_ns(), time.perf_counter_ns()
    answer = call()
    spent, used = time.perf_counter_ns() - start, time.process_time_ns() - cpu
    del answer
    return spent / keys, used / keys


def median(samples: Sequence[float]) -> float:
    """The median."""
    return statistics.median(samples)
