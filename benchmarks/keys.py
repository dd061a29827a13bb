"""Keys. Members and absent keys never meet; fresh objects whose hash Python has not cached."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

MASK = (1 << 64) - 1


def split_mix(x: int) -> int:
    """A bijection of 64-bit integers that looks random."""
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def _text(x: int) -> str:
    """19 to 24 ASCII characters."""
    return ("id/", "user/", "visit/", "item/")[x & 3] + format(split_mix(x), "018x")[-18 + (x >> 2 & 1) :]


def fresh_text(count: int, absent: bool) -> Callable[[], list[Any]]:
    """A maker of new `str` objects, the same text each time. Splitting costs about 60 ns per key."""
    start = 1 << 40 if absent else 0
    text = "\n".join(_text(start + i) for i in range(count))
    return lambda: text.split("\n")


def fresh_ints(count: int, absent: bool) -> Callable[[], list[Any]]:
    """A maker of new `int` objects: random, 60 bits, the lowest telling members from absent keys."""
    draw = random.Random(count).getrandbits
    numbers = " ".join(str(draw(59) * 2 + absent) for _ in range(count))
    return lambda: [int(word) for word in numbers.split()]


def makers(kind: str, count: int) -> tuple[Callable[[], list[Any]], Callable[[], list[Any]]]:
    """(members, absent) for `kind` "str" or "int"."""
    make = {"str": fresh_text, "int": fresh_ints}[kind]
    return make(count, False), make(count, True)
