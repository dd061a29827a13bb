"""Tables of fingerprints: the cuckoo filter, alone and in stages, and the prefix filter.

A table stores an f-bit fingerprint of each key. A lookup that compares c fingerprints finds an absent key
with probability ``1 - (1 - 2^-f)^c``, about ``c / 2^f``; no filter needs less than log2(1/p) bits per key.

Sources: Fan, Andersen, Kaminsky and Mitzenmacher, "Cuckoo filter: practically better than Bloom", CoNEXT
2014; Fountoulakis, Khosla and Panagiotou, "The multiple-orientability thresholds for random hypergraphs",
2011 (the loads; for two choices Cain, Sanders and Wormald, and Fernholz and Ramachandran, both SODA 2007);
Chen, Liao, Jin and Wu, "The dynamic cuckoo filter", ICNP 2017 (the stages); Even, Even and Morrison, "Prefix
filter: practically and theoretically better than Bloom", PVLDB 15(7), 2022.
"""

from __future__ import annotations

import math

from fullbloom.errors import ParameterError

from ._check import check_non_negative, check_open_unit, check_whole
from ._vector import vectorize
from .constructor import evaluate_law

# The smallest float is 2^-1074; the search for bits ends before it.
_MOST_BITS = 1000
_BUCKET_SIZES = (1, 2, 4, 8)
# No practical table has more choices or slots; one with 64 slots per bucket can be filled to the last digit.
_MOST_CHOICES = 64


def _check_bucket_size(value: int) -> int:
    size = check_whole("bucket_size", value, 1)
    if size not in _BUCKET_SIZES:
        raise ParameterError(f"bucket_size must be 1, 2, 4 or 8, got {value}")
    return size


@vectorize
def cuckoo_fpr(fingerprint_bits: int, bucket_size: int = 4, load: float = 0.95) -> float:
    """Return the rate of a cuckoo filter: ``1 - (1 - 1/(2^f - 1))^(2 b load)``.

    Fingerprint 0 marks a free slot, hence 2^f - 1 values. load: keys per slot. Filters are sized by this
    rate. It is an upper bound and the limit of large tables; :func:`cuckoo_table_fpr` is the rate of a given
    table. Raises ``ParameterError`` unless bucket_size is 1, 2, 4 or 8. Constant time.

    Computed by the core.

    >>> from fullbloom import theory
    >>> round(theory.cuckoo_fpr(12), 5)
    0.00185
    """
    bits = min(check_whole("fingerprint_bits", fingerprint_bits, 2), _MOST_BITS)
    compared = 2 * _check_bucket_size(bucket_size) * check_non_negative("load", load)
    return evaluate_law("cuckoo", compared, bits)


@vectorize
def cuckoo_table_fpr(items: float, buckets: int, fingerprint_bits: int) -> float:
    """Return the rate of a cuckoo filter of B buckets: ``1 - (1 - (2 - 1/B) / (B (2^f - 1)))^n``.

    The method ``fpr()`` returns this rate. Each of n keys has the fingerprint of an absent key with one
    chance in 2^f - 1, and is in one of its two buckets, which coincide for one key in B. Raises
    ``ParameterError`` unless items >= 0, and buckets >= 1 and fingerprint_bits >= 2 are whole. Constant time.

    Computed by the core.

    >>> from fullbloom import theory
    >>> round(theory.cuckoo_table_fpr(items=4, buckets=2, fingerprint_bits=8), 6)
    0.011713
    """
    keys, places = check_non_negative("items", items), check_whole("buckets", buckets, 1)
    bits = min(check_whole("fingerprint_bits", fingerprint_bits, 2), _MOST_BITS)
    return evaluate_law("cuckoo_table", keys, places, bits)


@vectorize
def cuckoo_fingerprint_bits(fpr: float, bucket_size: int = 4, load: float = 0.95) -> int:
    """Return the fewest bits of a fingerprint with which :func:`cuckoo_fpr` is at most ``fpr``.

    About log2(2 b load / p). Raises ``ParameterError`` unless fpr is in (0, 1), or if more than 1000 bits
    would be needed. At most 1000 evaluations.

    >>> from fullbloom import theory
    >>> theory.cuckoo_fingerprint_bits([0.01, 0.001])
    [10, 13]
    """
    rate = check_open_unit("fpr", fpr)
    bits = 2
    while cuckoo_fpr(bits, bucket_size, load) > rate:
        bits += 1
        if bits > _MOST_BITS:
            raise ParameterError(f"fpr must be reachable with {_MOST_BITS} bits at load {load}, got {fpr}")
    return bits


def _poisson_tail(mean: float, least: int) -> float:
    """Return P(Poisson(mean) >= least), summed over the smaller side, so that nothing cancels."""
    if mean == 0.0:
        return 0.0
    below = mean > least
    count = least - 1 if below else least
    term, total = math.exp(count * math.log(mean) - mean - math.lgamma(count + 1)), 0.0
    while count >= 0 and term > 1e-18 * total:
        total += term
        term *= count / mean if below else mean / (count + 1)
        count += -1 if below else 1
    return 1.0 - total if below else total


