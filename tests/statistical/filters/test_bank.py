"""Guarantee: owners of a bank keep their rate up to the capacity, and the bound when they grow."""

from __future__ import annotations

import math

import numpy as np
import pytest
from support import SCALE

from fullbloom import FilterBank

#: Absent keys of an owner.
ASKED = 4000


def measure(bank: FilterBank, owners: int, keys: int, seed: int) -> tuple[float, float]:
    """Fill every owner up to ``keys`` new keys; return the mean rate and its standard error over owners."""
    draw = np.random.default_rng(seed)
    rates = []
    for owner in range(owners):
        held = bank.info(owner)["num_added"] if bank.has_owner(owner) else 0
        while held < keys:
            held += sum(bank.add_many(owner, draw.integers(0, 1 << 62, keys - held).tolist()))
        found = bank.contains_many(owner, draw.integers(-(1 << 62), 0, ASKED))
        rates.append(float(found.mean()))
    return float(np.mean(rates)), float(np.std(rates, ddof=1)) / math.sqrt(owners)


@pytest.mark.parametrize("seed", range(6))
def test_a_full_owner_keeps_its_rate_and_a_grown_one_the_bound(seed):
    draw = np.random.default_rng(seed)
    capacity, fpr = int(draw.integers(1, 800)), float(10 ** -draw.uniform(0.5, 2.5))
    max_fpr, growth = min(0.9, fpr * float(draw.uniform(1.1, 3))), float(draw.uniform(1, 3))
    options = {"max_fpr": max_fpr, "growth": growth, "seed": int(draw.integers(1 << 40))}
    print(f"FilterBank({capacity}, {fpr}, **{options})")
    bank = FilterBank(capacity, fpr, **options)
    owners = 120 * SCALE
    mean, error = measure(bank, owners, capacity, seed)
    assert mean <= fpr + 3 * error
    assert bank.info()["later_stages"] == 0
    ratio, total, bound = 1 - fpr / max_fpr, capacity, fpr
    for stage in range(1, 4):
        total += int(capacity * growth**stage)
        bound += fpr * ratio**stage
        mean, error = measure(bank, owners, total, seed + 100 * stage)
        assert mean <= bound + 3 * error
        assert bound < max_fpr
        assert bank.info()["later_stages"] == owners * stage
    # The model follows the measured rate.
    models = [bank.fpr(owner) for owner in range(owners)]
    assert float(np.mean(models)) == pytest.approx(mean, abs=4 * error + 0.05 * mean)
