"""Maps: the rate of absent keys, also of small ones, whose cells mostly belong to no key."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from support import Keys, binomial_sd, sigmas_of

import fullbloom
from fullbloom import theory

RANDOM = Random(23)
SIZES = [1, 2, 3, *(int(10 ** RANDOM.uniform(0.5, 5)) for _ in range(9))]


@pytest.mark.parametrize("arity", [3, 4])
@pytest.mark.parametrize("size", SIZES)
def test_a_map_whose_values_change_keeps_its_rate(size: int, arity: int) -> None:
    found = trials = rate = 0.0
    builds = max(1, min(60, 20_000 // size))
    for seed in range(builds):
        source = Keys("random", 100 * size + seed)
        keys = source.take(size)
        instance = fullbloom.BloomierMap.build(
            keys, np.zeros(size, np.uint64), check_bits=1, value_bits=1, mutable=True, arity=arity, seed=seed
        )
        found += int(instance.contains_many(source.take(5000)).sum())
        trials += 5000
        rate += instance.fpr() / builds
    # Keys of one map share its cells: maps scatter beside the trials.
    off = sigmas_of(2 * len(SIZES)) * (binomial_sd(rate, int(trials)) + 0.06 / builds**0.5 / size)
    assert found / trials <= rate + off
    assert found / trials >= rate / 1.05 - off

    assert rate == pytest.approx(theory.bloomier_fpr(1, arity, mutable=True, keys=size), rel=1e-12)
