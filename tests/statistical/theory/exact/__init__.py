"""A second implementation of every function of ``fullbloom.theory`` in exact arithmetic, with random
arguments."""

from . import (
    bits,
    cascade,
    cells,
    costs,
    golomb,
    invertible,
    levels,
    networked,
    ribbon,
    signatures,
    streams,
    zone,
)
from .arithmetic import CASES, Case, in_digits

__all__ = [
    "CASES",
    "Case",
    "bits",
    "cascade",
    "cells",
    "costs",
    "golomb",
    "in_digits",
    "invertible",
    "levels",
    "networked",
    "ribbon",
    "signatures",
    "streams",
    "zone",
]
