"""False-positive rates at capacity, with deviations computed from the trials."""

from __future__ import annotations

import math
import statistics
from typing import Any

from benchmarks.isolation import isolated
from benchmarks.measure import say
from benchmarks.model import Definition, Figure, Result, Table, count_name

CHUNK = 1 << 20
DEVIATIONS = 3.0
FLOOR = 0.8
FLOOR_FROM = 10_000
ENOUGH_SEEDS = 30
Cell = dict[str, Any]


def run(definition: Definition, quick: bool) -> Result:
    """One fresh process for each layout."""
    result = Result(definition.name, definition.title)
    settings = definition.effective(quick)
    cells: list[Cell] = []
    for index, layout in enumerate(settings["layouts"]):
        order = {**settings, "layout": layout, "turn": index}
        cells += isolated("benchmarks.measure.accuracy:worker", order)
        result.tables.append(_table(layout, settings, [c for c in cells if c["layout"] == layout]))
    _figures(result, cells)
    result.raw["cells"] = cells
    return result


def worker(layout: str, turn: int, fprs: list[float], sizes: list[int], **settings: Any) -> list[Cell]:
    """All cells of one layout, smallest size first."""
    cells = []
    for at, fpr in enumerate(fprs):
        spread: list[tuple[float, int]] = []
        row = []
        for size in sizes:
            patterns = settings["patterns"]
            if size >= settings["one_pattern_from"]:
                patterns = [patterns[(turn + at) % len(patterns)]]
            row += [_cell(layout, fpr, size, pattern, spread, settings) for pattern in patterns]
        cells += row
        shown = (
            f"{count_name(c['size'])} {c['pattern'][:3]} {c['rate'] / fpr:.3f}" for c in row if "rate" in c
        )
        say(f"{layout} {fpr:g}: " + "  ".join(shown))
    return cells


def _cell(
    layout: str, fpr: float, size: int, pattern: str, spread: list[Any], settings: dict[str, Any]
) -> Cell:
    from fullbloom import errors

    seeds = max(1, min(settings["max_seeds"], settings["seed_keys"] // size))
    trials = max(settings["min_trials"], min(settings["max_trials"], round(settings["hits"] / fpr)))
    cell: Cell = {"layout": layout, "fpr": fpr, "size": size, "pattern": pattern}
    try:
        rates, each = _rates(layout, fpr, size, pattern, range(seeds), trials, settings["threads"])
    except errors.FullbloomError as error:
        return {**cell, "refused": str(error)}
    cell |= _sum_up(rates, each, fpr, size, spread)
    if cell["z"] > DEVIATIONS:
        again = range(seeds, seeds + 4 * seeds)
        rates, each = _rates(layout, fpr, size, pattern, again, 4 * trials, settings["threads"])
        cell["again"] = _sum_up(rates, each, fpr, size, spread)
    return cell


def _sum_up(rates: list[float], each: int, fpr: float, size: int, spread: list[Any]) -> Cell:
    """Rate, deviation and distance from the target. Notes the variance between filters in `spread`."""
    seeds, rate = len(rates), statistics.fmean(rates)
    between = 0.0
    if seeds >= ENOUGH_SEEDS:
        between = max(0.0, statistics.variance(rates) - rate * (1 - rate) / each)
        spread.append((between * size, seeds))
    elif spread:
        weight = sum(n for _, n in spread)
        between = sum(value * n for value, n in spread) / weight / size
    sd = math.sqrt((fpr * (1 - fpr) / each + between) / seeds)
    return {"seeds": seeds, "trials": each * seeds, "rate": rate, "sd": sd, "z": (rate - fpr) / sd}


def _rates(
    layout: str, fpr: float, size: int, pattern: str, seeds: range, trials: int, threads: int
) -> tuple[list[float], int]:
    """The measured rate of each filter, and the trials each had."""
    import numpy as np

    from fullbloom import BloomFilter

    each = -(-trials // len(seeds))
    rates = []
    for seed in seeds:
        f = BloomFilter(size, fpr, layout=layout, seed=seed)
        for start in range(0, size, CHUNK):
            f.update(_keys(pattern, start, min(CHUNK, size - start), seed, 0), threads=threads)
        hits = 0
        for start in range(0, each, CHUNK):
            absent = _keys(pattern, size + start, min(CHUNK, each - start), seed, 1)
            hits += int(np.count_nonzero(f.contains_many(absent, threads=threads)))
        rates.append(hits / each)
    return rates, each


def _keys(pattern: str, start: int, count: int, seed: int, absent: int) -> Any:
    """Keys `start..start + count` of a pattern. Members and absent keys never meet."""
    import numpy as np

    if pattern == "random":
        raw = np.random.SFC64([seed, start, absent]).random_raw(count)
        raw &= np.uint64(~1 & (1 << 64) - 1)
        raw |= np.uint64(absent)
        return raw.view(np.int64)
    keys = np.arange(start, start + count, dtype=np.int64)
    if pattern == "strided":
        keys <<= 32
    return keys


def _table(layout: str, settings: dict[str, Any], cells: list[Cell]) -> Table:
    columns = ["target", *(count_name(n) for n in settings["sizes"]), f"all >= {count_name(FLOOR_FROM)}"]
    rows = []
    for fpr in settings["fprs"]:
        row = [f"{fpr:g}"]
        for size in settings["sizes"]:
            ratios = [c["rate"] / fpr for c in cells if (c["fpr"], c["size"]) == (fpr, size) and "rate" in c]
            low_high = sorted({f"{min(ratios):.2f}", f"{max(ratios):.2f}"}) if ratios else ["refused"]
            row.append("-".join(low_high))
        big = [c for c in cells if c["fpr"] == fpr and c["size"] >= FLOOR_FROM and "rate" in c]
        trials = sum(c["trials"] for c in big)
        row.append(f"{sum(c['rate'] * c['trials'] for c in big) / trials / fpr:.3f}" if trials else "")
        rows.append(row)
    return Table(f"{layout}: measured / target", columns, rows)


def _figures(result: Result, cells: list[Cell]) -> None:
    measured = [c for c in cells if "rate" in c]
    first = [c for c in measured if "again" in c]
    above = [c for c in first if c["again"]["z"] > DEVIATIONS]
    big = [c for c in measured if c["size"] >= FLOOR_FROM]
    below = [c for c in big if c["rate"] + DEVIATIONS * c["sd"] < FLOOR * c["fpr"]]
    by_chance = len(measured) * 0.5 * math.erfc(DEVIATIONS / math.sqrt(2))
    result.figures["above"] = Figure(
        len(above),
        "cells",
        f"of {len(measured)}, {len(first)} in the first measurement ({by_chance:.1f} expected by chance)",
    )
    result.figures["below"] = Figure(len(below), "cells", f"of {len(big)}")
    for name, some in (("above target, confirmed", above), ("below 0.8 of the target", below)):
        for c in some:
            case = f"{c['layout']} {c['fpr']:g}, {count_name(c['size'])} {c['pattern']} keys"
            line = f"{name}: {case}, {c['rate']:.3g}"
            say(line)
            result.notes.append(line)
    refused = [c for c in cells if "refused" in c]
    result.notes += [f"{c['layout']} {c['fpr']:g}, {count_name(c['size'])}: {c['refused']}" for c in refused]
