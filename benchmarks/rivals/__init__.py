"""Rivals: one adapter a file. Each says how its users would write the fastest form of every operation."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

OURS = "fullbloom"
FILES = (
    "ours", "exact_set", "rbloom_classic", "abloom_split", "abloom_stable", "fastbloom_rs_classic",
    "mmap3_classic", "pybloom_live_classic",
)  # fmt: skip

Call = Callable[[Any], Any]


@dataclass(frozen=True)
class Rival:
    """How one library is driven. `kind` is "str" or "int" where a library has a call for each."""

    name: str
    make: Callable[[int, float], Any]
    add: Callable[[Any, str], Call]
    update: Callable[[Any, str], Call]
    contains_many: Callable[[Any, str], Call]
    contains: Callable[[Any, str], Call] | None = None
    """A call a key; None when `key in filter` is the way."""
    bits: Callable[[Any], int] | None = None
    add_many: Callable[[Any, str], Call] | None = None
    """Adds and answers which keys were new; None when the library has no such call."""
    emulated: frozenset[str] = frozenset()
    """Operations without a call of their own, timed as the best plain Python for them."""
    slow: bool = False
    """Pure Python: timed on fewer keys."""
    sized: bool = True
    """Has a capacity at all."""


def map_lookups(filter_: Any, _kind: str = "") -> Call:
    """Batch lookup where a library has none."""
    holds = filter_.__contains__
    return lambda keys: list(map(holds, keys))


def load(names: tuple[str, ...] = FILES) -> tuple[list[Rival], list[str]]:
    """The rivals that can run here, and for each of the others one line with the reason."""
    ready, missing = [], []
    for name in names:
        try:
            ready.append(_tried(name))
        except Exception as error:  # noqa: BLE001 - whatever a foreign package raises, it is left out
            missing.append(f"rival {name}: {type(error).__name__}: {error}")
    return ready, missing


def _tried(name: str) -> Rival:
    rival: Rival = importlib.import_module(f"benchmarks.rivals.{name}").RIVAL
    trial = rival.make(1000, 0.01)
    rival.add(trial, "str")("key")
    rival.update(trial, "int")([1, 2])
    if not all(rival.contains_many(trial, "int")([1, 2])):
        raise ValueError("lost a key")
    return rival
