"""Every function of ``fullbloom.theory`` a second time, plainly, in exact arithmetic, with arguments at
random."""

from . import bits, cascade, cells, golomb, invertible, ribbon, streams, zone
from .arithmetic import CASES, Case, in_digits

__all__ = [
    "CASES",
    "Case",
    "bits",
    "cascade",
    "cells",
    "golomb",
    "in_digits",
    "invertible",
    "ribbon",
    "streams",
    "zone",
]
