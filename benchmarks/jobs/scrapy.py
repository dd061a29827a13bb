"""Drop duplicate requests of a crawl in Scrapy: a million pages, each of which two links lead to."""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING, Any

from scripts.docsite.curves import draw_bars
from scripts.docsite.pictures import GREEN, GREY

from benchmarks.isolation import isolated
from benchmarks.jobs.shown import Figures, Shown, read_memory
from benchmarks.units import write_bytes, write_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = "docs/recipes.md"
PAGES, LINKS, FPR = 1_000_000, 2, 1e-6
OURS, GROWING, NAIVE = "DupeFilter with a capacity", "DupeFilter that grows", "Scrapy's own filter"


def iter_requests() -> Iterator[tuple[Any, bool]]:
    """Requests, and whether each leads to a page that was requested before."""
    from scrapy import Request

    for link in range(LINKS):
        for number in range(PAGES):
            name = number * 0x9E3779B97F4A7C15 % (1 << 64)
            yield Request(f"https://shop.example/items/{name:016x}?page={number % 7}&sort=price"), link > 0


def run(name: str) -> Figures:
    """Memory, time and mistakes of one filter, in a process of its own."""
    from scrapy.dupefilters import RFPDupeFilter
    from scrapy.utils.request import RequestFingerprinter

    from fullbloom.recipes.scrapy import DupeFilter, Options

    # Fingerprints take most of the time, and are the same for all.
    fingerprinter = RequestFingerprinter()
    if name == NAIVE:
        filter_ = RFPDupeFilter(fingerprinter=fingerprinter)
    else:
        options = Options(fpr=FPR, capacity=PAGES if name == OURS else None, seed=7)
        filter_ = DupeFilter(options=options, fingerprinter=fingerprinter)
        filter_.open()
    gc.collect()
    before = read_memory()
    spent, lost, again = 0.0, 0, 0
    for request, is_old in iter_requests():
        begun = time.process_time()
        is_seen = filter_.request_seen(request)
        spent += time.process_time() - begun
        lost += is_seen and not is_old
        again += is_old and not is_seen
    gc.collect()
    return {"memory": read_memory() - before, "seconds": spent, "lost": lost, "again": again}


def measure() -> Figures:
    """All three."""
    runs = {name: isolated("benchmarks.jobs.scrapy:run", {"name": name}) for name in (OURS, GROWING, NAIVE)}
    return {"pages": PAGES, "links": LINKS, "fpr": FPR, "runs": runs}


def show(figures: Figures) -> Shown:
    """The table of the page."""
    runs, count = figures["runs"], figures["pages"] * figures["links"]
    saved = runs[NAIVE]["memory"] / runs[OURS]["memory"]
    return Shown(
        f"{saved:.0f} times less memory than Scrapy's own filter",
        f"{count // 1_000_000} million requests for {figures['pages'] // 1_000_000} million pages: "
        f"{saved:.0f} times less memory than Scrapy's own filter. Most of the time goes into "
        "the fingerprint.",
        ["", "memory", "per page", "time per request", "pages lost", "pages fetched again"],
        [
            [
                name,
                write_bytes(one["memory"]),
                f"{one['memory'] / figures['pages']:.1f} B",
                write_seconds(one["seconds"] / count),
                str(one["lost"]),
                str(one["again"]),
            ]
            for name, one in runs.items()
        ],
    )


def draw(figures: Figures) -> str:
    """The picture of the page."""
    return draw_bars(
        "Memory of the requests of a crawl: the filter needs a small part of that of Scrapy's own",
        f"memory of {figures['pages']:,} requests",
        [
            (name, one["memory"] / 1e6, write_bytes(one["memory"]), GREY if name == NAIVE else GREEN)
            for name, one in figures["runs"].items()
        ],
    )
