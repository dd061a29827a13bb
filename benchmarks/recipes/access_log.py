"""The same comparison on an access log: FULLBLOOM_ACCESS_LOG names the file."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from benchmarks.outcome import Outcome, Table
from benchmarks.recipes.admission import COLUMNS, compare, tabulate
from fullbloom.recipes.traces import AccessLog, measure_one_hit_share

VARIABLE, SIZE = "FULLBLOOM_ACCESS_LOG", 100
MISSING = "" if VARIABLE in os.environ else f"{VARIABLE} names no file"


def measure() -> Outcome:
    path = Path(os.environ[VARIABLE])
    with path.open("rb") as file:
        log = AccessLog(file)
        trace = [request.target for request in log if request.is_cacheable]
    found = compare(trace, SIZE)
    (lru_hits, lru_writes), (hits, writes) = found["LRU"], found["LRU, second request"]
    figures = {
        "lines": log.lines,
        "skipped": log.skipped,
        "requests": len(trace),
        "objects": len(set(trace)),
        "one_hit_share": measure_one_hit_share(trace),
        "writes_saved": 1 - writes / lru_writes,
        "hit_ratio_gained": (hits - lru_hits) / len(trace),
    }
    parameters = {"sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "size": SIZE}
    rows = tabulate(found, len(trace))
    return Outcome(parameters, figures, [Table("access log", "admission.md", COLUMNS, rows)])
