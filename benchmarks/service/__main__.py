"""`python -m benchmarks.service [NAME...]`."""

from __future__ import annotations

import importlib
import sys
import tempfile
from pathlib import Path

NAMES = ["restart", "many_filters", "snapshots", "fetch", "durable", "resp", "soak"]


def main() -> int:
    """Run the named benchmarks, or all except the soak."""
    wanted = sys.argv[1:] or [name for name in NAMES if name != "soak"]
    for name in wanted:
        if name not in NAMES:
            print(f"no measurement is called {name!r}; there are {', '.join(NAMES)}", file=sys.stderr)
            return 2
        with tempfile.TemporaryDirectory(prefix="fullbloom-bench-") as folder:
            print(
                f"{name}: {importlib.import_module(f'benchmarks.service.{name}').run(Path(folder))}",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
