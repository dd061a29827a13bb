"""Bits per key, ours and the rivals'."""

from __future__ import annotations

import math

from benchmarks import rivals
from benchmarks.isolation import isolated
from benchmarks.measure import say
from benchmarks.model import Definition, Figure, Result, Table, count_name


def run(definition: Definition, quick: bool) -> Result:
    """One process for all of it."""
    settings = definition.effective(quick)
    result = Result(definition.name, definition.title)
    answer = isolated("benchmarks.measure.space:worker", settings)
    result.notes += answer["missing"]
    fprs = settings["fprs"]
    rows = [["bound"] + [f"{-math.log2(p):.2f}" for p in fprs]]
    for name, cells in answer["bits"].items():
        row = [f"default ({rivals.OURS})" if name == "auto" else name]
        for p, cell in zip(fprs, cells, strict=True):
            row.append("refused" if cell is None else f"{cell[0]:.2f}{cell[1]}")
            if cell is not None:
                result.figures[f"{name}/{p:g}/bits"] = Figure(round(cell[0], 4), "bits", f"{name}, {p:g}")
        rows.append(row)
        say("  ".join(row))
    columns = ["layout or rival", *(f"{p:g}" for p in fprs)]
    result.tables.append(Table(f"Bits per key, {count_name(settings['keys'])} keys", columns, rows))
    return result


def worker(keys: int, fprs: list[float], layouts: list[str]) -> dict[str, object]:
    """Bits per key by layout or rival; None where the combination is refused."""
    from fullbloom import BloomFilter, errors

    bits: dict[str, list[tuple[float, str] | None]] = {}
    for layout in layouts:
        bits[layout] = []
        for p in fprs:
            try:
                f = BloomFilter(keys, p, layout=layout)
                bits[layout].append((f.num_bits / keys, f" ({f.layout})" if layout == "auto" else ""))
            except errors.ParameterError:
                bits[layout].append(None)
    ready, missing = rivals.load()
    for rival in ready:
        size = rival.bits
        if size is not None and rival.name != rivals.OURS:
            bits[rival.name] = [(size(rival.make(keys, p)) / keys, "") for p in fprs]
    return {"bits": bits, "missing": missing}
