"""De-duplication with the fastest rival filter, one line at a time. `python dedup_abloom.py FILE LINES`."""

import sys
from pathlib import Path

from abloom import BloomFilter


def main(path: str, capacity: int) -> None:
    """Writes the lines of `path` that the filter had not seen to stdout, in order."""
    add, out = BloomFilter(capacity, 0.01).add, sys.stdout.buffer
    with Path(path).open("rb", buffering=1 << 20) as lines:
        for line in lines:
            if add(line):
                out.write(line)


main(sys.argv[1], int(sys.argv[2]))
