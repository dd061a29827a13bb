"""A window of time keeps a key as long as it says, to the last digit of the clock."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest
from support import Variant, variants_with

TIMED = [
    variant
    for variant in variants_with()
    if any(name == "window" for name, _, _ in variant.row["parameters"])
]


def _last_time(added: float, window: float) -> float:
    """Return the last time at which the age of what was added is not beyond ``window``."""
    now = math.nextafter(added + window, math.inf)
    while Fraction(now) - Fraction(added) > Fraction(window):
        now = math.nextafter(now, -math.inf)
    return now


@pytest.mark.parametrize("variant", TIMED, ids=lambda variant: variant.id)
def test_a_key_is_found_until_its_age_exceeds_the_window(variant: Variant):
    draw = random.Random(11)
    generations = any(name == "generations" for name, _, _ in variant.row["parameters"])
    for _ in range(1500):
        window = draw.choice([60.0, 0.1, 0.3, 7.7, 3600.0, draw.uniform(1e-3, 1e5)])
        parts = draw.randrange(2, 17) if generations else 2
        seen = variant.make(10, 0.01, window=window, **({"generations": parts} if generations else {}))
        now = draw.choice([0.0, 1e9, draw.uniform(1e9, 2e9)])
        seen.advance(now)
        kept = []
        for key in range(6):
            # Times at, just before and just after the ends of generations.
            now = max(now, now + draw.randrange(1, 4) * window / (parts - 1))
            now = max(seen.now, math.nextafter(now, draw.choice([-math.inf, now, math.inf])))
            seen.advance(now)
            seen.add(key)
            kept.append((key, now))
        key, added = draw.choice(kept)
        now = max(now, _last_time(added, window))
        if Fraction(now) - Fraction(added) <= Fraction(window):
            seen.advance(now)
            assert key in seen, (window, parts, added, now)
