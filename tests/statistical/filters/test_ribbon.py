"""The ribbon filter keeps any rate, at the size of its law, and builds as often as it fails."""

from __future__ import annotations

import math
import zlib

import numpy as np
import pytest
from hostile.container import File
from support import SCALE, chance

from fullbloom import RibbonFilter, theory

PROBES = 400_000 * SCALE


@pytest.mark.parametrize("fpr", [0.7, 0.05, 0.01, 0.001, 1e-5])
@pytest.mark.parametrize("keys", [100, 5_000, 300_000])
def test_any_rate_is_kept_and_no_key_is_lost(keys: int, fpr: float) -> None:
    made = RibbonFilter.build(np.arange(keys), fpr, seed=keys)
    assert made.contains_many(np.arange(keys)).all()
    found = int(made.contains_many(np.arange(keys, keys + PROBES)).sum())
    assert made.fpr() <= fpr
    assert abs(found - made.fpr() * PROBES) <= chance(made.fpr() * PROBES)


@pytest.mark.parametrize("fpr", [0.1, 0.01, 0.0001])
@pytest.mark.parametrize("keys", [100_000, 300_000, 1_000_000])
def test_the_size_is_that_of_the_law(keys: int, fpr: float) -> None:
    made = RibbonFilter.build(np.arange(keys), fpr)
    # Of each ribbon two blocks, one begun and one to reach into, are more; the table has 64 bytes.
    more = (6 * 64 * math.log2(2 / fpr) + 64 * 8) / keys
    law = theory.ribbon_bits_per_key(fpr)
    assert law * 0.998 <= made.nbytes * 8 / keys <= law * 1.005 + more


@pytest.mark.parametrize("keys", [1_000, 10_000, 100_000])
def test_fewer_ribbons_fail_the_more_slots_they_have(keys: int) -> None:
    chances = [theory.ribbon_failure(keys, keys * (1 + more)) for more in (0.04, 0.06, 0.08, 0.1)]
    assert chances == sorted(chances, reverse=True)
    assert chances[-1] < 0.03 * keys / 100_000


def test_the_bytes_of_three_ribbons_stay() -> None:
    """3,300 keys are passed on, some of them twice; no golden file is that long."""
    made = RibbonFilter.build(np.arange(150_000), 0.01, seed=5)
    assert zlib.crc32(File.parse(made.to_bytes()).payload) == 0xBD0CF50D
