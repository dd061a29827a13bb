"""Process each event of a stream once: 3 million events, a tenth of them delivered again some time later."""

from __future__ import annotations

import random
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

from scripts.docsite.curves import draw_bars
from scripts.docsite.pictures import GREEN, GREY

from benchmarks.isolation import isolated
from benchmarks.jobs.shown import Figures, Shown, read_memory
from benchmarks.units import write_bytes, write_seconds
from fullbloom import AgingBloomFilter

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = "docs/how-to/stream.md"
EVENTS, WINDOW, LATEST, REPEATED, FPR = 3_000_000, 1_000_000, 500_000, 0.1, 1e-6
OURS, BATCHED, NAIVE = "AgingBloomFilter", "AgingBloomFilter, batches of 1,000", "OrderedDict"
BATCH = 1000
RUNS = 3


def iter_events() -> Iterator[tuple[str, bool]]:
    """Names of events, and whether each was delivered before; a repeat is at most `LATEST` events late."""
    draw = random.Random(7)
    for at in range(EVENTS):
        is_old = at > 0 and draw.random() < REPEATED
        number = draw.randrange(max(0, at - LATEST), at) if is_old else at
        yield f"delivery-{number * 0x9E3779B97F4A7C15 % (1 << 64):016x}", is_old


def remember(events: list[str], *, copied: bool) -> tuple[bytearray, OrderedDict[str, None]]:
    """Whether each event is new to a dictionary of the last `WINDOW` new ones, and the dictionary.

    copied: store a copy of each text, as for events of a stream, whose texts nobody else keeps.
    """
    window: OrderedDict[str, None] = OrderedDict()
    results = bytearray()
    for event in events:
        if event in window:
            results.append(0)
            continue
        window["".join((event[:1], event[1:])) if copied else event] = None
        results.append(1)
        if len(window) > WINDOW:
            window.popitem(last=False)
    return results, window


def run(name: str) -> Figures:
    """Seconds, memory and mistakes of one of the three, in a process of its own."""
    events, seen_before = [], set()
    is_new = bytearray()
    for event, _ in iter_events():
        is_new.append(event not in seen_before)
        seen_before.add(event)
        events.append(event)
    del seen_before
    times = []
    for _ in range(RUNS):
        begun = time.process_time()
        if name == NAIVE:
            results, _ = remember(events, copied=False)
        else:
            seen = AgingBloomFilter(WINDOW, FPR)
            if name == OURS:
                results = bytearray(seen.add(event) for event in events)
            else:
                results = bytearray()
                for at in range(0, EVENTS, BATCH):
                    results += bytearray(seen.add_many(events[at : at + BATCH]))
        times.append(time.process_time() - begun)
    return {
        "seconds": min(times),
        "memory": isolated("benchmarks.jobs.stream:weigh", {}) if name == NAIVE else seen.nbytes,
        "dropped": sum(was and not now for was, now in zip(is_new, results, strict=True)),
        "repeated": sum(now and not was for was, now in zip(is_new, results, strict=True)),
    }


def weigh() -> int:
    """Bytes of the dictionary, in a process that did nothing else, so that no freed memory is counted."""
    events = [event for event, _ in iter_events()]
    before = read_memory()
    _, window = remember(events, copied=True)
    assert len(window) == WINDOW
    return read_memory() - before


def measure() -> Figures:
    """All three."""
    runs = {name: isolated("benchmarks.jobs.stream:run", {"name": name}) for name in (OURS, BATCHED, NAIVE)}
    return {"events": EVENTS, "window": WINDOW, "fpr": FPR, "runs": runs}


def show(figures: Figures) -> Shown:
    """The table of the page."""
    runs = figures["runs"]
    return Shown(
        f"{runs[NAIVE]['memory'] / runs[OURS]['memory']:.0f} times less memory than a dictionary",
        f"A stream of {figures['events'] // 1_000_000} million deliveries, a tenth of which arrive again; "
        "the last "
        f"{figures['window'] // 1_000_000} million distinct ones are remembered: "
        f"{runs[NAIVE]['memory'] / runs[OURS]['memory']:.0f} times less memory than an "
        "`OrderedDict` of the same window.",
        ["", "memory", "per event", "new events dropped", "repeats processed"],
        [
            [
                f"`{name.split(',')[0]}`{name[len(name.split(',')[0]) :]}",
                write_bytes(one["memory"]),
                write_seconds(one["seconds"] / figures["events"]),
                str(one["dropped"]),
                str(one["repeated"]),
            ]
            for name, one in runs.items()
        ],
    )


def draw(figures: Figures) -> str:
    """The picture of the page."""
    runs = figures["runs"]
    return draw_bars(
        "Memory of a window of a million events: the filter needs a small part of the dictionary's",
        "memory of the window",
        [
            (name, runs[name]["memory"] / 1e6, write_bytes(runs[name]["memory"]), colour)
            for name, colour in ((OURS, GREEN), (NAIVE, GREY))
        ],
    )
