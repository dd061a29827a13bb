"""Plots of filters, for notebooks and reports; needs the extra: ``pip install 'fullbloom[viz]'``.

- ``rate_by_load``: the rate against the number of keys, with the rate measured now
- ``rate_by_bits``: what a rate costs, for all structures
- ``fill_history``: the fill of a service's filter over time
- ``cells``: the cells as an image

Each draws on ``ax``, or on a new figure, and returns the ``Axes``.

>>> from fullbloom import BloomFilter, viz
>>> f = BloomFilter(1000, fpr=0.01)
>>> f.update(range(800))
>>> viz.rate_by_load(f).get_xlabel()
'keys'
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import repeat
from typing import TYPE_CHECKING, Any

from fullbloom import registry
from fullbloom.card import format_bytes, format_rate
from fullbloom.cells import read_cells, split_regions
from fullbloom.errors import FilterMemoryError, FullbloomError, ParameterError, ParameterTypeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matplotlib.axes import Axes

    from fullbloom.cells import Cells
    from fullbloom.keys import Key

__all__ = ["cells", "fill_history", "rate_by_bits", "rate_by_load"]

_POINTS = 80
#: Rates on the axis of `rate_by_bits`, from 30 % down to one in a million.
_RATES = tuple(10 ** -(step / 4) for step in range(2, 25))
#: Cells of an image; more are drawn as the fill of so many regions.
_MOST_CELLS, _REGIONS = 1 << 18, 1 << 14
#: An image needs a copy of the filter's bytes.
_MOST_BYTES = 64 << 20
#: Cells of a row are a multiple of this; cells of more bits hold fingerprints.
_LINE, _MOST_BITS = 64, 8
_SIGMAS = 2
_LONGEST_LABEL = 20
_ABOVE_ZERO = 3  # with no false positive among n, the rate is below 3/n at 95 %
_MILLISECONDS = 1000


def rate_by_load(f: Any, *, probes: int = 100_000, ax: Axes | None = None) -> Axes:
    """Plot the false-positive rate against the number of keys, and the rate measured now.

    The curve is the law of the structure, where it has one for a number of keys (``f.fpr(items=)``). The
    point is measured: the share of ``probes`` absent random hashes that ``f`` finds, with two standard
    deviations. Raises ``ParameterTypeError`` for any other object, ``ParameterError`` for one that
    answers only for the keys it was built of. Costs 80 counts of the set cells, and the lookups.

    >>> from fullbloom import BloomFilter, viz
    >>> f = BloomFilter(1000, fpr=0.01)
    >>> f.update(range(1000))
    >>> ax = viz.rate_by_load(f, probes=20_000)
    >>> ax.get_ylabel()
    'false-positive rate'
    """
    row = _find_row(f)
    if not hasattr(f, "contains_hashed"):
        raise ParameterError(
            f"a {row['class']} answers only for the keys it was built of; it has no such rate"
        )
    if probes < 1:
        raise ParameterError(f"probes must be at least 1, got {probes}")
    measured = _measure(f, probes)
    ax = _find_axes(ax)
    most = max(2 * f.capacity, round(1.2 * f.num_added))
    loads = [most * step / _POINTS for step in range(1, _POINTS + 1)]
    curve = _list_rates(f, loads)
    if curve:
        ax.plot(loads, curve, color="C0", label="law")
    if f.target_fpr > 0:
        ax.axhline(f.target_fpr, color="0.5", linestyle=":", label=f"target {format_rate(f.target_fpr)}")
        ax.axvline(f.capacity, color="0.5", linestyle="--", linewidth=1, label=f"capacity {f.capacity:,}")
    if measured > 0:
        spread = _SIGMAS * math.sqrt(measured * (1 - measured) / probes)
        label = f"measured {format_rate(measured)}"
        ax.errorbar([f.num_added], [measured], yerr=[spread], fmt="o", color="C3", capsize=3, label=label)
    else:
        bound = _ABOVE_ZERO / probes
        ax.plot([f.num_added], [bound], "v", color="C3", label=f"measured below {format_rate(bound)}")
    lowest = min(rate for rate in (measured or _ABOVE_ZERO / probes, f.target_fpr or 1.0))
    ax.set_yscale("log")
    ax.set_ylim(lowest / 100, 1)
    ax.set(xlabel="keys", ylabel="false-positive rate", title=f"{row['class']}: rate by load")
    ax.legend()
    return ax


def rate_by_bits(
    capacity: int = 1_000_000, *, structures: Iterable[str] | None = None, ax: Axes | None = None
) -> Axes:
    """Plot the bits per key that each structure needs for a rate, with ``capacity`` keys.

    ``structures`` are names of the registry, such as ``["bloom", "cuckoo"]``; by default all that are sized
    for a rate. A structure has no line where it has no filter of that rate. Raises ``ParameterError`` for an
    unknown name, and for a structure that is not sized for a rate. Nothing is built; costs 0.2 s.

    >>> from fullbloom import viz
    >>> ax = viz.rate_by_bits(structures=["bloom", "cuckoo", "ribbon"])
    >>> [line.get_label() for line in ax.get_lines()]
    ['bloom', 'cuckoo', 'ribbon']
    """
    sized = {row["name"]: row for row in registry.rows() if _is_sized_for_rate(row)}
    if isinstance(structures, str):
        raise ParameterTypeError(f"structures must be a list of names, got the text {structures!r}")
    names = [*sized] if structures is None else [*structures]
    if not names:
        raise ParameterError("structures must have at least one name, got none")
    for name in names:
        if name not in sized:
            raise ParameterError(f"structures must be among {', '.join(sized)}; got {name!r}")
    lines = [(name, _list_sizes(registry.get_class(sized[name]), capacity)) for name in names]
    ax = _find_axes(ax)
    for number, (name, points) in enumerate(lines):
        style = ("-", "--", ":")[number // 10 % 3]  # ten colours, then the next style
        ax.plot(*zip(*points, strict=True), linestyle=style, label=name)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set(xlabel="bits per key", ylabel="false-positive rate", title=f"Bits by rate, {capacity:,} keys")
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize="small")
    return ax


def fill_history(samples: Iterable[Any], *, ax: Axes | None = None) -> Axes:
    """Plot how full a filter was over time.

    ``samples`` are those of a service's filter, as ``Client.filter(name).history()`` returns them, in any
    order, or pairs of a time (a datetime or a number) and a fill from 0 to 1. Samples without a fill are left
    out. Raises ``ParameterError`` if none is left, ``ParameterTypeError`` for anything else.

    >>> from fullbloom import viz
    >>> ax = viz.fill_history([(0, 0.0), (60, 0.21), (120, 0.37)])
    >>> ax.get_ylabel()
    'fill'
    """
    points = sorted(
        (point for point in map(_read_sample, samples) if point[1] is not None), key=lambda point: point[0]
    )
    if not points:
        raise ParameterError("samples must have at least one with a fill, got none")
    ax = _find_axes(ax)
    ax.plot(*zip(*points, strict=True), drawstyle="steps-post", color="C0")
    ax.axhline(0.5, color="0.5", linestyle=":", label="half full")
    ax.set_ylim(0, 1)
    ax.set(xlabel="time", ylabel="fill", title="Fill over time")
    if isinstance(points[0][0], datetime):
        ax.tick_params(axis="x", labelrotation=30)
    ax.legend()
    return ax


def cells(f: Any, *, keys: Sequence[Key] = (), stage: int = -1, ax: Axes | None = None) -> Axes:
    """Draw the cells of a filter as an image, row by row; the cells of ``keys`` are marked.

    A bit or cell is a point, the darker the more it holds. Of more than 262,144 cells, each point is the
    fill of a region. ``stage`` is one of a filter with several, by default the newest. ``keys`` are for
    classes with ``positions``. Raises ``ParameterTypeError`` for any other object,
    ``ParameterError`` for a stage that it does not have and for keys whose cells it does not name,
    ``FilterMemoryError`` for more than 64 MiB of cells, ``SecretError`` as ``to_bytes`` does.

    >>> from fullbloom import BloomFilter, viz
    >>> f = BloomFilter(200)
    >>> f.update(["cat", "dog"])
    >>> viz.cells(f, keys=["cat"]).get_title()
    'BloomFilter: 2,048 bits, 0.8 % set'
    """
    row = _find_row(f)
    if f.nbytes > _MOST_BYTES:
        remedy = "save it, and run `fullbloom show` on the file"
        raise FilterMemoryError(
            f"the filter has {format_bytes(f.nbytes)} of cells, an image takes 64 MiB; {remedy}"
        )
    if keys and not hasattr(f, "positions"):
        raise ParameterError(f"a {row['class']} does not name the cells of a key; drop keys=")
    sections = read_cells(f.to_bytes())
    stages = [found for found in sections if found.section == sections[0].section]
    if not -len(stages) <= stage < len(stages):
        raise ParameterError(f"stage must be between 0 and {len(stages) - 1}, got {stage}")
    drawn = stages[stage]
    values, size = _list_values(drawn)
    ax = _find_axes(ax)
    length = min(math.ceil(math.sqrt(len(values)) / _LINE) * _LINE, len(values))
    padded = [*values, *repeat(math.nan, -len(values) % length)]
    image = [padded[first : first + length] for first in range(0, len(padded), length)]
    ax.imshow(image, cmap="Greys", vmin=0, vmax=max(values) or 1, interpolation="none")
    for number, key in enumerate(keys):
        points = [divmod(cell // size, length) for cell in f.positions(key)]
        rows, columns = [point[0] for point in points], [point[1] for point in points]
        ax.scatter(columns, rows, s=60, facecolors="none", edgecolors=f"C{number}", label=_shorten(repr(key)))
    if keys:
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.02), ncols=4)
    unit = "bits" if drawn.width == 1 else f"cells of {drawn.width} bits"
    share = 100 * drawn.count_set() / drawn.count
    ax.set(title=f"{row['class']}: {drawn.count:,} {unit}, {share:.1f} % set")
    ax.set(xlabel="" if size == 1 else f"a point is {size:,} of them", xticks=[])
    ax.set_yticks([0, len(image) - 1], ["0", f"{(len(image) - 1) * length * size:,}"])
    return ax


def _find_row(f: object) -> registry.Row:
    row = registry.find_row(f)
    if row is None:
        raise ParameterTypeError(f"f must be a filter of fullbloom, got {type(f).__name__}")
    return row


def _find_axes(ax: Axes | None) -> Axes:
    """Return ``ax``, or that of a new figure; the only import of matplotlib."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'fullbloom[viz]'", name=error.name) from error
    _, new = plt.subplots(layout="constrained")
    return new


