"""The plots of docs/scale.md, from the record and its model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scripts.docsite.curves import Axis, Series, draw_lines
from scripts.docsite.pictures import BLUE, GREEN, GREY, RED

from benchmarks.scale import model, plan
from benchmarks.units import write_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

Record = dict[str, Any]
_KEYS = Axis("keys", lambda value: f"{value:.0e}".replace("e+0", "e").replace("e+", "e"))


def draw_time(record: Record) -> str:
    """Time per key, measured and by the model."""
    fitted, rows = plan.fit_record(record), record["filters"] + record["largest"]
    counts = [row["keys"] for row in rows]
    return draw_lines(
        "Time per key of a build and of a lookup against the number of keys, measured and by the model",
        _KEYS,
        Axis("nanoseconds per key, one core", lambda value: f"{value:g}", log=False),
        [
            Series("build", GREEN, [(row["keys"], row["build_seconds"] * 1e9 / row["keys"]) for row in rows]),
            Series(
                "build, model", GREEN, [(n, fitted.predict_build(n) * 1e9 / n) for n in counts], marks=False
            ),
            Series("lookup", BLUE, [(row["keys"], row["query_ns"]) for row in rows]),
        ],
    )


def draw_bytes(record: Record) -> str:
    """Bytes over the network."""
    shuffled = [
        (row["rows"], model.sum_rounds(row, "sent_bytes", "answered_bytes")) for row in record["shuffle"]
    ]
    return draw_lines(
        "Bytes sent against the number of keys: whole rows most, hash sets a small part, a sync constant",
        _KEYS,
        Axis("bytes sent", write_bytes),
        [
            Series("whole rows of 100 B", RED, [(count, plan.ROW_BYTES * count) for count, _ in shuffled]),
            Series("hash sets", GREEN, shuffled),
            Series("sync of 1,000 keys", GREY, [(row["keys"], row["sync_bytes"]) for row in record["sync"]]),
        ],
    )


def draw_merge(record: Record) -> str:
    """Seconds of a merge, measured and by the model."""
    fitted, rows = plan.fit_record(record), record["filters"] + record["largest"]
    return draw_lines(
        "Seconds to merge two filters against their number of keys, measured and by the model",
        _KEYS,
        Axis("seconds to merge two filters", lambda value: f"{value:g}"),
        [
            Series("merge", GREEN, [(row["keys"], row["merge_seconds"]) for row in rows]),
            Series(
                "merge, model",
                GREEN,
                [(n, fitted.predict_merge(n)) for n in [r["keys"] for r in rows]],
                marks=False,
            ),
        ],
    )


PLOTS: dict[str, Callable[[Record], str]] = {
    "scale-time": draw_time,
    "scale-bytes": draw_bytes,
    "scale-merge": draw_merge,
}
