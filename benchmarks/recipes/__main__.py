"""Measures what the applications save: `python -m benchmarks.recipes [NAME...] [--write]`.

Prints the tables; with `--write`, stores them in record.json and in the pages of docs/applications. All
figures are counts with fixed seeds; only filters with a random secret differ a little in a second run.
access_log needs a file, and novelty scikit-learn.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time

from benchmarks.model import ROOT
from benchmarks.outcome import Record

RECORD = Record(ROOT / "benchmarks" / "recipes" / "record.json", ROOT / "docs" / "applications")
NAMES = (
    "hyphenation",
    "admission",
    "access_log",
    "state_search",
    "digests",
    "lsm",
    "join",
    "novelty",
    "checks",
    "rate_limit",
    "blocks",
    "already_read",
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recipes", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"experiments; by default all: {', '.join(NAMES)}")
    parser.add_argument("--write", action="store_true", help="write the record and the pages")
    options = parser.parse_args()
    outcomes = {}
    for name in options.names or NAMES:
        if name not in NAMES:
            parser.error(f"the experiments are {', '.join(NAMES)}")
        start = time.perf_counter()
        module = importlib.import_module(f"benchmarks.recipes.{name}")
        if missing := getattr(module, "MISSING", ""):
            print(f"# {name}: left out, {missing}")
            continue
        outcomes[name] = module.measure()
        print(f"# {name}, {time.perf_counter() - start:.1f} s: {outcomes[name].figures}")
        for table in outcomes[name].tables:
            print(table.show(), end="\n\n")
    if options.write:
        RECORD.write(outcomes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
