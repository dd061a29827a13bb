"""Hit ratios and writes on Zipf's law: LRU, the same with admission on the second request, W-TinyLFU."""

from __future__ import annotations

from itertools import islice
from typing import Any

from benchmarks.outcome import Outcome, Table
from benchmarks.recipes.policies import Lru, WindowTinyLfu
from fullbloom.recipes.admission import SecondRequestCache
from fullbloom.recipes.traces import draw_zipf, measure_one_hit_share

#: With these, 74 % of the objects that are requested are requested once.
OBJECTS, EXPONENT, REQUESTS, SEED = 2_000_000, 0.9, 1_000_000, 1
SIZES = (1_000, 10_000, 40_000)
COLUMNS = ["cache", "hit ratio", "writes", "writes saved against LRU"]


def compare(trace: list[Any], size: int) -> dict[str, tuple[int, int]]:
    """Hits and writes of each policy."""
    found = {}
    for name, policy in (("LRU", Lru(size)), ("W-TinyLFU", WindowTinyLfu(size))):
        for key in trace:
            policy.request(key)
        found[name] = policy.hits, policy.writes
    cache: SecondRequestCache[Any, None] = SecondRequestCache(size)
    for key in trace:
        cache.get(key, lambda _: None)
    found["LRU, second request"] = cache.info().hits, cache.info().writes
    return found


def tabulate(found: dict[str, tuple[int, int]], requests: int, prefix: str = "") -> list[list[str]]:
    rows = []
    for name in ("LRU", "LRU, second request", "W-TinyLFU"):
        hits, writes = found[name]
        saved = f"{1 - writes / found['LRU'][1]:.1%}" if name != "LRU" else ""
        rows.append([prefix + name, f"{hits / requests:.1%}", f"{writes:,}", saved])
    return rows


def measure() -> Outcome:
    trace = list(islice(draw_zipf(OBJECTS, EXPONENT, seed=SEED), REQUESTS))
    figures = {"one_hit_share": measure_one_hit_share(trace)}
    rows = []
    for size in SIZES:
        found = compare(trace, size)
        (lru_hits, lru_writes), (hits, writes) = found["LRU"], found["LRU, second request"]
        figures |= {
            f"writes_saved_{size}": 1 - writes / lru_writes,
            f"hit_ratio_gained_{size}": (hits - lru_hits) / REQUESTS,
        }
        rows += tabulate(found, REQUESTS, f"{size:,} objects: ")
    parameters = {"objects": OBJECTS, "exponent": EXPONENT, "requests": REQUESTS, "seed": SEED}
    return Outcome(parameters, figures, [Table("admission", "admission.md", COLUMNS, rows)])
