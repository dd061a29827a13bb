"""What users have read: bytes of a bank of filters beside exact sets, and the recommendations that differ."""

from __future__ import annotations

import random
import sys
from itertools import islice
from typing import Any

from benchmarks.outcome import Outcome, Table
from fullbloom import FilterBank
from fullbloom.recipes.already_read import recommend, record
from fullbloom.recipes.traces import draw_zipf

#: A user has read some articles, most of them popular ones, up to the capacity of a filter.
USERS, ARTICLES, CAPACITY, FPR, SEED = 2_000, 50_000, 1_000, 0.01, 93
EXPONENT, WANTED, SIZES = 0.7, 10, (50, 100, 200, 400, 1_000)
COLUMNS = [
    "what each user has read, as",
    "bytes per article read",
    "read recommended again",
    "unread withheld",
]
COLUMNS += ["lists with another article"]


def draw_reads(draw: random.Random) -> list[set[int]]:
    """The articles of each user, by popularity."""
    stream = draw_zipf(ARTICLES, EXPONENT, seed=draw.getrandbits(32))
    reads = []
    for user in range(USERS):
        size = SIZES[user % len(SIZES)]
        read: set[int] = set()
        while len(read) < size:
            read.update(islice(stream, size - len(read)))
        reads.append(read)
    return reads


def measure() -> Outcome:
    draw = random.Random(SEED)
    reads = draw_reads(draw)
    pairs = sum(map(len, reads))
    bank = FilterBank(CAPACITY, FPR)
    for user, read in enumerate(reads):
        record(bank, [(user, article) for article in read])
    again = withheld = unread = differ = 0
    for user, read in enumerate(reads):
        ranked = draw.sample(range(ARTICLES), 500)
        found = recommend(bank, user, ranked, WANTED)
        exact = [article for article in ranked if article not in read][:WANTED]
        again += sum(article in read for article in found)
        differ += found != exact
        new = [article for article in ranked if article not in read]
        unread += len(new)
        withheld += sum(bank.contains_many([user] * len(new), new))
    sets: dict[str, Any] = {
        "sets of Python": sum(map(sys.getsizeof, reads)) + 28 * ARTICLES,
        "sorted 64-bit numbers": 8 * pairs,
        "`FilterBank`, 1 %": bank.nbytes,
    }
    rows = [
        [name, f"{size / pairs:.1f}", "0", "0.0%", "0.0%"]
        for name, size in sets.items()
        if "Bank" not in name
    ]
    rows.append(
        [
            "`FilterBank`, 1 %",
            f"{bank.nbytes / pairs:.1f}",
            str(again),
            f"{withheld / unread:.2%}",
            f"{differ / USERS:.1%}",
        ]
    )
    figures = {
        "again": again,
        "withheld": withheld / unread,
        "differ": differ / USERS,
        "bytes_per_read": bank.nbytes / pairs,
    }
    bars = {"again": (0, 0), "withheld": (0.0, FPR), "bytes_per_read": (0.0, 8 / 2)}
    parameters = {"users": USERS, "articles": ARTICLES, "capacity": CAPACITY, "fpr": FPR, "seed": SEED}
    return Outcome(parameters, figures, [Table("already read", "already-read.md", COLUMNS, rows)], bars)
