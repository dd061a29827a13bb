"""De-duplication as Python users write it: a set of lines. `python dedup_set.py FILE`."""

import sys
from pathlib import Path


def main(path: str) -> None:
    """Writes the first of each line of `path` to stdout, in order."""
    seen: set[bytes] = set()
    add, out = seen.add, sys.stdout.buffer
    with Path(path).open("rb", buffering=1 << 20) as lines:
        for line in lines:
            if line not in seen:
                add(line)
                out.write(line)


main(sys.argv[1])
