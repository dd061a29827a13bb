"""What a filter in Redis tells of itself, in the words of the native half."""

from __future__ import annotations

from typing import Any

from fullbloom import theory
from fullbloom.service.redis.traffic import Traffic

#: What such filters are called in the registry.
BACKEND = "redis"


def described(row: dict[str, Any], waiting: dict[str, int], info: dict[str, Any] | None) -> dict[str, Any]:
    """Return what is known of a filter.

    waiting: traffic that is not in the row's counters yet. info: what the server counted, if it did.
    """
    traffic = {name: row[name] + waiting.get(name, 0) for name in Traffic.NAMES}
    details = {key: row[key] for key in ("num_bits", "num_hashes", "layout", "scheme")}
    counted = info or {}
    fpr = counted["fpr"] if info else _fpr(row, traffic["new"])
    # The bits know of a filter that was cleared, the counters do not.
    keys = counted.get("approx_count", traffic["new"])
    return {
        "id": row["id"],
        "name": row["name"],
        "kind": row["kind"],
        "backend": BACKEND,
        "place": row["place"],
        "class": "RedisBloomFilter",
        "options": [[key, str(value)] for key, value in row["options"].items()],
        "seed": int(row["seed"]),
        "keyed": row["keyed"],
        "strict": False,
        "created": row["created"],
        "expires": row["expires"],
        "version": None,
        "capacity": row["expected_items"],
        "target_fpr": row["fpr"],
        "num_added": traffic["new"],
        "fpr": fpr,
        "over_capacity": keys > row["expected_items"] and fpr > row["fpr"],
        "nbytes": -(-row["num_bits"] // 8),
        "fill": counted.get("fill"),
        "estimated": counted.get("approx_count"),
        "estimated_deviation": counted.get("approx_count_sd"),
        **traffic,
        "removed": 0,
        "details": details | ({"shards": info["shards"]} if info else {}),
    }


def _fpr(row: dict[str, Any], keys: int) -> float:
    law: float = theory.fpr_at(row["layout"], row["num_bits"], row["num_hashes"], keys, row["scheme"])
    return law
