"""Guarantee: novelty follows the paper's rule exactly, and with hashed units it is a Bloom filter."""

from __future__ import annotations

import random

import pytest

from fullbloom import BloomFilter, ParameterError
from fullbloom.recipes.novelty import HashUnits, NoveltyFilter, Projection

SEED = random.SystemRandom().getrandbits(32)


class Fixed:
    """Units that are the input itself."""

    def __init__(self, num_units):
        self.num_units = num_units

    def __call__(self, item):
        return item


def test_weights_follow_the_rule_of_the_paper_step_by_step():
    draw = random.Random(SEED)
    for _ in range(20):
        size, decay, recovery = draw.randint(2, 40), draw.random(), draw.choice([0.0, draw.random() / 10])
        fly = NoveltyFilter(Fixed(size), decay=decay, recovery=recovery)
        weights = [1.0] * size
        for _ in range(100):
            chosen = draw.sample(range(size), draw.randint(1, size))
            novelty = sum(weights[unit] for unit in chosen) / len(chosen)
            assert fly.measure(chosen) == pytest.approx(novelty), SEED
            assert fly.observe(chosen) == pytest.approx(novelty), SEED
            weights = [
                weight * decay if unit in chosen else min(1.0, weight + recovery)
                for unit, weight in enumerate(weights)
            ]


def test_with_hashed_units_and_no_recovery_it_is_a_bloom_filter():
    draw = random.Random(SEED)
    num_bits, num_hashes, seed = draw.randint(500, 3000), draw.randint(1, 8), draw.getrandbits(64)
    fly = NoveltyFilter(HashUnits(num_bits, num_hashes, seed=seed))
    bloom = BloomFilter.with_shape(num_bits, num_hashes, seed=seed, capacity=1000)
    for _ in range(300):
        key = draw.randrange(1000)
        fly.observe(key)
        bloom.add(key)
    assert all((fly.measure(key) == 0) == (key in bloom) for key in range(2000)), SEED


def test_what_resembles_a_known_input_is_less_novel_than_what_does_not():
    draw = random.Random(SEED)
    near, far = [], []
    for _ in range(10):
        fly = NoveltyFilter(Projection(50, seed=draw.getrandbits(32)))
        known = [draw.expovariate(1) for _ in range(50)]
        fly.observe(known)
        near.append(fly.measure([number + draw.gauss(0, 0.1) for number in known]))
        far.append(fly.measure([draw.expovariate(1) for _ in range(50)]))
    assert max(near) < min(far), SEED


def test_scaling_an_input_does_not_change_its_units():
    draw = random.Random(SEED)
    units = Projection(20, num_units=300, inputs_per_unit=draw.randint(1, 20), seed=SEED)
    item = [draw.random() for _ in range(20)]
    assert units(item) == units([4.0 * number for number in item])
    assert len(set(units(item))) == units.num_winners == 15


def test_a_known_input_becomes_novel_again_with_time():
    fly = NoveltyFilter(Fixed(2), recovery=0.1)
    fly.observe([0])
    found = []
    for _ in range(12):
        fly.observe([1])
        found.append(fly.measure([0]))
    assert found == sorted(found)
    assert found[-1] == 1.0


@pytest.mark.parametrize(
    "make",
    [
        lambda: Projection(0),
        lambda: Projection(5, inputs_per_unit=6),
        lambda: Projection(5, inputs_per_unit=2, winners=0.0),
        lambda: Projection(5, inputs_per_unit=2, num_units=0),
        lambda: NoveltyFilter(Fixed(3), decay=2.0),
        lambda: NoveltyFilter(Fixed(3), recovery=float("nan")),
        lambda: Projection(6)([1.0]),
    ],
)
def test_numbers_out_of_range_are_refused(make):
    with pytest.raises(ParameterError):
        make()
