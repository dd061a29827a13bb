"""Shapes of the plain filter: the layout for a stream, and what a given memory holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fullbloom import _core, registry
from fullbloom.cli.failures import Refusal
from fullbloom.cli.units import rate_text, size_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fullbloom.cli.filters.kinds import Seen
    from fullbloom.cli.options import FilterOptions

#: A stream is read once, so its time counts as much as its memory: one cache miss a line instead
#: of one a probe (720 against 155 MB/s at 1e-6 and 10 M lines of 65 bytes) is worth half as much
#: memory again. Past that, the least space wins.
_SPEED_IS_WORTH = 1.5


def require_rate(fpr: float, keys: int, times: int = 1) -> None:
    """Refuse a rate below what 64-bit hashes of ``keys`` give, ``times`` over."""
    if fpr < (least := times * _core.least_fpr(keys)):
        raise Refusal(
            f"fpr must be at least {least:.1e} for {keys:,} lines{' and more' if times > 1 else ''} "
            f"(keys are 64-bit hashes), got {rate_text(fpr)}; raise --fpr"
        )


def least_bits(capacity: int, fpr: float) -> int:
    """Return the bits of the smallest filter that "auto" may stand for."""
    return min(_core.size_for(layout, capacity, fpr)[0] for layout in registry.layouts("auto"))


def quick_layout(capacity: int, fpr: float) -> str:
    """Return the layout of one line while it costs at most half more than the least, else the least."""
    return _quick({name: _core.size_for(name, capacity, fpr)[0] for name in registry.layouts("auto")})


def _quick(costs: Mapping[str, float]) -> str:
    one_line = [layout for layout in costs if layout in registry.layouts("one_line")]
    least, quick = (min(among or costs, key=costs.__getitem__) for among in (costs, one_line))
    return quick if costs[quick] <= _SPEED_IS_WORTH * costs[least] else least


def _layouts(options: FilterOptions) -> list[str]:
    """Return --layout, or those that "auto" may stand for, one line first."""
    if options.layout != "auto":
        return [options.layout]
    return sorted(registry.layouts("auto"), key=lambda layout: layout not in registry.layouts("one_line"))


def _most_keys(layout: str, num_bits: int, fpr: float) -> tuple[int, int, int]:
    """Return (keys, bits, k) of the shape that holds most keys at ``fpr``."""
    shapes = _core.shapes_within(layout, num_bits)
    return max((_core.capacity_at(layout, bits, k, fpr), bits, k) for bits, k in shapes)


def in_memory(options: FilterOptions, nbytes: int, fpr: float) -> Seen:
    """Return the filter of ``nbytes`` that holds most keys at ``fpr``."""
    require_rate(fpr, 1)
    shapes = {layout: _most_keys(layout, 8 * nbytes, fpr) for layout in _layouts(options)}
    layout = _quick({layout: 1 / max(keys, 1) for layout, (keys, _, _) in shapes.items()})
    keys, bits, hashes = shapes[layout]
    return _shaped(options, layout, bits, hashes, max(keys, 1))


def in_memory_for(options: FilterOptions, nbytes: int, expected: int, fpr: float) -> Seen:
    """Return a filter for ``expected`` keys with the best rate that ``nbytes`` buy.

    Memory is of use until less than a thousandth of a line is expected to be lost. Refused when
    the rate asked for is out of reach.
    """
    useful = max(min(fpr, 1e-3 / expected), 1e-12)
    best: tuple[float, str, int, int] | None = None
    for layout in _layouts(options):
        bits = min(8 * nbytes, _core.size_for(layout, expected, useful)[0])
        shape = _best_rate(layout, bits, expected, fpr)
        best = min(best or shape, shape)
        if shape[0] <= fpr:
            return _shaped(options, shape[1], shape[2], shape[3], expected)
    if best is None or options.fpr is not None:
        reached, memory = best[0] if best else 1.0, options.memory or nbytes
        raise Refusal(
            f"fpr {rate_text(fpr)} for {expected} lines does not fit --memory {size_text(memory)}: "
            f"it reaches {rate_text(reached)}; raise --memory or --fpr"
        )
    return _shaped(options, best[1], best[2], best[3], expected)


def _best_rate(layout: str, num_bits: int, expected: int, fpr: float) -> tuple[float, str, int, int]:
    """Return (rate, layout, bits, k) of the shape of at most ``num_bits`` to take.

    Among shapes that keep the rate, those of one line cost the same: the best is taken. A probe of
    the others is a cache miss: the fewest are (9 for 27 is 3x the speed at 38 bits a line).
    """
    shapes = _core.shapes_within(layout, num_bits)
    rates = [(_core.fpr_at(layout, bits, k, expected), layout, bits, k) for bits, k in shapes]
    enough = [shape for shape in rates if shape[0] <= fpr]
    return min(rates) if not enough or layout in registry.layouts("one_line") else enough[0]


def _shaped(options: FilterOptions, layout: str, bits: int, hashes: int, capacity: int) -> Seen:
    plain = registry.get_class(registry.find_by_role("plain"))
    return plain.with_shape(bits, hashes, capacity=capacity, layout=layout, **options.hash_keywords)
