"""The law of a cascade."""

from __future__ import annotations

from decimal import Decimal

from .arithmetic import count, dec, exactly


@exactly(lambda r: (count(r, 1e9), count(r, 1e9)))
def cascade_bits(included: int, excluded: int) -> Decimal:
    """Each level at the real optimum of k, ``-log2(p) / ln 2`` bits per key, until no keys are left."""
    r, s = dec(min(included, excluded)), dec(max(included, excluded))
    two = Decimal(2).ln()
    first = Decimal(1) / Decimal(2).sqrt() * r / s
    bits = -r * first.ln() / two
    # The keys wrongly found: of the larger set, of the smaller one, and so on.
    here, there = s * first, r
    while here > Decimal("1e-30"):
        bits += here
        here, there = there / 2, here
    return bits / two
