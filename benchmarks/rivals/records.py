"""The first record of each key, as users would write it: `records.py csv|jsonl|polars|duckdb FILE`."""

import sys
from pathlib import Path


def by_csv(path: str) -> None:
    """The csv module and a set."""
    import csv

    seen: set[str] = set()
    with Path(path).open(newline="") as file:
        rows, out = csv.reader(file), csv.writer(sys.stdout, lineterminator="\n")
        header = next(rows)
        out.writerow(header)
        at = header.index("user")
        for row in rows:
            if row[at] not in seen:
                seen.add(row[at])
                out.writerow(row)


def by_jsonl(path: str) -> None:
    """The json module and a set; the line goes out as it came."""
    import json

    seen: set[str] = set()
    out = sys.stdout.buffer
    with Path(path).open("rb", buffering=1 << 20) as lines:
        for line in lines:
            key = json.loads(line)["user"]["key"]
            if key not in seen:
                seen.add(key)
                out.write(line)


def by_polars(path: str) -> None:
    """Its streaming engine where that keeps the first; every column as text, which is the cheapest."""
    import polars as pl

    frame = pl.scan_csv(path, infer_schema=False).unique(subset=["user"], keep="first", maintain_order=True)
    frame.collect(engine="streaming").write_csv(sys.stdout.buffer)


def by_duckdb(path: str) -> None:
    """One of the rows of each key, in any order."""
    import duckdb

    source = f"read_csv('{path}', all_varchar=true, header=true)"
    connection = duckdb.connect(config={"threads": 1})
    connection.execute(f"COPY (SELECT DISTINCT ON (\"user\") * FROM {source}) TO '/dev/stdout' (HEADER)")


if __name__ == "__main__":
    {"csv": by_csv, "jsonl": by_jsonl, "polars": by_polars, "duckdb": by_duckdb}[sys.argv[1]](sys.argv[2])
