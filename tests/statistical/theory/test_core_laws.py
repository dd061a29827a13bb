"""Laws that theory computes independently match the numbers that filters report; unknown laws are refused."""

from __future__ import annotations

import pytest
from cases import for_each

import fullbloom
from fullbloom import _core, theory


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


@for_each("threshold", [1, 2, 3])
@for_each("items", [200, 20_000])
def test_the_rate_of_counters_at_a_threshold(items: int, threshold: int) -> None:
    f = fullbloom.CountingBloomFilter(items, 0.01, layout="classic", threshold=threshold)
    f.update(range(items))
    law = theory.threshold_fpr(f.approx_count()[0], f.num_counters, f.num_hashes, threshold)
    # The published form leaves out terms of the order of k^2/m.
    assert f.fpr_at_least(threshold) == pytest.approx(law, rel=2 * f.num_hashes**2 / f.num_counters)


@for_each("increments", [2, 4, 8])
@for_each("items", [1000, 50_000])
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
    instance = [stage["capacity"] for stage in f.stage_info()]
    assert len(instance) > 2
    assert instance == [theory.stage_capacity(100, growth, i) for i in range(len(instance))]
    rates = [stage["target_fpr"] for stage in f.stage_info()]
    assert rates == pytest.approx(
        [0.01 * (1 - f.tightening) * f.tightening**i for i in range(len(instance))], rel=1e-12
    )
