"""How each definition is measured: `run(definition, quick) -> Result`, work done in fresh processes."""

from __future__ import annotations

import sys


def say(line: str) -> None:
    """One line of progress, at once."""
    print(f"  {line}", file=sys.stderr, flush=True)
