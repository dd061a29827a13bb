"""Admit to a cache on the second request: a trace of popular objects and of many that are requested once."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
from scripts.docsite.curves import Axis, Series, draw_lines
from scripts.docsite.pictures import GREEN, GREY

from benchmarks.jobs.shown import Figures, Shown
from benchmarks.units import write_bytes
from fullbloom import RollingBloomFilter

PAGE = "docs/how-to/cache-admission.md"
REQUESTS, POPULAR, SKEW, ONCE = 2_000_000, 200_000, 0.9, 0.3
SIZES = [1_000, 3_000, 10_000, 30_000, 100_000]
STATED, WINDOW, FPR = 10_000, 1_000_000, 0.01


def draw_trace() -> list[int]:
    """Objects by request: popularity by Zipf's law, and a share of objects that nobody requests again."""
    draw = np.random.default_rng(5)
    weights = 1 / np.arange(1, POPULAR + 1) ** SKEW
    places = np.cumsum(weights) / weights.sum()
    trace = np.searchsorted(places, draw.random(REQUESTS))
    is_once = draw.random(REQUESTS) < ONCE
    trace[is_once] = POPULAR + np.flatnonzero(is_once)
    return [int(one) for one in trace]


def replay(trace: list[int], size: int, requested: RollingBloomFilter | None) -> Figures:
    """Hits and writes of a least-recently-used cache; with a filter, it admits on the second request."""
    objects: OrderedDict[int, None] = OrderedDict()
    hits = writes = 0
    for key in trace:
        if key in objects:
            objects.move_to_end(key)
            hits += 1
        elif requested is None or not requested.add(key):
            objects[key] = None
            writes += 1
            if len(objects) > size:
                objects.popitem(last=False)
    return {
        "hits": hits / len(trace),
        "writes": writes,
        "memory": requested.nbytes if requested is not None else 0,
    }


def measure() -> Figures:
    """Both caches in all sizes."""
    trace = draw_trace()
    rows: list[dict[str, Any]] = [
        {
            "size": size,
            "first": replay(trace, size, None),
            "second": replay(trace, size, RollingBloomFilter(WINDOW, FPR)),
        }
        for size in SIZES
    ]
    return {"requests": REQUESTS, "objects": len(set(trace)), "once": ONCE, "window": WINDOW, "rows": rows}


def show(figures: Figures) -> Shown:
    """The table of the page."""
    stated = next(row for row in figures["rows"] if row["size"] == STATED)
    first, second = stated["first"], stated["second"]
    return Shown(
        f"{first['writes'] / second['writes']:.1f} times fewer writes, "
        f"{second['hits']:.0%} instead of {first['hits']:.0%} hits",
        f"A trace of {figures['requests'] // 1_000_000} million requests for {figures['objects']:,} objects, "
        f"{figures['once']:.0%} of the requests for objects that nobody requests again. "
        f"A cache of {STATED:,} objects "
        f"answers {second['hits']:.1%} instead of {first['hits']:.1%}, with "
        f"{first['writes'] / second['writes']:.1f} times fewer writes. The filter takes "
        f"{write_bytes(second['memory'])}.",
        [
            "objects in the cache",
            "hits: admit all",
            "hits: second request",
            "writes: admit all",
            "writes: second request",
        ],
        [
            [
                f"{row['size']:,}",
                f"{row['first']['hits']:.1%}",
                f"{row['second']['hits']:.1%}",
                f"{row['first']['writes']:,}",
                f"{row['second']['writes']:,}",
            ]
            for row in figures["rows"]
        ],
    )


def draw(figures: Figures) -> str:
    """The picture of the page."""

    def list_hits(name: str) -> list[tuple[float, float]]:
        return [(row["size"], 100 * row[name]["hits"]) for row in figures["rows"]]

    return draw_lines(
        "Share of requests that a cache answers against its size, admitting all or on the second request",
        Axis("objects in the cache", lambda value: f"{value:,.0f}"),
        Axis("requests answered by the cache", lambda value: f"{value:.0f} %", log=False),
        [
            Series("second request", GREEN, list_hits("second")),
            Series("admit all", GREY, list_hits("first")),
        ],
    )
