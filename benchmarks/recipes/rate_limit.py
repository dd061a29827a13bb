"""Memory and refusals of a rate limiter for many clients, beside exact counts."""

from __future__ import annotations

import random
import sys
from array import array
from collections import deque

from benchmarks.outcome import Outcome, Table
from fullbloom.recipes.rate_limit import RateLimiter

SEED, CLIENTS, BUSY, LIMIT, WINDOW, EVENTS, SECONDS = 17, 50_000, 50, 20, 60.0, 500_000, 300.0
COLUMNS = ["limiter", "bytes per client", "events refused", "events of other than busy clients refused"]


class ExactLimiter:
    """The times of the allowed events of each client, 8 bytes each: a `deque` would take 600 bytes empty."""

    def __init__(self) -> None:
        self.times: dict[str, array[float]] = {}

    def allow(self, client: str, now: float) -> bool:
        times = self.times.setdefault(client, array("d"))
        while times and times[0] <= now - WINDOW:
            del times[0]
        if len(times) >= LIMIT:
            return False
        times.append(now)
        return True

    def size(self) -> float:
        held = sum(sys.getsizeof(client) + sys.getsizeof(times) for client, times in self.times.items())
        return (sys.getsizeof(self.times) + held) / CLIENTS


def measure() -> Outcome:
    """Most clients have few events; a few have a fifth of all."""
    draw = random.Random(SEED)
    now = 0.0
    limiter, exact = RateLimiter(LIMIT, WINDOW, CLIENTS, clock=lambda: now), ExactLimiter()
    refused = exactly = wrongly = rightly = events = 0
    most: dict[str, deque[float]] = {}
    beyond = 0
    for event in range(EVENTS):
        now = event * SECONDS / EVENTS
        number = draw.randrange(BUSY) if draw.random() < 0.2 else draw.randrange(BUSY, CLIENTS)
        client = f"client {number}"
        is_allowed, is_right = limiter.allow(client), exact.allow(client, now)
        refused += not is_allowed
        exactly += not is_right
        # Of the others, hardly any is above the limit.
        events += number >= BUSY
        wrongly += not is_allowed and number >= BUSY
        rightly += not is_right and number >= BUSY
        if is_allowed:
            times = most.setdefault(client, deque(maxlen=LIMIT + 1))
            times.append(now)
            beyond += len(times) > LIMIT and times[-1] - times[0] < WINDOW
    figures = {
        "refused": refused / EVENTS,
        "exactly": exactly / EVENTS,
        "wrongly": wrongly / events,
        "rightly": rightly / events,
        "beyond": beyond,
        "bytes": limiter.nbytes / CLIENTS,
        "exact_bytes": exact.size(),
    }
    rows = [
        [
            "exact times",
            f"{figures['exact_bytes']:.0f}",
            f"{figures['exactly']:.2%}",
            f"{figures['rightly']:.3%}",
        ],
        [
            "`RateLimiter`",
            f"{figures['bytes']:.0f}",
            f"{figures['refused']:.2%}",
            f"{figures['wrongly']:.3%}",
        ],
    ]
    parameters = {"clients": CLIENTS, "limit": LIMIT, "window": WINDOW, "events": EVENTS, "seed": SEED}
    return Outcome(parameters, figures, [Table("rate limit", "rate-limiter.md", COLUMNS, rows)])
