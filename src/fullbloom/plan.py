"""Choose a filter: rank the structures by items, rate, memory and needs, with the cost of each.

>>> best, *others = choices(items=1_000_000, fpr=0.01)
>>> best.layout, round(best.bits_per_key, 1), best.recommended
('blocked', 10.1, True)

Without needs, `choices` compares the layouts of the plain filter; with needs, all structures that meet them:

>>> [choice.structure for choice in choices(1_000_000, 0.01, needs={"union"})]
['bloom']
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

from fullbloom import _core, registry
from fullbloom.errors import FilterMemoryError, ParameterError, ParameterTypeError
from fullbloom.latency import check_number as _check_number
from fullbloom.latency import expected_ns
from fullbloom.theory.cascade import cascade_bits
from fullbloom.theory.costs import cheapest_fpr
from fullbloom.theory.zone import zone_cells

#: "auto" prefers speed as long as it costs at most this factor over the least space.
_STRETCH = 1.2
#: Given items and memory, the rate decides; speed decides only between rates within this factor.
_RATE_STRETCH = 1.05
#: The one need that is not a capability in the registry.
PARQUET = "parquet"
#: Names of needs in other libraries.
_SYNONYMS = {
    "delete": "remove",
    "deletion": "remove",
    "removal": "remove",
    "discard": "remove",
    "counting": "count",
    "ttl": "expire",
    "window": "expire",
}
_MOST_ITEMS = 1 << 62
_FEW_ITEMS = 1000
_HASHES = 2.0**64
#: Higher rates are listed only if the caller passes one.
_USEFUL_FPR = 0.5
#: Parts of the entries of structures without false positives.
_EXACT = {"number", "excluded"}
#: Bytes of the levels of a cascade, in addition to their bits.
_WORLD_BYTES = 300


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to build the filter: ``nbytes`` of memory, ``fpr`` at ``items``, and its speed.

    ``ns_per_key`` is the expected time of a batch lookup on one core when half of the keys are found,
    ``add_ns_per_key`` that of a batch add (0 if unknown); other machines are within a factor of two.
    ``num_hashes`` is 0 for structures without probes. ``false_negatives`` is the registry's guarantee:
    "never", "only on misuse" or "by design".
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
    add_ns_per_key: float = 0.0
    false_negatives: str = "never"

    @property
    def nbytes(self) -> int:
        """Bytes of the bit array, in whole lines."""
        return -(-self.num_bits // (8 * _core.LINE_BYTES)) * _core.LINE_BYTES

    @property
    def bits_per_key(self) -> float:
        """Bits per key at ``items`` keys."""
        return self.num_bits / self.items


def choices(
    items: int | None = None,
    fpr: float | None = None,
    *,
    memory: int | None = None,
    needs: str | Collection[str] = (),
    universe: int | None = None,
    excluded: int | None = None,
    cost_of_false_positive: float | None = None,
    cost_of_byte: float | None = None,
    absent_lookups: float | None = None,
    left_out: dict[str, str] | None = None,
) -> list[Choice]:
    """Return all ways to build the filter, best first; the first one that fits is recommended.

    Pass two of ``items``, ``fpr`` and ``memory`` (bytes), or all three; then choices larger than ``memory``
    have ``fits=False``. ``needs`` names capabilities of the registry ("remove", "count", "expire", "merge",
    "label", "grow", ...) or "parquet"; a ``str`` is one need. "static" includes structures that are built
    from all keys at once; their ``add_ns_per_key`` is the build time. ``universe``: keys are whole numbers
    below it, which includes structures for such keys. ``excluded``: the number of all other keys, if they are
    known too, which includes structures that answer exactly among known keys. In place of ``fpr``, pass
    the cost of one false positive and of one byte over the filter's life, ``cost_of_false_positive`` and
    ``cost_of_byte``, and ``absent_lookups``, the lookups of absent keys in that time (by default as many as
    ``items``): the rate is then `fullbloom.theory.cheapest_fpr`, within the range that filters can have.

    Within 1.2 times the least space the faster choice comes first; given items and memory, within 1.05 times
    the lowest rate that fits. Structures that forget keys by design come after the others. The list has only
    sizes that the constructors accept and, without ``fpr``, only rates up to 0.5. ``left_out``, a dict,
    receives the layouts that cannot be built, with the reason. Raises `ParameterError` for fewer than two
    values, values out of range, an unknown need (the message lists the known ones), needs that no structure
    meets, and when no choice remains. Costs milliseconds.

    >>> choices(fpr=0.001, memory=1 << 20)[0].items > 500_000
    True
    >>> [choice.layout for choice in choices(1000, 0.01, needs={"parquet"})]
    ['split']
    >>> best = choices(10**7, cost_of_false_positive=2e-6, cost_of_byte=1e-8, absent_lookups=5e7)[0]
    >>> f"{best.fpr:.4%}", best.nbytes < 26_000_000
    ('0.0260%', True)
    """
    names = _normalize_needs(needs)
    _check_needs(names)
    fpr = _choose_rate(items, fpr, cost_of_false_positive, cost_of_byte, absent_lookups)
    _check_values(items, fpr, memory)
    _check_worlds(items, universe, excluded)
    left_out = {} if left_out is None else left_out
    if not isinstance(left_out, dict):
        raise ParameterTypeError(f"left_out must be a dict to fill, got {left_out!r}")
    matching = _find_rows(names, universe, excluded)
    if names and PARQUET not in names:
        found = (
            _size_structure(row, items, fpr, memory) for row in matching if _EXACT.isdisjoint(row["entry"])
        )
        rows = [choice for choice in found if choice is not None]
    else:
        rows = _size_layouts(names, items, fpr, memory, left_out)
    if PARQUET not in names:
        exact = (
            _size_exact(row, items, universe, excluded, memory)
            for row in matching
            if not _EXACT.isdisjoint(row["entry"])
        )
        rows += [choice for choice in exact if choice is not None]
    if fpr is None:
        rows = [row for row in rows if row.fpr <= _USEFUL_FPR]
    if not rows:
        raise ParameterError(_explain_empty(items, fpr, memory, left_out))
    least = min(row.bits_per_key for row in rows)
    permanent = [row.fpr for row in rows if row.fits and not _is_forgetful(row)]
    lowest = min(permanent or [row.fpr for row in rows])

    def rank(row: Choice) -> tuple[bool, bool, bool, float, bool, float, float]:
        by_rate = fpr is None
        wasteful = row.fpr > _RATE_STRETCH * lowest if by_rate else row.bits_per_key > _STRETCH * least
        # Rank layouts of two lines lower: the recommended layout must be the one that "auto" picks.
        two_lines = row.layout in registry.layouts("two_lines")
        rate = row.fpr if wasteful and by_rate else 0.0
        return (not row.fits, _is_forgetful(row), wasteful, rate, two_lines, row.ns_per_key, row.bits_per_key)

    rows.sort(key=rank)
    if rows[0].fits:
        rows[0] = replace(rows[0], recommended=True)
    return rows


def _choose_rate(
    items: int | None, fpr: float | None, wrong: float | None, byte: float | None, lookups: float | None
) -> float | None:
    """Return the rate that costs least, or ``fpr`` if no costs are known."""
    costs = {"cost_of_false_positive": wrong, "cost_of_byte": byte, "absent_lookups": lookups}
    given = {name: value for name, value in costs.items() if value is not None}
    for name, value in given.items():
        _check_number(name, value)
    if not given:
        return fpr
    if fpr is not None or items is None or wrong is None or byte is None:
        raise ParameterError(
            "costs choose the rate: pass items, cost_of_false_positive and cost_of_byte, and not fpr"
        )
    if _check_number("items", items) < 1:
        raise ParameterError(f"items must be at least 1, got {items}")
    return max(
        cheapest_fpr(items, items if lookups is None else lookups, wrong, byte), _core.least_fpr(items)
    )


def _is_forgetful(choice: Choice) -> bool:
    return registry.is_forgetful(registry.get_row(choice.structure))


def _check_values(items: int | None, fpr: float | None, memory: int | None) -> None:
    if (items is None) + (fpr is None) + (memory is None) > 1:
        raise ParameterError("pass two of items, fpr and memory")
    for name, value in (("items", items), ("fpr", fpr), ("memory", memory)):
        if value is not None:
            _check_number(name, value)
    if items is not None and items < 1:
        raise ParameterError(f"items must be at least 1, got {items}")
    if fpr is not None and not 0 < fpr < 1:
        raise ParameterError(f"fpr must be between 0 and 1 (exclusive), got {fpr}")
    if fpr is not None and fpr < (least := _core.least_fpr(items or 1)):
        keys = "any capacity" if items is None else f"{items} items"
        raise ParameterError(
            f"fpr must be at least {least:.1e} for {keys} (keys are 64-bit hashes), got {fpr}"
        )
    if memory is not None and memory < _core.LINE_BYTES:
        raise ParameterError(f"memory must be at least {_core.LINE_BYTES} bytes, got {memory}")


def _check_worlds(items: int | None, universe: int | None, excluded: int | None) -> None:
    if universe is not None and _check_number("universe", universe) < (items or 1):
        raise ParameterError(f"universe must be at least {items or 1}, the number of items, got {universe}")
    if excluded is not None and _check_number("excluded", excluded) < 0:
        raise ParameterError(f"excluded must be at least 0, got {excluded}")


def _normalize_needs(needs: str | Collection[str]) -> frozenset[str]:
    """Return ``needs`` as a set; a ``str`` is one need."""
    words: Any = (needs,) if isinstance(needs, str) else needs
    if not isinstance(words, Collection) or not all(isinstance(word, str) for word in words):
        raise ParameterTypeError(f"needs must be a str or a collection of str, got {needs!r}")
    return frozenset(words)


def _explain_empty(items: int | None, fpr: float | None, memory: int | None, left_out: dict[str, str]) -> str:
    """Return the message for an empty list, with the value to change."""
    if left_out:
        why = ", ".join(f"{layout} ({reason})" for layout, reason in left_out.items())
        return f"no layout can be built: {why}; lower {'memory' if items is None else 'items'}"
    if items is None:
        return f"{memory} bytes cannot hold one item at fpr {fpr}; raise memory or fpr"
    if fpr is None:
        return f"{memory} bytes cannot hold {items} items at a useful rate; raise memory or lower items"
    return f"no structure can hold {items} items at fpr {fpr}; lower items or raise fpr"


def _check_needs(needs: frozenset[str]) -> None:
    known = {PARQUET, *registry.capabilities()}
    if unknown := needs - known:
        synonyms = [f"{_SYNONYMS[word]} for {word}" for word in sorted(unknown) if word in _SYNONYMS]
        hint = f"use {', '.join(synonyms)}; " if synonyms else ""
        raise ParameterError(
            f"unknown need {', '.join(sorted(unknown))}; {hint}known are {', '.join(sorted(known))}"
        )


def _size_layouts(
    needs: frozenset[str],
    items: int | None,
    fpr: float | None,
    memory: int | None,
    left_out: dict[str, str],
) -> list[Choice]:
    """Return the layouts of the plain filter; record those that cannot be built in ``left_out``."""
    row = registry.find_by_role("plain")
    found = []
    for layout in registry.layouts("parquet") if PARQUET in needs else row["layouts"]:
        try:
            choice = _size_layout(row["name"], layout, items, fpr, memory)
        except (ParameterError, FilterMemoryError) as error:
            left_out[layout] = str(error)  # this layout cannot be so large; another may
            continue
        if choice is not None:
            found.append(choice)
    return found


def _find_rows(needs: frozenset[str], universe: int | None, excluded: int | None) -> list[dict[str, Any]]:
    """Return the rows that meet ``needs``, with those for numbers or a closed world if the caller has one.

    A static structure accepts no keys after it is built, so it must be needed: by "static", or by a
    capability that only static structures have.
    """
    meet = [
        row
        for row in registry.rows()
        if needs - {PARQUET} <= set(row["capabilities"])
        and (PARQUET not in needs or row["role"] == "plain")
        and (
            registry.is_open(row, "key")
            or (registry.is_open(row, "key", "value") and needs & _extra_capabilities(row, registry.is_open))
            or (
                registry.is_built(row, "key")
                and needs & ({"static"} | _extra_capabilities(row, registry.is_open))
            )
            or (
                registry.is_built(row, "key", "value")
                and "static" in needs
                and needs & _extra_capabilities(row, registry.is_built)
            )
            or ("number" in row["entry"] and universe is not None)
            or ("excluded" in row["entry"] and excluded is not None)
        )
    ]
    if not meet:
        raise ParameterError(f"no structure meets all of {', '.join(sorted(needs))}; drop one of them")
    return meet


def has_universe(row: dict[str, Any]) -> bool:
    """Return whether the structure is sized for a few members of a universe instead of all of it.

    >>> [row["name"] for row in registry.rows() if has_universe(row)]
    ['zone']
    """
    return any(name == "universe" for name, _, _ in row["parameters"])


def _extra_capabilities(row: dict[str, Any], takes: Callable[..., bool]) -> set[str]:
    """Return the capabilities of structures that add as ``row`` does and that no structure of keys alone has.

    ``takes``: `registry.is_open` or `registry.is_built`, for those of keys alone.
    """
    alike = [other for other in registry.rows() if registry.has_entry_of(other, row)]
    of_keys = [other for other in registry.rows() if takes(other, "key")]
    more, less = ({word for other in some for word in other["capabilities"]} for some in (alike, of_keys))
    return more - less


def _size_structure(
    row: dict[str, Any], items: int | None, fpr: float | None, memory: int | None
) -> Choice | None:
    """Return a structure with the size that its class computes; None if it cannot have this size and rate."""
    if items is None:
        items = most_items(row, fpr or 0.5, memory or 0)
    elif fpr is None:
        fpr = best_rate(row, items, memory or 0)
    nbytes = _nbytes_or_none(row, items, fpr) if items and fpr else None
    if not items or not fpr or nbytes is None:
        return None
    add_ns, ns = row["ns"]
    return Choice(
        structure=row["name"],
        layout="auto" if row["layouts"] else "-",
        items=items,
        num_bits=8 * nbytes,
        num_hashes=0,
        fpr=fpr,
        ns_per_key=ns,
        fits=memory is None or nbytes <= memory,
        add_ns_per_key=add_ns,
        false_negatives=row["false_negatives"],
    )


def _size_exact(
    row: dict[str, Any], items: int | None, universe: int | None, excluded: int | None, memory: int | None
) -> Choice | None:
    """Return a structure without false positives, for the numbers of a universe or for a closed world."""
    try:
        if "excluded" in row["entry"]:
            bits = cascade_bits(items or 0, excluded or 0)
            nbytes = None if items is None else math.ceil(bits / 8) + _WORLD_BYTES
        elif has_universe(row):
            nbytes = None if items is None else math.ceil(zone_cells(universe or 2, items) / 8)
        else:
            nbytes = _nbytes_or_none(row, universe or 1, 0.5)
    except ParameterError:
        return None  # more numbers than such a structure can hold
    if nbytes is None:
        return None
    add_ns, ns = row["ns"]
    return Choice(
        structure=row["name"],
        layout="-",
        items=items or universe or 0,
        num_bits=8 * nbytes,
        num_hashes=0,
        fpr=0.0,
        ns_per_key=ns,
        fits=memory is None or nbytes <= memory,
        add_ns_per_key=add_ns,
        false_negatives=row["false_negatives"],
    )


def _fits(row: dict[str, Any], items: int, fpr: float, memory: int) -> bool:
    nbytes = _nbytes_or_none(row, items, fpr)
    return nbytes is not None and nbytes <= memory


def _nbytes_or_none(row: dict[str, Any], items: int, fpr: float) -> int | None:
    """Return the size in bytes that the class of ``row`` computes; None if it rejects the parameters."""
    try:
        nbytes: int = registry.get_class(row).nbytes_for(items, fpr)
    except (ParameterError, FilterMemoryError):
        return None
    return nbytes


def most_items(row: dict[str, Any], fpr: float, memory: int) -> int:
    """Return the largest number of keys at ``fpr`` that fit into ``memory``; 0 if not even one fits.

    ``row`` is one of `fullbloom.variants`. Costs some dozen sizings, microseconds each.

    >>> import fullbloom
    >>> 800_000 < most_items(fullbloom.variants()[0], 0.01, 1 << 20) < 900_000
    True
    """
    low, high = 0, 1
    while high <= _MOST_ITEMS and _fits(row, high, fpr, memory):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _fits(row, middle, fpr, memory) else (low, middle)
    return low


def best_rate(row: dict[str, Any], items: int, memory: int) -> float:
    """Return about the lowest rate at which ``items`` keys fit into ``memory``; 0 if no rate fits.

    ``row`` is one of `fullbloom.variants`. Costs some dozen sizings, microseconds each.

    >>> import fullbloom
    >>> 0.0 < best_rate(fullbloom.variants()[0], 1_000_000, 1 << 21) < 0.001
    True
    """

    def fits(rate: float) -> bool:
        return _fits(row, items, rate, memory)

    low, high = -64.0, math.log2(0.99)  # rates as powers of two; hashes have 64 bits
    if not fits(math.exp2(high)):
        return 0.0
    if fits(math.exp2(low)):
        return math.exp2(low)
    if items < _FEW_ITEMS:
        # Sizes are whole lines, so few keys may take fewer bytes at a lower rate: try every power of two.
        high = next((float(octave) for octave in range(-63, 0) if fits(math.exp2(octave))), high)
        low = max(low, high - 1.0)
    while high - low > 1e-3:  # noqa: PLR2004 - a rate within a thousandth
        middle = (low + high) / 2
        low, high = (low, middle) if fits(math.exp2(middle)) else (middle, high)
    return math.exp2(high)


def _size_layout(
    structure: str, layout: str, items: int | None, fpr: float | None, memory: int | None
) -> Choice | None:
    if items is not None and fpr is not None:
        bits, hashes = _core.size_for(layout, items, fpr)
        keys = items
    else:
        whole_lines = (memory or 0) // _core.LINE_BYTES * _core.LINE_BYTES
        keys, bits, hashes = _fit_layout(layout, 8 * whole_lines, items, fpr)
        if bits == 0 or keys == 0:
            return None
    reached = max(_core.fpr_at(layout, bits, hashes, keys), _core.least_fpr(keys))
    choice = Choice(structure, layout, keys, bits, hashes, reached, expected_ns(layout, bits, hashes))
    return replace(choice, fits=memory is None or choice.nbytes <= memory)


def _fit_layout(layout: str, bits: int, items: int | None, fpr: float | None) -> tuple[int, int, int]:
    """Return (keys, bits, k) of the best shape of at most ``bits``, and no larger than useful."""
    # 64-bit hashes limit the rate for many keys, and the number of keys for a rate.
    rate = _core.least_fpr(items or 1) if fpr is None else fpr
    keys = int(rate * _HASHES / 2) if items is None else items
    try:
        needed, hashes = _core.size_for(layout, keys, rate)
    except (ParameterError, FilterMemoryError):
        needed = bits + 1
    if needed <= bits:
        return keys, needed, hashes
    bits, hashes = _best_shape(layout, bits, items, fpr)
    if items is None and bits:
        keys = _core.capacity_at(layout, bits, hashes, rate)
    return keys, bits, hashes


def _best_shape(layout: str, bits: int, items: int | None, fpr: float | None) -> tuple[int, int]:
    """Return the shape of at most ``bits`` with the lowest rate at ``items``, or most keys at ``fpr``."""

    def score(shape: tuple[int, int]) -> float:
        if items is not None:
            return -_core.fpr_at(layout, *shape, items)
        return float(_core.capacity_at(layout, *shape, fpr or 0.5))

    return max(_core.shapes_within(layout, bits), key=score, default=(0, 0))
