"""Guarantee: novelty follows the paper's rule exactly, and with hashed units it is a Bloom filter."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from fullbloom import BloomFilter, ParameterError, ParameterTypeError
from fullbloom.recipes.novelty import HashUnits, NoveltyFilter, Projection

SEED = 1970

#: The inputs of each unit, the units chosen, and the novelty of six inputs, as written down in 2026.
GOLDEN_INPUTS = [
    [0, 2, 3],
    [1, 5, 7],
    [0, 3, 5],
    [0, 1, 4],
    [0, 1, 5],
    [1, 3, 4],
    [0, 4, 6],
    [1, 2, 4],
    [0, 2, 5],
    [0, 4, 5],
    [4, 5, 7],
    [2, 4, 5],
    [4, 6, 7],
    [0, 3, 4],
    [0, 1, 2],
    [0, 1, 2],
    [2, 3, 7],
    [1, 6, 7],
    [1, 3, 4],
    [1, 3, 4],
]
GOLDEN_UNITS = [12, 10, 17, 1, 16]
GOLDEN_NOVELTY = [
    "0x1.0000000000000p+0",
    "0x1.0000000000000p+0",
    "0x1.b851eb851eb85p-1",
    "0x1.2d0e560418937p-1",
    "0x1.75c28f5c28f5cp-1",
    "0x1.df3b645a1cac0p-3",
]


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


def test_units_are_ranked_by_exact_sums_whatever_the_magnitudes():
    """Sums of floats depend on their order, and from Python 3.12 on on the release."""
    draw = random.Random(SEED)
    for seed in range(10):
        units = Projection(12, num_units=40, winners=1.0, inputs_per_unit=5, seed=seed)
        item = [draw.choice([1e16, -1e16, 1.0, 3.0, 1e300, -1e300, 2.0**-40]) for _ in range(12)]
        sums = [sum(Fraction(item[at]) for at in chosen) for chosen in units.inputs]
        # Equal up to the rounding of the exact sum: its float.
        expected = sorted(range(40), key=lambda unit: (-float(sums[unit]), unit))
        assert list(units(item)) == expected, (SEED, seed)


def test_projection_and_novelty_are_pinned():
    """Golden vectors: the same on every machine, and for every release of Python and NumPy."""
    units = Projection(8, num_units=20, inputs_per_unit=3, winners=0.25, seed=42)
    assert units.inputs == GOLDEN_INPUTS
    item = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
    assert list(units(item)) == GOLDEN_UNITS
    fly = NoveltyFilter(units, decay=0.3, recovery=0.01)
    draw = [[(7 * row + 3 * at) % 11 / 10 for at in range(8)] for row in range(6)]
    assert [fly.observe(row).hex() for row in draw] == GOLDEN_NOVELTY


def test_numpy_numbers_of_any_width_count_as_their_values():
    """Sums in 8 bits would wrap, and in 32 bits round."""
    np = pytest.importorskip("numpy")
    units = Projection(20, num_units=100, seed=SEED)
    values = [random.Random(SEED + at).randrange(150, 256) for at in range(20)]
    for dtype in (np.uint8, np.float32, np.float64, np.int64):
        assert list(units(np.array(values, dtype))) == list(units(values)), dtype


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf"), 1e308, 10**400])
def test_numbers_without_an_order_or_a_sum_are_refused(bad):
    with pytest.raises(ParameterError, match="from -1e"):
        Projection(6)([1.0, bad, 1.0, 1.0, 1.0, 1.0])


@pytest.mark.parametrize("bad", ["1", None, b"1", 1j])
def test_inputs_must_be_numbers(bad):
    with pytest.raises(ParameterTypeError, match="numbers"):
        Projection(6)([1.0, bad, 1.0, 1.0, 1.0, 1.0])


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
