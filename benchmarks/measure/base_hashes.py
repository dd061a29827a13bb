"""The hash of a key alone: every base hash, and the keyed one, by the length of the keys."""

from __future__ import annotations

from typing import Any

from benchmarks import clock
from benchmarks.isolation import isolated
from benchmarks.measure import say
from benchmarks.model import Definition, Figure, Result, Table, number

KEYED = "siphash-1-3 (`secret=`)"
HASHES = ("xxh3", KEYED, "xxh64", "murmur3-128", "murmur3-32", "fnv1a", "md5", "sha1", "sha256")
INTEGERS = "int64"


def run(definition: Definition, quick: bool) -> Result:
    """One fresh process for each column."""
    result = Result(definition.name, definition.title)
    settings = definition.effective(quick)
    cells: dict[str, list[str]] = {name: [] for name in HASHES}
    for column in settings["columns"]:
        width = 8 if column == INTEGERS else column
        keys = min(settings["most_keys"], settings["bytes"] // width)
        order = {"column": column, "keys": keys, "rounds": settings["rounds"]}
        samples = isolated("benchmarks.measure.base_hashes:worker", order, {clock.one_cpu()})
        for name, times in samples.items():
            figure = Figure(clock.median(times), "ns", f"{name}, {_title(column)}", min(times))
            result.figures[f"{name}/{column}/ns"] = figure
            cells[name].append(f"{number(figure.value)} ({number(min(times))})")
        result.raw[str(column)] = samples
        say(f"{_title(column)}: " + "  ".join(f"{name} {cells[name][-1]}" for name in HASHES))
    columns = ["hash", *(_title(column) for column in settings["columns"])]
    rows = [[name, *row] for name, row in cells.items()]
    note = "ns per key: median (minimum), CPU time"
    result.tables.append(Table("The hash of a key, by its length", columns, rows, note))
    return result


def _title(column: str | int) -> str:
    return column if isinstance(column, str) else f"{column} bytes"


def worker(column: str | int, keys: int, rounds: int) -> dict[str, list[float]]:
    """Samples by hash."""
    from fullbloom import hash_many

    given = _column(column, keys)
    samples: dict[str, list[float]] = {name: [] for name in HASHES}
    for round_ in range(rounds):
        for name in clock.rotated(HASHES, round_):
            options: dict[str, Any] = {"secret": bytes(16)} if name == KEYED else {"hash": name}
            with clock.no_gc():
                samples[name].append(clock.wall_and_cpu(lambda: hash_many(given, **options), keys)[1])  # noqa: B023
    return samples


def _column(column: str | int, count: int) -> Any:
    import numpy as np
    import pyarrow as pa

    width = 8 if isinstance(column, str) else column
    words = np.random.SFC64([count, width]).random_raw(count * width // 8)
    if column == INTEGERS:
        return words.view(np.int64)
    text = words.view(np.uint8) & 31
    text += ord("A")
    offsets = pa.py_buffer(np.arange(count + 1, dtype=np.int64) * width)
    return pa.Array.from_buffers(pa.large_string(), count, [None, offsets, pa.py_buffer(text)])
