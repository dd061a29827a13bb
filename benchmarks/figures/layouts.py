"""Partitioned, blocked and split layouts: their rates, and what a cache line costs."""

from __future__ import annotations

import math
from functools import partial

import fullbloom
from benchmarks.figures.model import Case, Subject
from benchmarks.figures.sampling import formula, rate
from fullbloom import theory

TEXT = """A blocked filter keeps the bits of a key in one line of 512 bits. Some lines get more keys than
others, so it needs more bits (Putze, Sanders, Singler 2007). Putze's k bits are anywhere in the line;
their laws are the functions `theory.free_block_...`. Fullbloom's `blocked` layout places 4, 8 or 12 bits
evenly over the line."""

#: Bits per key that give a blocked filter the rate of a classic one of 5, 6, 7, ... bits per key.
COMPENSATED = (
    6,
    7,
    8,
    9,
    10,
    11,
    12,
    13,
    14,
    16,
    17,
    18,
    20,
    21,
    23,
    25,
    26,
    28,
    30,
    32,
    35,
    38,
    40,
    44,
    48,
    51,
    58,
    64,
    74,
    90,
)
PARTITIONED = ((1024, 100, 8, "0.0076214", "0.0074848"), (96, 10, 6, "0.011564", "0.010305"))
RATIOS = ((8, "1.07"), (12, "1.29"), (16, "1.80"), (20, "2.85"), (24, "5.19"), (30, "15.7"))
SPLIT = (("5.99", "0.100"), ("10.53", "0.0100"), ("16.89", "0.00100"), ("26.3", "0.000100"))
ROCKSDB = (
    (
        10,
        6,
        "0.00957",
        "measured by its authors",
        "a measurement, whose error is not stated; it differs by 0.06 %",
    ),
    (10, 6, "0.00954", "their approximation", APPROXIMATION := "they use e^(-ki/B) for (1 - 1/B)^(ki)"),
    (
        16,
        9,
        "0.000843",
        "measured by its authors",
        PROBES := "their probes are not independent within a line",
    ),
    (16, 11, "0.000884", "measured by its authors", PROBES),
    (16, 9, "0.000821", "their approximation", APPROXIMATION),
    (16, 11, "0.000854", "their approximation", APPROXIMATION),
)
SPLIT_SIZES = ((0.1, "5.99"), (0.01, "10.53"), (0.001, "16.89"), (0.0001, "26.3"), (0.00001, "41.0"))
N = 100_000


def ratio(per_key: int) -> float:
    """The rate of a blocked filter over that of a classic one, each with its best number of hashes."""
    blocked = min(theory.free_block_limit_fpr(per_key, hashes) for hashes in range(1, 30))
    classic = min(theory.exponential_fpr(1, per_key, hashes) for hashes in range(1, 30))
    return blocked / classic


def extra(fpr: float) -> float:
    """Percent of bits that the blocked layout needs beyond the classic one."""
    blocked, classic = (theory.size_for(layout, 1_000_000, fpr).num_bits for layout in ("blocked", "classic"))
    return 100 * (blocked / classic - 1)


def list_rocksdb() -> list[Case]:
    """What RocksDB's notes say about lines, beside Fullbloom's."""
    classic = partial(fullbloom.BloomFilter.with_shape, 10 * N, 6, capacity=N)
    blocked = {
        per_key: partial(fullbloom.BloomFilter.with_shape, per_key * N, hashes, capacity=N, layout="blocked")
        for per_key, hashes in ((10, 8), (16, 8), (17, 12))
    }
    rates = {
        per_key: theory.fpr_at("blocked", make().num_bits, make().num_hashes, N)
        for per_key, make in blocked.items()
    }
    return [
        Case(
            "rate without lines",
            "0.0084",
            rate(classic, N, filters=20, probes=200_000),
            "RocksDB",
            "m/n = 10, k = 6",
            law=theory.classic_fpr(N, 10 * N, 6),
        ),
        Case(
            "rate with lines",
            "0.0097",
            rate(blocked[10], N, filters=20, probes=200_000),
            "RocksDB",
            "m/n = 10; k = 8 here, 6 there",
            law=rates[10],
            why="their lines have k = 6 here, the best at this size, ours 4, 8 or 12",
        ),
        Case(
            "times the rate of no lines",
            "1.15",
            formula(lambda: theory.free_block_limit_fpr(10, 6) / theory.exponential_fpr(1, 10, 6)),
            "RocksDB",
            "m/n = 10, k = 6: 0.97 % over 0.84 %",
            why="the law of free positions gives 1.135; their probes are not independent within a line",
        ),
        Case(
            "rate of Fullbloom's blocked layout, against RocksDB's",
            "0.000843",
            rate(blocked[16], N, filters=40, probes=2_000_000),
            "RocksDB",
            "m/n = 16; k = 8 here, 9 there",
            law=rates[16],
            why="k = 8 costs 5 % more false positives here than 9 would",
        ),
        Case(
            "bits of a blocked filter over the lower bound log2(1/p)",
            "1.5",
            formula(lambda: theory.size_for("blocked", 1_000_000, 0.01).num_bits / 1e6 / math.log2(100)),
            "RocksDB, `ribbon_alg.h`",
            "p = 0.01",
        ),
    ]


