"""Arrow columns of text from each producer."""

from __future__ import annotations

from typing import Any

from benchmarks import clock
from benchmarks.isolation import ChildFailed, isolated
from benchmarks.measure import say
from benchmarks.model import Definition, Figure, Result, Table, count_name, number

OPERATIONS = ("update", "add_many", "contains_many (hit)", "contains_many (miss)")
WIDTH = 24


def run(definition: Definition, quick: bool) -> Result:
    """One fresh process for each producer."""
    result = Result(definition.name, definition.title)
    settings = definition.effective(quick)
    count, rows = settings["keys"], []
    for column in settings["columns"]:
        order = {"column": column, "keys": count, "rounds": settings["rounds"], "fpr": settings["fpr"]}
        try:
            samples = isolated("benchmarks.measure.arrow_batch:worker", order, {clock.one_cpu()})
        except ChildFailed as error:
            result.notes.append(f"{column}: {error}")
            continue
        row = [column]
        for op, times in samples.items():
            figure = Figure(clock.median(times), "ns", f"{op}, {column}, {count_name(count)}", min(times))
            result.figures[f"{column}/{op}/ns"] = figure
            row.append(f"{number(figure.value)} ({number(min(times))})")
        rows.append(row)
        say("  ".join(row))
        result.raw[column] = samples
    title = f"{count_name(count)} keys of {WIDTH} bytes, one thread"
    result.tables.append(
        Table(title, ["column", *OPERATIONS], rows, "ns per key: median (minimum), CPU time")
    )
    return result


def worker(column: str, keys: int, rounds: int, fpr: float) -> dict[str, list[float]]:
    """Samples by operation."""
    from fullbloom import BloomFilter

    members, absent = _column(column, keys, 0), _column(column, keys, 1)
    f = BloomFilter(keys, fpr)
    f.update(members)
    samples: dict[str, list[float]] = {op: [] for op in OPERATIONS}
    for _ in range(rounds):
        with clock.no_gc():
            f.clear()
            samples["update"].append(clock.wall_and_cpu(lambda: f.update(members), keys)[1])
            f.clear()
            samples["add_many"].append(clock.wall_and_cpu(lambda: f.add_many(members), keys)[1])
            for op, asked in ((OPERATIONS[2], members), (OPERATIONS[3], absent)):
                samples[op].append(clock.wall_and_cpu(lambda: f.contains_many(asked), keys)[1])  # noqa: B023
    return samples


def _column(producer: str, count: int, stream: int) -> Any:
    import numpy as np
    import pyarrow as pa

    text = np.random.SFC64([count, stream]).random_raw(count * WIDTH // 8).view(np.uint8)
    text &= 31
    text += ord("A")
    text[::WIDTH] = ord("a") + stream
    offsets = np.arange(count + 1, dtype=np.int64) * WIDTH
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    large = pa.Array.from_buffers(pa.large_string(), count, buffers)
    if producer == "polars":
        import polars as pl

        return pl.Series("keys", large)
    kind = {"string": pa.string(), "large_string": pa.large_string(), "string_view": pa.string_view()}
    wanted = kind[producer.split()[1]]
    return large if wanted == large.type else large.cast(wanted)
