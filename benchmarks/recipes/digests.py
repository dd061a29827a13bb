"""Four proxies with the same users' taste: digests against asking all neighbours, hits and bytes."""

from __future__ import annotations

from itertools import islice

from benchmarks.outcome import Outcome, Table
from benchmarks.recipes.policies import Lru
from fullbloom import theory
from fullbloom.recipes.digests import Neighbours, make_digest
from fullbloom.recipes.traces import draw_zipf

PROXIES, SIZE, OBJECTS, EXPONENT, REQUESTS, SEED = 4, 5_000, 100_000, 0.8, 400_000, 7
#: Requests between two digests of a proxy.
PERIODS = (1_000, 10_000)
#: Bytes of a query of ICP for a URL and of its reply: 20 of header, 4 of address, the URL of 50 letters.
QUERY, REPLY = 75, 71
COLUMNS = [
    "exchange",
    "hits of neighbours",
    "false hits",
    "of those, false positives",
    "neighbours missed",
    "bytes per request",
]


def url(number: int) -> str:
    return f"http://host{number % 997}.example/objects/{number:020}"


def ask_all() -> dict[str, float]:
    """ICP: each miss asks every neighbour."""
    caches = [Lru(SIZE) for _ in range(PROXIES)]
    hits = sent = 0
    for at, number in enumerate(islice(draw_zipf(OBJECTS, EXPONENT, seed=SEED), REQUESTS)):
        key, own = url(number), caches[at % PROXIES]
        if key not in own.objects:
            hits += any(key in cache.objects for cache in caches)
            sent += (PROXIES - 1) * (QUERY + REPLY)
        own.request(key)
    return {"hits": hits / REQUESTS, "bytes": sent / REQUESTS}


def exchange(period: int, bits: int = 5, num_hashes: int = 4) -> dict[str, float]:
    """Digests: each proxy sends its own to the others every so many of its requests."""
    caches = [Lru(SIZE) for _ in range(PROXIES)]
    seen = [Neighbours() for _ in range(PROXIES)]
    hits = false_hits = false_positives = missed = sent = 0
    published: list[set[object]] = [set() for _ in range(PROXIES)]
    for at, number in enumerate(islice(draw_zipf(OBJECTS, EXPONENT, seed=SEED), REQUESTS)):
        me = at % PROXIES
        key, own = url(number), caches[me]
        if key not in own.objects:
            asked = seen[me].find(key)
            has = [name for name in asked if key in caches[int(name)].objects]
            hits += bool(has)
            wrong = [name for name in asked if name not in has]
            false_hits += bool(wrong) and not has
            false_positives += not has and any(key not in published[int(name)] for name in wrong)
            missed += not has and any(key in cache.objects for cache in caches)
            # All that may have it are asked at once, as the hits above are those of any of them.
            sent += (QUERY + REPLY) * len(asked)
        own.request(key)
        if at // PROXIES % period == period - 1:
            published[me] = set(own.objects)
            digest = make_digest(
                [str(key) for key in own.objects], bits_per_object=bits, num_hashes=num_hashes
            )
            sent += (PROXIES - 1) * len(digest)
            for other in range(PROXIES):
                if other != me:
                    seen[other].update(str(me), digest)
    counts = {
        "hits": hits,
        "false": false_hits,
        "positives": false_positives,
        "missed": missed,
        "bytes": sent,
    }
    return {name: count / REQUESTS for name, count in counts.items()}


def measure() -> Outcome:
    every = ask_all()
    rows = [
        ["ask every neighbour (ICP)", f"{every['hits']:.1%}", "0.0%", "", "0.0%", f"{every['bytes']:.0f}"]
    ]
    figures = {f"icp_{name}": figure for name, figure in every.items()}
    for bits, num_hashes in ((5, 4), (10, 7)):
        rate = theory.exponential_fpr(1, bits, num_hashes)
        for period in PERIODS:
            found = exchange(period, bits, num_hashes)
            figures |= {f"digest_{bits}_{period}_{name}": figure for name, figure in found.items()}
            rows.append(
                [
                    f"{bits} bits per object ({rate:.1%}), every {period:,} requests",
                    f"{found['hits']:.1%}",
                    f"{found['false']:.1%}",
                    f"{found['positives']:.1%}",
                    f"{found['missed']:.1%}",
                    f"{found['bytes']:.0f}",
                ]
            )
    parameters = {
        "proxies": PROXIES,
        "objects": OBJECTS,
        "exponent": EXPONENT,
        "requests": REQUESTS,
        "cache": SIZE,
        "seed": SEED,
    }
    return Outcome(parameters, figures, [Table("digests", "cache-digests.md", COLUMNS, rows)])
