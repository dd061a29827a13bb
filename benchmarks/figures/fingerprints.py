"""Tables of fingerprints, static filters and sorted codes: bits per key, loads and rates."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING, Any

import fullbloom
from benchmarks.figures.model import Case, Sample, Subject, binomial, exact, pool
from benchmarks.figures.sampling import draw_hashes, draw_seed, formula, rate, rate_of, scale
from fullbloom import theory

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from benchmarks.figures.model import Measure

TEXT = """Space of the static filters is what one filter of a million random keys takes. Loads of cuckoo
tables are those at the first key that finds no place."""

N = 1_000_000
#: The rate of a full spare in a prefix filter at 0.4 %.
SPARE = 0.0039
#: Keys of a Bloomier map.
MAPPED = 100_000
#: Rates, and the entropy log2(e/p) of a set of values in bits per key.
ENTROPY = (
    (2.0**-7, "8.443"),
    (0.01, "8.087"),
    (2.0**-10, "11.443"),
    (2.0**-20, "21.443"),
    (1 / 784_931, "21.025"),
)
GOLOMB = (
    (2.0**-7, "8.534"),
    (0.01, "8.108"),
    (2.0**-10, "11.541"),
    (2.0**-20, "21.541"),
    (1 / 784_931, "21.052"),
)
LOADS = ((1, "0.50"), (2, "0.84"), (4, "0.95"), (8, "0.98"))
SIMULATED = {2: ("0.88", 4), 4: ("0.97", 4), 8: ("0.989", 4)}
CUCKOO = ((8, 4, "0.0308"), (12, 4, "0.0018"))


def build(kind: Any, count: int = N, **options: Any) -> Callable[[np.random.Generator], Any]:
    """A static filter of random keys."""
    return lambda draw: kind.build_hashed(draw_hashes(draw, count), **options)


def space(
    make: Callable[[np.random.Generator], Any], bits: Callable[[Any], float], filters: int = 2
) -> Measure:
    """Bits per key of built filters."""

    def measure(draw: np.random.Generator, share: float) -> Sample:
        found = [bits(make(draw)) for _ in range(scale(filters, share))]
        return exact(found[0]) if max(found) == min(found) else pool(found)

    return measure


def static_rate(make: Callable[[np.random.Generator], Any], probes: int = 10_000_000) -> Measure:
    """The rate of one built filter."""

    def measure(draw: np.random.Generator, share: float) -> Sample:
        trials = scale(probes, share, 500_000)
        return binomial(rate_of(make(draw), draw, trials) * trials, trials)

    return measure


def make_cuckoo(bucket_size: int, seed: int = 0) -> fullbloom.CuckooFilter:
    """A table of some thousand buckets, whose number follows from the largest load that its class allows."""
    return fullbloom.CuckooFilter(4000 * bucket_size, bucket_size=bucket_size, fingerprint_bits=16, seed=seed)


def fill_until_full(bucket_size: int) -> Measure:
    """The load of a cuckoo table at the first key that finds no place."""

    def one(draw: np.random.Generator) -> float:
        held = make_cuckoo(bucket_size, draw_seed(draw))
        slots = held.num_buckets * bucket_size
        with contextlib.suppress(fullbloom.FilterFull):
            held.add_hashed(draw_hashes(draw, slots + 100))
        return held.num_added / slots

    def measure(draw: np.random.Generator, share: float) -> Sample:
        return pool([one(draw) for _ in range(scale(30, share, least=5))])

    return measure


def spare_share(load: float) -> Measure:
    """The share of keys in the spare of a prefix filter, at a load of its bins."""

    def one(draw: np.random.Generator) -> float:
        held = fullbloom.PrefixFilter(400_000, 0.004)
        items = round(load * 25 * held.num_bins)
        held.add_hashed(draw_hashes(draw, items))
        return float(held.spare_items) / items

    def measure(draw: np.random.Generator, share: float) -> Sample:
        return pool([one(draw) for _ in range(scale(10, share, least=3))])

    return measure


def quotient(draw: np.random.Generator, share: float) -> Sample:
    """The rate of a quotient filter whose table is three quarters full, with remainders of 8 bits."""
    held = fullbloom.QuotientFilter(196_608, 0.0045)
    assert (held.remainder_bits, held.num_slots) == (8, 1 << 18)
    held.add_hashed(draw_hashes(draw, 196_608))
    trials = scale(8_000_000, share, 500_000)
    return binomial(rate_of(held, draw, trials) * trials, trials)


def list_tables() -> list[Case]:
    """Quotient, cuckoo and prefix filters."""
    cases = [
        Case(
            "rate of a quotient filter: law",
            "0.002925",
            formula(partial(theory.fingerprint_load_fpr, 0.75, 8)),
            "Bender et al. 2012",
            "r = 8, load 0.75",
        ),
        Case(
            "rate of a quotient filter",
            "0.002925",
            quotient,
            "Bender et al. 2012",
            "r = 8, load 0.75",
            law=theory.fingerprint_load_fpr(0.75, 8),
        ),
    ]
    for size, published in LOADS:
        simulated, buckets = SIMULATED.get(size), make_cuckoo(size).num_buckets
        why = {
            1: "the published load is the limit of large tables; in tables of this size it scatters widely",
            2: "the published load leaves a margin: the threshold of the table is 0.897",
            4: "the published load leaves a margin: the threshold of the table is 0.98",
            8: "the published load leaves a margin: the threshold of the table is 0.998",
        }[size]
        cases.append(
            Case(
                "load of a full cuckoo table",
                published,
                fill_until_full(size),
                "Fan et al. 2014",
                f"{buckets:,} buckets of {size}",
                why=why,
            )
        )
        if simulated:
            cases.append(
                Case(
                    "the same, against a simulation",
                    simulated[0],
                    fill_until_full(size),
                    "a simulation",
                    f"4,096 buckets of {size}; here {buckets:,}",
                    runs=simulated[1],
                    why="its moves ended sooner; ours come close to the threshold, 0.998"
                    if size == 8
                    else "",
                )
            )
    for bits, size, published in CUCKOO:
        make = partial(fullbloom.CuckooFilter, 4000 * 4, bucket_size=size, fingerprint_bits=bits)
        slots = make().num_buckets * size
        items = round(0.96 * slots)
        cases.append(
            Case(
                "rate of a cuckoo filter",
                published,
                rate(make, items, filters=20, probes=200_000),
                "a simulation",
                f"f = {bits}, b = {size}, load 0.96",
                law=theory.cuckoo_fpr(bits, size, items / slots),
                why="the simulation ended at another load; fingerprints have 2^f - 1 values",
            )
        )
    source = "Fan et al. 2014, table 3"
    make = partial(fullbloom.CuckooFilter, 1_000_000, bucket_size=4, fingerprint_bits=12)
    items = round(0.95 * make().num_buckets * 4)
    cases.append(
        Case(
            "rate at 12 bits per fingerprint",
            "0.0019",
            rate(make, items, filters=2, probes=2_000_000),
            source,
            "12.60 bits per key, load 0.952",
            law=theory.cuckoo_fpr(12, 4, items / make().num_buckets / 4),
            why="2^12 - 1 fingerprints and this load give 0.00186",
        )
    )
    make = partial(fullbloom.CuckooFilter, 1_000_000, fingerprint_bits=13, semi_sort=True)
    items = round(0.95 * make().num_buckets * 4)
    cases.append(
        Case(
            "rate at 13 bits per fingerprint, semi-sorted",
            "0.0009",
            rate(make, items, filters=2, probes=2_000_000),
            source,
            "12.58 bits per key, load 0.95",
            law=theory.cuckoo_fpr(13, 4, items / make().num_buckets / 4),
        )
    )
    cases += list_same_size()
    for load, published in ((1.0, "0.0799"), (0.95, "0.059"), (0.90, "0.040")):
        cases += [
            Case(
                "keys in the spare of a prefix filter: law",
                published,
                formula(partial(theory.prefix_spare_share, load)),
                "Even et al. 2022",
                f"load {load}, bins of 25",
                why="the published figure is a simulation"
                if load < 1
                else "1/sqrt(2 pi 25) = 0.0798 is its asymptote",
            ),
            Case(
                "keys in the spare of a prefix filter",
                published,
                spare_share(load),
                "Even et al. 2022",
                f"load {load}, bins of 25",
                law=theory.prefix_spare_share(load),
                law_error=0.03,
                runs=1,
                why="a fingerprint that several keys share is stored once, which the law leaves out",
            ),
        ]
    return [*cases, *list_prefix_rates()]


def list_prefix_rates() -> list[Case]:
    """The rate of a prefix filter: what its bins and its spare add."""
    make = partial(fullbloom.PrefixFilter, 400_000, 0.004)
    bins = make().num_bins
    return [
        Case(
            "rate of a prefix filter, at most",
            published,
            rate(make, round(load * 25 * bins), filters=4, probes=2_000_000),
            "Even et al. 2022",
            f"remainders of 8 bits, load {load}, spare at {SPARE:.2%}",
            law=theory.prefix_fpr(8, load=load, spare_fpr=SPARE),
            law_error=0.05,
            formula="0.39 % load + share in the spare * its rate",
            why="a bound: keys that share a fingerprint take one place",
        )
        for load, published in ((0.95, "0.0039"), (0.9, "0.0037"))
    ]


def list_same_size() -> list[Case]:
    """The table of Fan et al.: 13 bits per key in four structures."""
    source, n = "Fan et al. 2014, table 3", 200_000
    classic = partial(fullbloom.BloomFilter.with_shape, 13 * n, 9, capacity=n)
    blocked = partial(fullbloom.BloomFilter.with_shape, 13 * n, 8, capacity=n, layout="blocked")
    quotient = partial(fullbloom.QuotientFilter, 230_000, 1 / 512)
    slots = quotient().num_slots
    dense = round(8 * quotient().nbytes / 13)
    dleft = partial(fullbloom.DLeftCountingFilter, 240_000, 0.1, cells=12)
    assert (quotient().remainder_bits, slots) == (9, 1 << 18)
    bits = 8 * dleft().nbytes / 240_000
    full = fullbloom.QuotientFilter(996_147, 1 / 512)
    return [
        Case(
            "rate of a Bloom filter of 13 bits per key",
            "0.0019",
            rate(classic, n, filters=10, probes=1_000_000),
            source,
            "k = 9",
            law=theory.classic_fpr(n, 13 * n, 9),
        ),
        Case(
            "rate of a blocked filter of 13 bits per key",
            "0.0043",
            rate(blocked, n, filters=10, probes=1_000_000),
            source,
            "k = 8",
            law=theory.fpr_at("blocked", blocked().num_bits, 8, n),
            why="a program of theirs that is not described; 0.0027 is the law of eight bits in a line",
        ),
        Case(
            "rate of a quotient filter of 13 bits per key",
            "0.0018",
            rate(quotient, dense, filters=10, probes=1_000_000),
            source,
            f"r = 9, load {dense / slots:.2f}",
            law=theory.fingerprint_load_fpr(dense / slots, 9),
            why="two bits and an eighth of metadata per slot, three there: at 13 bits the table is emptier",
        ),
        Case(
            "rate of a d-left table of 13 bits per key",
            "0.0076",
            rate(dleft, 240_000, filters=4, probes=1_000_000),
            source,
            f"{bits:.1f} bits per key here, 12 cells per bucket",
            law=theory.dleft_fpr(240_000, dleft().buckets, dleft().remainder_bits),
            law_error=0.02,
            why="a program of theirs; at this size our cells have a remainder of 9 bits and a count of 2; "
            "a rate of 0.76 % takes 17 bits per key",
        ),
        Case(
            "bits per key of a quotient filter",
            "11.67",
            formula(lambda: 8 * full.nbytes / full.capacity),
            "rsqf",
            "r = 9, 996,147 keys, load 0.95",
            why="(9 + 2.125) / 0.95 = 11.71; their million keys fill a table of no power of two",
        ),
        Case(
            "load of a full quotient filter",
            "0.95",
            formula(lambda: full.capacity / full.num_slots),
            "Pandey et al. 2017",
            "rank and select",
        ),
    ]


def list_static() -> list[Case]:
    """Static filters."""
    cases = []
    for fpr, published in GOLOMB:
        rice = theory.rice_bits(fpr)
        cases += [
            Case(
                "bits per key of a Golomb-coded set: law",
                published,
                formula(partial(theory.golomb_bits_per_key, fpr, rice)),
                "Golomb 1966; Putze et al. 2007",
                f"p = {fpr:.3g}, P = {rice}",
            ),
            Case(
                "bits per key of a Golomb-coded set",
                published,
                space(
                    build(fullbloom.GolombSet, fpr=fpr, rice_bits=rice),
                    lambda held: held.code_bits / held.num_added,
                    3,
                ),
                "Golomb 1966; Putze et al. 2007",
                f"n = {N:,}, p = {fpr:.3g}",
                law=theory.golomb_bits_per_key(fpr, rice),
                law_error=0.012,
                why="blocks of 128 keys start from their own value, which saves two bits; their index "
                "is not counted",
            ),
        ]
    cases += [
        Case(
            "entropy of a set of values, bits per key",
            published,
            formula(partial(theory.succinct_bits_per_key, fpr)),
            "Putze et al. 2007",
            f"p = {fpr:.3g}",
        )
        for fpr, published in ENTROPY
    ]
    nbits = lambda held: 8 * held.nbytes / N  # noqa: E731 - the same for all
    for what, published, source, shape, make, why in (
        (
            "xor filter",
            "9.84",
            "Graf, Lemire 2020",
            "f = 8",
            build(fullbloom.XorFilter, bits=8),
            "32 cells more, and whole cache lines",
        ),
        (
            "binary fuse filter",
            "9.0",
            "Graf, Lemire 2022",
            "f = 8, arity 3",
            build(fullbloom.BinaryFuseFilter, bits=8),
            "",
        ),
        (
            "binary fuse filter",
            "8.6",
            "Graf, Lemire 2022",
            "f = 8, arity 4",
            build(fullbloom.BinaryFuseFilter, bits=8, arity=4),
            "",
        ),
        (
            "ribbon filter",
            "8.4",
            "Dillinger, Walzer 2021",
            "r = 8: about 1.05 r",
            build(fullbloom.RibbonFilter, bits=8),
            "a bumped ribbon needs less than the published 5 % overhead",
        ),
    ):
        cases.append(
            Case(
                f"bits per key of a {what}",
                published,
                space(make, nbits),
                source,
                f"n = {N:,}, {shape}",
                why=why,
            )
        )
        cases.append(Case(f"rate of a {what}", "0.003906", static_rate(make), source, shape, law=2.0**-8))
    cases.append(
        Case(
            "false answers of a Bloomier map",
            "0.003906",
            static_rate(make_map),
            "Charles, Chellapilla 2008",
            "8 check bits",
            law=theory.bloomier_fpr(8),
            why="its arity and empty cells lower the rate",
        )
    )
    cases += [
        Case(
            "bits of a Bloomier map per key and bit of value and check",
            "1.23",
            space(
                partial(make_map, value_bits=bits),
                lambda held: 8 * held.nbytes / MAPPED / (held.value_bits + 8),
                2,
            ),
            "Charles, Chellapilla 2008",
            f"{bits} bits of value, 8 of check, n = {MAPPED:,}",
            why="the graph of a binary fuse filter needs fewer cells than the published one, 1.23 n",
        )
        for bits in (1, 8)
    ]
    return cases


def make_map(draw: np.random.Generator, value_bits: int = 1) -> Any:
    """A map of 100,000 keys to so many bits each."""
    keys = draw_hashes(draw, MAPPED)
    return fullbloom.BloomierMap.build_hashed(keys, keys % (1 << value_bits), check_bits=8)


def subject() -> Subject:
    """The cases."""
    return Subject(
        "fingerprints", "Tables of fingerprints and static filters", TEXT, [*list_tables(), *list_static()]
    )
