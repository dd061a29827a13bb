"""Measures what networked filters send: ``python -m benchmarks.networked [NAME...] [--write]``.

Prints the tables of docs/networked.md; with ``--write``, stores them in record.json and on the page. Counts
of bits depend on the seeds only. ``duplicates_large`` has ten million keys and takes one or two minutes.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from benchmarks.model import ROOT
from benchmarks.outcome import Outcome, Record

from . import duplicates, replication, routing, sums

if TYPE_CHECKING:
    from collections.abc import Callable

RECORD = Record(ROOT / "benchmarks" / "networked" / "record.json", ROOT / "docs")
EXPERIMENTS: dict[str, Callable[[], Outcome]] = {
    "duplicates": duplicates.measure,
    "duplicates_large": duplicates.measure_large,
    "replication": replication.measure,
    "routing": routing.measure,
    "sums": sums.measure,
}


def main() -> int:
    """Exit status 1 if a figure does not reach its bar."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.networked", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"experiments; by default all: {', '.join(EXPERIMENTS)}")
    parser.add_argument("--write", action="store_true", help="write the record and the page")
    options = parser.parse_args()
    outcomes = {}
    for name in options.names or EXPERIMENTS:
        if name not in EXPERIMENTS:
            parser.error(f"the experiments are {', '.join(EXPERIMENTS)}")
        outcomes[name] = EXPERIMENTS[name]()
        print(f"# {name}: {outcomes[name].figures}")
        for table in outcomes[name].tables:
            print(table.show(), end="\n\n")
    if options.write:
        RECORD.write(outcomes)
    failures = [failure for outcome in outcomes.values() for failure in outcome.list_failures()]
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
