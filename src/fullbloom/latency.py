"""How long a lookup takes: nanoseconds per key by layout and size, for `fullbloom.plan`."""

from __future__ import annotations

import math
from bisect import bisect_left
from numbers import Real
from typing import Any

from fullbloom import registry
from fullbloom.errors import ParameterTypeError

#: Nanoseconds that one random cache line costs a batch lookup, by working set in bytes: one core,
#: 2.5 GHz, huge pages, prefetch ring. From the project's performance notes, sections 1, 2a and 7.
_LINE_NS = (
    (16 << 10, 2.0),
    (512 << 10, 2.0),
    (2 << 20, 2.8),
    (15 << 20, 5.8),
    (140 << 20, 11.5),
    (1200 << 20, 18.0),
)
#: Hashing a 64-bit key and writing the answer.
_BASE_NS = 3.0


def expected_ns(layout: str, num_bits: int, num_hashes: int) -> float:
    """Return the expected nanoseconds per key of a batch lookup that finds half of the keys.

    A key touches one or two cache lines in the layouts that keep it there. In the others a present key
    touches k lines and an absent key about two, in a half-full filter.

    >>> 8 < expected_ns("blocked", 100_000_000, 8) < expected_ns("classic", 100_000_000, 7) < 40
    True
    """
    if not isinstance(layout, str):
        raise ParameterTypeError(f"layout must be a str, got {layout!r}")
    nbytes, num_hashes = check_number("num_bits", num_bits) / 8, int(check_number("num_hashes", num_hashes))
    sizes = [size for size, _ in _LINE_NS]
    index = bisect_left(sizes, nbytes)
    if index in {0, len(sizes)}:
        line = _LINE_NS[min(index, len(sizes) - 1)][1]
    else:
        (size, low), (larger, high) = _LINE_NS[index - 1 : index + 1]
        line = low + (high - low) * math.log(nbytes / size) / math.log(larger / size)
    lines = (num_hashes + min(2, num_hashes)) / 2
    for number, having in ((1.0, "one_line"), (2.0, "two_lines")):
        lines = number if layout in registry.layouts(having) else lines
    return _BASE_NS + lines * line


def check_number(name: str, value: Any) -> Any:
    """Return ``value``; raise ``ParameterTypeError`` unless it is a number."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ParameterTypeError(f"{name} must be a number, got {value!r}")
    return value
