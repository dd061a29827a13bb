"""`python -m benchmarks.engines [NAME...]`: each prints its table, on servers that it starts and ends.

A colon names a part of a table: `spark:build`, `spark:contains`, `spark:joins`, `spark:duplicates`.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from pathlib import Path

NAMES = ["redis", "fleet", "columns", "sqlalchemy", "spark"]


def main() -> int:
    """Run the named benchmarks, or all."""
    wanted = sys.argv[1:] or NAMES
    for name, _, part in (one.partition(":") for one in wanted):
        if name not in NAMES:
            print(f"no measurement is called {name!r}; there are {', '.join(NAMES)}", file=sys.stderr)
            return 2
        with tempfile.TemporaryDirectory(prefix="fullbloom-bench-") as folder:
            load = ", ".join(f"{share:.1f}" for share in os.getloadavg())
            print(f"{name} (load before: {load})", flush=True)
            run = importlib.import_module(f"benchmarks.engines.{name}").run
            for line in run(Path(folder), part) if part else run(Path(folder)):
                print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
