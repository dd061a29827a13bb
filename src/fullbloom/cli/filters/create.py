"""New filters: sized by their keys or by a memory, of a kind, or growing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fullbloom import _core, registry
from fullbloom.cli.failures import Refusal
from fullbloom.cli.units import rate_text, size_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fullbloom.cli.filters.kinds import Filter
    from fullbloom.cli.options import FilterOptions
    from fullbloom.cli.window import Window

#: A stream is read once, so its time counts as much as its memory: one cache miss per line instead
#: of one per probe (720 against 155 MB/s at 1e-6 and 10 M lines of 65 bytes) is worth half as much
#: memory again. Past that, the smallest filter wins.
_SPEED_IS_WORTH = 1.5


def create_sized(options: FilterOptions, capacity: int, fpr: float, *, quick: bool) -> Filter:
    """Return a filter for ``capacity`` keys; ``quick`` lets "auto" spend memory on speed."""
    if not options.structure.is_plain:
        return _create_kind(options, capacity, fpr)
    layout = options.layout
    if quick and layout == "auto":
        layout = find_quick_layout(capacity, fpr)
    return registry.get_class(options.structure.row)(capacity, fpr, layout=layout, **options.hash_keywords)


def create_windowed(options: FilterOptions, window: Window, expected: int, fpr: float) -> Filter:
    """Return a filter that remembers lines for ``window``; one of time is sized for ``expected`` lines."""
    if window.lines is not None:
        return _create_kind(options, window.lines, fpr)
    return _create_kind(options, expected, fpr, window=window.seconds)


def create_growing(options: FilterOptions, first: int, fpr: float, *, quick: bool) -> Filter:
    """Return a filter that grows from ``first`` keys on; its first stage gets half of the rate."""
    require_rate(fpr, first, 2)
    layout = options.layout
    if quick and layout == "auto":
        layout = find_quick_layout(first, fpr / 2)
    cls = registry.get_class(registry.find_by_role("growing"))
    return cls(first, fpr, layout=layout, growth=4.0, **options.hash_keywords)


def create_within(options: FilterOptions, nbytes: int, fpr: float) -> Filter:
    """Return a filter of at most ``nbytes``: for --expected lines, or for as many as it can hold."""
    if not options.structure.is_plain:
        return _create_kind_within(options, nbytes, fpr)
    if options.expected is not None:
        return _create_best_rate(options, nbytes, options.expected, fpr)
    return _create_most_keys(options, nbytes, fpr)


def _create_kind(options: FilterOptions, capacity: int, fpr: float, **parameters: Any) -> Filter:
    """Return an empty filter of --kind; refuse a --layout that it does not have."""
    row = options.structure.row
    parameters = {**parameters, **options.hash_keywords}
    if options.layout != "auto":
        if options.layout not in row["layouts"]:
            has = ", ".join(row["layouts"]) or "none to choose"
            raise Refusal(f"--kind {options.kind} has no layout {options.layout}; it has {has}")
        parameters["layout"] = options.layout
    return registry.get_class(row)(capacity, fpr, **parameters)


def _create_kind_within(options: FilterOptions, nbytes: int, fpr: float) -> Filter:
    from fullbloom.plan import most_items

    row = options.structure.row
    most = most_items(row, fpr, nbytes)
    if most < (options.expected or 1):
        raise Refusal(
            f"--kind {options.kind} at fpr {rate_text(fpr)} holds {most:,} lines in --memory "
            f"{size_text(options.memory or nbytes)}; raise --memory or --fpr"
        )
    return _create_kind(options, options.expected or most, fpr, **row["fixed"])


def require_rate(fpr: float, keys: int, times: int = 1) -> None:
    """Refuse a rate below ``times`` that of collisions among 64-bit hashes of ``keys``."""
    if fpr < (least := times * _core.least_fpr(keys)):
        raise Refusal(
            f"fpr must be at least {least:.1e} for {keys:,} lines{' and more' if times > 1 else ''} "
            f"(keys are 64-bit hashes), got {rate_text(fpr)}; raise --fpr"
        )


def least_bits(capacity: int, fpr: float) -> int:
    """Return the bits of the smallest filter that "auto" may select."""
    return min(_core.size_for(layout, capacity, fpr)[0] for layout in registry.layouts("auto"))


def find_quick_layout(capacity: int, fpr: float) -> str:
    """Return the layout of one line if it is at most half larger than the smallest, else the smallest."""
    return _choose_quick({name: _core.size_for(name, capacity, fpr)[0] for name in registry.layouts("auto")})


def _choose_quick(costs: Mapping[str, float]) -> str:
    one_line = [layout for layout in costs if layout in registry.layouts("one_line")]
    least, quick = (min(among or costs, key=costs.__getitem__) for among in (costs, one_line))
    return quick if costs[quick] <= _SPEED_IS_WORTH * costs[least] else least


def _list_layouts(options: FilterOptions) -> list[str]:
    """Return --layout, or those that "auto" may select, one line first."""
    if options.layout != "auto":
        return [options.layout]
    return sorted(registry.layouts("auto"), key=lambda layout: layout not in registry.layouts("one_line"))


def _find_most_keys(layout: str, num_bits: int, fpr: float) -> tuple[int, int, int]:
    """Return (keys, bits, k) of the shape that holds most keys at ``fpr``."""
    shapes = _core.shapes_within(layout, num_bits)
    return max((_core.capacity_at(layout, bits, k, fpr), bits, k) for bits, k in shapes)


def _create_most_keys(options: FilterOptions, nbytes: int, fpr: float) -> Filter:
    """Return the filter of ``nbytes`` that holds most keys at ``fpr``."""
    require_rate(fpr, 1)
    shapes = {layout: _find_most_keys(layout, 8 * nbytes, fpr) for layout in _list_layouts(options)}
    layout = _choose_quick({layout: 1 / max(keys, 1) for layout, (keys, _, _) in shapes.items()})
    keys, bits, hashes = shapes[layout]
    return _create_shape(options, layout, bits, hashes, max(keys, 1))


def _create_best_rate(options: FilterOptions, nbytes: int, expected: int, fpr: float) -> Filter:
    """Return a filter of ``nbytes`` for ``expected`` keys with the lowest rate; refuse one above --fpr.

    Memory is used until less than a thousandth of a line is expected to be lost.
    """
    useful = max(min(fpr, 1e-3 / expected), 1e-12)
    best: tuple[float, str, int, int] | None = None
    for layout in _list_layouts(options):
        bits = min(8 * nbytes, _core.size_for(layout, expected, useful)[0])
        shape = _find_best_rate(layout, bits, expected, fpr)
        best = min(best or shape, shape)
        if shape[0] <= fpr:
            return _create_shape(options, shape[1], shape[2], shape[3], expected)
    if best is None or options.fpr is not None:
        reached, memory = best[0] if best else 1.0, options.memory or nbytes
        raise Refusal(
            f"fpr {rate_text(fpr)} for {expected} lines does not fit --memory {size_text(memory)}: "
            f"it reaches {rate_text(reached)}; raise --memory or --fpr"
        )
    return _create_shape(options, best[1], best[2], best[3], expected)


def _find_best_rate(layout: str, num_bits: int, expected: int, fpr: float) -> tuple[float, str, int, int]:
    """Return (rate, layout, bits, k) of the best shape of at most ``num_bits``.

    Shapes of one line that keep the rate cost the same time: the lowest rate is best. In other layouts a
    probe is a cache miss: the fewest probes are best (9 for 27 is 3x the speed at 38 bits per line).
    """
    shapes = _core.shapes_within(layout, num_bits)
    rates = [(_core.fpr_at(layout, bits, k, expected), layout, bits, k) for bits, k in shapes]
    enough = [shape for shape in rates if shape[0] <= fpr]
    return min(rates) if not enough or layout in registry.layouts("one_line") else enough[0]


def _create_shape(options: FilterOptions, layout: str, bits: int, hashes: int, capacity: int) -> Filter:
    plain = registry.get_class(registry.find_by_role("plain"))
    return plain.with_shape(bits, hashes, capacity=capacity, layout=layout, **options.hash_keywords)
