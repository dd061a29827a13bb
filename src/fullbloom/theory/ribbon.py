"""Ribbon filters: the rate by result bits, the chance that keys do not fit, bits per key.

A key is an equation of 64 coefficients that begins at a random slot. Keys that do not fit into a ribbon go to
the next; the last ribbon takes all, with another seed if the first attempt fails.

Sources: Dillinger and Walzer, "Ribbon filter: practically smaller than Bloom and xor", 2021; Dillinger,
Huebschle-Schneider, Sanders and Walzer, "Fast succinct retrieval and approximate membership using ribbon",
SEA 2022.
"""

from __future__ import annotations

from ._check import check_open_unit, check_positive
from ._vector import vectorize
from .constructor import evaluate_law


@vectorize
def ribbon_failure(keys: float, starts: float) -> float:
    """Return the chance that keys do not fit into one ribbon: ``1 - exp(-4 n e^2 exp(-128 e))``.

    starts: slots in which a key may begin; e = starts / n - 1. Keys that wait for a slot form a queue whose
    length has Kingman's tail, exp(-2 e) per place; it must stay below 64. The factor is measured: accurate to
    a factor of two for n e^2 >= 12 and e < 0.09, a bound for smaller n e^2. From e = 0.09 on, where at most
    one in some hundred fails, only the order of magnitude is right. Raises ``ParameterError`` unless both are
    positive. Constant time.

    Computed by the core.

    >>> from fullbloom import theory
    >>> round(theory.ribbon_failure(32_000, 33_600), 2)
    0.41
    """
    return evaluate_law("ribbon_failure", check_positive("keys", keys), check_positive("starts", starts))


@vectorize
def ribbon_bits_per_key(fpr: float) -> float:
    """Return the bits per key of a large ribbon filter of this rate.

    Between 2^-r and 2^-(r + 1) a share s of the keys has r result bits and the others one more, ``fpr =
    2^-(r+1) (1 + s)``: r + 1 - s on average, at 1/1.02 slots per key; 2.35 % of the keys go to the next
    ribbon, at 1.05; each 128 slots have a threshold of two bits. Raises ``ParameterError`` unless fpr is in
    (0, 1). Constant time.

    Computed by the core.

    >>> from fullbloom import theory
    >>> round(theory.ribbon_bits_per_key(0.01), 2), round(theory.min_bits_per_key(0.01), 2)
    (6.77, 6.64)
    """
    return evaluate_law("ribbon_bits", check_open_unit("fpr", fpr))
