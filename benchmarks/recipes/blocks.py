"""Lookups that filters save: daily backups of a disk, and traces in blocks of a store."""

from __future__ import annotations

import random

from benchmarks.outcome import Outcome, Table
from fullbloom.recipes.blocks import Archive, BlockFilters

SEED, BLOCKS, DAYS, CHANGED = 19, 20_000, 10, 0.03
STORES, TRACES, LOOKUPS = 100, 5_000, 2_000


def back_up(draw: random.Random) -> dict[str, float]:
    """A disk of blocks is backed up daily, and the backup sends the changed blocks of each day."""
    disk = [draw.randbytes(16) for _ in range(BLOCKS)]
    archive = Archive({})
    sent = list(disk)
    for _ in range(DAYS):
        for data in sent:
            archive.write(data)
        changed = draw.sample(range(BLOCKS), round(CHANGED * BLOCKS))
        for at in changed:
            # A tenth of the changes copies another block.
            disk[at] = draw.choice(disk) if draw.random() < 0.1 else draw.randbytes(16)
        sent = [disk[at] for at in changed]
    written = archive.lookups + archive.skipped
    return {"archive_lookups": archive.lookups / written, "archive_new": archive.written / written}


def find_traces(draw: random.Random) -> dict[str, float]:
    blocks = BlockFilters(bits=8)
    traces = [[draw.randbytes(16) for _ in range(TRACES)] for _ in range(STORES)]
    for number, keys in enumerate(traces):
        blocks.add(f"block {number}", keys)
    read = missed = 0
    for _ in range(LOOKUPS):
        number = draw.randrange(STORES)
        found = blocks.find(draw.choice(traces[number]))
        read += len(found)
        missed += f"block {number}" not in found
    return {
        "blocks_read": read / LOOKUPS,
        "blocks_missed": missed,
        "blocks_bits": 8 * blocks.nbytes / (STORES * TRACES),
    }


def measure() -> Outcome:
    draw = random.Random(SEED)
    figures = back_up(draw) | find_traces(draw)
    rows = [
        [
            "archive: lookups in the index, of blocks written",
            "100.0%",
            f"{figures['archive_lookups']:.1%}",
            f"{1 - figures['archive_new']:.1%}",
        ],
        ["traces: blocks read, of 100", "100", f"{figures['blocks_read']:.2f}", "1"],
    ]
    columns = ["what", "without a filter", "with filters", "at best"]
    parameters = {"blocks": BLOCKS, "days": DAYS, "stores": STORES, "traces": TRACES, "seed": SEED}
    return Outcome(parameters, figures, [Table("blocks", "blocks.md", columns, rows)])
