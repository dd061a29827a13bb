"""`python -m benchmarks.engines [NAME...] [--record]`: each prints its table, on servers that it starts.

A colon names a part of a table: `spark:build`, `spark:contains`, `spark:joins`, `spark:duplicates`. With
`--record`, parts of Spark and `digits` are stored in record.json and written into docs/engines/spark.md;
`page` measures nothing.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from pathlib import Path

from benchmarks.engines import record

NAMES = ["redis", "fleet", "columns", "sqlalchemy", "spark", "digits"]


def main() -> int:
    """Run the named benchmarks, or all."""
    is_recorded = "--record" in sys.argv
    wanted = [name for name in sys.argv[1:] if name != "--record"] or NAMES
    for name, _, part in (one.partition(":") for one in wanted):
        if name not in {*NAMES, "page"}:
            print(f"no measurement is called {name!r}; there are {', '.join(NAMES)}, page", file=sys.stderr)
            return 2
        if name == "page":
            continue
        load = ", ".join(f"{share:.1f}" for share in os.getloadavg())
        print(f"{name} (load before: {load})", flush=True)
        if is_recorded:
            for line in record.measure(name, part):
                print(line, flush=True)
            continue
        with tempfile.TemporaryDirectory(prefix="fullbloom-bench-") as folder:
            run = importlib.import_module(f"benchmarks.engines.{name}").run
            for line in run(Path(folder), part) if part else run(Path(folder)):
                print(line, flush=True)
    if is_recorded or "page" in wanted:
        missing = {*record.PARTS, "digits"} - record.load().keys()
        if missing:
            print(f"not written yet: measure {', '.join(sorted(missing))}, too", file=sys.stderr)
        else:
            record.write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
