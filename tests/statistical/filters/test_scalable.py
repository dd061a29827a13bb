"""A growing filter stays below its rate however far it grows."""

from __future__ import annotations

import math
import random
from functools import partial
from typing import NamedTuple

import pytest
from support import (
    SCALE,
    SIGMAS,
    Keys,
    Variant,
    every_variant,
    pool,
    rates_at,
    sigmas_of,
    student,
    variants_with,
)

import fullbloom


@pytest.mark.parametrize("variant", every_variant("endless"))
@pytest.mark.parametrize("fpr", [0.1, 0.01, 0.001])
def test_the_total_rate_is_bounded_at_100_times(variant: Variant, fpr: float) -> None:
    filters, probes, initial = 6, 100_000 * SCALE, 1000
    for items in (initial, 10 * initial, 100 * initial):
        rates, stated = [], []
        for seed in range(filters):
            bloom = variant.make(initial, fpr, seed=seed)
            keys = Keys("random", seed)
            bloom.update(keys.take(items))
            assert bloom.stages >= int(math.log2(items / initial + 1))
            rates.append(float(bloom.contains_many(keys.take(probes)).mean()))
            stated.append(bloom.fpr())
        mean, sd = pool(rates, fpr, probes)
        assert mean <= fpr + SIGMAS * sd, (items, mean)
        model = math.fsum(stated) / filters
        mean, sd = pool(rates, model, probes)
        # Cells of several bits state a rate that scatters with their fill, so that six filters tell their
        # own deviation too poorly for a normal quantile.
        deviations = SIGMAS if variant.layout else student(SIGMAS, filters - 1)
        assert abs(mean - model) <= deviations * sd, (items, mean, model)


@pytest.mark.parametrize(("growth", "tightening"), [(1.0, 0.9), (1.5, 0.5), (2.0, 0.8), (4.0, 0.25)])
def test_any_growth_and_tightening(growth: float, tightening: float) -> None:
    make = partial(fullbloom.ScalableBloomFilter, 500, 0.01, growth=growth, tightening=tightening)
    assert (make().growth, make().tightening) == (growth, tightening)
    rates, _ = rates_at(lambda seed: make(seed=seed), 10_000, 6, 100_000)
    mean, sd = pool(rates, 0.01, 100_000)
    assert mean <= 0.01 + SIGMAS * sd


@pytest.mark.parametrize("variant", every_variant("endless"))
def test_stages_follow_the_plan(variant: Variant) -> None:
    bloom = variant.make(100, 0.01)
    assert bloom.stages == 1
    for key in range(101):
        bloom.add(key)
    # One key fewer than added may count as new when a false positive was met.
    bloom.update(range(101, 110))
    assert bloom.stages == 2
    bloom.update(range(110, 1500))
    stages = bloom.stage_info()
    assert len(stages) == bloom.stages == 4
    for i, stage in enumerate(stages):
        assert stage["capacity"] == 100 * 2**i
        assert stage["target_fpr"] == pytest.approx(0.01 * 0.5 * 0.5**i)
        assert stage["num_added"] <= stage["capacity"]
    assert sum(stage["num_added"] for stage in stages) == bloom.num_added
    estimate, sd = bloom.approx_count()
    assert abs(estimate - bloom.num_added) <= sigmas_of(len(every_variant("endless"))) * sd
    bloom.clear()
    assert (bloom.stages, bloom.num_added) == (1, 0)


@pytest.mark.parametrize("variant", every_variant("endless"))
def test_growing_never_warns(variant: Variant, recwarn: pytest.WarningsRecorder) -> None:
    bloom = variant.make(10, 0.01)
    bloom.update(range(5000))
    assert not recwarn.list
    assert all(bloom.contains_many(range(5000)))


class Measured(NamedTuple):
    """A chain of bits: its rate, and what the law, the product and the sum of its stages' rates say."""

    rate: float
    law: float
    product: float
    sum: float


def chains_of_bits(seed: int, filters: int, probes: int) -> tuple[str, list[Measured]]:
    """Several filters of one kind with parameters drawn at random, filled through three to five stages."""
    rng = random.Random(seed)
    exact = [v for v in variants_with("endless") if v.kind in (None, "counting", "layered")]
    variant = rng.choice(exact)
    fpr, growth, tightening = rng.uniform(0.05, 0.3), rng.uniform(1, 4), rng.uniform(0.3, 0.8)
    initial, stages = rng.randrange(500, 3000), rng.randint(3, 5)
    keys = sum(int(initial * growth**i) for i in range(stages)) - initial // 2
    found = []
    for i in range(filters):
        instance = variant.make(initial, fpr, growth=growth, tightening=tightening, seed=rng.randrange(2**64))
        source = Keys("random", 1000 * seed + i)
        instance.update(source.take(keys))
        rates = [stage["fpr"] for stage in instance.stage_info()]
        rate = float(instance.contains_many(source.take(probes)).mean())
        product = 1 - math.prod(1 - rate for rate in rates)
        found.append(Measured(rate, instance.fpr(), product, math.fsum(rates)))
    return f"{variant.id} {fpr:.3f} growth {growth:.2f} tightening {tightening:.2f} initial {initial}", found


def excess(found: list[Measured], said: str) -> tuple[float, float]:
    """By how much the measured rates are above what is said, in the mean, with its standard deviation."""
    values = [(m.rate - getattr(m, said)) / m.law for m in found]
    mean = math.fsum(values) / len(values)
    variance = math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1)
    return mean, math.sqrt(variance / len(values))


def test_the_law_of_a_chain_of_bits_holds_at_random_parameters_where_product_and_sum_do_not() -> None:
    filters, probes, everything = 6, 100_000 * SCALE, []
    for seed in range(16):
        what, found = chains_of_bits(seed, filters, probes)
        assert all(m.product <= m.law <= m.sum for m in found), what
        mean, sd = excess(found, "law")
        model = math.fsum(m.law for m in found) / filters
        floor = math.sqrt((1 - model) / (model * probes * filters))
        assert abs(mean) <= student(SIGMAS, filters - 1) * max(sd, floor), (what, mean)
        everything += found
    for said, sign in (("product", 1), ("sum", -1)):
        mean, sd = excess(everything, said)
        assert sign * mean > SIGMAS * sd, (said, mean, sd)
        assert abs(mean) > abs(excess(everything, "law")[0]) + SIGMAS * sd, (said, mean)
