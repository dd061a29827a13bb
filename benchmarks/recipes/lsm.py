"""Tables read by lookups in a store of four levels: without filters, with equal ones, with Monkey's rates."""

from __future__ import annotations

import random
from typing import Any

from benchmarks.outcome import Outcome, Table
from fullbloom.recipes.lsm import Store

#: With so many entries, the four levels are as full as they get.
ENTRIES, LOOKUPS, SEED, BITS = 319_000, 200_000, 3, (2, 5, 10)
COLUMNS = [
    "filters",
    "bits per key",
    "rates of the levels",
    "tables read per absent key, by the law",
    "measured",
    "tables read per present key",
]


def fill(keys: list[int], **options: Any) -> Store:
    store = Store(**options)
    for key in keys:
        store.put(key, key)
    return store


def look_up(store: Store, keys: list[int]) -> float:
    """Tables read per key."""
    before = store.reads
    for key in keys:
        store.get(key)
    return (store.reads - before) / len(keys)


def measure() -> Outcome:
    draw = random.Random(SEED)
    keys = [draw.getrandbits(60) for _ in range(ENTRIES)]
    absent = [draw.getrandbits(60) | 1 << 61 for _ in range(LOOKUPS)]
    present = draw.choices(keys, k=LOOKUPS)
    figures: dict[str, float] = {}
    bare = fill(keys, bits_per_key=0.01, rates="uniform")
    sizes = " + ".join(f"{len(table.entries):,}" for table in bare.levels)
    rows = [
        [
            "none",
            "0",
            "",
            f"{bare.expect_reads():.1f}",
            f"{look_up(bare, absent):.1f}",
            f"{look_up(bare, present):.2f}",
        ]
    ]
    for bits in BITS:
        for rates in ("uniform", "monkey"):
            store = fill(keys, bits_per_key=bits, rates=rates)
            law, measured, hits = store.expect_reads(), look_up(store, absent), look_up(store, present)
            figures |= {
                f"{rates}_{bits}_law": law,
                f"{rates}_{bits}_measured": measured,
                f"{rates}_{bits}_bits": store.filter_bits_per_key,
            }
            rows.append(
                [
                    {"uniform": "equal", "monkey": "Monkey"}[rates],
                    f"{store.filter_bits_per_key:.2f}",
                    ", ".join(f"{table.fpr:.2%}" for table in store.levels),
                    f"{law:.4f}",
                    f"{measured:.4f}",
                    f"{hits:.4f}",
                ]
            )
        figures[f"saved_{bits}"] = (
            1 - figures[f"monkey_{bits}_measured"] / figures[f"uniform_{bits}_measured"]
        )
    parameters = {"entries": ENTRIES, "lookups": LOOKUPS, "seed": SEED, "levels": sizes}
    return Outcome(parameters, figures, [Table("lsm", "lsm.md", COLUMNS, rows)])
