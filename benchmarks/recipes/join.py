"""Rows and bytes that a join moves between two machines, with and without a filter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.outcome import Outcome, Table
from fullbloom.recipes.join import keep_matches, make_key_filter

ROWS, KEYS, MATCHES, SEED, RATES = 2_000_000, 100_000, 0.05, 5, (0.1, 0.01, 0.001)
COLUMNS = ["filter", "rows sent", "of all rows", "by the law", "bytes sent, with the filter", "of all bytes"]


def make_tables() -> tuple[Any, Any]:
    """Orders, of which a share belongs to the customers, and these customers."""
    draw = np.random.default_rng(SEED)
    customers = draw.permutation(1 << 24)[:KEYS]
    other = draw.integers(1 << 24, 1 << 40, ROWS)
    chosen = np.where(draw.random(ROWS) < MATCHES, draw.choice(customers, ROWS), other)
    orders = pa.table({"customer": chosen, "number": np.arange(ROWS), "price": draw.random(ROWS)})
    return orders, pa.table({"customer": customers, "country": draw.integers(0, 200, KEYS)})


def measure() -> Outcome:
    orders, customers = make_tables()
    matches = orders.join(customers, "customer", join_type="left semi").num_rows
    figures: dict[str, float] = {"matches": matches / ROWS}
    rows = [["none", f"{ROWS:,}", "100%", "", f"{orders.nbytes / 1e6:.1f} MB", "100%"]]
    for rate in RATES:
        seen = make_key_filter(customers, "customer", fpr=rate)
        kept = keep_matches(orders, "customer", seen)
        law = matches / ROWS + (1 - matches / ROWS) * seen.fpr()
        sent = kept.num_rows * (orders.nbytes / ROWS) + seen.nbytes
        share = kept.num_rows / ROWS
        error = ((1 - matches / ROWS) * seen.fpr() / ROWS) ** 0.5
        figures |= {
            f"kept_{rate}": share,
            f"deviation_{rate}": (share - law) / error,
            f"bytes_{rate}": sent / orders.nbytes,
        }
        rows.append(
            [
                f"{rate:.1%}, {seen.nbytes / 1000:.0f} kB",
                f"{kept.num_rows:,}",
                f"{share:.2%}",
                f"{law:.2%}",
                f"{sent / 1e6:.1f} MB",
                f"{sent / orders.nbytes:.1%}",
            ]
        )
    parameters = {"rows": ROWS, "keys": KEYS, "matches": MATCHES, "seed": SEED}
    return Outcome(parameters, figures, [Table("join", "bloom-join.md", COLUMNS, rows)])
