"""`python -m benchmarks.jobs [JOB...]`: measure what a filter saves in the seven jobs, and write their pages.

Without a name all are measured, some six minutes; `page` measures nothing. `database` needs PostgreSQL,
`joins` Java, and `celery` redis-server.
"""

from __future__ import annotations

import sys

from benchmarks.jobs import record


def main() -> int:
    """Measure the jobs, then write the pages and pictures of all that are in the record."""
    names = sys.argv[1:] or record.MEASURED
    for name in names:
        if name not in {*record.MEASURED, "page"}:
            print(f"{name!r} is not among {', '.join([*record.MEASURED, 'page'])}", file=sys.stderr)
            return 2
    for name in names:
        if name != "page":
            print(name, file=sys.stderr, flush=True)
            record.measure(name)
    entries = record.load()
    for name in entries:
        record.write(name, entries)
    index = record.INDEX.read_text(encoding="utf-8")
    record.INDEX.write_text(record.render_index(index, entries), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
