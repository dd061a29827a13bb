"""Choose a filter: from items, rate, memory and needs to a ranked list with its costs.

>>> best, *others = choices(items=1_000_000, fpr=0.01)
>>> best.layout, round(best.bits_per_key, 1), best.recommended
('blocked', 10.1, True)
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bloomery import _core
from bloomery.errors import FilterMemoryError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Collection

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
#: "auto" means: speed as long as it costs at most this much more than the least space.
_STRETCH = 1.2
#: What a need asks of a layout or structure beyond the registry's capabilities.
PARQUET = "parquet"


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to build the filter: ``nbytes`` of memory, ``fpr`` at ``items``, and its speed.

    ``ns_per_key`` is expected of a batch lookup on one core when half of the keys are found;
    within a factor of two on other machines.
    """

    structure: str
    layout: str
    items: int
    num_bits: int
    num_hashes: int
    fpr: float
    ns_per_key: float
    fits: bool = True
    recommended: bool = False

    @property
    def nbytes(self) -> int:
        """Bytes of the bit array."""
        return -(-self.num_bits // 512) * 64

    @property
    def bits_per_key(self) -> float:
        """Bits for each of ``items``."""
        return self.num_bits / self.items


def expected_ns(layout: str, num_bits: int, num_hashes: int) -> float:
    """Return the expected nanoseconds a key of a batch lookup, half of the keys being found.

    A one-line layout touches one line; the others k lines for a key that is found and about two,
    at half-full, for one that is not.

    >>> 8 < expected_ns("blocked", 100_000_000, 8) < expected_ns("classic", 100_000_000, 7) < 40
    True
    """
    nbytes = num_bits / 8
    sizes = [size for size, _ in _LINE_NS]
    index = bisect_left(sizes, nbytes)
    if index in {0, len(sizes)}:
        line = _LINE_NS[min(index, len(sizes) - 1)][1]
    else:
        (size, low), (larger, high) = _LINE_NS[index - 1 : index + 1]
        line = low + (high - low) * math.log(nbytes / size) / math.log(larger / size)
    lines = 1.0 if layout in {"blocked", "split"} else (num_hashes + min(2, num_hashes)) / 2
    return _BASE_NS + lines * line


def choices(
    items: int | None = None,
    fpr: float | None = None,
    *,
    memory: int | None = None,
    needs: Collection[str] = (),
) -> list[Choice]:
    """Return all ways to build the filter, best first; the first one that fits is recommended.

    Give two of ``items``, ``fpr`` and ``memory`` (bytes), or all three: then a choice larger than
    ``memory`` comes with ``fits=False``. ``needs`` names capabilities of the registry ("merge",
    "grow", "map", ...) or "parquet". Within 1.2 times the least space the faster comes first.
    Raises `ParameterError` when fewer than two are given, for values out of range, and for a need
    that no structure meets. Costs milliseconds.

    >>> choices(fpr=0.001, memory=1 << 20)[0].items > 500_000
    True
    >>> [choice.layout for choice in choices(1000, 0.01, needs={"parquet"})]
    ['split']
    """
    _check(items, fpr, memory)
    rows = []
    for structure, layout in _candidates(frozenset(needs)):
        try:
            row = _choice(structure, layout, items, fpr, memory)
        except FilterMemoryError:
            continue  # this layout has no shape so large; another may
        if row is not None:
            rows.append(row)
    if not rows:
        raise ParameterError("no layout can hold so many items at this rate; lower items or raise fpr")
    least = min(row.bits_per_key for row in rows)
    first = rows[0].structure

    def rank(row: Choice) -> tuple[bool, bool, bool, float, float]:
        wasteful = row.bits_per_key > _STRETCH * least
        return (not row.fits, row.structure != first, wasteful, row.ns_per_key, row.bits_per_key)

    rows.sort(key=rank)
    if rows[0].fits:
        rows[0] = replace(rows[0], recommended=True)
    return rows


def _check(items: int | None, fpr: float | None, memory: int | None) -> None:
    if (items is None) + (fpr is None) + (memory is None) > 1:
        raise ParameterError("give two of items, fpr and memory")
    if items is not None and items < 1:
        raise ParameterError(f"items must be at least 1, got {items}")
    if fpr is not None and not 0 < fpr < 1:
        raise ParameterError(f"fpr must be between 0 and 1 (exclusive), got {fpr}")
    if memory is not None and memory < 64:  # noqa: PLR2004 - one line
        raise ParameterError(f"memory must be at least 64 bytes, got {memory}")


def _candidates(needs: frozenset[str]) -> list[tuple[str, str]]:
    known = {PARQUET}.union(*(row["capabilities"] for row in _core.variants()))
    if unknown := needs - known:
        raise ParameterError(
            f"unknown need {', '.join(sorted(unknown))}; known are {', '.join(sorted(known))}"
        )
    wanted = needs - {PARQUET}
    found = [
        (row["name"], layout)
        for row in _core.variants()
        if wanted <= set(row["capabilities"]) and (row["name"] == "bloom" or "grow" in needs)
        for layout in row["layouts"]
        if PARQUET not in needs or (layout == "split" and row["name"] == "bloom")
    ]
    if not found:
        raise ParameterError(f"no structure meets all of {', '.join(sorted(needs))}; drop one of them")
    return found


def _choice(
    structure: str, layout: str, items: int | None, fpr: float | None, memory: int | None
) -> Choice | None:
    # The first stage of a growing filter takes half of the rate.
    share = 0.5 if structure == "scalable" else 1.0
    if items is not None and fpr is not None:
        bits, hashes = _core.size_for(layout, items, fpr * share)
    else:
        bits, hashes = _best_in(layout, 8 * (memory or 0), items, None if fpr is None else fpr * share)
        if bits == 0:
            return None
        if items is None and fpr is not None:
            items = max(1, _core.capacity_at(layout, bits, hashes, fpr * share))
    keys = items or 1
    reached = _core.fpr_at(layout, bits, hashes, keys) / share
    fits = memory is None or bits <= 8 * memory
    return Choice(structure, layout, keys, bits, hashes, reached, expected_ns(layout, bits, hashes), fits)


def _best_in(layout: str, bits: int, items: int | None, fpr: float | None) -> tuple[int, int]:
    """Return the shape of at most ``bits`` with the lowest rate at ``items``, or most keys at ``fpr``."""
    best, found = -math.inf, (0, 0)
    for hashes in {"blocked": (4, 8, 12), "split": (8,)}.get(layout, tuple(range(1, 65))):
        granule = {"blocked": 512, "split": 256, "partitioned": hashes}.get(layout, 1)
        fitting = bits // granule * granule
        if not fitting:
            continue
        if items is not None:
            score = -_core.fpr_at(layout, fitting, hashes, items)
        else:
            score = float(_core.capacity_at(layout, fitting, hashes, fpr or 0.5))
        if score > best:
            best, found = score, (fitting, hashes)
    return found
