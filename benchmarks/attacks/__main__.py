"""Measures the attacks: `python -m benchmarks.attacks [--write]` prints the table, or writes the page."""

from __future__ import annotations

import argparse
import sys

from benchmarks.attacks.page import PAGE, insert_table, table
from benchmarks.attacks.rows import measured


def main() -> int:
    """Exit status 0."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.attacks", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write the table into {PAGE.name}")
    options = parser.parse_args()
    shown = table(measured())
    print(shown)
    if options.write:
        PAGE.write_text(insert_table(PAGE.read_text(), shown))
    return 0


if __name__ == "__main__":
    sys.exit(main())