@vectorize
def cuckoo_load_threshold(bucket_size: int = 4, choices: int = 2) -> float:
    """Return the load to which a large table can be filled if each key has ``choices`` buckets.

    0.5, 0.8970, 0.9804 and 0.9979 for two choices of 1, 2, 4 and 8 slots, as in a cuckoo filter; 0.9179,
    0.9768 and 0.9924 for 3, 4 and 5 choices of one slot, as in hashing with several functions. Practical
    tables stop a little earlier: 0.84, 0.95 and 0.98 are safe for b = 2, 4 and 8. With b slots and h choices,
    xi solves ``xi Q(xi, b) / Q(xi, b + 1) = h b``, Q(x, y) = P(Poisson(x) >= y), and the load is ``xi / (h b
    Q(xi, b)^(h-1))``. Relative error below 1e-12. Raises ``ParameterError`` unless bucket_size is whole and
    from 1 to 64, choices whole and from 2 to 64. Cost: some 60 sums of some tens of terms.

    >>> from fullbloom import theory
    >>> [round(load, 5) for load in theory.cuckoo_load_threshold([1, 2, 4, 8])]
    [0.5, 0.89701, 0.98037, 0.99785]
    >>> round(theory.cuckoo_load_threshold(bucket_size=1, choices=4), 4)
    0.9768
    """
    slots, places = check_whole("bucket_size", bucket_size, 1), check_whole("choices", choices, 2)
    for name, value in (("bucket_size", slots), ("choices", places)):
        if value > _MOST_CHOICES:
            raise ParameterError(f"{name} must be at most {_MOST_CHOICES}, got {value}")
    if (slots, places) == (1, 2):
        return 0.5
    low, high = 0.0, float(slots * places)
    while high - low > 1e-14 * high:
        xi = (low + high) / 2.0
        if xi * _poisson_tail(xi, slots) < slots * places * _poisson_tail(xi, slots + 1):
            low = xi
        else:
            high = xi
    return high / (places * slots * math.pow(_poisson_tail(high, slots), places - 1))


@vectorize
def dynamic_cuckoo_fpr(
    fingerprint_bits: int, bucket_size: int = 4, load: float = 0.95, stages: float = 1.0
) -> float:
    """Return the rate of a dynamic cuckoo filter: ``1 - (1 - 1/(2^f - 1))^(2 b load stages)``.

    A lookup compares a key with the fingerprints of two buckets of every stage. load: keys per slot, the mean
    over the stages. stages: their number, which need not be whole: 2.5 means two stages of this load and one
    of half of it. With one stage it is :func:`cuckoo_fpr`; a filter sized for rate p with s stages gives each
    of them ``1 - (1 - p)^(1/s)``. Raises ``ParameterError`` unless bucket_size is 1, 2, 4 or 8 and stages >=
    0. Constant time.

    Computed by the core.

    >>> from fullbloom import theory
    >>> [round(rate, 5) for rate in theory.dynamic_cuckoo_fpr(14, stages=[1, 4, 16])]
    [0.00046, 0.00185, 0.0074]
    """
    total = check_non_negative("load", load) * check_non_negative("stages", stages)
    return cuckoo_fpr(fingerprint_bits, bucket_size, total)


@vectorize
def prefix_spare_share(load: float = 1.0, bin_size: int = 25) -> float:
    """Return the expected share of keys that a prefix filter stores in its spare.

    The number of keys of a bin is Poisson with mean ``lambda = load * bin_size``; keys beyond ``bin_size`` go
    to the spare: ``E[(X - k)+] / lambda = P(X >= k) - (k / lambda) P(X > k)``. At load 1 that is about
    ``1 / sqrt(2 pi k)``. Time proportional to bin_size.

    Computed by the core.

    >>> from fullbloom import theory
    >>> [round(share, 4) for share in theory.prefix_spare_share([1.0, 0.95, 0.9])]
    [0.0795, 0.0586, 0.041]
    """
    return evaluate_law("passed_on", check_non_negative("load", load), check_whole("bin_size", bin_size, 1))


@vectorize
def prefix_fpr(
    remainder_bits: int = 8, load: float = 0.95, spare_fpr: float = 0.01, bin_size: int = 25
) -> float:
    """Return a bound on the rate of a prefix filter: ``load 2^-r + share * spare_fpr``.

    A lookup of an absent key compares it, in its bin or through the spare, with the ``load * k`` keys of its
    bin, each of which has one of ``k 2^r`` fingerprints. It consults the spare at most as often as a key of a
    bin goes there. Time proportional to bin_size.

    Computed by the core.

    >>> from fullbloom import theory
    >>> round(theory.prefix_fpr(8, load=0.95, spare_fpr=0.01), 5)
    0.0043
    """
    bits = check_whole("remainder_bits", remainder_bits, 0)
    keys, share = check_non_negative("load", load), prefix_spare_share(load, bin_size)
    return evaluate_law("prefix", keys, bits, share, check_open_unit("spare_fpr", spare_fpr))