def _measure(f: Any, probes: int) -> float:
    """Return the share of random hashes that a filter finds; the same hashes in each run."""
    draw = random.Random(0)  # noqa: S311 - no secret
    found = f.contains_hashed([draw.getrandbits(64) for _ in range(probes)])
    return float(sum(found) / probes)


def _list_rates(f: Any, loads: list[float]) -> list[float]:
    """Return the rates of the law at some loads; none for a structure without such a law."""
    try:
        return [f.fpr(items=load) for load in loads]
    except ParameterError:
        return []


def _is_sized_for_rate(row: registry.Row) -> bool:
    has_rate = any(name == "fpr" for name, _, _ in row["parameters"])
    return has_rate and hasattr(registry.get_class(row), "nbytes_for")


def _list_sizes(cls: Any, capacity: int) -> list[tuple[float, float]]:
    """Return (bits per key, rate) of filters that the class can have."""
    points = []
    for rate in _RATES:
        try:
            points.append((8 * cls.nbytes_for(capacity, rate) / capacity, rate))
        except FullbloomError:
            continue  # no filter of this class has the rate
    if not points:
        raise ParameterError(f"capacity must be one that a {cls.__name__} can have, got {capacity}")
    return points


def _read_sample(sample: Any) -> tuple[Any, float | None]:
    """Return the time and the fill of a sample of the service, or of a pair."""
    if isinstance(sample, Mapping) and "sampled_at" in sample:
        return datetime.fromtimestamp(sample["sampled_at"] / _MILLISECONDS, UTC), sample.get("fill")
    if isinstance(sample, tuple | list) and len(sample) == 2:  # noqa: PLR2004 - a pair
        return sample[0], sample[1]
    raise ParameterTypeError(
        f"samples must be those of history() or pairs (time, fill), got {type(sample).__name__}"
    )


def _shorten(text: str) -> str:
    """Return the beginning of a label, in which a dollar begins no formula."""
    short = text if len(text) <= _LONGEST_LABEL else f"{text[:_LONGEST_LABEL]}..."
    return short.replace("$", r"\$")


def _list_values(drawn: Cells) -> tuple[Sequence[float], int]:
    """Return the values of the cells, or the fill of regions, and how many cells a point has."""
    if drawn.count <= _MOST_CELLS:
        values = drawn.read_values()
        # Counts and labels are shown as shades; of a fingerprint the value says nothing.
        return values if drawn.width <= _MOST_BITS else [int(value > 0) for value in values], 1
    regions = list(split_regions(drawn, _REGIONS))
    return [region.fill for region in regions], regions[0].last