def subject() -> Subject:
    """The cases."""
    cases = []
    for bits, items, hashes, partitioned, classic in PARTITIONED:
        shape = f"m = {bits:,}, n = {items}, k = {hashes}"
        for layout, published in (("partitioned", partitioned), ("classic", classic)):
            law = getattr(theory, f"{layout}_fpr")(items, bits, hashes)
            cases.append(
                Case(
                    f"rate of the {layout} layout: law",
                    published,
                    formula(lambda law=law: law),
                    "Almeida et al. 2007",
                    shape,
                )
            )
            make = partial(
                fullbloom.BloomFilter.with_shape, bits, hashes, capacity=items, layout=layout, scheme="seeded"
            )
            stated = theory.fpr_at(layout, bits, hashes, items)
            why = f"the published form takes bits for independent; the exact law is {stated:.5g}"
            cases.append(
                Case(
                    f"rate of filters, layout {layout}",
                    published,
                    rate(make, items, filters=4000, probes=1000),
                    "Almeida et al. 2007",
                    shape,
                    law=stated,
                    why=why,
                )
            )
    for classic, blocked in enumerate(COMPENSATED, start=5):
        cases.append(
            Case(
                f"bits per key of a blocked filter in place of {classic}",
                str(blocked),
                formula(partial(theory.compensated_bits_per_key, classic)),
                "Putze et al. 2007, table 1",
            )
        )
    for per_key, published in RATIOS:
        cases.append(
            Case(
                "rate of blocked over classic at equal size",
                published,
                formula(partial(ratio, per_key)),
                "Putze et al. 2007",
                f"m/n = {per_key}, best k",
            )
        )
    for per_key, hashes, published, kind, why in ROCKSDB:
        cases.append(
            Case(
                f"rate of a blocked filter, {kind}: law",
                published,
                formula(partial(theory.free_block_limit_fpr, per_key, hashes)),
                "RocksDB",
                f"m/n = {per_key}, k = {hashes}, lines of 512 bits",
                why=why,
            )
        )
    cases += [
        Case(
            f"bits per key of the split layout at {fpr:.3%}: law",
            published,
            formula(partial(theory.split_bits_per_key, fpr)),
            "Apache Parquet",
        )
        for fpr, published in SPLIT_SIZES
    ]
    for per_key, published in SPLIT:
        make = partial(
            fullbloom.BloomFilter.with_shape,
            round(float(per_key) * N / 256) * 256,
            8,
            capacity=N,
            layout="split",
        )
        bits = make().num_bits
        cases.append(
            Case(
                "rate of the split layout",
                published,
                rate(make, N, filters=20, probes=500_000),
                "Apache Parquet",
                f"m/n = {per_key}",
                law=theory.fpr_at("split", bits, 8, N),
                why="the published size is rounded to its last digit",
            )
        )
    make = partial(fullbloom.BloomFilter.with_shape, 10 * N, 8, capacity=N, layout="blocked")
    cases.append(
        Case(
            "rate of Fullbloom's blocked layout, against RocksDB's",
            "0.00957",
            rate(make, N, filters=20, probes=500_000),
            "RocksDB",
            "m/n = 10; k = 8 here, 6 there",
            law=theory.fpr_at("blocked", make().num_bits, 8, N),
            why="the layout has k = 4, 8 or 12; at this size k = 6 is the best, and 8 costs 8 % more "
            "false positives",
        )
    )
    cases += list_rocksdb()
    why = "one figure for every rate; Fullbloom's layout, whose bits are spread over the line, needs {} %"
    cases += [
        Case(
            "percent of bits that blocked needs beyond classic",
            "32",
            formula(partial(extra, fpr)),
            "an essay",
            f"n = 1,000,000, p = {fpr:g}",
            why=why.format(round(extra(fpr))),
        )
        for fpr in (0.01, 0.0001)
    ]
    return Subject("layouts", "Partitioned, blocked and split layouts", TEXT, cases)
