"""Guarantee: the laws that the core computes match their formulas to 12 digits.

Every formula is written out a second time here, plainly, with fractions or with decimals of 60 digits.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fullbloom
from fullbloom import _core, theory

always = settings(derandomize=True, deadline=None, max_examples=50)
rates = st.floats(1e-15, 0.999)
counts = st.floats(0.5, 1e12)
hashes = st.integers(1, 20)


def same(value: float, exact: Decimal | Fraction | float, rel: float = 1e-12, off: float = 0.0) -> bool:
    return value == pytest.approx(float(exact), rel=rel, abs=off)


def any_of(p: float | Fraction, n: float) -> Decimal:
    """``1 - (1 - p)^n`` with 60 digits."""
    with localcontext(prec=60):
        chance = Decimal(p.numerator) / p.denominator if isinstance(p, Fraction) else Decimal(p)
        return 1 - (1 - chance) ** Decimal(n)


@always
@given(n=counts, bits=st.integers(1, 64))
def test_a_table_of_fingerprints(n: float, bits: int) -> None:
    exact = any_of(Fraction(1, 2**bits), n)
    assert same(theory.fingerprint_fpr(n, bits), exact)
    assert same(theory.hash_collision_fpr(n, bits), exact)


@always
@given(n=counts, buckets=st.integers(1, 10**9), bits=st.integers(1, 34))
def test_a_d_left_table(n: float, buckets: int, bits: int) -> None:
    assert same(theory.dleft_fpr(n, buckets, bits), any_of(Fraction(1, buckets * 2**bits), n))


@always
@given(
    bits=st.integers(2, 40),
    bucket_size=st.sampled_from([1, 2, 4, 8]),
    load=st.floats(0.01, 1.0),
    stages=st.integers(1, 64),
)
def test_a_cuckoo_filter_and_its_stages(bits: int, bucket_size: int, load: float, stages: int) -> None:
    equal = Fraction(1, 2**bits - 1)
    assert same(theory.cuckoo_fpr(bits, bucket_size, load), any_of(equal, 2 * bucket_size * load))
    together = any_of(equal, 2 * bucket_size * load * stages)
    assert same(theory.dynamic_cuckoo_fpr(bits, bucket_size, load, stages), together)


@always
@given(share=st.floats(0.0, 1.0), k=hashes)
def test_members_denied_by_a_retouched_filter(share: float, k: int) -> None:
    assert same(theory.retouched_fnr(share, k), 1 - (1 - Fraction(share)) ** k)


@always
@given(rate=rates, n=st.floats(1.0, 1e12))
def test_the_rate_of_one_of_many(rate: float, n: float) -> None:
    with localcontext(prec=60):
        one = 1 - (1 - Decimal(rate)) ** (1 / Decimal(n))
        half = 1 - (1 - Decimal(rate)).sqrt()
        bits, probes = -one.ln() / Decimal(2).ln(), -half.ln() / Decimal(2).ln()
    assert same(theory.fingerprint_bits(n, rate), bits, off=1e-12)
    assert theory.aging_num_hashes(rate) == max(1, math.floor(probes))


@always
@given(n=st.floats(0.0, 1e9), m=st.integers(2, 10**10), k=hashes)
def test_the_bound_of_goel_and_gupta(n: float, m: int, k: int) -> None:
    with localcontext(prec=60):
        exact = (1 - (-k * (Decimal(n) + Decimal("0.5")) / (m - 1)).exp()) ** k
    assert same(theory.goel_gupta_fpr(n, m, k), exact)


@always
@given(load=st.floats(0.3, 2.0), size=st.integers(1, 100), bits=st.integers(0, 30), spare=rates)
def test_a_prefix_filter_and_the_share_of_its_spare(load: float, size: int, bits: int, spare: float) -> None:
    with localcontext(prec=60):
        mean = Decimal(load) * size
        terms = [(-mean).exp()]
        for keys in range(1, 20 * size + 200):
            terms.append(terms[-1] * mean / keys)
        share = sum((keys - size) * term for keys, term in enumerate(terms) if keys > size) / mean
        rate = min(Decimal(1), Decimal(load) / 2**bits + share * Decimal(spare))
    assert same(theory.prefix_spare_share(load, size), share)
    assert same(theory.prefix_fpr(bits, load, spare, size), rate, off=1e-300)


@always
@given(rate=rates, tightening=st.floats(0.01, 0.99), stage=st.integers(0, 60))
def test_the_rate_of_a_stage(rate: float, tightening: float, stage: int) -> None:
    exact = Fraction(rate) * (1 - Fraction(tightening)) * Fraction(tightening) ** stage
    assert same(theory.stage_fpr(rate, tightening, stage), exact)


@always
@given(chances=st.lists(st.floats(0.0, 1.0), max_size=20))
def test_lookups_in_several_filters(chances: list[float]) -> None:
    exact = 1 - math.prod(1 - Fraction(chance) for chance in chances)
    assert same(theory.compound_fpr(chances), exact)


@always
@given(
    cells=st.integers(21, 10**6),
    k=hashes,
    decrements=st.integers(1, 1000),
    top=st.sampled_from([1, 3, 15]),
    age=st.floats(0.0, 1e6),
)
def test_a_stable_filter(cells: int, k: int, decrements: int, top: int, age: float) -> None:
    zeros = (1 / (1 + 1 / (decrements * (Fraction(1, k) - Fraction(1, cells))))) ** top
    limit = (1 - zeros) ** k
    with localcontext(prec=60):
        mean = Decimal(age) * (decrements + k) / cells
        terms = [(-mean).exp()]
        for i in range(1, top):
            terms.append(terms[-1] * mean / i)
        zero = Decimal(zeros.numerator) / zeros.denominator * (1 - sum(terms))
        found = (1 - zero) ** k
    shape = (cells, k, decrements, top)
    assert same(theory.stable_zeros(*shape), zeros)
    # 1 - z loses three digits where the zeros are 0.999 of all cells, K times over.
    assert same(theory.stable_limit_fpr(*shape), limit, rel=1e-11)
    assert same(theory.stable_recall(age, *shape), found, rel=1e-10)


def test_an_unknown_law_is_refused() -> None:
    for call in (("unheard", 1.0), ("any_of", 0.5), ("cuckoo",)):
        with pytest.raises(fullbloom.ParameterError, match="no law"):
            _core.law(*call)


@pytest.mark.parametrize("items", [10, 500, 1000])
def test_the_estimate_of_keys(items: int) -> None:
    f = fullbloom.BloomFilter(1000, 0.01, layout="classic")
    f.update(range(items))
    mine = theory.estimate_items(round(f.fill * f.num_bits), f.num_bits, f.num_hashes)
    # Theory has 1/m for -ln(1 - 1/m): half a share of 1/m less.
    assert mine == pytest.approx(f.approx_count(), rel=1 / f.num_bits)


@pytest.mark.parametrize("threshold", [1, 2, 3])
@pytest.mark.parametrize("items", [200, 20_000])
def test_the_rate_of_counters_at_a_threshold(items: int, threshold: int) -> None:
    f = fullbloom.CountingBloomFilter(items, 0.01, layout="classic", threshold=threshold)
    f.update(range(items))
    law = theory.threshold_fpr(f.approx_count()[0], f.num_counters, f.num_hashes, threshold)
    # The published form leaves out terms of the order of k^2/m.
    assert f.fpr_at_least(threshold) == pytest.approx(law, rel=2 * f.num_hashes**2 / f.num_counters)


@pytest.mark.parametrize("increments", [2, 4, 8])
@pytest.mark.parametrize("items", [1000, 50_000])
def test_the_rate_of_variable_increments(items: int, increments: int) -> None:
    f = fullbloom.VariableIncrementFilter(items, 0.01, increments=increments)
    f.update(range(items))
    law = theory.variable_increment_fpr(f.approx_count()[0], f.num_counters, f.num_hashes, increments)
    assert f.fpr() == pytest.approx(law, rel=2 * f.num_hashes**2 / f.num_counters)


@pytest.mark.parametrize("areas", [1, 3, 9])
def test_the_rates_of_labels(areas: int) -> None:
    f = fullbloom.SpatialBloomFilter(900, 0.05, areas=areas)
    f.add_many(list(range(900)), [1 + key % areas for key in range(900)])
    laws = theory.spatial_cell_fprs(f.label_cells(), f.num_cells, f.num_hashes)
    assert f.label_rates() == pytest.approx(laws, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("growth", [1, 2, 4])
def test_the_capacity_of_stages(growth: int) -> None:
    f = fullbloom.ScalableBloomFilter(100, 0.01, growth=growth)
    f.update(range(2000))
    made = [stage["capacity"] for stage in f.stage_info()]
    assert len(made) > 2
    assert made == [theory.stage_capacity(100, growth, i) for i in range(len(made))]
    rates = [stage["target_fpr"] for stage in f.stage_info()]
    assert rates == pytest.approx(
        [0.01 * (1 - f.tightening) * f.tightening**i for i in range(len(made))], rel=1e-12
    )
