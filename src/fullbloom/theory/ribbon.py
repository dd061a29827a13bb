"""Ribbon filters: the rate by result bits, how often keys do not fit, bits a key.

A key is an equation of 64 coefficients that begins at a random slot. What does not fit into a ribbon is
passed on to the next; the last takes all, at the second attempt when the first fails.

Sources: Dillinger and Walzer, "Ribbon filter: practically smaller than Bloom and xor", 2021; Dillinger,
Huebschle-Schneider, Sanders and Walzer, "Fast succinct retrieval and approximate membership using ribbon",
SEA 2022.
"""

from __future__ import annotations

from ._check import open_unit, positive
from ._law import law
from ._vector import vectorized

__all__ = ["ribbon_bits_per_key", "ribbon_failure"]


@vectorized
def ribbon_failure(keys: float, starts: float) -> float:
    """Return the chance that keys do not fit into one ribbon: ``1 - exp(-4 n e^2 exp(-128 e))``.

    starts: slots in which a key may begin; e = starts / n - 1. Keys that wait for a slot are a queue,
    whose length has Kingman's tail exp(-2 e) a place; it must stay below 64. The factor is measured:
    right to a factor of two where n e^2 >= 12 and e < 0.09, a bound where n e^2 is less. From e = 0.09
    on, where one in some hundred or fewer fails, only the order of magnitude is right. Raises
    ``ParameterError`` unless both are positive. Constant time.

    Handed on from the core.

    >>> from fullbloom import theory
    >>> round(theory.ribbon_failure(32_000, 33_600), 2)
    0.41
    """
    return law("ribbon_failure", positive("keys", keys), positive("starts", starts))


@vectorized
def ribbon_bits_per_key(fpr: float) -> float:
    """Return the bits a key of a large ribbon filter of this rate.

    Between 2^-r and 2^-(r + 1) a share s of the keys has r result bits and the others one more, ``fpr =
    2^-(r+1) (1 + s)``: r + 1 - s on average, at 1/1.02 slots a key; 2.35 % of the keys come once more, at
    1.05; two bits of threshold stand for 128 slots. Raises ``ParameterError`` unless fpr is in (0, 1).
    Constant time.

    Handed on from the core.

    >>> from fullbloom import theory
    >>> round(theory.ribbon_bits_per_key(0.01), 2), round(theory.min_bits_per_key(0.01), 2)
    (6.77, 6.64)
    """
    return law("ribbon_bits", open_unit("fpr", fpr))
