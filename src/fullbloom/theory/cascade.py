"""The law of a cascade: the bits it takes to separate two sets."""

from __future__ import annotations

from ._check import check_non_negative
from ._vector import vectorize
from .constructor import evaluate_law


@vectorize
def cascade_bits(included: float, excluded: float) -> float:
    """Return the expected bits of a cascade that separates ``included`` keys from ``excluded`` others.

    ``r (log2(s / r) + 1/2 + sqrt(1/2) / (1 - sqrt(1/2))) / ln 2``, about ``1.44 r log2(s / r) + 4.2 r``, r
    the smaller number: the first level at rate ``sqrt(1/2) r / s``, all others at 1/2. 0 if one of them is
    0. Levels of a real cascade have a whole number of probes and of bits, which costs 3 to 4 % more at a
    thousand keys and less than 1 % from 100,000 on. Raises ``ParameterError`` unless both are >= 0. Constant
    time.

    Source: Larisch et al., "CRLite", 2017, with the rates that take the fewest bits. Computed by the core.

    >>> from fullbloom import theory
    >>> round(theory.cascade_bits(included=100_000, excluded=1_000_000))
    899685
    """
    return evaluate_law(
        "cascade", check_non_negative("included", included), check_non_negative("excluded", excluded)
    )
