"""Run a task once per order: 200,000 orders, a tenth of them delivered again; a filter, or a key each."""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scripts.docsite.curves import draw_bars
from scripts.docsite.pictures import GREEN, GREY

from benchmarks.jobs.shown import Figures, Shown
from benchmarks.units import write_bytes, write_seconds

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = "docs/recipes.md"
ORDERS, AGAIN, FPR = 200_000, 0.1, 1e-9
OURS, NAIVE = "once", "a key of Redis per order"


def draw_deliveries() -> list[int]:
    """The orders as they arrive: some of them a second time, later."""
    draw = random.Random(3)
    orders = [*range(ORDERS), *draw.sample(range(ORDERS), round(AGAIN * ORDERS))]
    return [order * 0x9E3779B97F4A7C15 % (1 << 63) for order in orders]


def deliver(send: Callable[[int], Any], deliveries: list[int]) -> float:
    """Seconds of all deliveries."""
    begun = time.perf_counter()
    for order in deliveries:
        send(order)
    return time.perf_counter() - begun


def measure() -> Figures:
    """Both ways, one after the other on an empty server; a round trip for each delivery."""
    import redis

    from benchmarks.engines.servers import server
    from fullbloom.engines.redis import RedisBloomFilter
    from fullbloom.recipes.celery import once

    deliveries, runs = draw_deliveries(), {}
    with (
        tempfile.TemporaryDirectory(prefix="fullbloom-job-") as folder,
        server(Path(folder)) as port,
        redis.Redis(port=port) as client,
    ):

        def weigh() -> int:
            return int(client.info("memory")["used_memory"])

        for name in (OURS, NAIVE):
            client.flushall()
            before, sent = weigh(), []
            if name == OURS:
                seen = RedisBloomFilter(client, "orders", capacity=ORDERS, fpr=FPR)
                send = once(seen, key="order")(lambda order, sent=sent: sent.append(order))
            else:

                def send(order: int, sent: list[int] = sent) -> None:
                    if client.set(f"once:send_receipt:{order}", 1, nx=True):
                        sent.append(order)

            seconds = deliver(send, deliveries)
            runs[name] = {
                "memory": weigh() - before,
                "seconds": seconds / len(deliveries),
                "twice": len(sent) - len(set(sent)),
                "never": ORDERS - len(set(sent)),
            }
    return {"orders": ORDERS, "deliveries": len(deliveries), "runs": runs}


def show(figures: Figures) -> Shown:
    """The table of the page."""
    runs = figures["runs"]
    saved = runs[NAIVE]["memory"] / runs[OURS]["memory"]
    return Shown(
        f"{saved:.0f} times less memory in Redis than a key per order",
        f"{figures['deliveries']:,} deliveries of {figures['orders']:,} orders: {saved:.0f} times less "
        "memory in Redis than a key per order, which `SET NX` creates. Each delivery is one round trip.",
        ["", "memory in Redis", "per order", "per delivery", "sent twice", "never sent"],
        [
            [
                f"`{name}`" if name == OURS else name,
                write_bytes(one["memory"]),
                f"{one['memory'] / figures['orders']:.1f} B",
                write_seconds(one["seconds"]),
                str(one["twice"]),
                str(one["never"]),
            ]
            for name, one in runs.items()
        ],
    )


def draw(figures: Figures) -> str:
    """The picture of the page."""
    return draw_bars(
        "Memory in Redis of the orders that were processed: the filter needs a small part of that of keys",
        f"memory in Redis of {figures['orders']:,} orders",
        [
            (name, one["memory"] / 1e6, write_bytes(one["memory"]), GREY if name == NAIVE else GREEN)
            for name, one in figures["runs"].items()
        ],
    )
