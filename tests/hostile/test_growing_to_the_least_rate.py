"""A growing filter whose rate is used up says so: the bound on the whole is never broken in silence."""

from __future__ import annotations

import pytest

import bloomery


@pytest.mark.parametrize("tightening", [0.5, 0.9])
def test_stages_at_the_least_rate_keep_the_bound_and_then_the_filter_is_full(tightening: float) -> None:
    seen = bloomery.ScalableBloomFilter(10_000, 1e-12, tightening=tightening)
    with pytest.raises(bloomery.FilterFull, match="1e-12 .*; build one with a larger initial_capacity or fpr"):
        seen.update(range(30_000_000))
    rates = [stage["target_fpr"] for stage in seen.stage_info()]
    rungs = [1e-12 * (1 - tightening) * tightening**i for i in range(len(rates))]
    assert sum(rates) <= 1e-12
    assert all(rate >= rung * (1 - 1e-9) for rate, rung in zip(rates, rungs, strict=True))
    assert rates[0] == rungs[0]
    assert all(seen.contains_many(range(seen.num_added)))
    assert bloomery.loads(seen.to_bytes()) == seen
    if tightening == 0.9:
        assert rates[-1] > rungs[-1] * 1.01  # held, where the rung is no longer to be had
