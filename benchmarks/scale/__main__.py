"""`python -m benchmarks.scale [PART...]`: measure cost against the number of keys, then write page and plots.

Without a part all are measured, some ten minutes; `page` measures nothing. The parts are those of
`record.PARTS`.
"""

from __future__ import annotations

import sys

from benchmarks.scale import page, record


def main() -> int:
    """Measure the parts, then write the page and its plots."""
    parts = sys.argv[1:] or [*record.PARTS]
    for part in parts:
        if part not in {*record.PARTS, "page"}:
            print(f"{part!r} is not among {', '.join([*record.PARTS, 'page'])}", file=sys.stderr)
            return 2
        if part != "page":
            record.measure(part)
    page.write(record.load())
    return 0


if __name__ == "__main__":
    sys.exit(main())
