"""Measures queries of signatures: ``python -m benchmarks.signatures [DOCUMENTS] [--write]``.

Prints the tables of docs/how-to/signatures.md; with ``--write``, stores them in record.json and on the page.
A million documents take two minutes.
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.model import ROOT
from benchmarks.outcome import Record

from . import queries

RECORD = Record(ROOT / "benchmarks" / "signatures" / "record.json", ROOT / "docs")


def main() -> int:
    """Exit status 1 if a figure does not reach its bar."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.signatures", description=__doc__)
    parser.add_argument("documents", nargs="?", type=int, default=queries.DOCUMENTS)
    parser.add_argument("--write", action="store_true", help="write the record and the page")
    options = parser.parse_args()
    outcome = queries.measure(options.documents)
    print(outcome.figures)
    for table in outcome.tables:
        print(table.show(), end="\n\n")
    if options.write:
        RECORD.write({"queries": outcome})
    failures = outcome.list_failures()
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
